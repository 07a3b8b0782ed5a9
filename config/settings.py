"""The settings of `mergewright.toml` with their defaults, which `default.toml` documents."""

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, field

from config.tables import (
    AtMost,
    CheckoutPath,
    Count,
    Dollars,
    Isolation,
    LimitSettings,
    LogSettings,
    NotifierSettings,
    Port,
    RetentionSettings,
    SandboxSettings,
    Seconds,
    SettingsTable,
    SigningSettings,
    SignInSettings,
    SubmoduleName,
    TimingSettings,
    TracingSettings,
)
from lifecycle.model.policy import STEERING_FILES, Policy

#: A project's name becomes part of session ids, and so of folders, refs and tmux names.
PROJECT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")
#: The file of the database in the data directory.
DATABASE: Final = "mergewright.db"


class ServerSettings(SettingsTable, frozen=True, kw_only=True):
    """The address of the server and the location of its data: `[server]`."""

    host: str = "127.0.0.1"
    port: Port = 8080  #: If 0, any free port.
    data: str = "~/.local/share/mergewright"  #: The data directory.
    prompts: str = ""  #: A directory with prompts that replace Mergewright's of the same name.
    public_url: str = ""  #: If empty, `http://host:port/`.


class GitHubSettings(SettingsTable, frozen=True, kw_only=True):
    """GitHub's address and the App: `[github]`. Tokens and keys come from the environment."""

    api_url: str = "https://api.github.com/"
    git_url: str = ""  #: Base URL for cloning; if empty, see `git_base`.
    app_id: str = ""  #: If empty, use a token.
    #: The App's name in its URL; mentions of it work like `@mergewright`.
    app_slug: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9-]*$", description="the App's name in its URL")
    ] = ""
    private_key_file: str = ""  #: Relative to the configuration file.
    #: Whether GitHub sends webhooks or is polled every `timing.poll-seconds`.
    events: Literal["webhooks", "polling"] = "webhooks"
    #: Accounts whose installations of the App are used.
    allowed_owners: tuple[str, ...] = ()

    @property
    def git_base(self) -> str:
        """The URL in front of `owner/name.git`, with a trailing slash.

        `git-url`, or derived from `api-url`: `https://HOST/` for `https://api.HOST/` and for
        `https://HOST/api/v3/`. Empty if it cannot be derived.
        """
        if self.git_url:
            return self.git_url.rstrip("/") + "/"
        api = urlsplit(self.api_url)
        if api.netloc.startswith("api."):
            return f"{api.scheme}://{api.netloc.removeprefix('api.')}/"
        if api.path.rstrip("/") == "/api/v3":
            return f"{api.scheme}://{api.netloc}/"
        return ""


#: Templates with unknown names in braces are errors.
_ONLY_NAMES_OF_TITLE = r"^(?:[^{}\n]|\{(?:title|number|issue)\})*$"
_ONLY_NAMES_OF_MESSAGE = r"^(?:[^{}]|\{(?:title|number|issue|commits|body)\})*$"


