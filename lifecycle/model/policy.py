"""The thresholds and choices a decision depends on; the defaults are the documented ones."""

from enum import StrEnum

from msgspec import Struct


class Mode(StrEnum):
    """How far Mergewright goes by itself."""

    OBSERVE = "observe"  #: Decides and reports, touches nothing.
    PROPOSE = "propose"  #: Everything but merging, unless a person says `merge`.
    MERGE = "merge"  #: Merges what is approved and green.


class AutoMerge(StrEnum):
    """When something is merged, within what `Mode` allows."""

    OFF = "off"  #: Never: people merge on GitHub.
    ON_COMMAND = "on-command"  #: When a person says `merge`.
    WHEN_APPROVED = "when-approved"  #: By itself in the mode `merge`; on command in `propose`.


class MergeMethod(StrEnum):
    """How GitHub is asked to merge."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


class NothingToShow(StrEnum):
    """What becomes of a session whose agent ended well without a commit."""

    ASK = "ask"  #: People are asked.
    DONE = "done"  #: It is done.


#: What a program that reads the repository, or GitHub itself, takes orders from.
PROTECTED_PATHS = (
    ".github/**",
    "CODEOWNERS",
    "AGENTS.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".claude/**",
    ".codex/**",
    ".gemini/**",
    ".opencode/**",
    ".mcp.json",
    "opencode.json*",
    ".aider*",
    ".gitmodules",
    ".npmrc",
)


class Policy(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="kebab",
    cache_hash=True,
):
    """What a team decides about its sessions. Durations are seconds."""

    mode: Mode = Mode.PROPOSE
    auto_merge: AutoMerge = AutoMerge.WHEN_APPROVED
    merge_method: MergeMethod = MergeMethod.SQUASH  #: Another where the repository forbids it.
    self_review: bool = False  #: Whether an agent reads its change over before it is shown.
    self_review_seconds: float = 1800.0  #: The longest that its pull request waits for that.
    draft: bool = False  #: Whether pull requests are opened as drafts, until they are green.
    reviewers: tuple[str, ...] = ()  #: Who is asked once it is green: logins, `owner/team`.
    report_seconds: float = 60.0  #: The least time between two edits of one report.
    check_run: bool = True  #: Whether a check run says the same on the head; Apps alone may.
    state_labels: bool = False  #: Whether the issue wears a label for its session's status.
    public_cost: bool = False  #: Whether the cost is told in public repositories too.
    delete_branch: bool = True
    close_issue: bool = True
    require_review: bool = True  #: An approval is needed to merge, whatever GitHub requires.
    threads_block: bool = True  #: Unresolved threads of people count as changes requested.
    resolve_threads: bool = False  #: A thread is resolved when it is answered with a commit.
    bots: tuple[str, ...] = ()  #: Bots whose reviews and comments count like those of people.
    #: Messages about failed checks until they were green once; about commit messages, likewise.
    ci_repairs: int = 3
    conflict_repairs: int = 3  #: Messages about a conflict with one and the same base.
    review_rounds: int = 10  #: Messages about reviews until a person is told.
    start_tries: int = 3  #: Starts that may fail before the session is errored.
    restarts: int = 3  #: Runs in a row that may exit by an error before it is errored.
    losses: int = 10  #: Runs in a row that may be lost with what they ran on before it is killed.
    settle_seconds: float = 60.0  #: How long after a push "no checks" may still change.
    review_debounce_seconds: float = 60.0
    review_escalation_seconds: float = 1800.0
    idle_seconds: float = 300.0  #: When `ready` reads `idle`.
    stuck_seconds: float = 600.0
    hearing_seconds: float = 15.0  #: How long after a message a still quiet agent reads as at work.
    restart_seconds: float = 5.0  #: The first wait before a restart; doubles.
    merged_grace_seconds: float = 300.0  #: What an agent may still do after its merge.
    fresh_seconds: float = 300.0  #: How long `active` is believed without new evidence.
    probe_seconds: float = 300.0  #: How long probes may fail or disagree before it is stuck.
    probe_looks: int = 3  #: How many looks must agree on that.
    strong_seconds: float = 60.0  #: How long evidence is strong: recent activity.
    spawn_seconds: float = 600.0  #: How long a start may take before it has failed.
    park_seconds: float = 900.0  #: How long it waits on people before its program is stopped.
    nothing_to_show: NothingToShow = NothingToShow.ASK
    session_usd: float = 5.0  #: Since its last restore; 0: no limit, here and below.
    session_hours: float = 2.0  #: Of active time, since its last restore.
    #: Since its last restore. Agents that tell a price reach their dollars first, by default.
    session_tokens: int = 5_000_000
    issue_usd: float = 0.0  #: Over all its lives.
    day_usd: float = 25.0  #: Of a repository, each UTC day.
    budget_warning: float = 0.8  #: The part of a budget at which people are told.
    #: How long a session that ended without a merge keeps its workspace.
    workspace_days: float = 14.0
    pushes_per_hour: int = 10  #: Of one session; 0: no limit.
    #: What is not pushed before a person allows it: a push alone runs workflows with secrets.
    #: A name alone is meant in every folder; `*` and `**` are git's.
    protected_paths: tuple[str, ...] = PROTECTED_PATHS

    def lists(self, bot: str) -> bool:
        """Whether this bot's word counts; REST puts `[bot]` behind its name, people may not."""
        return _bare(bot) in map(_bare, self.bots)

    @property
    def merges_by_itself(self) -> bool:
        """Whether what is approved and green is merged without a person's word."""
        return self.mode is Mode.MERGE and self.auto_merge is AutoMerge.WHEN_APPROVED


def _bare(bot: str) -> str:
    return bot.casefold().removesuffix("[bot]")
