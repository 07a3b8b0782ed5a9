"""The policy: all thresholds and choices that a decision depends on, with their defaults."""

from enum import StrEnum

from msgspec import Struct

from lifecycle.model.accounts import bot_name


class Mode(StrEnum):
    """What the bot does without a person's command."""

    OBSERVE = "observe"  #: Decides, but changes nothing, not even on command.
    PROPOSE = "propose"  #: Everything but merging, which needs the command `merge`.
    MERGE = "merge"  #: Everything, including merging.


class AutoMerge(StrEnum):
    """When the bot merges, within what `Mode` allows."""

    OFF = "off"  #: Never; people merge on GitHub.
    ON_COMMAND = "on-command"  #: On the command `merge`.
    WHEN_APPROVED = "when-approved"  #: In mode `merge` automatically, in `propose` on command.


class MergeMethod(StrEnum):
    """How GitHub merges a pull request."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


class NothingToShow(StrEnum):
    """What to do if an agent finishes without a commit."""

    ASK = "ask"  #: Ask people.
    DONE = "done"  #: End the session as done.


#: Instructions and settings of agents.
STEERING_FILES = (
    *("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".claude/**", ".codex/**"),
    *(".gemini/**", ".opencode/**", ".mcp.json", "opencode.json*", ".aider*"),
)
#: Configurations of CI and deployment services. The services run them for a pushed branch, with
#: secrets.
CI_FILES = (
    *(".circleci/**", ".gitlab-ci*.yml", ".gitlab/ci/**", ".travis.yml", "Jenkinsfile*"),
    *("azure-pipelines*.y*ml", ".azure-pipelines/**", ".azuredevops/**", ".buildkite/**"),
    *("bitbucket-pipelines.yml", "*appveyor.yml", ".cirrus.*", ".drone.*", ".woodpecker*/**"),
    *(".woodpecker.y*ml", ".semaphore/**", ".teamcity/**", "bamboo-specs/**", ".tekton/**"),
    *(".forgejo/**", ".gitea/**", ".build.yml", ".builds/**", ".zuul.*", ".zuul.d/**"),
    *("zuul.*", "zuul.d/**", ".prow*", "cloudbuild*.y*ml", "buildspec*.y*ml", "codefresh.y*ml"),
    *(".harness/**", "screwdriver.yaml", "wercker.yml", "netlify.toml", "vercel.json"),
)
#: Files that configure GitHub, CI services, or the programs that read the repository.
PROTECTED_PATHS = (
    *(".github/**", "CODEOWNERS", *CI_FILES, *STEERING_FILES),
    *(".gitmodules", ".npmrc"),
)


class Policy(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="kebab",
    cache_hash=True,
):
    """A team's choices for its sessions. Durations are in seconds unless named otherwise."""

    mode: Mode = Mode.PROPOSE
    auto_merge: AutoMerge = AutoMerge.WHEN_APPROVED
    merge_method: MergeMethod = MergeMethod.SQUASH  #: If the repository forbids it: another one.
    self_review: bool = False  #: Whether agents review their change first.
    self_review_seconds: float = 1800.0  #: Time limit for the self-review.
    draft: bool = False  #: Open pull requests as drafts until checks pass.
    reviewers: tuple[str, ...] = ()  #: Logins and `owner/team`, requested once checks pass.
    report_seconds: float = 60.0  #: Minimum interval between edits of a status comment.
    check_run: bool = True  #: Report the status as a check run; requires an App.
    state_labels: bool = False  #: Label the issue with the status.
    public_cost: bool = False  #: Show costs in public repositories.
    delete_branch: bool = True  #: Delete the session's branch after the merge.
    close_issue: bool = True  #: Close the issue after the merge.
    require_review: bool = True  #: Merge only with an approval, whatever GitHub requires.
    #: Whether approvals by people who pushed commits to the branch count.
    contributors_approve: bool = False
    #: A pull request that has one of these labels, or whose title matches one of these regular
    #: expressions, is not merged. Case is ignored.
    blocking_labels: tuple[str, ...] = ("do-not-merge",)
    blocking_titles: tuple[str, ...] = ("^(WIP|DO NOT MERGE)",)
    threads_block: bool = True  #: Unresolved threads of people count as requested changes.
    resolve_threads: bool = False  #: Resolve a thread when a commit answers it.
    bots: tuple[str, ...] = ()  #: Logins of bots whose comments and commands count like people's.
    #: The most messages about failed checks until all checks pass. Messages about refused commit
    #: messages, and messages about commits off the session's branch, each have the same limit.
    ci_repairs: int = 3
    conflict_repairs: int = 3  #: Messages about conflicts with the same base commit.
    review_rounds: int = 10  #: Messages about reviews before a person is notified.
    start_tries: int = 3  #: Failed starts before the session is `errored`.
    restarts: int = 3  #: Restarts in a row after failed runs; one more failure makes it `errored`.
    lost_runs: int = 10  #: The same for runs lost with their machine; one more makes it `killed`.
    settle_seconds: float = 60.0  #: Time after a push in which checks may still appear.
    #: Whether a pull request without checks waits if the last merged pull requests had some.
    expect_checks: bool = True
    #: Time without the expected checks until people are notified; 0 means never.
    checks_missing_seconds: float = 1800.0
    #: Time that checks may be pending until people are notified; 0 means no limit. After this time,
    #: a `merge` command merges without the pending checks that GitHub does not require.
    checks_pending_seconds: float = 7200.0
    #: Time without any event until people are notified of what is awaited; 0 means no limit.
    wait_seconds: float = 86_400.0
    review_debounce_seconds: float = 60.0  #: Time after the last comment until it is sent.
    review_escalation_seconds: float = 1800.0  #: Time without a commit after a review was sent.
    idle_seconds: float = 300.0  #: Time after which a `ready` agent is `idle`.
    stuck_seconds: float = 600.0  #: Time without progress until a session is `stuck`.
    message_grace_seconds: float = 15.0  #: Time after a message in which an agent counts as active.
    restart_seconds: float = 5.0  #: First delay before a restart; doubles with each failed run.
    merge_grace_seconds: float = 300.0  #: Time for the agent to finish after the merge.
    activity_timeout_seconds: float = 300.0  #: Maximum age of evidence that confirms `active`.
    probe_seconds: float = 300.0  #: Time of failed or conflicting probes until `stuck`.
    probe_rounds: int = 3  #: Number of such probes required as well.
    recent_activity_seconds: float = 60.0  #: Maximum age of evidence of recent activity.
    spawn_seconds: float = 600.0  #: Time limit of a start.
    park_seconds: float = 900.0  #: Time waiting for people until the program is stopped.
    #: Time without a message in a chat until its program is stopped; 0 means never.
    chat_idle_seconds: float = 3600.0
    nothing_to_show: NothingToShow = NothingToShow.ASK
    session_usd: float = 5.0  #: Since the last restore; budgets of 0 have no limit.
    session_hours: float = 2.0  #: Active hours since the last restore.
    session_tokens: int = 5_000_000  #: Since the last restore.
    issue_usd: float = 0.0  #: By all runs for the issue, before and after restores.
    issue_hours: float = 0.0
    issue_tokens: int = 0
    day_usd: float = 25.0  #: Per repository and UTC day.
    day_hours: float = 0.0
    day_tokens: int = 0
    person_usd: float = 0.0  #: Per UTC day and person who requested sessions.
    person_hours: float = 0.0
    person_tokens: int = 0
    agent_usd: float = 0.0  #: Per agent and UTC day.
    agent_hours: float = 0.0
    agent_tokens: int = 0
    #: In budgets, the price in dollars of a million tokens whose price is not known.
    unpriced_usd: float = 5.0
    budget_warning: float = 0.8  #: Share of a budget at which people are notified.
    #: Days for which the workspace of a session that ended without a merge is kept.
    workspace_days: float = 14.0
    pushes_per_hour: int = 10  #: Pushes and updates from the base, per session; if 0, no limit.
    #: Patterns, in git's syntax, of files whose changes are pushed only after the command `allow`,
    #: because a push may run workflows with secrets. A name without `/` matches in any directory.
    protected_paths: tuple[str, ...] = PROTECTED_PATHS
    max_file_mb: int = 25  #: A commit with a larger file is held; if 0, no limit.
    #: Emails or patterns of emails. Commits of other authors and committers are held. The bot's own
    #: email is always allowed.
    commit_authors: tuple[str, ...] = ()
    sign_commits: bool = False  #: Whether the bot signs commits before it pushes them.

    def lists(self, bot: str) -> bool:
        """Whether `bots` lists this bot, so that its comments and commands count like a person's.

        The suffix `[bot]` is optional.
        """
        return bot_name(bot) in map(bot_name, self.bots)

    @property
    def merges_by_itself(self) -> bool:
        """Whether the policy merges mergeable pull requests without a command, until a `cancel`."""
        return self.mode is Mode.MERGE and self.auto_merge is AutoMerge.WHEN_APPROVED


def delay(tries: int, first: float, most: float = 300.0) -> float:
    """Return the seconds to wait after `tries` failures: `first`, then doubled, up to `most`."""
    return min(most, first * 2.0 ** max(0, min(tries, 32) - 1))