class ProjectDefaults(SettingsTable, frozen=True, kw_only=True):
    """The settings that `[projects.NAME]` and `[installation.project]` have in common."""

    label: Annotated[str, Meta(min_length=1, max_length=50)] = "mergewright"
    #: The login of a machine user: assigning an issue to it starts a session, as the label does.
    assignee: Annotated[
        str, Meta(pattern=r"^@?[A-Za-z0-9-]*$", description="the login of an account")
    ] = ""
    agent: str = "claude"  #: A name in `agent-types`.
    base_branch: str = ""  #: If empty, the repository's default branch.
    #: The template of branch names. It contains the issue's number, which makes names unique.
    branch: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9/_-]*\{number\}(-\{words\})?$",
            description="lowercase letters, digits, /, _ and -, then {number} or {number}-{words}",
        ),
    ] = "mergewright/{number}-{words}"
    #: The template of pull requests' titles: `{title}`, and optionally `{number}`.
    pull_title: Annotated[str, Meta(pattern=r"\{title\}", description="text with {title}")] = (
        "{title}"
    )
    pull_labels: tuple[str, ...] = ()  #: Labels of new pull requests.
    #: The template of merge commits' titles; may contain `{title}`, `{number}` and `{issue}`.
    merge_title: Annotated[
        str,
        Meta(
            min_length=1,
            pattern=_ONLY_NAMES_OF_TITLE,
            description="one line, in braces only {title}, {number} and {issue}",
        ),
    ] = "{title} (#{number})"
    #: The template of their messages; also `{commits}` and `{body}`, the pull request's text.
    merge_message: Annotated[
        str,
        Meta(
            pattern=_ONLY_NAMES_OF_MESSAGE,
            description="in braces only {title}, {number}, {issue}, {commits} and {body}",
        ),
    ] = "{commits}"
    sign_off: bool = False  #: Whether commits get a `Signed-off-by` trailer.
    #: The environment variable with the project's model key, by agent type.
    model_keys: dict[str, str] = field(default_factory=dict)
    #: Whether agents read the project's mirror, or have a repository of their own.
    workspace: Literal["worktree", "clone"] = "worktree"
    fetch_depth: AtMost = 0  #: The most commits of each branch in a new clone; if 0, all.
    #: The only folders in checkouts, as in git's sparse checkout. If empty, checkouts have all
    #: files.
    sparse: tuple[CheckoutPath, ...] = ()
    #: Repositories that may be submodules: `owner/name`, or an HTTPS URL on another server.
    submodules: tuple[SubmoduleName, ...] = ()
    #: The most megabytes of Git LFS files in a checkout. If 0, checkouts have only pointers.
    lfs_max_mb: AtMost = 1000
    #: Shell commands that run once in a new workspace, before its first run.
    setup: tuple[str, ...] = ()
    teardown: tuple[str, ...] = ()  #: Shell commands that run before a workspace is removed.
    setup_seconds: Seconds = 900.0  #: Time limit of `setup`, and of `teardown`.
    bootstrap: tuple[str, ...] = ()  #: Shell lines before the agent's program in every run.
    test: tuple[str, ...] = ()  #: Shell commands that test a workspace, for `doctor --repo`.
    ports: Annotated[int, Meta(ge=0, le=100)] = 0  #: Ports that each session gets for itself.
    #: The range of these ports, `FIRST-LAST`.
    port_range: Annotated[
        str, Meta(pattern=r"^\d{1,5}-\d{1,5}$", description="FIRST-LAST such as 20000-29999")
    ] = "20000-29999"
    profile: str = ""  #: A name in `profiles`.
    isolation: Isolation = ""
    #: The hosts that isolated agents may reach; "open" means every public host. Ports other than
    #: those of HTTP and HTTPS have to be named.
    network: str | tuple[str, ...] = ()
    max_parallel: AtMost = 0  #: The most running sessions of the project; if 0, no limit.
    #: Which agent gets a new session: the least busy agent, the requester's last agent, or the
    #: agent whose merged sessions changed the files that the issue names.
    affinity: Literal["none", "last", "area"] = "none"
    people: tuple[str, ...] = ()  #: Logins that may give most commands without write access.
    flaky_checks: tuple[str, ...] = ()  #: Names or patterns of checks that fail randomly.
    #: The whole policy of this project; if None, the server's. The file has only the differences.
    policy: Policy | None = None

    @property
    def port_bounds(self) -> tuple[int, int]:
        """The first and the last port of `port_range`."""
        first, _, last = self.port_range.partition("-")
        return int(first), int(last)


class ProjectSettings(ProjectDefaults, frozen=True, kw_only=True):
    """A repository: `[projects.NAME]`."""

    repository: str  #: `owner/name`.
    #: "fork" keeps branches away from the secrets of the repository's CI.
    push_to: Literal["repository", "fork"] = "repository"
    fork: str = ""  #: `owner/name` of the fork.
    prompts: str = ""  #: A directory with prompts that replace the server's of the same name.
    #: The paths in `env_folder` of the files that are copied into workspaces.
    env_files: tuple[CheckoutPath, ...] = ()
    env_folder: str = ""

    @property
    def home(self) -> str:
        """The repository that branches are pushed to."""
        return self.fork if self.push_to == "fork" else self.repository


class InstallationSettings(SettingsTable, frozen=True, kw_only=True):
    """The App's installations, whose repositories become projects: `[installation]`."""

    #: Patterns of `owner/name`; repositories that match none are ignored.
    repositories: tuple[str, ...] = ()
    project: ProjectDefaults | None = None  #: The settings of these projects.


#: The kinds of tools of an agent's program.
Tool = Literal["read", "edit", "run", "web"]
PermissionMode = Literal["auto", "confirm", "reject"]


