"""Codex, in its own terminal: how it is started.

What it leaves behind is in `codex_files`, how that is read in `codex_reader`. Everything it is to
know stands in its arguments; its folder hangs below a home of the session's own.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from runtimes.agents.codex import files as its
from runtimes.agents.codex.messages import CodexMessages
from runtimes.agents.codex.reader import CodexReader
from runtimes.agents.shared.adoption import adopt, their_folder
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
)
from runtimes.agents.shared.providers import OPENAI
from runtimes.agents.shared.questions import Dialog

_INSTALL = "npm install -g @openai/codex"
_MODES = {
    "auto": ("--dangerously-bypass-approvals-and-sandbox",),
    "confirm": ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    "reject": ("--ask-for-approval", "never", "--sandbox", "workspace-write"),
}
#: Nothing of it lives on after the run, and nothing of it changes by itself.
_QUIET = {
    "features.daemon_auto_start": "false",
    "features.plugins": "false",
    "check_for_update_on_startup": "false",
    "analytics.enabled": "false",
    "notice.hide_rate_limit_model_nudge": "true",  # A dialog, just where a limit is reached.
}
#: It has no agents of its own, whichever of its two ways of having some is on.
_ALONE = ("agents.enabled=false", "features.multi_agent=false", "features.multi_agent_v2=false")
_KEY = "OPENAI_API_KEY"
_HOOKS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest")


class Codex:
    """The `codex` program."""

    submit_seconds = 0.6  #: Sooner, Enter is taken for a line of the paste.
    wants_screen = True  #: Only it tells that leave was given, and of dialogs before the prompt.
    remembers = True
    writes_outside = True
    provider = OPENAI
    preambles: Collection[str] = ("system-prompt", "instructions-file")
    tools: Mapping[str, Collection[str]] = {}
    runs_agents = True
    counts_agents = True
    logins: Collection[str] = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind
        self._program = kind.command or ("codex",)

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = USUAL
    ) -> LaunchSpec:
        """Write its key, where it has one, and its arguments; see `Program.prepare`.

        A conversation that is not in the session's home any more is begun anew; of a new one it
        chooses the name.
        """
        prompt, system = introduced(self._kind, prompt, run_limits.system)
        env = {**environment(self._kind, files), "CODEX_HOME": str(its.folder(files))}
        env |= run_limits.endpoint.variables(key=_KEY)
        write_private(files.prompt, prompt)
        its.folder(files).mkdir(mode=0o700, parents=True, exist_ok=True)
        if (key := env.get(_KEY)) and not run_limits.endpoint.url:
            write_private(its.folder(files) / "auth.json", json.dumps({_KEY: key}))
        in_file = self._kind.preamble == "instructions-file"
        write_private(its.folder(files) / "AGENTS.md", system if in_file else "")
        if not files.conversation.exists():
            write_private(files.conversation, resume if its.rollout(files, resume) else "")
        native = read_text(files.conversation)
        argv = [
            *self._program,
            *(("resume",) if native else ()),
            "--no-daemon",
            "--dangerously-bypass-hook-trust",
            *("--cd", str(files.workspace)),  # It asks where, if it was elsewhere before.
            *(
                word
                for setting in (
                    *_settings(files, "" if in_file else system, run_limits.endpoint),
                    *_of_agents(self._kind.intra_parallel),
                )
                for word in ("--config", setting)
            ),
            *_MODES.get(self._kind.permission_mode, _MODES["confirm"]),
            *(("--model", self._kind.model) if self._kind.model else ()),
            *self._kind.args,
            "--",
            *((native,) if native else ()),
        ]
        return LaunchSpec(argv=(*argv, argument(files, prompt)), env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy its rollout, which the program finds by its name alone."""
        theirs = their_folder("CODEX_HOME", ".codex")
        adopt(theirs, "sessions/*/*/*/rollout-*-{id}.jsonl", native, its.folder(files))

    def reader(self, files: RunFiles) -> CodexReader:
        """A reader of the run's hooks, rollout and screen."""
        return CodexReader(files)

    def dialog(self, files: RunFiles, screen: str) -> Dialog:
        """What its screen asks."""
        return its.dialog(files, screen)

    def typed(self, screen: str) -> str:
        """What its screen shows in the box."""
        return its.typed(screen)

    def records(self, files: RunFiles) -> Sequence[Path]:
        """The rollouts of its conversations."""
        return sorted((its.folder(files) / "sessions").glob("*/*/*/rollout-*.jsonl"))

    def messages(self, files: RunFiles) -> MessagesOfLines:
        """What its rollouts say."""
        return MessagesOfLines(lambda: self.records(files), CodexMessages)

    def version(self) -> str:
        """What `codex --version` says."""
        return installed_version(self._program, _INSTALL)

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """What stands in the way: it is not installed, or cannot sign in."""
        problems = missing(self._program, _INSTALL, environ.get("PATH"))
        own_provider = any("model_provider" in word for word in self._kind.args)
        signs_in = login(self._kind, environ, self.logins)
        if endpoint == PROVIDER_DEFAULT and not signs_in and not own_provider:
            problems.append(
                "it has no credentials: set OPENAI_API_KEY for the server and name it in `key` of"
                " the agent type, or name a model_provider of your own in its args"
            )
        return problems


def _of_agents(allowed: bool | int) -> Sequence[str]:
    """Its settings for agents of its own."""
    if not allowed:
        return _ALONE
    return () if allowed is True else (f"agents.max_threads={allowed}",)


def _settings(files: RunFiles, system: str, endpoint: Endpoint) -> Iterator[str]:
    """Its settings, in TOML, whose strings and tables of one line JSON almost is."""
    yield from (f"{name}={value}" for name, value in _QUIET.items())
    trusted = ",".join(
        f'{json.dumps(str(root))}={{trust_level="trusted"}}' for root in files.trusted
    )
    yield f"projects={{{trusted}}}"
    # Its sandbox protects what git writes to wherever that is, unless it is named itself.
    writable = [str(folder) for folder in (*files.git_folders, files.summary.parent)]
    yield f"sandbox_workspace_write.writable_roots={json.dumps(writable)}"
    hook = f'[{{hooks=[{{type="command",command={json.dumps(spooling(files))}}}]}}]'
    yield from (f"hooks.{event}={hook}" for event in _HOOKS)
    if endpoint.url:
        provider = {
            "name": "mergewright",
            "base_url": f"{endpoint.url}/v1",
            "wire_api": "responses",
        }
        if endpoint.key:
            provider["env_key"] = _KEY
        yield 'model_provider="mergewright"'
        yield from (
            f"model_providers.mergewright.{name}={json.dumps(value)}"
            for name, value in provider.items()
        )
    if system:
        yield f"developer_instructions={json.dumps(system)}"
