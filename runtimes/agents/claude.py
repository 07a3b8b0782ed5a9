"""Claude Code, in its own terminal: how it is started.

What it leaves behind is in `claude_files`, how that is read in `claude_reader`. Its folders hang
below a home of the session's own, so that nothing of a person's is read or changed.
"""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from runtimes.agents import claude_files as its
from runtimes.agents.base import AgentType, Command, RunFiles, environment, write_private
from runtimes.agents.claude_reader import ClaudeReader

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
_ARGUMENT_BYTES = 100_000  #: One argument of a program may have 128 KiB on Linux.


class Claude:
    """The `claude` program."""

    submit_seconds = 0.6  #: Sooner, Enter is taken for a line of the paste.
    wants_screen = False

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind
        self._program = kind.command or ("claude",)

    def prepare(self, files: RunFiles, prompt: str, resume: str, system: str = "") -> Command:
        """Write settings, hooks and the answers to its first questions; see `Program.prepare`.

        A conversation that is not in the session's home any more is begun anew.
        """
        env = {**environment(self._kind, files), **_QUIET}
        env["CLAUDE_CONFIG_DIR"] = str(its.folder(files))
        write_private(files.prompt, prompt)
        settings = files.dir / "claude-settings.json"
        write_private(settings, json.dumps(_settings(files), indent=1))
        write_private(
            its.folder(files) / ".claude.json", json.dumps(_answers(files, env), indent=1)
        )

        native = its.text(its.conversation(files))
        if not native:
            native = resume if its.transcript(files, resume) else str(uuid.uuid4())
            write_private(its.conversation(files), native)
        argv = [
            *self._program,
            *(("--resume", native) if native == resume else ("--session-id", native)),
            *("--settings", str(settings)),
            *("--name", files.session),
            *("--permission-mode", _MODES.get(self._kind.permission_mode, "default")),
            *(("--model", self._kind.model) if self._kind.model else ()),
            *(("--append-system-prompt", system) if system else ()),
            *self._kind.args,
        ]
        if len(prompt.encode()) > _ARGUMENT_BYTES:
            prompt = f"Read {files.prompt} from beginning to end and do what it says."
        return Command(argv=(*argv, "--", prompt), env=env, native_id=native)

    def reader(self, files: RunFiles) -> ClaudeReader:
        """A reader of the run's status file, transcript, hooks and status line."""
        return ClaudeReader(files)

    def records(self, files: RunFiles) -> Sequence[Path]:
        """The transcripts of its conversations."""
        return tuple((its.folder(files) / "projects").glob("*/*.jsonl"))

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


def _settings(files: RunFiles) -> dict[str, object]:
    """Commands that keep what they are given, and cannot fail or delay the agent."""
    line = f'{{"run":{files.run},"at":%s,"hook":%s}}\\n'
    # One `printf`, so that lines of hooks that run at once do not mix.
    spool = f'p=$(cat); printf \'{line}\' "$(date +%s)" "$p" >> {quote(str(files.spool))}'
    first, last = quote(str(its.first_line(files))), quote(str(its.last_line(files)))
    keep = f"cat > {last}.new; [ -e {first} ] || cp {last}.new {first}; mv -f {last}.new {last}"
    hook = {"hooks": [{"type": "command", "command": _harmless(spool), "timeout": 10}]}
    return {
        "hooks": {event: [hook] for event in _HOOKS},
        "statusLine": {"type": "command", "command": _harmless(keep)},
        "permissions": {"allow": [f"Read(/{files.prompt})"]},
    }


def _harmless(command: str) -> str:
    return f"{{ {command}; }} 2>/dev/null; exit 0"


def _answers(files: RunFiles, env: Mapping[str, str]) -> dict[str, object]:
    """The program's own settings file, with its first questions answered."""
    known = its.understood(its.text(its.folder(files) / ".claude.json"), dict[str, object]) or {}
    key = env.get("ANTHROPIC_API_KEY", "")
    return known | {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "projects": {str(root): {"hasTrustDialogAccepted": True} for root in _roots(files)},
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
    }


def _roots(files: RunFiles) -> list[Path]:
    """The folders whose trust it asks for: of a worktree that is the main repository."""
    words = its.text(files.workspace / ".git")
    if not words.startswith("gitdir: "):
        return [files.workspace]
    common = Path(words.removeprefix("gitdir: ")).parent.parent
    return [files.workspace, common.parent if common.name == ".git" else common]