class ProfileSettings(SettingsTable, frozen=True, kw_only=True):
    """What agents may use if their agent type or project names the profile: `[profiles.NAME]`."""

    tools: tuple[Tool, ...] = ()  #: The allowed kinds of tools; all if empty.
    permission_mode: Literal["", PermissionMode] = ""  #: If empty, that of the agent type.
    #: The commands of the only allowed MCP servers, by name; "repository" means those that the
    #: repository configures.
    mcp_servers: (
        Literal["repository"] | dict[str, Annotated[tuple[str, ...], Meta(min_length=1)]]
    ) = "repository"
    hooks: bool = True  #: Whether hooks and other settings of the repository apply.


class AgentTypeSettings(SettingsTable, frozen=True, kw_only=True):
    """How to run an agent's program: `[agent-types.NAME]`."""

    program: str
    command: tuple[str, ...] = ()  #: Executable and first arguments; if empty, those of `program`.
    args: tuple[str, ...] = ()  #: Further arguments, before the prompt.
    version: str = ""  #: The expected version; another one causes a warning; if empty, any.
    model: str = ""  #: If empty, the program's default.
    endpoint: str = ""  #: The API's base URL without `/v1`; if empty, the provider's.
    key: str = ""  #: The environment variable with the model key, hidden from the program.
    permission_mode: PermissionMode = "auto"
    profile: str = ""  #: A name in `profiles`, or empty. The project's profile applies too.
    #: Whether an agent may start subagents, or how many at the same time.
    subagents: bool | Count = True
    #: How the program gets the system prompt. If empty, in the best way that it supports.
    preamble: Literal["", "system-prompt", "instructions-file", "first-message"] = ""
    env: dict[str, str] = field(default_factory=dict)  #: Environment variables for the program.
    pass_env: tuple[str, ...] = ()  #: Names of the server's variables that the program sees.
    isolation: Isolation = ""  #: The stronger of this and the project's isolation applies.
    max_parallel: AtMost = 0  #: The most running sessions of this type; if 0, no limit.


class AgentSettings(SettingsTable, frozen=True, kw_only=True):
    """A named agent, under whose name the record of its sessions is kept: `[agents.NAME]`."""

    types: Annotated[tuple[str, ...], Meta(min_length=1)]  #: Names in `agent-types`.
    #: The environment variable with the agent's model key, by agent type.
    model_keys: dict[str, str] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()  #: The allowed kinds of tools; all if empty.
    #: Instructions that every run of this agent gets.
    system_prompt: Annotated[str, Meta(max_length=20_000)] = ""
    max_parallel: AtMost = 0  #: The most running sessions of this agent; if 0, no limit.


def requestable(agents: Mapping[str, AgentSettings]) -> set[str]:
    """Return what labels and commands may name: these agents, their types and `AGENT TYPE`.

    `AGENT TYPE` is left out if both are the same name and no other agent has this type.
    """
    pairs = [(name, kind) for name, one in agents.items() for kind in one.types]
    types = [kind for _, kind in pairs]
    both = {f"{name} {kind}" for name, kind in pairs if name != kind or types.count(kind) > 1}
    return {*agents, *types, *both}


class ModelPrice(SettingsTable, frozen=True, kw_only=True):
    """A model's price in US dollars per million tokens: `[prices."MODEL"]`."""

    input: Dollars
    output: Dollars  #: Of reasoning tokens too.
    cache_read: Dollars | None = None  #: If None, the price of input; same for `cache_write`.
    cache_write: Dollars | None = None
    as_of: date  #: When the price was looked up.


class RuntimeSettings(SettingsTable, frozen=True, kw_only=True):
    """How programs run: `[runtime]`."""

    kind: str = "tmux"
    isolation: Isolation = ""
    #: Git's patterns of agents' instructions and settings; a name alone matches in any directory.
    #: Every run starts with the base branch's versions of these files, so that no run can change
    #: them for the next.
    steering_files: tuple[str, ...] = STEERING_FILES


