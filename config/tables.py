"""The types of settings, and tables of `mergewright.toml` such as `[limits]` and `[timing]`."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
AtMost = Annotated[int, Meta(ge=0)]  #: If 0, no limit, unless the setting says otherwise.
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Days = Annotated[float, Meta(gt=0, le=36_500)]
Dollars = Annotated[float, Meta(ge=0)]
Port = Annotated[int, Meta(ge=0, le=65535)]
#: How agents' programs are isolated; see `runtimes.isolation.ISOLATIONS`. Empty in `[runtime]`
#: means the strongest isolation that works on the machine; empty in a project or agent type means
#: that of `[runtime]`.
Isolation = Literal["", "bubblewrap", "docker", "podman", "none"]

_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d"
_PATH = r"^(?!(?:.*/)?\.{1,2}(?:/|$))(?!\.git(?:/|$))[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*\Z"
_SUBMODULE = r"^(?:[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+|https://[^\s@?#/]+/[^\s@?#]+)\Z"
#: A relative path in a checkout, without the special characters of git's patterns.
CheckoutPath = Annotated[
    str, Meta(pattern=_PATH, description="a path such as web/assets, with no slash at its ends")
]
#: `owner/name`, or a URL without credentials.
SubmoduleName = Annotated[
    str,
    Meta(pattern=_SUBMODULE, description="OWNER/NAME, or an https URL without user, query or #"),
]


class SettingsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of the file: keys in kebab-case, unknown keys rejected."""


class LimitSettings(SettingsTable, frozen=True, kw_only=True):
    """Limits on concurrency and sizes: `[limits]`."""

    sessions: Count = 4  #: The most running programs; further sessions are `queued`.
    per_person: AtMost = 0  #: The most running programs for one requester; if 0, no limit.
    reserved_for_people: AtMost = 0  #: Slots that only sessions with a person's command get.
    priority_seconds: Seconds = 3600.0  #: Head start in the queue with `priority:high`.
    memory_per_session_mb: AtMost = 1536  #: Free megabytes to start a program; if 0, not checked.
    memory_reserve_mb: AtMost = 512  #: Free megabytes that must remain after a start.
    webhook_bytes: Count = 26_214_400  #: Maximum size of a webhook; GitHub sends at most 25 MiB.
    unverified_bytes: Count = 134_217_728  #: Maximum total size of webhooks not verified yet.


class TimingSettings(SettingsTable, frozen=True, kw_only=True):
    """Intervals and retries: `[timing]`."""

    sweep_seconds: Seconds = 5.0  #: Interval between checks of the agents.
    poll_seconds: Seconds = 30.0  #: Interval between polls of GitHub, if events are polled.
    resync_seconds: Seconds = 300.0  #: Interval of resyncs, full passes over GitHub, with webhooks.
    write_interval_seconds: Seconds = 1.0  #: Minimum interval of an account's writes to GitHub.
    lease_seconds: Seconds = 15.0  #: Time until another instance replaces one that stopped.
    action_retry_seconds: Seconds = 2.0  #: First delay before a retry; doubles up to 300.
    action_tries: Count = 8  #: Tries until an action has failed for good.


class RetentionSettings(SettingsTable, frozen=True, kw_only=True):
    """Retention of data, in days, mostly after the end of a session: `[retention]`.

    The retention of workspaces is `policy.workspace_days`.
    """

    transient_days: Days = 7.0  #: Webhooks, sent notifications, output, hooks, transcripts.
    #: Everything else about ended sessions, except their cost, which is kept for ever. Also refused
    #: commands, closed incidents and people without write access who were notified.
    durable_days: Annotated[float, Meta(ge=1, le=36_500)] = 365.0
    preserved_days: Days = 90.0  #: Preserved work, counted from its preservation.
    archive_seconds: Seconds = 60.0  #: Interval between copies of transcripts.


