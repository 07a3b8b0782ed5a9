"""Aider, in its own terminal: how it is started.

What it leaves behind is in `aider_files`, how that is read in `aider_reader`. It takes a first
message from a file, works at it and exits; then it is started once more, to be talked to, with all
that was said. Its folders hang below a home of the session's own, what it writes of itself too.
"""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from runtimes.agents.aider import files as its
from runtimes.agents.aider.messages import AiderMessages
from runtimes.agents.aider.reader import AiderReader
from runtimes.agents.base import (
    PROVIDER_DEFAULT,
    USUAL,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.shared.adoption import NotAdopted
from runtimes.agents.shared.conversation import MessagesOfLines
from runtimes.agents.shared.files import read_text, write_private
from runtimes.agents.shared.hooks import harmless
from runtimes.agents.shared.launch import (
    environment,
    installed_version,
    introduced,
    keyless,
    login,
    missing,
)
from runtimes.agents.shared.providers import PROVIDERS
from runtimes.agents.shared.questions import Dialog

_INSTALL = "uv tool install aider-chat"
#: What it may do unasked. It runs no command without a person's yes, whatever it is told; that
#: nothing is allowed is to talk about the work alone.
_UNASKED = ("--yes-always", "--no-suggest-shell-commands")
_MODES = {"auto": _UNASKED, "confirm": (), "reject": (*_UNASKED, "--chat-mode", "ask")}
#: Nothing of it changes or asks by itself, what it counts stays here, and where commits have to be
#: signed off, its own are.
#: It streams: words that come are the one sign that it goes on, and an answer may take minutes. So
#: it estimates what a call used, without what the model reasoned, and without what was cached; an
#: agent type with `--no-stream` among its `args` counts what the provider says.
_ALWAYS = (
    "--no-check-update",
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--no-gitignore",
    "--no-detect-urls",
    "--analytics-disable",
    "--git-commit-verify",
)
#: The providers whose API may be elsewhere, with the version in its path.
_VERSIONS = {"anthropic": "", "openai": "/v1"}
_ENV = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # It knows the prices it came with.
    "BROWSER": "true",  # No page is opened where nobody looks.
    "PYTHON_DOTENV_DISABLED": "1",  # A file `.env` of one run could give orders to the next.
}
#: It fetches a list of models where it finds none that is of today, for each thing it counts anew.
_MODELS = Path("caches") / "model_prices_and_context_window.json"
#: The one thing it keeps in the workspace, wherever it is told to write.
_CACHE = ".aider.tags.cache.v4"
_TWICE = '"$@" {first} && exec "$@" --restore-chat-history'


