"""OpenCode, in its own terminal: how it is started.

What it leaves behind is in `opencode_files`, how that is read in `opencode_reader`. Its folders
hang below a home of the session's own; its port is for this machine alone, behind a password.
"""

import json
import secrets
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from runtimes.agents.base import (
    PROVIDER_DEFAULT,
    USUAL,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.opencode import files as its
from runtimes.agents.opencode import first_message
from runtimes.agents.opencode.dialog import dialog
from runtimes.agents.opencode.messages import OpenCodeMessages
from runtimes.agents.opencode.reader import OpenCodeReader
from runtimes.agents.shared.adoption import NotAdopted
from runtimes.agents.shared.files import read_text, understood, write_private
from runtimes.agents.shared.launch import (
    argument,
    environment,
    installed_version,
    introduced,
    keyless,
    missing,
    named,
)
from runtimes.agents.shared.providers import PROVIDERS
from runtimes.agents.shared.questions import Dialog

_INSTALL = "npm install -g opencode-ai"
_RISKY = ("edit", "bash", "webfetch", "external_directory")
_MODES = {"auto": {"*": "allow"}, "confirm": dict.fromkeys(_RISKY, "ask")}
#: What it may in any case: talk to people, plan, write down what the pull request is to say.
_ALWAYS = ("question", "todowrite", "external_directory")
_REFUSES = dict.fromkeys(_RISKY, "deny")
#: Nothing of it changes by itself, and nothing is fetched that it has brought along.
_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
#: Its configuration as text; what an agent type sets there is kept.
_CONFIG = "OPENCODE_CONFIG_CONTENT"
#: The version in the path of the API of each provider it knows by itself.
_VERSIONS = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}


class OpenCode:
    """The `opencode` program."""

    submit_seconds = 0.6  #: Sooner, Enter is taken for a line of the paste.
    wants_screen = False
    remembers = True
    writes_outside = True
    preambles: Collection[str] = ("instructions-file",)
    tools: Mapping[str, Collection[str]] = {
        "read": ("read", "glob", "grep", "list"),
        "edit": ("edit",),
        "run": ("bash",),
        "web": ("webfetch", "websearch"),
    }
    runs_agents = True
    counts_agents = False
    logins: Collection[str] = (_CONFIG, "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind
        self._program = kind.command or ("opencode",)
        self.provider = PROVIDERS.get(kind.model.partition("/")[0], "")

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = USUAL
    ) -> LaunchSpec:
        """Choose its port and write what it is told; see `Program.prepare`.

        A conversation that is not in the session's home any more is begun anew; of a new one it
        chooses the name.
        """
        prompt, system = introduced(self._kind, prompt, run_limits.system)
        env = {**environment(self._kind, files), **_QUIET}
        write_private(files.prompt, prompt)
        if not files.conversation.exists():
            write_private(files.conversation, resume if its.knows(files, resume) else "")
        native = read_text(files.conversation)
        server = _server(files)
        env["OPENCODE_SERVER_PASSWORD"] = server.password
        env[_CONFIG] = json.dumps(self._settings(files, env.get(_CONFIG, ""), system, run_limits))
        argv = [*self._program, "--port", str(server.port), *self._kind.args]
        if not native:
            argv.append(f"--prompt={argument(files, prompt)}")
            return LaunchSpec(argv=tuple(argv), env=env)
        says = (sys.executable, "-I", "-S", first_message.__file__)
        given = (str(its.server(files)), native, str(files.prompt))
        argv = [*says, *given, "--", *argv, "--session", native]
        return LaunchSpec(argv=tuple(argv), env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Refuse it, and say why."""
        raise NotAdopted(
            "OpenCode keeps all conversations in one database, from which none can be taken:"
            " start the session without --resume"
        )

    def reader(self, files: RunFiles) -> OpenCodeReader:
        """A reader of the run's database and port."""
        return OpenCodeReader(files)

    def dialog(self, files: RunFiles, screen: str) -> Dialog:
        """What its port asks."""
        return dialog(files)

    def typed(self, screen: str) -> str:
        """Nothing: its box is told from its words by colours alone."""
        return ""

    def records(self, files: RunFiles) -> Sequence[Path]:
        """Its database."""
        return (its.database(files),)

    def messages(self, files: RunFiles) -> OpenCodeMessages:
        """What its database says."""
        return OpenCodeMessages(files)

    def version(self) -> str:
        """What `opencode --version` says."""
        return installed_version(self._program, _INSTALL)

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """What stands in the way: it is not installed, has no key, or no model is chosen."""
        problems = missing(self._program, _INSTALL, environ.get("PATH"))
        problems += keyless(self._kind, endpoint)
        if endpoint != PROVIDER_DEFAULT and "/" not in self._kind.model:
            problems.append(
                "nothing says whose its endpoint and key are: set `model` of the agent type to"
                ' its name at a provider, e.g. "anthropic/NAME"'
            )
        return problems

    def _settings(
        self, files: RunFiles, given: str, system: str, run_limits: RunLimits
    ) -> dict[str, object]:
        settings = understood(given, dict[str, object]) or {}
        own = settings.get("permission")
        mode = _MODES.get(self._kind.permission_mode, _REFUSES)
        if run_limits.tools:
            held = (*_ALWAYS, *named(self.tools, run_limits.tools))
            mode = {"*": "deny", **{name: mode.get(name, "allow") for name in held}}
        settings |= {
            "autoupdate": False,
            "share": "disabled",
            "permission": {
                **mode,
                **(own if isinstance(own, dict) else {}),
                **({} if self._kind.intra_parallel else {"task": "deny"}),
            },
        }
        if self._kind.model:
            settings["model"] = self._kind.model
            settings["provider"] = _providers(settings, self._kind.model, run_limits.endpoint)
        if system:
            told = files.dir / "opencode-system.md"
            write_private(told, system)
            more = settings.get("instructions")
            settings["instructions"] = [*(more if isinstance(more, list) else ()), str(told)]
        return settings


def _providers(
    settings: Mapping[str, object], model: str, endpoint: Endpoint
) -> Mapping[str, object]:
    """Whom it asks, with the model's own provider at the endpoint.

    One that it does not know by itself speaks OpenAI's chat API.
    """
    given = settings.get("provider")
    providers = given if isinstance(given, dict) else {}
    if endpoint == PROVIDER_DEFAULT:
        return providers
    name, _, its_name = model.partition("/")
    provider = providers.get(name, {})
    options = dict(provider.get("options", {}))
    if endpoint.url:
        options["baseURL"] = endpoint.url + _VERSIONS.get(name, "/v1")
    if endpoint.key:
        options["apiKey"] = endpoint.key
    if name not in _VERSIONS:
        provider = {"npm": "@ai-sdk/openai-compatible", "models": {its_name: {}}} | provider
    return {**providers, name: {**provider, "options": options}}


def _server(files: RunFiles) -> its.Server:
    """The run's port and password, chosen once."""
    path = its.server(files)
    known = understood(read_text(path), its.Server)
    if known is None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            known = its.Server(port=free.getsockname()[1], password=secrets.token_urlsafe(24))
        write_private(path, msgspec.json.encode(known).decode())
    return known
