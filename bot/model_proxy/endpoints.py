"""Looks up model endpoints and model keys, by session or by run token.

Agents do not get these keys. A run gets the address of the model proxy and a run token, which the
proxy replaces by the key. A token is valid while its run is the session's last and has not ended.
The usage of each response is recorded for the run of its token; `bot.store.usage` combines it with
what agents report.
"""

import hmac
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path

from msgspec import Struct

from bot.store import Session, Store, StoreFailure
from bot.system.locations import Paths
from config.settings import Settings
from lifecycle.model.facts import Usage
from lifecycle.model.status import Activity, Reason
from runtimes.agents.base import Endpoint
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.files import read_text, write_private
from runtimes.isolation.base import PROXY_PORT

_log = logging.getLogger(__name__)

#: The token of a run, or of the project's own commands in the session's workspace.
_RUN_TOKEN = re.compile(r"(?P<session>[a-z0-9-]+)_(?:r(?P<run>[0-9]{1,9})|steps)\.[\w-]+")


class ModelUnavailable(Exception):
    """The proxy cannot serve a request or a run. The message is for agents and people."""

    def __init__(self, why: str, status: HTTPStatus = HTTPStatus.UNAUTHORIZED) -> None:
        super().__init__(why)
        self.status = status


class RunNetwork(Struct, frozen=True, kw_only=True):
    """The hosts that a run may connect to through the proxy."""

    session: str  #: The id of the run's session.
    allowed: str | tuple[str, ...]  #: The project's setting `network`.


class ModelEndpoints(Struct, kw_only=True):
    """Looks up endpoints and keys, by session or by run token."""

    settings: Settings
    keys: Mapping[str, str]  #: The model keys by environment variable.
    programs: Mapping[str, AgentAdapter]  #: The adapters by agent type.
    store: Store
    paths: Paths
    proxy_url: Callable[[], str]  #: Returns the model proxy's URL.
    priced: Callable[[Usage], Usage]  #: Adds the cost to usage.

    def endpoint(self, session: Session, run: int, isolated: bool = False) -> Endpoint:
        """Return where a run connects to: the proxy, or the real endpoint if there is no model key.

        `isolated` says whether the run is in a sandbox, where the proxy is at another port.
        Creates the run's token if it is missing. Raises `ModelUnavailable` if there is a key whose
        endpoint is unknown.
        """
        real = self._real(session)
        if not real.key:
            return real
        if not real.url:
            raise ModelUnavailable(without_endpoint(session.agent_type))
        url = f"http://127.0.0.1:{PROXY_PORT}" if isolated else self.proxy_url()
        return Endpoint(url=url, key=self._run_token(session, run))

    def proxy_variables(self, session: Session, run: int, port: int) -> dict[str, str]:
        """Return the environment variables that make an isolated run use the proxy.

        Creates the run's token if it is missing. `port` is the port of 127.0.0.1 in the sandbox
        that is forwarded to the proxy's socket.
        """
        return proxy_variables(self._run_token(session, run), port)

    def step_variables(self, session: Session, port: int) -> dict[str, str]:
        """Return the environment variables that make the project's own commands use the proxy.

        Their token gives access to hosts but not to a model. It is created if it is missing,
        and valid until its file is deleted. `port` is as in `proxy_variables`.
        """
        return proxy_variables(_token(self.paths.step_token(session.id)), port)

    def of_token(self, token: str) -> Endpoint:
        """Return the endpoint and key for a run token. Raises `ModelUnavailable`."""
        session, run = self._session_of(token)
        if run is None:
            raise ModelUnavailable(
                "the project's commands `setup` and `teardown` have no access to a model"
            )
        if session.reason == Reason.BUDGET_EXHAUSTED:
            why = f"the budget of {session.id} is exhausted: {session.because}"
            raise ModelUnavailable(why, HTTPStatus.PAYMENT_REQUIRED)
        return self._real(session)

    def network_of(self, token: str) -> RunNetwork:
        """Return the hosts that a run or a project's own commands may reach with this token.

        Raises `ModelUnavailable`.
        """
        session, _ = self._session_of(token)
        project = self.settings.projects.get(session.project)
        return RunNetwork(session=session.id, allowed=project.network if project else ())

    def _run_token(self, session: Session, run: int) -> str:
        return _token(self.paths.run_token(session.id, run))

    def _session_of(self, token: str) -> tuple[Session, int | None]:
        """Return the session and run of a valid token. Raises `ModelUnavailable`.

        The run is None if the token is for a project's own commands.
        """
        parts = _RUN_TOKEN.fullmatch(token)
        session = self.store.sessions.get(parts["session"]) if parts else None
        if parts is None or session is None:
            raise ModelUnavailable("invalid run token")
        run = int(parts["run"]) if parts["run"] else None
        paths, name = self.paths, session.id
        file = paths.step_token(name) if run is None else paths.run_token(name, run)
        expected = read_text(file)
        if not hmac.compare_digest(expected.encode(), token.encode()):
            raise ModelUnavailable("invalid run token")
        ended = session.agent.run == run and session.activity is Activity.EXITED
        if run is not None and (session.run != run or ended):
            raise ModelUnavailable(f"run {run} of {session.id} has ended")
        return session, run

    def record_usage(self, token: str, model: str, used: Usage) -> None:
        """Record the usage of a response, or log why that failed.

        Whether the token is still valid is not checked: its run may have ended since the request.
        """
        if (parts := _RUN_TOKEN.fullmatch(token)) is None or not parts["run"]:
            return
        session, run = parts["session"], int(parts["run"])
        try:
            self.store.usage.record_response(session, run, model, used, self.priced)
        except StoreFailure as failure:
            _log.error("usage of a response of %s not recorded: %s", model, failure)

    def _real(self, session: Session) -> Endpoint:
        program = self.programs[session.agent_type]
        whose = (session.agent_type, session.agent_name, session.project)
        return real_endpoint(self.settings, self.keys, program, *whose)


