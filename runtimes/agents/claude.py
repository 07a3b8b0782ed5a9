"""Claude Code, in its own terminal: how it is started and how its state is read.

It keeps a status file while it lives (`sessions/PID.json`: `idle`, `busy` or `waiting`), appends
everything said and done to a transcript (`projects/*/ID.jsonl`), and calls hooks, which append
their payloads to the run's spool. Status comes from the first, words from the other two. Its
folders hang below a home of the session's own, so that nothing of a person's is read or changed.
"""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from lifecycle.facts import Agent
from lifecycle.status import Activity
from runtimes.agents.base import (
    AgentType,
    Command,
    Lines,
    RunFiles,
    ended,
    environment,
    holds,
    opened,
    write_private,
)
from runtimes.base import Seen

_T = TypeVar("_T")
_MODES = {"auto": "bypassPermissions", "confirm": "default", "reject": "dontAsk"}
#: Any of these says how it signs in.
_CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
)
_QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
_HOOKS = ("UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure")
_FILE_BYTES = 4 * 1024 * 1024
_ARGUMENT_BYTES = 100_000  #: One argument of a program may have 128 KiB on Linux.
_TEXT = 2000  #: No more characters of a question, an error or a summary are kept.
#: It says `idle` a moment before the error that ended the turn is written down.
_SETTLE = timedelta(seconds=0.5)


