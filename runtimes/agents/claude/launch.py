"""Claude Code, in its own terminal: how it is started.

What it leaves behind is in `claude_files`, how that is read in `claude_reader`. Its folders hang
below a home of the session's own, so that nothing of a person's is read or changed.
"""

import json
import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from shlex import quote

from runtimes.agents.base import (
    PROVIDER_DEFAULT,
    USUAL,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.claude import files as its
from runtimes.agents.claude import messages
from runtimes.agents.claude.reader import ClaudeReader
from runtimes.agents.shared.adoption import adopt, their_folder
from runtimes.agents.shared.conversation import MessagesOfLines
from runtimes.agents.shared.files import read_text, understood, write_private
from runtimes.agents.shared.hooks import harmless, spooling
from runtimes.agents.shared.launch import (
    argument,
    environment,
    installed_version,
    introduced,
    login,
    missing,
    named,
)
from runtimes.agents.shared.providers import ANTHROPIC
from runtimes.agents.shared.questions import Dialog

_MODES = {"auto": "bypassPermissions", "confirm": "default", "reject": "dontAsk"}
_QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
#: Those with which it talks to people and plans; it always has them.
_ALWAYS = ("AskUserQuestion", "TodoWrite", "ExitPlanMode")
#: Those with which it runs agents of its own, also by the name that one had before.
_AGENTS = ("Agent", "Task", "Workflow")
_HOOKS = ("UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure")
_INSTALL = "npm install -g @anthropic-ai/claude-code"


class Claude:
    """The `claude` program."""

    submit_seconds = 0.6  #: Sooner, Enter is taken for a line of the paste.
    wants_screen = True  #: Only it tells of its first questions, and that it tries again.
    remembers = True
    writes_outside = True
    preambles: Collection[str] = ("system-prompt", "instructions-file")
    tools: Mapping[str, Collection[str]] = {
        "read": ("Read", "Glob", "Grep"),
        "edit": ("Edit", "Write", "NotebookEdit"),
        "run": ("Bash",),
        "web": ("WebFetch", "WebSearch"),
    }
    runs_agents = True
    counts_agents = False
    provider = ANTHROPIC
    logins: Collection[str] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    )

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind
        self._program = kind.command or ("claude",)

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = USUAL
    ) -> LaunchSpec:
        """Write settings, hooks and the answers to its first questions; see `Program.prepare`.

        A conversation that is not in the session's home any more is begun anew.
        """
        prompt, system = introduced(self._kind, prompt, run_limits.system)
        env = {**environment(self._kind, files), **_QUIET}
        env |= run_limits.endpoint.variables(url="ANTHROPIC_BASE_URL", key="ANTHROPIC_API_KEY")
        env["CLAUDE_CONFIG_DIR"] = str(its.folder(files))
        write_private(files.prompt, prompt)
        settings = files.dir / "claude-settings.json"
        write_private(settings, json.dumps(_settings(files), indent=1))
        write_private(
            its.folder(files) / ".claude.json", json.dumps(_answers(files, env), indent=1)
        )

        in_file = self._kind.preamble == "instructions-file"
        write_private(its.folder(files) / "CLAUDE.md", system if in_file else "")

        tools = named(self.tools, run_limits.tools)
        native = read_text(files.conversation)
        if not native:
            native = resume if its.transcript(files, resume) else str(uuid.uuid4())
            write_private(files.conversation, native)
        argv = [
            *self._program,
            *(("--resume", native) if native == resume else ("--session-id", native)),
            *("--settings", str(settings)),
            *("--name", files.session),
            *("--permission-mode", _MODES.get(self._kind.permission_mode, "default")),
            *(("--model", self._kind.model) if self._kind.model else ()),
            *(("--append-system-prompt", system) if system and not in_file else ()),
            *(("--tools", ",".join((*_ALWAYS, *tools))) if tools else ()),
            *(() if self._kind.intra_parallel else ("--disallowedTools", ",".join(_AGENTS))),
            *self._kind.args,
        ]
        return LaunchSpec(argv=(*argv, "--", argument(files, prompt)), env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy its transcript; where it was said does not matter to the program."""
        theirs = their_folder("CLAUDE_CONFIG_DIR", ".claude")
        adopt(theirs, "projects/*/{id}.jsonl", native, its.folder(files))

    def reader(self, files: RunFiles) -> ClaudeReader:
        """A reader of the run's status file, transcript, hooks and status line."""
        return ClaudeReader(files)

    def dialog(self, files: RunFiles, screen: str) -> Dialog:
        """What its screen asks."""
        return its.dialog(files, screen)

    def typed(self, screen: str) -> str:
        """What its screen shows in the box."""
        return its.typed(screen)

    def records(self, files: RunFiles) -> Sequence[Path]:
        """The transcripts of its conversations, each with those of agents that it began."""
        talks = its.transcripts(files)
        return [path for talk in talks for path in (talk, *its.subagents(talk))]

    def messages(self, files: RunFiles) -> MessagesOfLines:
        """What its own transcripts say, the one that began first in front."""

        def paths() -> list[Path]:
            return sorted(its.transcripts(files), key=its.began)

        return MessagesOfLines(paths, lambda: messages.messages)

    def version(self) -> str:
        """What `claude --version` says."""
        return installed_version(self._program, _INSTALL)

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """What stands in the way: it is not installed, cannot sign in, or refuses this user."""
        problems = missing(self._program, _INSTALL, environ.get("PATH"))
        if endpoint == PROVIDER_DEFAULT and not login(self._kind, environ, self.logins):
            problems.append(
                "it has no credentials: set ANTHROPIC_API_KEY for the server and name it in `key`"
                " of the agent type, or CLAUDE_CODE_OAUTH_TOKEN, which `claude setup-token` makes"
                " of a subscription, in `pass-env`"
            )
        if (
            self._kind.permission_mode == "auto"
            and os.geteuid() == 0
            and not login(self._kind, environ, ("IS_SANDBOX",))
        ):
            problems.append(
                'it refuses permission-mode "auto" as root: run the server as another user, or set'
                " IS_SANDBOX=1 in env of the agent type where this machine is a sandbox"
            )
        return problems


def _settings(files: RunFiles) -> dict[str, object]:
    """Commands that keep what they are given, and cannot fail or delay the agent."""
    first, last = quote(str(its.first_line(files))), quote(str(its.last_line(files)))
    keep = f"cat > {last}.new; [ -e {first} ] || cp {last}.new {first}; mv -f {last}.new {last}"
    own = [f"Edit(/{file})" for file in (files.summary, files.progress)]
    hook = {"hooks": [{"type": "command", "command": spooling(files), "timeout": 10}]}
    return {
        "hooks": {event: [hook] for event in _HOOKS},
        "statusLine": {"type": "command", "command": harmless(keep)},
        "promptSuggestionEnabled": False,  # They stand in the box as if somebody had typed them.
        "permissions": {"allow": [f"Read(/{files.prompt})", *own]},
    }


def _answers(files: RunFiles, env: Mapping[str, str]) -> dict[str, object]:
    """The program's own settings file, with its first questions answered."""
    known = understood(read_text(its.folder(files) / ".claude.json"), dict[str, object]) or {}
    key = env.get("ANTHROPIC_API_KEY", "")
    return (
        known
        | {
            "hasCompletedOnboarding": True,
            "bypassPermissionsModeAccepted": True,
            "diffSidebarOpen": False,  # By itself it hides a part of what the screen asks.
            "projects": {str(root): {"hasTrustDialogAccepted": True} for root in files.trusted},
            "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
        }
    )