class LogSettings(SettingsTable, frozen=True, kw_only=True):
    """The log on standard error: `[log]`."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class NotifierSettings(SettingsTable, frozen=True, kw_only=True):
    """A receiver of notifications, with what it gets and when: `[notify.NAME]`."""

    kind: Literal["webhook", "apprise"]
    url: str  #: The environment variable with the URL.
    secret: str = ""  #: The variable with a webhook's signing secret; empty for other kinds.
    projects: tuple[str, ...] = ()  #: If empty, all, and also problems of the bot itself.
    priority: Literal["info", "warning", "action", "urgent"] = "info"  #: The lowest that is sent.
    #: The hours in which only urgent messages are sent. If empty, there are none.
    quiet: Annotated[
        str, Meta(pattern=rf"^({_TIME}-{_TIME})?$", description="two times such as 22:00-07:00")
    ] = ""
    #: Time of the daily summary. If empty, there is none.
    digest: Annotated[str, Meta(pattern=rf"^({_TIME})?$", description="a time such as 08:30")] = ""
    time_zone: str = "UTC"  #: The zone of the times in `quiet` and `digest`.


class TracingSettings(SettingsTable, frozen=True, kw_only=True):
    """OpenTelemetry traces: `[tracing]`. They need the extra `mergewright[tracing]`."""

    #: The URL of a receiver of OTLP over HTTP, without `/v1/traces`. If empty, no traces are sent.
    endpoint: Annotated[
        str,
        Meta(pattern=r"^(https?://[^\s]+)?$", description="a URL such as http://127.0.0.1:4318"),
    ] = ""


class SigningSettings(SettingsTable, frozen=True, kw_only=True):
    """The key and the committer of signed commits: `[signing]`."""

    key_file: str = ""  #: Relative to the configuration file.
    name: Annotated[
        str, Meta(pattern=r"^[^\s<>][^\r\n<>]*$", description="a name without < and >")
    ] = "Mergewright"
    #: An email that GitHub has verified for the account with the key; required to sign commits.
    email: Annotated[
        str, Meta(pattern=r"^([^\s<>@]+@[^\s<>@]+)?$", description="an email address")
    ] = ""


class SandboxSettings(SettingsTable, frozen=True, kw_only=True):
    """What an isolated run may use: `[sandbox]`."""

    memory_mb: AtMost = 8192  #: Megabytes for all processes of a run together; if 0, no limit.
    processes: AtMost = 2048  #: The most processes at the same time; if 0, no limit.
    cpus: Annotated[float, Meta(ge=0)] = 0.0  #: The number of processors; if 0, no limit.
    #: Megabytes on disk for the checkout, home and outputs of a session, isolated or not; 0 means
    #: no limit.
    disk_mb: AtMost = 20480
    readable: tuple[str, ...] = ()  #: Absolute paths of further readable folders and files.
    image: str = ""  #: The image of containers. If empty, they have this machine's programs.
    oci_runtime: str = ""  #: The engine's name of the OCI runtime; if empty, the engine's default.


class SignInSettings(SettingsTable, frozen=True, kw_only=True):
    """How people sign in to the pages, and for how long: `[sign-in]`."""

    #: "token" for the one token in the environment, "github" for their GitHub account through the
    #: App, or "both".
    method: Literal["token", "github", "both"] = "token"
    #: The client ID of the App.
    client_id: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9._-]*$",
            description="the client ID in the App's settings on GitHub",
        ),
    ] = ""
    permission_seconds: Seconds = 300.0  #: How long a visitor's permissions are cached.
    idle_hours: Annotated[float, Meta(gt=0, le=8760)] = 24.0  #: Sign-out after so long idle.
    most_hours: Annotated[float, Meta(gt=0, le=8760)] = 168.0  #: Sign-out in any case.
    token_days: Days = 365.0  #: The longest life of a personal token.

    @property
    def takes_token(self) -> bool:
        """Whether the page token signs people in."""
        return self.method != "github"

    @property
    def takes_people(self) -> bool:
        """Whether people sign in with their GitHub accounts."""
        return self.method != "token"
