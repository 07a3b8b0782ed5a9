"""What `mergewright.toml` may say. The defaults here are the ones `default.toml` documents."""

import re
from datetime import date
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field

from lifecycle.model.policy import Policy

Count = Annotated[int, Meta(ge=1)]
AtMost = Annotated[int, Meta(ge=0)]  #: 0: no limit.
Seconds = Annotated[float, Meta(gt=0)]
Days = Annotated[float, Meta(gt=0)]
Dollars = Annotated[float, Meta(ge=0)]
Port = Annotated[int, Meta(ge=0, le=65535)]

#: A project's name becomes part of session ids, branches, folders and tmux names.
PROJECT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")


class SettingsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of the file: keys in kebab-case, unknown ones refused."""


class ServerSettings(SettingsTable, frozen=True, kw_only=True):
    """Where Mergewright listens and keeps what it knows."""

    host: str = "127.0.0.1"
    port: Port = 8080  #: 0: any free one.
    data: str = "~/.local/share/mergewright"
    prompts: str = ""  #: A folder with prompts of one's own, in place of those of the same name.
    public_url: str = ""  #: How people reach the page; empty: `http://host:port/`.


class GitHubSettings(SettingsTable, frozen=True, kw_only=True):
    """Which GitHub, and as which App. Tokens and keys come from the environment."""

    api_url: str = "https://api.github.com/"
    git_url: str = ""  #: Where repositories are cloned from; empty: worked out, see `git_base`.
    app_id: str = ""  #: Empty: a token is used.
    #: What people call the App in comments: `@acme-bot` is heard like `@mergewright`.
    app_slug: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]*$")] = ""
    private_key_file: str = ""  #: Relative to the configuration file.
    #: Whether GitHub tells what happens, or is asked every `timing.poll-seconds`.
    events: Literal["webhooks", "polling"] = "webhooks"
    #: Whose installations of the App are used; those elsewhere are ignored.
    allowed_owners: tuple[str, ...] = ()

    @property
    def git_base(self) -> str:
        """The address in front of `owner/name.git`, with a slash at its end.

        `https://api.HOST/` -> `https://HOST/`, `https://HOST/api/v3/` -> `https://HOST/`. Empty
        where it is neither and `git-url` is not set.
        """
        if self.git_url:
            return self.git_url.rstrip("/") + "/"
        api = urlsplit(self.api_url)
        if api.netloc.startswith("api."):
            return f"{api.scheme}://{api.netloc.removeprefix('api.')}/"
        if api.path.rstrip("/") == "/api/v3":
            return f"{api.scheme}://{api.netloc}/"
        return ""


class ProjectSettings(SettingsTable, frozen=True, kw_only=True):
    """A repository Mergewright works in: `[projects.NAME]`."""

    repository: str  #: `owner/name`.
    label: Annotated[str, Meta(min_length=1, max_length=50)] = "mergewright"
    #: A machine user; an issue that is assigned to it gets a session too.
    assignee: Annotated[str, Meta(pattern=r"^@?[A-Za-z0-9-]*$")] = ""
    agent: str = "claude"  #: A name in `agent-types`.
    base_branch: str = ""  #: Empty: the repository's default.
    #: The branches made for it; with the issue's number, so that each has its own.
    branch: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9/_-]*\{number\}(-\{words\})?$")] = (
        "mergewright/{number}-{words}"
    )
    #: Where its branches are pushed to; "fork" keeps them from the secrets of the repository's CI.
    push_to: Literal["repository", "fork"] = "repository"
    fork: str = ""  #: `owner/name` of that fork.
    pull_title: Annotated[str, Meta(pattern=r"\{title\}")] = "{title}"  #: Also `{number}`.
    pull_labels: tuple[str, ...] = ()  #: Labels its pull requests are opened with.
    sign_off: bool = False  #: Whether commits end with a `Signed-off-by`.
    #: By agent type, the variable with the project's model key, in place of the type's.
    model_keys: dict[str, str] = field(default_factory=dict)
    bootstrap: tuple[str, ...] = ()  #: Shell lines that make a fresh workspace ready.
    max_parallel: AtMost = 0  #: Sessions of it that run a program at the same time.
    #: Who of several agents gets a new session: who is least busy, or who had the requester's last.
    affinity: Literal["none", "last"] = "none"
    people: tuple[str, ...] = ()  #: Who may steer besides those who may write to it.
    flaky_checks: tuple[str, ...] = ()  #: Names or patterns of checks that fail at random.

    @property
    def home(self) -> str:
        """The repository that its branches are in."""
        return self.fork if self.push_to == "fork" else self.repository


class AgentTypeSettings(SettingsTable, frozen=True, kw_only=True):
    """How an agent's program runs: `[agent-types.NAME]`."""

    program: str
    command: tuple[str, ...] = ()  #: The program and its first arguments; empty: the usual one.
    args: tuple[str, ...] = ()  #: More arguments, before the prompt.
    version: str = ""  #: The one that is meant to be installed; another one is told of.
    model: str = ""
    endpoint: str = ""  #: Where its model is, without a version; empty: its provider's own.
    key: str = ""  #: The server's variable with the key for it; the program never sees it.
    permission_mode: Literal["auto", "confirm", "reject"] = "auto"
    #: Whether it may run agents of its own inside its session, or how many at a time.
    intra_parallel: bool | Count = True
    #: How its agents are told their system prompt; empty: in the program's own best way.
    preamble: Literal["", "system-prompt", "instructions-file", "first-message"] = ""
    env: dict[str, str] = field(default_factory=dict)  #: Set for the program, as they stand.
    pass_env: tuple[str, ...] = ()  #: Names of the server's variables the program may see.
    max_parallel: AtMost = 0  #: Programs of it running at the same time.


