"""The adapter of Aider, which starts twice: with the first message, then for the conversation.

With `--message-file`, Aider exits after the first message. The second start restores the chat
history and takes further messages at the terminal. If a run has no first message, Aider starts only
once, and takes all messages at the terminal.

Options: https://aider.chat/docs/config/options.html.
What comments here say about Aider without a source was measured with version 0.86.2. Recordings of
that version are in `tests/runtimes/recordings/aider`.
"""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from runtimes.agents.aider import files as aider_files
from runtimes.agents.aider import screen as aider_screen
from runtimes.agents.aider.reader import AiderReader
from runtimes.agents.base import NO_LIMITS, AgentType, Endpoint, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.shared import adapter
from runtimes.agents.shared.adapter import option
from runtimes.agents.shared.hooks import silenced
from runtimes.files import matching, write_private

#: Aider runs no command without a person's confirmation, whatever its options are. In the chat mode
#: `ask` it changes nothing and only replies.
_UNATTENDED = ("--yes-always", "--no-suggest-shell-commands")
_MODES = {"auto": _UNATTENDED, "confirm": (), "reject": (*_UNATTENDED, "--chat-mode", "ask")}
#: No updates, questions or analytics; commits run the repository's hooks. Responses are streamed,
#: because text on the screen is the only sign of progress while the model responds. While
#: streaming, Aider estimates a request's usage and leaves out reasoning and cached tokens; with
#: `--no-stream` in the `args` of the agent type, Aider takes the provider's numbers.
_ALWAYS = (
    "--no-check-update",
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--no-gitignore",
    "--no-detect-urls",
    "--analytics-disable",
    "--git-commit-verify",
)
#: The providers that support another endpoint, with the version in the path of their API.
_API_VERSIONS = {"anthropic": "", "openai": "/v1"}
_ENV = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # Use the bundled prices.
    "BROWSER": "true",  # Open no pages: `true` is the command that does nothing.
    "PYTHON_DOTENV_DISABLED": "1",  # One run must not configure the next by a file `.env`.
}
#: The cache of model prices. If its file is not from today, Aider downloads it for each request.
_MODEL_CACHE = Path("caches") / "model_prices_and_context_window.json"
#: The cache that Aider keeps in the workspace; no option moves it.
_TAGS_CACHE = ".aider.tags.cache.v4"
_TWICE = '"$@" {first} && exec "$@" --restore-chat-history'


class Aider(adapter.AgentAdapter):
    program = "aider"
    install = "uv tool install aider-chat"
    not_adopted = "Aider has no ids for its conversations"

    #: After one failed write outside the workspace Aider discards all pending edits.
    writes_outside = False
    supports_subagents = False
    limits_mcp_servers, limits_hooks = True, True  #: Aider has neither.
    #: With each of these Aider has a default model.
    login_variables: Collection[str] = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")

    reader = AiderReader
    dialog = staticmethod(aider_screen.dialog)
    unsent_text = staticmethod(aider_screen.unsent_text)
    parser = aider_files.AiderMessageParser

    def __init__(self, agent_type: AgentType) -> None:
        super().__init__(agent_type)
        self.provider = adapter.PROVIDERS[self._provider] if self._provider in _API_VERSIONS else ""

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Write prompt and system prompt; see `AgentAdapter.prepare`.

        Aider has no conversation ids: a chat history is named after the conversation's first run.
        """
        prompt, system, env = adapter.begin_run(self._type, files, prompt, run_limits.system)
        env |= {**_ENV, **self._credentials(run_limits.endpoint)}
        folder = aider_files.folder(files)
        write_private(folder / _MODEL_CACHE, json.dumps({"sample_spec": {}}))
        _hide_from_git(files.workspace / _TAGS_CACHE)
        system_file = files.inputs / "aider-system.md"
        if system:
            write_private(system_file, system)
        known = resume and aider_files.history(files, resume).exists()
        native = adapter.conversation(files, resume if known else files.dir.name)
        restore = () if native == files.dir.name else ("--restore-chat-history",)
        script = _TWICE.format(first=shlex.join(("--message-file", str(files.prompt), *restore)))
        if not prompt:
            script = " ".join(('exec "$@"', *restore))
        argv = (
            *self._command,
            *_ALWAYS,
            *("--analytics-log", str(files.spool)),
            *("--notifications", "--notifications-command", _log_request(files)),
            *("--chat-history-file", str(aider_files.history(files, native))),
            *("--input-history-file", str(folder / "input.history")),
            *option("--model", self._type.model),
            *option("--read", str(system_file) if system else ""),
            *self._type.args,
            *_MODES[self._mode(run_limits)],
        )
        return LaunchSpec(argv=("/bin/sh", "-c", script, "aider", *argv), env=env, native_id=native)

    def records(self, files: RunFiles) -> Sequence[Path]:
        """Return the chat histories, and the run's analytics log."""
        return (*self._conversations(files), files.spool)

    def _conversations(self, files: RunFiles) -> Sequence[Path]:
        return sorted(matching(aider_files.folder(files), "*.chat.md"))

    def _misconfigured(self, environ: Mapping[str, str], endpoint: Endpoint) -> list[str]:
        problems = []
        has_model = self._type.model or "--model" in self._type.args
        login = adapter.login_variable(self._type, environ, self.login_variables)
        if endpoint.url and self._provider not in _API_VERSIONS:
            problems.append(
                "its endpoint must have the API of OpenAI or Anthropic: set `model` of the agent"
                ' type to "openai/NAME" or "anthropic/NAME"'
            )
        elif endpoint.key and not self._provider:
            problems.append(
                "it is unknown which provider its key is for: set `model` of the agent type to"
                ' the provider and the model, such as "anthropic/NAME"'
            )
        elif not has_model and not login:
            problems.append('it has no model: set `model` of the agent type, e.g. "openai/NAME"')
        return [*problems, *adapter.no_variables(self._type, endpoint)]

    @property
    def _provider(self) -> str:
        """The provider in the model's name: `openai` in `openai/NAME`; empty if it has none."""
        return self._type.model.rpartition("/")[0].partition("/")[0]

    def _credentials(self, endpoint: Endpoint) -> Mapping[str, str]:
        """Return the endpoint's URL and key as environment variables of the model's provider."""
        name = (self._provider or "openai").upper()
        variables = endpoint.variables(url=f"{name}_API_BASE", key=f"{name}_API_KEY")
        if endpoint.url:
            variables[f"{name}_API_BASE"] += _API_VERSIONS.get(self._provider, "/v1")
        return variables


def _log_request(files: RunFiles) -> str:
    """Return a shell command that appends the event 'asks' to the run's analytics log."""
    line = '{"event":"asks","time":%s}\\n'
    return silenced(f"printf '{line}' \"$(date +%s)\" >> {shlex.quote(str(files.spool))}")


def _hide_from_git(cache: Path) -> None:
    """Create the cache folder with its own `.gitignore`, so that it never counts as a change.

    A link or a file in its place is removed.
    """
    if cache.is_symlink() or cache.is_file():
        cache.unlink()
    write_private(cache / ".gitignore", "*\n")