class Aider:
    """The `aider` program."""

    submit_seconds = 0.6  #: Sooner, Enter is taken for a line of the paste.
    wants_screen = True  #: Only it tells a question from the end of a turn.
    remembers = True
    writes_outside = False  #: One file there, and it makes nothing of all it was about to write.
    #: Each has a model that it takes where none is named.
    preambles: Collection[str] = ("instructions-file",)
    tools: Mapping[str, Collection[str]] = {}
    runs_agents = False
    counts_agents = False
    logins: Collection[str] = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind
        self._program = kind.command or ("aider",)
        self.provider = PROVIDERS[self._provider] if self._provider in _VERSIONS else ""

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = USUAL
    ) -> LaunchSpec:
        """Write its message and what it is told, and start it twice; see `Program.prepare`.

        A conversation is what was written down of it: one that is not in the session's home any
        more is begun anew. It gets the name of the run that began it.
        """
        prompt, system = introduced(self._kind, prompt, run_limits.system)
        env = {**environment(self._kind, files), **_ENV, **self._credentials(run_limits.endpoint)}
        write_private(files.prompt, prompt)
        write_private(its.folder(files) / _MODELS, json.dumps({"sample_spec": {}}))
        _hide(files.workspace / _CACHE)
        if not files.conversation.exists():
            known = bool(resume) and its.history(files, resume).exists()
            write_private(files.conversation, resume if known else files.dir.name)
        native = read_text(files.conversation)
        first = ["--message-file", str(files.prompt)]
        if native != files.dir.name:
            first.append("--restore-chat-history")
        argv = (
            *self._program,
            *_ALWAYS,
            *("--analytics-log", str(files.spool)),
            *("--notifications", "--notifications-command", _asking(files)),
            *("--chat-history-file", str(its.history(files, native))),
            *("--input-history-file", str(its.folder(files) / "input.history")),
            *(("--model", self._kind.model) if self._kind.model else ()),
            *(("--read", str(_told(files, system))) if system else ()),
            *self._kind.args,
            *_MODES.get(self._kind.permission_mode, ()),
        )
        script = _TWICE.format(first=shlex.join(first))
        return LaunchSpec(argv=("/bin/sh", "-c", script, "aider", *argv), env=env, native_id=native)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Refuse it, and say why."""
        raise NotAdopted(
            "Aider has no ids for its conversations: start the session without --resume"
        )

    def reader(self, files: RunFiles) -> AiderReader:
        """A reader of what it counts, of its conversation and its screen."""
        return AiderReader(files)

    def dialog(self, files: RunFiles, screen: str) -> Dialog:
        """What its screen asks."""
        return its.dialog(screen)

    def typed(self, screen: str) -> str:
        """What its screen shows in the box."""
        return its.typed(screen)

    def records(self, files: RunFiles) -> Sequence[Path]:
        """Its conversations, and what it counted in this run."""
        return (*_conversations(files), files.spool)

    def messages(self, files: RunFiles) -> MessagesOfLines:
        """What its conversations say."""
        return MessagesOfLines(lambda: _conversations(files), AiderMessages)

    def version(self) -> str:
        """What `aider --version` says."""
        return installed_version(self._program, _INSTALL)

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """What stands in the way: it is not installed, no model is chosen, or not where it is."""
        problems = missing(self._program, _INSTALL, environ.get("PATH"))
        if endpoint.url and self._provider not in _VERSIONS:
            problems.append(
                "its endpoint can be that of a model of OpenAI's or Anthropic's API alone: set"
                ' `model` of the agent type to "openai/NAME" or "anthropic/NAME"'
            )
        elif endpoint.key and not self._provider:
            problems.append(
                "nothing says whose its key is: set `model` of the agent type to its name at a"
                ' provider, e.g. "anthropic/NAME"'
            )
        elif not self._chooses and not login(self._kind, environ, self.logins):
            problems.append('it has no model: set `model` of the agent type, e.g. "openai/NAME"')
        return [*problems, *keyless(self._kind, endpoint)]

    @property
    def _chooses(self) -> bool:
        """Whether a model is named."""
        return bool(self._kind.model) or "--model" in self._kind.args

    @property
    def _provider(self) -> str:
        """Whose model it is: `openai` of `openai/gpt`, nobody's where only a name is given."""
        return self._kind.model.rpartition("/")[0].partition("/")[0]

    def _credentials(self, endpoint: Endpoint) -> Mapping[str, str]:
        """Where its model is and which key it has there, in the provider's own variables."""
        name = (self._provider or "openai").upper()
        given = endpoint.variables(url=f"{name}_API_BASE", key=f"{name}_API_KEY")
        if endpoint.url:
            given[f"{name}_API_BASE"] += _VERSIONS.get(self._provider, "/v1")
        return given


def _conversations(files: RunFiles) -> Sequence[Path]:
    return sorted(its.folder(files).glob("*.chat.md"))


def _asking(files: RunFiles) -> str:
    """A command that notes among what it counts that it wants to hear something."""
    line = '{"event":"asks","time":%s}\\n'
    return harmless(f"printf '{line}' \"$(date +%s)\" >> {shlex.quote(str(files.spool))}")


def _told(files: RunFiles, system: str) -> Path:
    """A file with what it is told before anything else."""
    told = files.dir / "aider-system.md"
    write_private(told, system)
    return told


def _hide(cache: Path) -> None:
    """Have a folder in the workspace that git does not see, nor whoever asks git what is new."""
    if cache.is_symlink() or cache.is_file():
        cache.unlink()
    write_private(cache / ".gitignore", "*\n")