class AgentSettings(SettingsTable, frozen=True, kw_only=True):
    """An agent by name, which keeps its history from session to session: `[agents.NAME]`."""

    types: Annotated[tuple[str, ...], Meta(min_length=1)]  #: Names in `agent-types`.
    #: By agent type, the variable with its own model key, in place of the type's.
    model_keys: dict[str, str] = field(default_factory=dict)
    #: The kinds of tools it is held to; empty: all that its program has.
    tools: tuple[Literal["read", "edit", "run", "web"], ...] = ()
    #: What it is told before anything else, in every run.
    system_prompt: Annotated[str, Meta(max_length=20_000)] = ""
    max_parallel: AtMost = 0  #: Sessions of it that run a program at the same time.


class ModelPrice(SettingsTable, frozen=True, kw_only=True):
    """What a million tokens of a model cost, in US dollars: `[prices."MODEL"]`."""

    input: Dollars
    output: Dollars  #: Reasoning too.
    cache_read: Dollars | None = None  #: None: as input, likewise below.
    cache_write: Dollars | None = None
    as_of: date  #: When somebody looked it up.


class RuntimeSettings(SettingsTable, frozen=True, kw_only=True):
    """Where the programs live."""

    kind: str = "tmux"
    #: `none` says that somebody chose to run agents with this user's rights.
    sandbox: Literal["none", ""] = ""
    #: Instructions and settings of agents, which no run may leave to the next one: they stand as on
    #: the base branch. A name alone is meant in every folder; `*` and `**` are git's.
    steering_files: tuple[str, ...] = (
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
    )


class LimitSettings(SettingsTable, frozen=True, kw_only=True):
    """How much at once."""

    sessions: Count = 4  #: Programs running at the same time; more wait in `queued`.
    per_person: AtMost = 0  #: Of them, for issues that one person asked for.
    reserved_for_people: AtMost = 0  #: Of them, kept for what a person asked for by a command.
    priority_seconds: Seconds = 3600.0  #: What `priority:high` is worth in time of waiting.
    memory_per_session_mb: AtMost = 1536  #: Free memory a start needs; 0: it is not looked at.
    memory_reserve_mb: AtMost = 512  #: Free memory that no start may take.
    webhook_bytes: Count = 26_214_400  #: GitHub sends at most 25 MiB.
    unverified_bytes: Count = 134_217_728  #: Of bodies whose signature is not checked yet.


