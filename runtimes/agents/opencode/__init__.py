"""The adapter of OpenCode.

OpenCode gets a configuration and a port that are made for the run, and the session's home as HOME.

Configuration: https://opencode.ai/docs/config.
What comments here say about OpenCode without a source was measured with version 1.18.33. Recordings
of that version are in `tests/runtimes/recordings/opencode`.
"""

import json
import secrets
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from runtimes.agents.base import (
    NO_LIMITS,
    PROVIDER_DEFAULT,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.opencode import files as opencode_files
from runtimes.agents.opencode import first_message, port
from runtimes.agents.opencode.reader import OpenCodeReader
from runtimes.agents.shared import adapter
from runtimes.agents.shared.files import decode_json
from runtimes.files import read_text, write_private

_RISKY = ("edit", "bash", "webfetch", "external_directory")
#: https://opencode.ai/docs/permissions
_MODES = {
    "auto": {"*": "allow"},
    "confirm": dict.fromkeys(_RISKY, "ask"),
    "reject": dict.fromkeys(_RISKY, "deny"),
}
#: Tools for questions, plans and the pull request's text, which every agent keeps.
_ALWAYS = ("question", "todowrite", "external_directory")
#: No updates, no sharing, and no downloads of models' data and language servers.
_QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
#: The variable with the configuration as JSON. Settings that an agent type puts there are kept,
#: unless the run needs others.
_CONFIG = "OPENCODE_CONFIG_CONTENT"
#: The version in the path of each built-in provider's API.
_API_VERSIONS = {"anthropic": "/v1", "openai": "/v1", "google": "/v1beta"}


class OpenCode(adapter.AgentAdapter):
    program = "opencode"
    install = "npm install -g opencode-ai"
    not_adopted = "OpenCode keeps all conversations in one database, from which none can be copied"

    wants_screen = False
    tools: Mapping[str, Collection[str]] = {
        "read": ("read", "glob", "grep", "list"),
        "edit": ("edit",),
        "run": ("bash",),
        "web": ("webfetch", "websearch"),
    }
    login_variables: Collection[str] = (
        _CONFIG,
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
    )

    reader = OpenCodeReader
    messages = opencode_files.OpenCodeMessageReader
    dialog = staticmethod(port.dialog)
    # No `input_box`: only colours distinguish unsent text from hints in the input box.

    def __init__(self, agent_type: AgentType) -> None:
        super().__init__(agent_type)
        self.provider = adapter.PROVIDERS.get(agent_type.model.partition("/")[0], "")

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Choose port and password, and build the configuration; see `AgentAdapter.prepare`.

        The program chooses the id of a new conversation itself.
        """
        prompt, system, env = adapter.begin_run(self._type, files, prompt, run_limits.system)
        env |= _QUIET
        known = opencode_files.query(files, "select 1 from session where id = ?", resume)
        native = adapter.conversation(files, resume if known else "")
        server = _server(files)
        env["OPENCODE_SERVER_PASSWORD"] = server.password
        env[_CONFIG] = json.dumps(self._settings(files, env.get(_CONFIG, ""), system, run_limits))
        argv = [*self._command, "--port", str(server.port), *self._type.args]
        if not native:
            wrapped = adapter.with_prompt(files, argv, prompt, "--prompt=")
            return LaunchSpec(argv=wrapped, env=env, port=server.port)
        argv += ["--session", native]
        if not prompt:
            return LaunchSpec(argv=tuple(argv), env=env, native_id=native, port=server.port)
        # A sandbox has the Python that runs this, without its environment.
        script = (str(Path(sys.executable).resolve()), "-I", "-S", first_message.__file__)
        given = (str(port.server_file(files)), native, str(files.prompt))
        return LaunchSpec(
            argv=(*script, *given, "--", *argv),
            env=env,
            native_id=native,
            port=server.port,
            reads=(Path(first_message.__file__),),
        )

    def _conversations(self, files: RunFiles) -> Sequence[Path]:
        return (opencode_files.database(files),)

    def _misconfigured(self, environ: Mapping[str, str], endpoint: Endpoint) -> list[str]:
        problems = adapter.no_variables(self._type, endpoint)
        if endpoint != PROVIDER_DEFAULT and "/" not in self._type.model:
            problems.append(
                "it is unknown which provider its endpoint and key are for: set `model` of the"
                ' agent type to the provider and the model, such as "anthropic/NAME"'
            )
        return problems

    def _settings(
        self, files: RunFiles, given: str, system: str, run_limits: RunLimits
    ) -> dict[str, object]:
        settings = decode_json(given, dict[str, object]) or {}
        own = settings.get("permission")
        mode = _MODES[self._mode(run_limits)]
        if run_limits.tools:
            allowed = (*_ALWAYS, *adapter.tool_names(self.tools, run_limits.tools))
            mode = {"*": "deny", **{name: mode.get(name, "allow") for name in allowed}}
        if isinstance(own, dict):
            mode = mode | own
        if not self._type.subagents:
            mode = mode | {"task": "deny"}
        settings |= {"autoupdate": False, "share": "disabled", "permission": mode}
        if self._type.model:
            settings["model"] = self._type.model
            settings["provider"] = _providers(settings, self._type.model, run_limits.endpoint)
        if system:
            path = files.inputs / "opencode-system.md"
            write_private(path, system)
            more = settings.get("instructions")
            settings["instructions"] = [*(more if isinstance(more, list) else ()), str(path)]
        return settings


def _providers(
    settings: Mapping[str, object], model: str, endpoint: Endpoint
) -> Mapping[str, object]:
    """Return the providers' settings, in which the model's own provider uses the endpoint.

    A provider that is not in `_API_VERSIONS` is assumed to have OpenAI's chat API, unless the
    settings say otherwise.
    https://opencode.ai/docs/providers
    """
    given = settings.get("provider")
    providers = given if isinstance(given, dict) else {}
    if endpoint == PROVIDER_DEFAULT:
        return providers
    name, _, its_name = model.partition("/")
    provider = providers.get(name, {})
    options = dict(provider.get("options", {}))
    if endpoint.url:
        options["baseURL"] = endpoint.url + _API_VERSIONS.get(name, "/v1")
    if endpoint.key:
        options["apiKey"] = endpoint.key
    if name not in _API_VERSIONS:
        provider = {"npm": "@ai-sdk/openai-compatible", "models": {its_name: {}}} | provider
    return {**providers, name: {**provider, "options": options}}


def _server(files: RunFiles) -> port.OpenCodeServer:
    """Return the run's port and password, which the first call chooses."""
    path = port.server_file(files)
    known = decode_json(read_text(path), port.OpenCodeServer)
    if known is None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            number = free.getsockname()[1]
        known = port.OpenCodeServer(port=number, password=secrets.token_urlsafe(24))
        write_private(path, msgspec.json.encode(known).decode())
    return known
