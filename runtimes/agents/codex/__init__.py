"""The adapter of Codex.

Codex gets its settings as arguments, and its folder, CODEX_HOME, in the session's home.

Settings and command line: https://developers.openai.com/codex/config-reference.
What comments here say about Codex without a source was measured with version 0.169.0. Recordings of
that version are in `tests/runtimes/recordings/codex`.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from runtimes.agents.base import NO_LIMITS, Endpoint, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.codex import files as codex_files
from runtimes.agents.codex import screen as codex_screen
from runtimes.agents.codex.reader import CodexReader
from runtimes.agents.shared import adapter
from runtimes.agents.shared.files import decode_json
from runtimes.agents.shared.hooks import spool_command
from runtimes.files import make_folder, matching, read_text, write_private

_MODES = {
    "auto": ("--dangerously-bypass-approvals-and-sandbox",),
    "confirm": ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    "reject": ("--ask-for-approval", "never", "--sandbox", "workspace-write"),
}
#: No daemon, which would keep working after the run (measured), and no updates or telemetry.
_QUIET = {
    "features.daemon_auto_start": "false",
    "features.plugins": "false",
    "check_for_update_on_startup": "false",
    "analytics.enabled": "false",
    "notice.hide_rate_limit_model_nudge": "true",  # A dialog that opens when a limit is reached.
}
#: Settings that switch off both implementations of subagents.
_NO_SUBAGENTS = (
    "agents.enabled=false",
    "features.multi_agent=false",
    "features.multi_agent_v2=false",
)
_KEY = "OPENAI_API_KEY"
_PROVIDER = "mergewright"  #: Name of the provider with the run's endpoint.
_HOOKS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest")


class Codex(adapter.AgentAdapter):
    program = "codex"
    install = "npm install -g @openai/codex"

    preambles: Collection[str] = ("system-prompt", "instructions-file")
    limits_subagents = True
    provider = adapter.PROVIDERS["openai"]
    login_variables: Collection[str] = (_KEY, "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")
    other_login = ", or name a model_provider of your own in its `args`"

    reader = CodexReader
    dialog = staticmethod(codex_screen.dialog)
    input_box, input_hint = codex_screen.INPUT_BOX, codex_screen.INPUT_HINT
    parser = codex_files.CodexMessageParser

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Write key and instructions; the program chooses the id of a new conversation."""
        folder = codex_files.folder(files)
        prompt, system, env = adapter.begin_run(self._type, files, prompt, run_limits.system)
        env["CODEX_HOME"] = str(folder)
        env |= run_limits.endpoint.variables(key=_KEY)
        make_folder(folder)
        auth, key = folder / "auth.json", env.get(_KEY)
        if key and not run_limits.endpoint.url:
            write_private(auth, json.dumps({_KEY: key}))
        elif [*(decode_json(read_text(auth), dict[str, object]) or {})] == [_KEY]:
            auth.unlink()  # Written for an earlier run; a person's login has more fields.
        in_file = self._type.preamble == "instructions-file"
        write_private(folder / "AGENTS.md", system if in_file else "")
        known = codex_files.rollout(files, resume)
        native = adapter.conversation(files, resume if known else "")
        settings = [
            *_settings(files, "" if in_file else system, run_limits.endpoint),
            *_subagent_settings(self._type.subagents),
        ]
        words = [
            *self._command,
            *(("resume",) if native else ()),
            "--no-daemon",
            "--dangerously-bypass-hook-trust",
            # Without it a resumed conversation asks which of two folders to work in.
            *("--cd", str(files.workspace)),
            *(word for setting in settings for word in ("--config", setting)),
            *_MODES[self._mode(run_limits)],
            *adapter.option("--model", self._type.model),
            *self._type.args,
            "--",
            *((native,) if native else ()),
        ]
        argv = adapter.with_prompt(files, words, prompt)
        return LaunchSpec(argv=argv, env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy the conversation's rollout (its transcript), which Codex finds by its file name."""
        source = adapter.user_folder("CODEX_HOME", ".codex")
        pattern = "sessions/*/*/*/rollout-*-{id}.jsonl"
        adapter.copy_transcript(source, pattern, native, codex_files.folder(files))

    def _conversations(self, files: RunFiles) -> Sequence[Path]:
        return sorted(matching(codex_files.folder(files), "sessions/*/*/*/rollout-*.jsonl"))

    def _misconfigured(self, environ: Mapping[str, str], endpoint: Endpoint) -> list[str]:
        if any("model_provider" in word for word in self._type.args):
            return []
        return super()._misconfigured(environ, endpoint)


def _subagent_settings(allowed: bool | int) -> Sequence[str]:
    if not allowed:
        return _NO_SUBAGENTS
    return () if allowed is True else (f"agents.max_threads={allowed}",)


def _settings(files: RunFiles, system: str, endpoint: Endpoint) -> Iterator[str]:
    """Yield the run's settings as `KEY=VALUE` in TOML; JSON's strings and lists are TOML too."""
    yield from (f"{name}={value}" for name, value in _QUIET.items())
    roots = (json.dumps(str(root)) for root in files.trusted)
    trusted = ",".join(f'{root}={{trust_level="trusted"}}' for root in roots)
    yield f"projects={{{trusted}}}"
    # Its sandbox keeps git's own folders read-only unless they are named.
    writable = [str(folder) for folder in (*files.git_folders, files.summary.parent)]
    yield f"sandbox_workspace_write.writable_roots={json.dumps(writable)}"
    hook = f'[{{hooks=[{{type="command",command={json.dumps(spool_command(files))}}}]}}]'
    yield from (f"hooks.{event}={hook}" for event in _HOOKS)
    if endpoint.url:
        provider = {"name": _PROVIDER, "base_url": f"{endpoint.url}/v1", "wire_api": "responses"}
        if endpoint.key:
            provider["env_key"] = _KEY
        yield f'model_provider="{_PROVIDER}"'
        for name, value in provider.items():
            yield f"model_providers.{_PROVIDER}.{name}={json.dumps(value)}"
    if system:
        yield f"developer_instructions={json.dumps(system)}"