def _token(file: Path) -> str:
    """Return the token in a file. Creates the file if it is missing or empty."""
    if not read_text(file):
        write_private(file, f"{file.name}.{secrets.token_urlsafe(32)}")
    return read_text(file)


def real_endpoint(
    settings: Settings,
    keys: Mapping[str, str],
    program: AgentAdapter,
    agent_type: str,
    agent: str = "",
    project: str = "",
) -> Endpoint:
    """Return the real endpoint of an agent type: the configured one, or else its provider's.

    The endpoint's `key` is empty if no model key is set. Then `url` is empty as well, unless a URL
    is configured. `agent` and `project` are names, or empty. Keys of the agent and of the project
    take precedence over the agent type's key.
    """
    variable, _ = key_source(settings, agent_type, agent, project)
    key = keys.get(variable, "")
    url = settings.agent_types[agent_type].endpoint or (program.provider if key else "")
    return Endpoint(url=url.rstrip("/"), key=key)


def proxy_variables(token: str, port: int) -> dict[str, str]:
    """Return environment variables that make programs use the proxy at 127.0.0.1:`port`."""
    user, _, password = token.partition(".")
    url = f"http://{user}:{password}@127.0.0.1:{port}"
    named = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": "127.0.0.1,localhost"}
    lower = {name.lower(): value for name, value in named.items()}
    return {**named, **lower, "NODE_USE_ENV_PROXY": "1"}


def without_endpoint(agent_type: str) -> str:
    """Return the error message for an agent type with a key but no known endpoint."""
    return (
        f"there is a model key for {agent_type} but no endpoint: set `endpoint` of"
        f" [agent-types.{agent_type}]; if its program cannot use another endpoint, pass the key's"
        " variable to the agent with `pass-env` instead"
    )


def key_source(
    settings: Settings, agent_type: str, agent: str = "", project: str = ""
) -> tuple[str, str]:
    """Return the environment variable of the model key, and whose setting names it.

    The owner of the setting is `agent`, `project` or `server`, in this order of precedence;
    `server` is the agent type's setting. Both strings are empty if no setting names a variable.
    """
    owners = {"agent": settings.agents.get(agent), "project": settings.projects.get(project)}
    for name, owner in owners.items():
        if owner and (variable := owner.model_keys.get(agent_type)):
            return variable, name
    variable = settings.agent_types[agent_type].key
    return variable, "server" if variable else ""
