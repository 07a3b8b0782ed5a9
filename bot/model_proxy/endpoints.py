"""Where an agent's model is, and whose key is shown there, which the agent itself never sees.

It is given the address of our own proxy (`bot.model_proxy.proxy`) and a run token: a random word
of its run, for which the proxy takes the key. The token is worth
nothing elsewhere, nor once the run has ended.
What the answers used is counted by it too (`bot.store.usage` says what else counts).
"""

import hmac
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus

from bot.store import Session, SessionsTable, StoreFailure, UsageTable
from bot.system.paths import Paths, read_private, write_private
from config.settings import Settings
from lifecycle.model.facts import Usage
from lifecycle.model.status import Activity, Reason
from runtimes.agents.base import AgentAdapter, Endpoint

_log = logging.getLogger(__name__)

_PASS = re.compile(r"(?P<session>[a-z0-9-]+)_r(?P<run>[0-9]{1,9})\.[\w-]+")


class ModelUnavailable(Exception):
    """A session that has no model now; the text is for its agent and for people."""

    def __init__(self, why: str, status: HTTPStatus = HTTPStatus.UNAUTHORIZED) -> None:
        super().__init__(why)
        self.status = status


class ModelEndpoints:
    """Every endpoint and key of the configuration, and the passes that stand for them."""

    def __init__(
        self,
        settings: Settings,
        keys: Mapping[str, str],
        programs: Mapping[str, AgentAdapter],
        sessions: SessionsTable,
        usage: UsageTable,
        paths: Paths,
        door: Callable[[], str],
        priced: Callable[[Usage], Usage],
    ) -> None:
        """`keys` by the variables that `settings` name; `door` is the address of our own."""
        self._settings = settings
        self._keys = keys
        self._programs = programs
        self._sessions = sessions
        self._usage = usage
        self._paths = paths
        self._door = door
        self._priced = priced

    def endpoint(self, session: Session, run: int) -> Endpoint:
        """Return what a run connects to: the proxy and its run token, or its provider.

        Idempotent. Raises `ModelUnavailable` if there is a key but no known endpoint for it.
        """
        real = self._real(session)
        if not real.key:
            return real
        if not real.url:
            raise ModelUnavailable(without_endpoint(session.agent_type))
        kept = self._paths.run_token(session.id, run)
        if not read_private(kept):
            write_private(kept, f"{kept.name}.{secrets.token_urlsafe(32)}")
        return Endpoint(url=self._door(), key=read_private(kept))

    def behind(self, shown: str) -> Endpoint:
        """The endpoint and the key that a pass stands for. Raises `ModelUnavailable`."""
        said = _PASS.fullmatch(shown)
        session = self._sessions.get(said["session"]) if said else None
        if said is None or session is None:
            raise ModelUnavailable("this is no session's pass")
        run = int(said["run"])
        kept = read_private(self._paths.run_token(session.id, run))
        if not hmac.compare_digest(kept.encode(), shown.encode()):
            raise ModelUnavailable("this is no session's pass")
        ended = session.agent.run == run and session.activity is Activity.EXITED
        if session.run != run or ended:
            raise ModelUnavailable(f"run {run} of {session.id} is over")
        if session.reason == Reason.BUDGET_EXHAUSTED:
            raise ModelUnavailable(
                f"{session.id} gets no more of its model: {session.because}",
                HTTPStatus.PAYMENT_REQUIRED,
            )
        return self._real(session)

    def count(self, shown: str, model: str, used: Usage) -> None:
        """Count what an answer used for which a pass was shown that was good then."""
        said = _PASS.fullmatch(shown)
        try:
            if said is not None:
                session, run = said["session"], int(said["run"])
                self._usage.record_response(session, run, model, used, self._priced)
        except StoreFailure as failure:
            _log.error("what an answer of %s used is not counted: %s", model, failure)

    def _real(self, session: Session) -> Endpoint:
        program = self._programs[session.agent_type]
        whose = (session.agent_type, session.agent_name, session.project)
        return real_endpoint(self._settings, self._keys, program, *whose)


def real_endpoint(
    settings: Settings,
    keys: Mapping[str, str],
    program: AgentAdapter,
    agent_type: str,
    agent: str = "",
    project: str = "",
) -> Endpoint:
    """Where the model of a type is, with the real key, which is empty where none is set."""
    variable, _ = key_source(settings, agent_type, agent, project)
    key = keys.get(variable, "")
    url = settings.agent_types[agent_type].endpoint or (program.provider if key else "")
    return Endpoint(url=url.rstrip("/"), key=key)


def without_endpoint(agent_type: str) -> str:
    """What is wrong with a type that has a key, and a model that nobody knows the place of."""
    return (
        f"there is a model key for {agent_type}, and no endpoint to show it at: set `endpoint` of"
        f" [agent-types.{agent_type}]; or, where its program takes none, name the key's variable"
        " in `pass-env`, within its agents' reach"
    )


def key_source(
    settings: Settings, agent_type: str, agent: str = "", project: str = ""
) -> tuple[str, str]:
    """The variable with the model key of a type, and who names it; both empty: nobody does.

    An agent's own comes first, then its project's, then the type's, which is the server's.
    """
    for place, owner in (
        ("agent", settings.agents.get(agent)),
        ("project", settings.projects.get(project)),
    ):
        if owner and (variable := owner.model_keys.get(agent_type)):
            return variable, place
    variable = settings.agent_types[agent_type].key
    return variable, "server" if variable else ""
