"""Implements `mergewright init`: asks for what an installation needs, and writes its files."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import typer
from msgspec import Struct

from bot.cli import setup
from bot.cli.options import LOOPBACK, CliError
from bot.setup.files import SetupRequest, project_name
from config.contradictions import nearest
from config.load import VARIABLES, ConfigError, secret
from runtimes.agents import AGENTS
from runtimes.isolation import ISOLATIONS

T = TypeVar("T")

_TOKEN: Final = VARIABLES["token"]
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
#: The answer of a person who has no public URL, or no model key.
_NO: Final = "none"
_NOT_ISOLATED: Final = "none"
_APP, _BY_TOKEN = "app", "token"


class InitOptions(Struct, frozen=True, kw_only=True):
    """The options from the command line. An empty one is asked for, or has a default."""

    repository: str
    url: str
    auth: str
    agent: str
    key: str
    isolation: str
    api_url: str
    organization: bool
    folder: Path
    port: int


class Interview:
    """Asks questions at a terminal, or takes the answers from options. Raises `CliError`."""

    def __init__(self, *, asks: bool) -> None:
        """`asks` says whether there is a person at a terminal to ask."""
        self.asks = asks

    def answer(
        self,
        option: str,
        given: str,
        question: str,
        check: Callable[[str], T],
        *,
        default: str = "",
    ) -> T:
        """Return the answer to a question, as `check` converts it.

        `check` raises `ValueError` to refuse an answer; a person is then asked again. `given` is
        the value of `option`: if it is not empty, nobody is asked. Without a terminal, `default`
        takes the place of an empty `given`. Raises `CliError` if `check` refuses the option's value
        or this default.
        """
        if not given and not self.asks:
            given = default
        if given or not self.asks:
            try:
                return check(given)
            except ValueError as problem:
                shown = f" {given}" if given else ""
                raise CliError(f"{option}{shown}: {problem}") from None
        while True:
            try:
                return check(str(typer.prompt(question, default=default or None)).strip())
            except ValueError as problem:
                print(f"  {problem}")


def run(given: InitOptions, *, asks: bool) -> None:
    """Ask for missing options, check all, write the files and set up GitHub. Raises `CliError`."""
    setup.check_folder(given.folder)
    setup.check_api_url(given.api_url)
    interview = Interview(asks=asks)
    url = ""
    repository, auth, token = given.repository, "", ""
    while not auth:
        repository = interview.answer(
            *("--repository", given.repository, "1. Repository (OWNER/NAME)", _repository),
            default=repository,
        )
        url = interview.answer(
            *("--url", given.url, "2. Public URL of this server (none: poll GitHub)", _address),
            default=url or _NO,
        )
        auth, token = _authentication(interview, given, repository, url)
    agent = interview.answer(
        *("--agent", given.agent, f"4. Agent ({', '.join(_programs())})", _agent),
        default=next((name for name in _programs() if shutil.which(name)), ""),
    )
    key, keys = _model_key(interview, given.key, agent)
    isolation = interview.answer(
        *("--isolation", given.isolation, f"5. Isolation ({', '.join(ISOLATIONS)})", _isolation),
        default=_strongest(),
    )
    wanted = SetupRequest(
        project=project_name(repository),
        repository=repository,
        agent=agent,
        api_url=given.api_url,
        public_url=url,
        key=key,
        isolation="" if isolation == _strongest() else isolation,
    )
    setup.checked(wanted, given.folder)
    if auth == _BY_TOKEN:
        setup.store_token(wanted, given.folder, token, keys)
    else:
        setup.app(wanted, given.folder, given.port, organization=given.organization, keys=keys)


def _authentication(
    interview: Interview, given: InitOptions, repository: str, url: str
) -> tuple[str, str]:
    """Return how the bot signs in to GitHub, and its token, which is empty for an App.

    If both are empty, the token was refused and the questions have to be asked again.
    """
    if not url and given.auth == _APP:
        raise CliError(
            "--auth app: a new App needs --url, to which GitHub sends webhooks and people;"
            " docs/github.md (Polling) says how to use an App without it"
        )
    auth = _BY_TOKEN
    if url:
        auth = interview.answer(
            *("--auth", given.auth, "3. GitHub App or token (app, token)", _way), default=_APP
        )
    if auth == _APP:
        return auth, ""
    try:
        token = secret(_TOKEN, os.environ)
    except ConfigError as error:
        raise CliError(str(error)) from None
    if not token and not interview.asks:
        raise CliError(f"no token: set {_TOKEN} or {_TOKEN}_FILE")
    typed = token or str(typer.prompt("3. Token of the bot's account", hide_input=True)).strip()
    try:
        login = setup.check_token(given.api_url, repository, typed)
    except CliError as problem:
        if token or not interview.asks:
            raise
        print(f"  {problem}")
        return "", ""
    print(f"{login} may write to {repository}.")
    return auth, typed


def _model_key(interview: Interview, given: str, agent: str) -> tuple[str, Mapping[str, str]]:
    """Return the name of the variable with the model key, and a mapping from it to the key.

    The name is empty if the agent signs in by itself. The mapping is empty if the key is unknown.
    """
    usual = next((one for one in AGENTS[agent].login_variables if one.endswith("_KEY")), _NO)
    name = interview.answer(
        *(
            "--key",
            given,
            "   Variable with its model key (none: it uses another login)",
            _variable,
        ),
        default=usual,
    )
    if not name:
        return "", {}
    value = os.environ.get(name, "")
    if not value and interview.asks:
        question = f"   Value of {name} (empty: you add it to mergewright.env later)"
        value = typer.prompt(question, default="", hide_input=True, show_default=False).strip()
    if not value:
        print(f"{name} is not set: add it to mergewright.env, which is written at the end.")
    return name, {name: value} if value else {}


def _repository(text: str) -> str:
    if not _REPOSITORY.fullmatch(text):
        raise ValueError("expected OWNER/NAME, such as acme/widgets")
    return text


def _address(text: str) -> str:
    """Return a URL with a trailing slash; empty if the answer is `none`. Raises `ValueError`."""
    if text == _NO:
        return ""
    parts = urlsplit(text)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not safe or not parts.hostname:
        raise ValueError("expected a URL such as https://bot.example, or none to poll GitHub")
    return text.rstrip("/") + "/"


def _way(text: str) -> str:
    if text not in (_APP, _BY_TOKEN):
        raise ValueError("expected app or token")
    return text


def _agent(text: str) -> str:
    known = _programs()
    if not text:
        raise ValueError(f"none of {', '.join(known.values())} is installed: install one")
    if text not in known:
        raise ValueError(nearest(text, known))
    if not shutil.which(known[text]):
        raise ValueError(f"{known[text]} is not installed: it is not on PATH")
    return text


def _programs() -> dict[str, str]:
    """Return the default commands of agent programs by name, without programs that have none."""
    return {name: adapter.program for name, adapter in AGENTS.items() if adapter.program}


def _variable(text: str) -> str:
    if text == _NO:
        return ""
    if not _VARIABLE.fullmatch(text):
        raise ValueError("expected the name of an environment variable, not the key itself")
    return text


def _isolation(text: str) -> str:
    if text not in ISOLATIONS:
        reasons = [f"{name}: {why}" for name in ISOLATIONS if (why := _unavailable(name))]
        why = f"; {'; '.join(reasons)}" if reasons else ""
        raise ValueError(f"expected one of {', '.join(ISOLATIONS)}{why}")
    if why := _unavailable(text):
        raise ValueError(f"{text} does not work here: {why}")
    return text


def _strongest() -> str:
    """Return the strongest sandbox that works here; if empty, a person has to choose."""
    sandboxes = (name for name in ISOLATIONS if name != _NOT_ISOLATED)
    return next((name for name in sandboxes if not _unavailable(name)), "")


@cache
def _unavailable(name: str) -> str:
    """Return why an isolation does not work on this machine; empty if it works."""
    return ISOLATIONS[name].unavailable()
