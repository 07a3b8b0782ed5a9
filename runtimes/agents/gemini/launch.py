"""Gemini CLI, in its own terminal: how it is started.

What it leaves behind is in `gemini_files`, how that is read in `gemini_reader`. Its folder hangs
below a home of the session's own, so that nothing of a person's is read or changed.
"""

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from runtimes.agents.base import (
    PROVIDER_DEFAULT,
    USUAL,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.gemini import files as its
from runtimes.agents.gemini.messages import GeminiMessages
from runtimes.agents.gemini.reader import GeminiReader
from runtimes.agents.shared.adoption import adopt
from runtimes.agents.shared.conversation import MessagesOfLines
from runtimes.agents.shared.files import read_text, write_private
from runtimes.agents.shared.hooks import spooling
from runtimes.agents.shared.launch import (
    argument,
    environment,
    installed_version,
    introduced,
    login,
    missing,
    named,
)
from runtimes.agents.shared.providers import GOOGLE
from runtimes.agents.shared.questions import Dialog

_INSTALL = "npm install -g @google/gemini-cli"
_MODES = {"auto": "yolo", "confirm": "default", "reject": "plan"}
#: The variables with which it signs in, each with its own word for that.
_WORDS = {
    "GEMINI_API_KEY": "gemini-api-key",
    "GOOGLE_API_KEY": "vertex-ai",
    "GOOGLE_CLOUD_PROJECT": "vertex-ai",
}
#: Those with which it talks to people and plans; it always has them.
_ALWAYS = ("ask_user", "write_todos", "exit_plan_mode")
#: That with which it runs agents of its own, which those that it brings along have even where
#: agents are switched off.
_AGENTS = "invoke_agent"
_HOOKS = ("BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification")


class Gemini:
    """The `gemini` program."""

    submit_seconds = 0.6  #: Sooner, Enter is taken for a line of the paste.
    wants_screen = True  #: Only it tells that leave was given.
    remembers = True
    writes_outside = True
    preambles: Collection[str] = ("instructions-file",)
    tools: Mapping[str, Collection[str]] = {
        "read": ("read_file", "read_many_files", "list_directory", "glob", "grep_search"),
        "edit": ("write_file", "replace"),
        "run": ("run_shell_command",),
        "web": ("web_fetch", "google_web_search"),
    }
    runs_agents = True
    counts_agents = False
    provider = GOOGLE
    logins: Collection[str] = _WORDS.keys()

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind
        self._program = kind.command or ("gemini",)

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = USUAL
    ) -> LaunchSpec:
        """Write its settings, its hooks and what it is told; see `Program.prepare`.

        A conversation that is not in the session's home any more is begun anew.
        """
        prompt, system = introduced(self._kind, prompt, run_limits.system)
        env = environment(self._kind, files)
        env |= run_limits.endpoint.variables(url="GOOGLE_GEMINI_BASE_URL", key="GEMINI_API_KEY")
        write_private(files.prompt, prompt)
        settings = _settings(files, env)
        if run_limits.tools:
            settings["tools"] = {"core": [*_ALWAYS, *named(self.tools, run_limits.tools)]}
        elif not self._kind.intra_parallel:
            settings["tools"] = {"exclude": [_AGENTS]}
        write_private(its.folder(files) / "settings.json", json.dumps(settings, indent=1))
        write_private(its.folder(files) / "GEMINI.md", system)
        native = read_text(files.conversation)
        if not native:
            native = resume if resume and its.transcripts(files, resume) else str(uuid.uuid4())
            write_private(files.conversation, native)
        argv = (
            *self._program,
            *(("--resume", native) if native == resume else ("--session-id", native)),
            *("--approval-mode", _MODES.get(self._kind.permission_mode, "default")),
            *(("--model", self._kind.model) if self._kind.model else ()),
            *self._kind.args,
            f"--prompt-interactive={argument(files, prompt)}",
        )
        return LaunchSpec(argv=argv, env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy its transcript, to a folder that the program takes for the workspace's."""
        theirs = Path.home() / ".gemini"
        pattern = "tmp/*/chats/session-*-{id:.8}.jsonl"
        folder = adopt(theirs, pattern, native, its.folder(files)).parent.parent
        known = {"projects": {str(files.workspace): folder.name}}
        write_private(its.folder(files) / "projects.json", json.dumps(known))
        write_private(folder / ".project_root", str(files.workspace))

    def reader(self, files: RunFiles) -> GeminiReader:
        """A reader of the run's hooks, transcript and screen."""
        return GeminiReader(files)

    def dialog(self, files: RunFiles, screen: str) -> Dialog:
        """What its screen asks."""
        return its.dialog(files, screen)

    def typed(self, screen: str) -> str:
        """What its screen shows in the box."""
        return its.typed(screen)

    def records(self, files: RunFiles) -> Sequence[Path]:
        """The transcripts of its conversations."""
        found = (its.folder(files) / "tmp").glob("*/chats/*.jsonl")
        return sorted(found, key=lambda path: path.name)

    def messages(self, files: RunFiles) -> MessagesOfLines:
        """What its transcripts say."""
        return MessagesOfLines(lambda: self.records(files), GeminiMessages)

    def version(self) -> str:
        """What `gemini --version` says."""
        return installed_version(self._program, _INSTALL)

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """What stands in the way: it is not installed, or cannot sign in."""
        problems = missing(self._program, _INSTALL, environ.get("PATH"))
        if endpoint == PROVIDER_DEFAULT and not login(self._kind, environ, self.logins):
            problems.append(
                "it has no credentials: set GEMINI_API_KEY for the server and name it in `key` of"
                " the agent type"
            )
        return problems


def _settings(files: RunFiles, env: Mapping[str, str]) -> dict[str, object]:
    """Its settings: how it signs in, nothing that changes by itself, and its hooks."""
    words = [word for name, word in _WORDS.items() if name in env]
    command = {"type": "command", "name": "mergewright", "command": spooling(files)}
    return {
        "security": {
            "auth": {"selectedType": words[0]} if words else {},
            "folderTrust": {"enabled": False},
        },
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            # A start removes what it takes for old, and with a resumed one its whole conversation.
            "sessionRetention": {"enabled": False},
        },
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "hooks": {event: [{"matcher": "*", "hooks": [command]}] for event in _HOOKS},
    }
