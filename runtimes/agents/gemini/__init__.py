"""The adapter of Gemini CLI.

Gemini CLI gets settings and hooks that are made for the run, and the session's home as HOME.

Settings and command line: https://geminicli.com/docs/reference/configuration.
What comments here say about Gemini CLI without a source was measured with version 0.61.0.
Recordings of that version are in `tests/runtimes/recordings/gemini`.
"""

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from runtimes.agents.base import NO_LIMITS, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.gemini import files as gemini_files
from runtimes.agents.gemini import screen as gemini_screen
from runtimes.agents.gemini.reader import GeminiReader
from runtimes.agents.shared import adapter
from runtimes.agents.shared.hooks import spool_command
from runtimes.files import matching, write_private

_MODES = {"auto": "yolo", "confirm": "default", "reject": "plan"}
#: The variables it signs in with, each with the value of `security.auth.selectedType`.
_AUTH_TYPES = {
    "GEMINI_API_KEY": "gemini-api-key",
    "GOOGLE_API_KEY": "vertex-ai",
    "GOOGLE_CLOUD_PROJECT": "vertex-ai",
}
#: Tools for questions and plans, which every agent keeps.
_ALWAYS = ("ask_user", "write_todos", "exit_plan_mode")
#: The tool that starts subagents. The setting that disables agents keeps built-in ones enabled.
_SUBAGENT_TOOL = "invoke_agent"
_HOOKS = ("BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification")


class Gemini(adapter.AgentAdapter):
    program = "gemini"
    install = "npm install -g @google/gemini-cli"

    tools: Mapping[str, Collection[str]] = {
        "read": ("read_file", "read_many_files", "list_directory", "glob", "grep_search"),
        "edit": ("write_file", "replace"),
        "run": ("run_shell_command",),
        "web": ("web_fetch", "google_web_search"),
    }
    provider = adapter.PROVIDERS["google"]
    login_variables: Collection[str] = _AUTH_TYPES.keys()

    reader = GeminiReader
    dialog = staticmethod(gemini_screen.dialog)
    input_box, input_hint = gemini_screen.INPUT_BOX, gemini_screen.INPUT_HINT
    parser = gemini_files.GeminiMessageParser

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Write settings, hooks and instructions; see `AgentAdapter.prepare`."""
        prompt, system, env = adapter.begin_run(self._type, files, prompt, run_limits.system)
        env |= run_limits.endpoint.variables(url="GOOGLE_GEMINI_BASE_URL", key="GEMINI_API_KEY")
        settings = _settings(files, env)
        if run_limits.tools:
            names = adapter.tool_names(self.tools, run_limits.tools)
            settings["tools"] = {"core": [*_ALWAYS, *names]}
        elif not self._type.subagents:
            settings["tools"] = {"exclude": [_SUBAGENT_TOOL]}
        folder = gemini_files.folder(files)
        write_private(folder / "settings.json", json.dumps(settings, indent=1))
        write_private(folder / "GEMINI.md", system)
        known = resume and gemini_files.transcripts(files, resume)
        native = adapter.conversation(files, resume if known else str(uuid.uuid4()))
        words = (
            *self._command,
            *(("--resume", native) if native == resume else ("--session-id", native)),
            *("--approval-mode", _MODES[self._mode(run_limits)]),
            *adapter.option("--model", self._type.model),
            *self._type.args,
        )
        argv = adapter.with_prompt(files, words, prompt, "--prompt-interactive=")
        return LaunchSpec(argv=argv, env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy the conversation's transcript, and assign the copy's folder to the workspace.

        Gemini CLI looks for conversations in the folder that is assigned to its working directory.
        """
        pattern = "tmp/*/chats/session-*-{id:.8}.jsonl"
        folder = gemini_files.folder(files)
        copy = adapter.copy_transcript(Path.home() / ".gemini", pattern, native, folder)
        project = copy.parent.parent
        projects = {"projects": {str(files.workspace): project.name}}
        write_private(folder / "projects.json", json.dumps(projects))
        write_private(project / ".project_root", str(files.workspace))

    def _conversations(self, files: RunFiles) -> Sequence[Path]:
        found = matching(gemini_files.folder(files), "tmp/*/chats/*.jsonl")
        return sorted(found, key=lambda path: path.name)


def _settings(files: RunFiles, env: Mapping[str, str]) -> dict[str, object]:
    """Return the run's settings: the sign-in, no updates or telemetry, and the hooks."""
    types = [word for name, word in _AUTH_TYPES.items() if name in env]
    command = {"type": "command", "name": "mergewright", "command": spool_command(files)}
    return {
        "security": {
            "auth": {"selectedType": types[0]} if types else {},
            "folderTrust": {"enabled": False},
        },
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            # Otherwise a start deletes the stub of a resumed conversation, and with it the
            # conversation itself (measured three times).
            "sessionRetention": {"enabled": False},
        },
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "hooks": {event: [{"matcher": "*", "hooks": [command]}] for event in _HOOKS},
    }