class Claude:
    """The `claude` program."""

    submit_seconds = 0.6  #: Sooner, Enter is taken for a line of the paste.
    wants_screen = False

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind
        self._program = kind.command or ("claude",)

    def prepare(self, files: RunFiles, prompt: str, resume: str) -> Command:
        """Write settings, hooks and the answers to its first questions; see `Program.prepare`.

        A conversation that is not in the session's home any more is begun anew.
        """
        env = {**environment(self._kind, files), **_QUIET}
        env["CLAUDE_CONFIG_DIR"] = str(_folder(files))
        write_private(files.prompt, prompt)
        settings = files.dir / "claude-settings.json"
        write_private(settings, json.dumps(_settings(files), indent=1))
        write_private(_folder(files) / ".claude.json", json.dumps(_answers(files, env), indent=1))

        native = _text(files.dir / "conversation")
        if not native:
            native = resume if _transcript(files, resume) else str(uuid.uuid4())
            write_private(files.dir / "conversation", native)
        argv = [
            *self._program,
            *(("--resume", native) if native == resume else ("--session-id", native)),
            *("--settings", str(settings)),
            *("--name", files.session),
            *("--permission-mode", _MODES.get(self._kind.permission_mode, "default")),
            *(("--model", self._kind.model) if self._kind.model else ()),
            *self._kind.args,
        ]
        if len(prompt.encode()) > _ARGUMENT_BYTES:
            prompt = f"Read {files.prompt} from beginning to end and do what it says."
        return Command(argv=(*argv, "--", prompt), env=env, native_id=native)

    def reader(self, files: RunFiles) -> "ClaudeReader":
        """A reader of the run's status file, transcript and hooks."""
        return ClaudeReader(files)

    def version(self) -> str:
        """What `claude --version` says."""
        if not shutil.which(self._program[0]):
            raise FileNotFoundError(self._missing())
        run = subprocess.run(
            [*self._program, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
        return run.stdout.split(" ")[0].strip()

    def check(self, environ: Mapping[str, str]) -> Sequence[str]:
        """What stands in the way: it is not installed, cannot sign in, or refuses this user."""
        problems = []
        if not shutil.which(self._program[0], path=environ.get("PATH")):
            problems.append(self._missing())
        passed = {name for name in self._kind.pass_env if environ.get(name)}
        if not (passed | self._kind.env.keys()).intersection(_CREDENTIALS):
            problems.append(
                "it has no credentials: set ANTHROPIC_API_KEY for the server and name it in"
                " pass-env of the agent type"
            )
        if (
            self._kind.permission_mode == "auto"
            and os.geteuid() == 0
            and "IS_SANDBOX" not in (passed | self._kind.env.keys())
        ):
            problems.append(
                'it refuses permission-mode "auto" as root: run the server as another user, or set'
                " IS_SANDBOX=1 in env of the agent type where this machine is a sandbox"
            )
        return problems

    def _missing(self) -> str:
        return f"{self._program[0]} is not installed: npm install -g @anthropic-ai/claude-code"


class _Status(Struct, frozen=True, rename="camel"):
    """`sessions/PID.json`, as far as it is used."""

    pid: int
    session_id: str
    proc_start: str
    status: str = ""
    waiting_for: str = ""
    status_updated_at: Annotated[float, Meta(ge=0, le=4e12)] = 0.0  #: Milliseconds.


class _Payload(Struct, frozen=True):
    """What a hook is given, as far as it is used."""

    session_id: str
    hook_event_name: str
    tool_name: str = ""
    tool_input: dict[str, object] = {}
    last_assistant_message: str = ""
    error: str = ""


class _Hook(Struct, frozen=True):
    """One line of the spool."""

    run: int
    hook: _Payload


class _Option(Struct, frozen=True):
    label: str


class _Ask(Struct, frozen=True):
    """One question of the tool that asks people."""

    question: str
    options: tuple[_Option, ...] = ()


class _Message(Struct, frozen=True):
    content: str | list[dict[str, object]] = ""


class _Record(Struct, frozen=True, rename="camel"):
    """One line of the transcript, as far as it is used."""

    type: str
    timestamp: Annotated[datetime, Meta(tz=True)] | None = None
    message: _Message | None = None
    is_api_error_message: bool = False


class ClaudeReader:
    """Reads one run."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._started = _began(files)
        self._spool = Lines(files.spool)
        self._transcript: Lines | None = None
        self._recorded: datetime | None = None
        self._begun = False  #: Whether a prompt of this run was submitted.
        self._calls: set[str] = set()  #: Tools that run, or wait for leave to run.
        self._question = ""
        self._error = ""
        self._summary = ""
        self._last = Agent(run=files.run)

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The activity by its status file, with the words of its hooks; see `Reader.read`."""
        native = _text(self._files.dir / "conversation")
        status = self._status(native)  # First: what led to a status is written before it.
        self._read_hooks()
        self._read_transcript(native)
        agent = replace(
            self._last,
            runtime=seen.runtime,
            program=seen.program,
            native_id=native,
            summary=self._summary,
            seen=self._recorded,
        )
        if end := ended(seen, agent):
            return end
        if status is not None:
            agent = self._last = self._judged(agent, status, now)
        return agent

    def received(self, key: str) -> bool:
        """Whether the key is in a submitted prompt, or in the conversation."""
        path = _transcript(self._files, _text(self._files.dir / "conversation"))
        return holds(self._files.spool, key) or (path is not None and holds(path, key))

    def _status(self, native: str) -> _Status | None:
        """What the living program with this conversation says of itself."""
        for path in (_folder(self._files) / "sessions").glob("*.json"):
            status = _understood(_text(path), _Status)
            if status is not None and status.session_id == native and _lives(status):
                return status
        return None

    def _judged(self, agent: Agent, status: _Status, now: datetime) -> Agent:
        since = datetime.fromtimestamp(status.status_updated_at / 1000, UTC)
        words = f"its status file says {status.status} {status.waiting_for}".rstrip()
        agent = replace(agent, since=since, evidence=words, question="", error="")
        match status.status:
            case "busy":
                return replace(agent, activity=Activity.ACTIVE, seen=self._progress(now, since))
            case "waiting":
                question = self._question or f"It waits: {status.waiting_for}."
                return replace(agent, activity=Activity.WAITING_INPUT, question=question)
            case "idle" if self._begun and now - since >= _SETTLE:
                activity = Activity.BLOCKED if self._error else Activity.READY
                return replace(agent, activity=activity, error=self._error)
        return self._last

    def _progress(self, now: datetime, since: datetime) -> datetime:
        """When it was last seen to get on: a call that runs is progress."""
        return now if self._calls else max(since, self._recorded or since)

    def _read_hooks(self) -> None:
        for line in self._spool.new():
            said = _understood(line, _Hook)
            if said is None or said.run != self._files.run:
                continue
            hook = said.hook
            match hook.hook_event_name:
                case "UserPromptSubmit":
                    self._begun, self._error = True, ""
                case "PermissionRequest":
                    self._question = _question(hook)[:_TEXT]
                case "Stop":
                    self._error, self._summary = "", hook.last_assistant_message[:_TEXT]
                case "StopFailure":
                    self._error = (hook.last_assistant_message or hook.error)[:_TEXT]

    def _read_transcript(self, native: str) -> None:
        path = _transcript(self._files, native)
        if path is None:
            return
        if self._transcript is None:
            self._transcript = Lines(path)
        for line in self._transcript.new():
            record = _understood(line, _Record)
            if record is None or record.timestamp is None or record.timestamp < self._started:
                continue
            self._recorded = record.timestamp
            self._note(record)

    def _note(self, record: _Record) -> None:
        """Which calls run, and which error ended a turn."""
        content = record.message.content if record.message else ""
        text = content if isinstance(content, str) else _texts(content)
        if record.is_api_error_message:
            self._error = text[:_TEXT]
        elif record.type == "user" and isinstance(content, str):
            self._begun, self._error = True, ""
            self._calls.clear()
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                self._calls.add(str(block.get("id")))
            elif block.get("type") == "tool_result":
                self._calls.discard(str(block.get("tool_use_id")))


def _folder(files: RunFiles) -> Path:
    return files.home / ".claude"


def _transcript(files: RunFiles, native: str) -> Path | None:
    found = (_folder(files) / "projects").glob(f"*/{native}.jsonl") if native else ()
    return next(iter(found), None)


def _settings(files: RunFiles) -> dict[str, object]:
    """Hooks that append what they are given to the spool, and cannot fail or delay the agent."""
    line = f'{{"run":{files.run},"at":%s,"hook":%s}}\\n'
    # One `printf`, so that lines of hooks that run at once do not mix.
    command = (
        f'{{ p=$(cat); printf \'{line}\' "$(date +%s)" "$p" >> {quote(str(files.spool))}; }}'
        " 2>/dev/null; exit 0"
    )
    hook = {"hooks": [{"type": "command", "command": command, "timeout": 10}]}
    return {
        "hooks": {event: [hook] for event in _HOOKS},
        "permissions": {"allow": [f"Read(/{files.prompt})"]},
    }


def _answers(files: RunFiles, env: Mapping[str, str]) -> dict[str, object]:
    """The program's own settings file, with its first questions answered."""
    known = _understood(_text(_folder(files) / ".claude.json"), dict[str, object]) or {}
    key = env.get("ANTHROPIC_API_KEY", "")
    return known | {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "projects": {str(root): {"hasTrustDialogAccepted": True} for root in _roots(files)},
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
    }


def _roots(files: RunFiles) -> list[Path]:
    """The folders whose trust it asks for: of a worktree that is the main repository."""
    words = _text(files.workspace / ".git")
    if not words.startswith("gitdir: "):
        return [files.workspace]
    common = Path(words.removeprefix("gitdir: ")).parent.parent
    return [files.workspace, common.parent if common.name == ".git" else common]


def _text(path: Path) -> str:
    with suppress(OSError), opened(path) as file:
        return file.read(_FILE_BYTES).decode(errors="replace").strip()
    return ""


def _began(files: RunFiles) -> datetime:
    """When the run was prepared: what the transcript says of earlier runs is not about it."""
    try:
        return datetime.fromtimestamp((files.dir / "conversation").stat().st_mtime, UTC)
    except OSError:
        return datetime.min.replace(tzinfo=UTC)


def _lives(status: _Status) -> bool:
    """Whether the file is of a living process, and not left by one whose pid was given away."""
    words = _text(Path(f"/proc/{status.pid}/stat"))
    return words.rpartition(")")[2].split()[19:20] == [status.proc_start]


def _understood(line: str, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def _texts(content: Sequence[Mapping[str, object]]) -> str:
    return " ".join(str(block["text"]) for block in content if "text" in block)


def _question(hook: _Payload) -> str:
    """What it asks leave for, or asks, in words for people."""
    given = hook.tool_input
    if hook.tool_name == "ExitPlanMode":
        return f"It asks to go on with this plan: {given.get('plan', '')}".rstrip(": ")
    if hook.tool_name == "AskUserQuestion":
        with suppress(msgspec.ValidationError):
            return " ".join(
                f"{ask.question} ({' / '.join(option.label for option in ask.options)})"
                for ask in msgspec.convert(given.get("questions"), list[_Ask])
            )
    what = given.get("command") or given.get("file_path") or given.get("url") or ""
    return f"It asks for permission to use {hook.tool_name}: {what}".rstrip(": ")