class TimingSettings(SettingsTable, frozen=True, kw_only=True):
    """How often, and for how long."""

    sweep_seconds: Seconds = 5.0  #: Between two looks at the agents.
    poll_seconds: Seconds = 30.0  #: Between two looks at GitHub, where it is polled.
    resync_seconds: Seconds = 300.0  #: Between two looks at everything at GitHub.
    mutation_seconds: Seconds = 1.0  #: Between two changes at GitHub by one installation.
    lease_seconds: Seconds = 15.0  #: How long a bot that fell silent still holds the database.
    action_retry_seconds: Seconds = 2.0  #: The first wait before a retry; doubles up to 300.
    action_tries: Count = 8


class RetentionSettings(SettingsTable, frozen=True, kw_only=True):
    """What is kept for how long. Days are counted from the end of a session.

    How long a workspace is kept is a matter of `policy.workspace_days`.
    """

    transient_days: Days = 7.0  #: Deliveries, output, hooks, transcripts.
    durable_days: Days = 365.0  #: History, decisions, usage.
    preserved_days: Days = 90.0  #: Work kept in the mirror, since it was kept.
    archive_seconds: Seconds = 60.0  #: Between two copies of what the agents wrote.


class LogSettings(SettingsTable, frozen=True, kw_only=True):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class Settings(SettingsTable, frozen=True, kw_only=True):
    """The whole file."""

    server: ServerSettings = ServerSettings()
    github: GitHubSettings = GitHubSettings()
    projects: dict[str, ProjectSettings] = field(default_factory=dict)
    agent_types: dict[str, AgentTypeSettings] = field(default_factory=dict)
    agents: dict[str, AgentSettings] = field(default_factory=dict)
    prices: dict[str, ModelPrice] = field(default_factory=dict)  #: By a model's name, or a pattern.
    runtime: RuntimeSettings = RuntimeSettings()
    limits: LimitSettings = LimitSettings()
    timing: TimingSettings = TimingSettings()
    retention: RetentionSettings = RetentionSettings()
    log: LogSettings = LogSettings()
    policy: Policy = Policy()

    @property
    def data(self) -> Path:
        """The folder for everything Mergewright keeps, absolute."""
        return Path(self.server.data).expanduser().absolute()

    @property
    def prompts(self) -> Path | None:
        """The folder with prompts of one's own, absolute; None: there is none."""
        return Path(self.server.prompts).expanduser().absolute() if self.server.prompts else None

    @property
    def polls(self) -> bool:
        """Whether GitHub is asked what happened, because it cannot tell."""
        return self.github.events == "polling"

    @property
    def resync_seconds(self) -> float:
        """The time between two looks at everything at GitHub."""
        return self.timing.poll_seconds if self.polls else self.timing.resync_seconds

    @property
    def identities(self) -> dict[str, AgentSettings]:
        """Every agent there is: those of the file, and one named after each type without any."""
        named = {kind for agent in self.agents.values() for kind in agent.types}
        alone = [kind for kind in self.agent_types if kind not in named]
        return {**self.agents, **{kind: AgentSettings(types=(kind,)) for kind in alone}}

    @property
    def key_variables(self) -> dict[str, str]:
        """The variables that hold model keys, each with the first place that names it."""
        named = {
            f"agent-types.{name}.key": kind.key
            for name, kind in self.agent_types.items()
            if kind.key
        }
        for table, owners in (("projects", self.projects), ("agents", self.agents)):
            for name, owner in owners.items():
                for kind, variable in owner.model_keys.items():
                    named[f"{table}.{name}.model-keys.{kind}"] = variable
        return {variable: place for place, variable in reversed(named.items())}

    @property
    def public_url(self) -> str:
        """The page's address, with a slash at its end."""
        url = self.server.public_url or f"http://{self.server.host}:{self.server.port}"
        return url.rstrip("/") + "/"
