"""The adapter of Claude Code.

Claude Code gets settings and hooks that are made for the run, and the session's home as HOME.
Nothing in the home of the bot's user is changed, and only `adopt` reads there.
What comments here say about Claude Code without a source was measured with version 2.1.329.
Recordings of that version are in `tests/runtimes/recordings/claude`.
"""

import json
import os
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

from runtimes.agents.base import NO_LIMITS, Endpoint, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.claude import files as claude_files
from runtimes.agents.claude import screen as claude_screen
from runtimes.agents.claude.reader import ClaudeReader
from runtimes.agents.shared import adapter
from runtimes.agents.shared.adapter import option
from runtimes.agents.shared.files import decode_json
from runtimes.agents.shared.hooks import silenced, spool_command
from runtimes.files import read_text, write_private

#: https://code.claude.com/docs/en/permission-modes
_MODES = {"auto": "bypassPermissions", "confirm": "default", "reject": "dontAsk"}
#: No updates and no telemetry: https://code.claude.com/docs/en/env-vars
_QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
#: Tools for questions and plans, which every agent keeps.
_ALWAYS = ("AskUserQuestion", "TodoWrite", "ExitPlanMode")
#: Tools that start subagents; `Task` is an earlier name of `Agent`.
_SUBAGENT_TOOLS = ("Agent", "Task", "Workflow")
_HOOKS = ("UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure")


class Claude(adapter.AgentAdapter):
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"

    preambles: Collection[str] = ("system-prompt", "instructions-file")
    #: https://code.claude.com/docs/en/tools-reference
    tools: Mapping[str, Collection[str]] = {
        "read": ("Read", "Glob", "Grep"),
        "edit": ("Edit", "Write", "NotebookEdit"),
        "run": ("Bash",),
        "web": ("WebFetch", "WebSearch"),
    }
    limits_mcp_servers, limits_hooks = True, True  #: Measured with 2.1.329.
    provider = adapter.PROVIDERS["anthropic"]
    login_variables: Collection[str] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    )
    other_login = (
        ", or with a subscription set CLAUDE_CODE_OAUTH_TOKEN to the token that"
        " `claude setup-token` prints, and name this variable in `pass-env`"
    )

    reader = ClaudeReader
    dialog = staticmethod(claude_screen.dialog)
    input_box, input_hint = claude_screen.INPUT_BOX, claude_screen.INPUT_HINT
    parser = staticmethod(lambda: claude_files.parse_line)

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Write Claude Code's configuration files, including answers to its startup dialogs.

        See `AgentAdapter.prepare`.
        """
        folder = claude_files.folder(files)
        prompt, system, env = adapter.begin_run(self._type, files, prompt, run_limits.system)
        env |= _QUIET
        env |= run_limits.endpoint.variables(url="ANTHROPIC_BASE_URL", key="ANTHROPIC_API_KEY")
        env["CLAUDE_CONFIG_DIR"] = str(folder)
        settings = files.inputs / "claude-settings.json"
        write_private(settings, json.dumps(_settings(files), indent=1))
        write_private(folder / ".claude.json", json.dumps(_state(files, env), indent=1))
        in_file = self._type.preamble == "instructions-file"
        write_private(folder / "CLAUDE.md", system if in_file else "")
        known = claude_files.transcript(files, resume)
        native = adapter.conversation(files, resume if known else str(uuid.uuid4()))
        tools = adapter.tool_names(self.tools, run_limits.tools)
        words = [
            *self._command,
            *(("--resume", native) if native == resume else ("--session-id", native)),
            *("--settings", str(settings)),
            *("--name", files.session),
            *("--permission-mode", _MODES[self._mode(run_limits)]),
            *option("--model", self._type.model),
            *option("--append-system-prompt", "" if in_file else system),
            *option("--tools", ",".join((*_ALWAYS, *tools)) if tools else ""),
            *(() if self._type.subagents else ("--disallowedTools", ",".join(_SUBAGENT_TOOLS))),
            *_limited(files, folder, run_limits),
            *self._type.args,
            "--",
        ]
        argv = adapter.with_prompt(files, words, prompt)
        return LaunchSpec(argv=argv, env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy the conversation's transcript. Claude Code can resume it in another directory."""
        source = adapter.user_folder("CLAUDE_CONFIG_DIR", ".claude")
        adapter.copy_transcript(source, "projects/*/{id}.jsonl", native, claude_files.folder(files))

    def records(self, files: RunFiles) -> Sequence[Path]:
        """Return the transcripts, each followed by those of its subagents."""
        return [
            path
            for one in claude_files.transcripts(files)
            for path in (one, *claude_files.subagent_transcripts(one))
        ]

    def _conversations(self, files: RunFiles) -> Sequence[Path]:
        return sorted(claude_files.transcripts(files), key=claude_files.started_at)

    def _misconfigured(self, environ: Mapping[str, str], endpoint: Endpoint) -> list[str]:
        problems = super()._misconfigured(environ, endpoint)
        sandboxed = adapter.login_variable(self._type, environ, ("IS_SANDBOX",))
        if self._type.permission_mode == "auto" and os.geteuid() == 0 and not sandboxed:
            problems.append(
                'it refuses permission-mode "auto" as root: run the server as another user, or set'
                " IS_SANDBOX=1 in `env` of the agent type if this machine is a sandbox"
            )
        return problems


def _limited(files: RunFiles, folder: Path, limits: RunLimits) -> Iterator[str]:
    """Yield the options that limit MCP servers and disable the repository's hooks.

    Hooks are disabled by ignoring the repository's settings, so its `CLAUDE.md` is not read either
    (measured). The settings in the home are emptied, because the agent may have added hooks there.
    """
    if limits.mcp_servers is not None:
        servers = {
            name: {"command": command[0], "args": list(command[1:])}
            for name, command in limits.mcp_servers.items()
        }
        file = files.inputs / "claude-mcp.json"
        write_private(file, json.dumps({"mcpServers": servers}))
        yield from ("--strict-mcp-config", "--mcp-config", str(file))
    if not limits.hooks:
        write_private(folder / "settings.json", "{}")
        yield from ("--setting-sources", "user")


def _settings(files: RunFiles) -> dict[str, object]:
    """Return the run's settings: hooks, status line and files the agent may always use.

    https://code.claude.com/docs/en/settings
    """
    first, last = (quote(str(path)) for path in claude_files.status_lines(files))
    keep = f"cat > {last}.new; [ -e {first} ] || cp {last}.new {first}; mv -f {last}.new {last}"
    own = [f"Edit(/{file})" for file in (files.summary, files.progress)]
    hook = {"hooks": [{"type": "command", "command": spool_command(files), "timeout": 10}]}
    return {
        "hooks": {event: [hook] for event in _HOOKS},
        "statusLine": {"type": "command", "command": silenced(keep)},
        "promptSuggestionEnabled": False,  # Suggestions in the input box look like typed text.
        "permissions": {"allow": [f"Read(/{files.prompt})", *own]},
    }


def _state(files: RunFiles, env: Mapping[str, str]) -> dict[str, object]:
    """Return the content of the program's state file, with answers to the startup dialogs."""
    state = claude_files.folder(files) / ".claude.json"
    known = decode_json(read_text(state), dict[str, object]) or {}
    key = env.get("ANTHROPIC_API_KEY", "")
    return {
        **known,
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "diffSidebarOpen": False,  # The sidebar covers part of the dialogs.
        "projects": {str(root): {"hasTrustDialogAccepted": True} for root in files.trusted},
        # It identifies an API key by its last 20 characters.
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
    }