class Settings(SettingsTable, frozen=True, kw_only=True):
    """The whole configuration file."""

    server: ServerSettings = ServerSettings()
    github: GitHubSettings = GitHubSettings()
    signing: SigningSettings = SigningSettings()
    sign_in: SignInSettings = SignInSettings()
    projects: Mapping[str, ProjectSettings] = field(default_factory=dict)
    installation: InstallationSettings = InstallationSettings()
    agent_types: dict[str, AgentTypeSettings] = field(default_factory=dict)
    agents: dict[str, AgentSettings] = field(default_factory=dict)
    profiles: dict[str, ProfileSettings] = field(default_factory=dict)
    prices: dict[str, ModelPrice] = field(default_factory=dict)  #: By model or pattern.
    runtime: RuntimeSettings = RuntimeSettings()
    sandbox: SandboxSettings = SandboxSettings()
    limits: LimitSettings = LimitSettings()
    timing: TimingSettings = TimingSettings()
    retention: RetentionSettings = RetentionSettings()
    notify: dict[str, NotifierSettings] = field(default_factory=dict)
    log: LogSettings = LogSettings()
    tracing: TracingSettings = TracingSettings()
    policy: Policy = Policy()

    @property
    def data(self) -> Path:
        """The data directory, absolute and without links."""
        return Path(self.server.data).expanduser().resolve()

    @property
    def prompts(self) -> Path | None:
        """The absolute path of the directory with custom prompts; None if none is set."""
        return Path(self.server.prompts).expanduser().absolute() if self.server.prompts else None

    @property
    def project_prompts(self) -> dict[str, Path]:
        """The absolute paths of projects' own directories with prompts, where set, by project."""
        folders = {name: project.prompts for name, project in self.projects.items()}
        return {name: Path(at).expanduser().absolute() for name, at in folders.items() if at}

    @property
    def signs(self) -> bool:
        """Whether the bot signs the commits of any project."""
        policies = [self.policy_of(name) for name in self.projects]
        if self.installation.repositories:
            own = self.installation.project
            policies.append((own and own.policy) or self.policy)
        return any(policy.sign_commits for policy in policies)

    def policy_of(self, project: str) -> Policy:
        """Return a project's policy, else the server's, before the repository's file narrows it."""
        known = self.projects.get(project)
        return (known.policy if known else None) or self.policy

    @property
    def polls(self) -> bool:
        """Whether the bot polls GitHub instead of receiving webhooks."""
        return self.github.events == "polling"

    @property
    def resync_seconds(self) -> float:
        """The interval of full passes over GitHub, in seconds: that of polls if the bot polls."""
        return self.timing.poll_seconds if self.polls else self.timing.resync_seconds

    @property
    def identities(self) -> dict[str, AgentSettings]:
        """All agents by name: those in `[agents.NAME]`, and one for each other agent type.

        An agent type that belongs to no agent in the file gets an agent of the same name.
        """
        named = {kind for agent in self.agents.values() for kind in agent.types}
        alone = [kind for kind in self.agent_types if kind not in named]
        return {**self.agents, **{kind: AgentSettings(types=(kind,)) for kind in alone}}

    @property
    def key_variables(self) -> dict[str, str]:
        """A mapping from each environment variable with a model key to the setting that names it.

        If several settings name the variable, the first is given.
        """
        named = {
            f"agent-types.{name}.key": kind.key
            for name, kind in self.agent_types.items()
            if kind.key
        }
        for where, owner in self.key_owners.items():
            for kind, variable in owner.model_keys.items():
                named[f"{where}.model-keys.{kind}"] = variable
        return {variable: place for place, variable in reversed(named.items())}

    @property
    def notifier_variables(self) -> dict[str, str]:
        """A mapping from each environment variable of a notifier to the setting that names it.

        If several settings name the variable, the first is given.
        """
        named = {
            f"notify.{name}.{key}": variable
            for name, one in self.notify.items()
            for key, variable in (("url", one.url), ("secret", one.secret))
            if variable
        }
        return {variable: place for place, variable in reversed(named.items())}

    @property
    def key_owners(self) -> dict[str, ProjectDefaults | AgentSettings]:
        """Return the settings of each project and agent that may use model keys, by table name."""
        owners: dict[str, ProjectDefaults | AgentSettings] = {
            f"projects.{name}": project for name, project in self.projects.items()
        }
        if self.installation.project is not None:
            owners["installation.project"] = self.installation.project
        return {**owners, **{f"agents.{name}": agent for name, agent in self.agents.items()}}

    @property
    def public_url(self) -> str:
        """The web page's URL, with a trailing slash."""
        url = self.server.public_url or f"http://{self.server.host}:{self.server.port}"
        return url.rstrip("/") + "/"
