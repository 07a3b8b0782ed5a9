"""Starts an agent's program once and asks its model for one word."""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hmac import compare_digest
from http import HTTPStatus
from pathlib import Path
from secrets import token_urlsafe

from bot.cli.agent_health import AgentCase, SmokeTestResult, endpoint_of, program_of
from bot.cli.context import Installation
from bot.model_proxy.endpoints import ModelUnavailable, key_source
from bot.model_proxy.proxy import ModelProxy, UpstreamError
from bot.system.clock import utc_now
from bot.text.prompts import Prompts
from lifecycle.model.actions import Prompt
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes import RUNTIMES
from runtimes.agents.base import Endpoint, RunLimits
from runtimes.base import Options
from runtimes.host import RunQuery, RunRef, StartSpec
from runtimes.local_host import LocalHost
from runtimes.workspaces.git import git, init

_PAUSE = 0.1
_NEW_KEY = "it rejects {key}: set it to a valid key"
#: By the status code of the model's API.
_REMEDIES: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: _NEW_KEY,
    HTTPStatus.FORBIDDEN: _NEW_KEY,
    HTTPStatus.NOT_FOUND: "correct `model` of {table}, or its `endpoint`",
    HTTPStatus.TOO_MANY_REQUESTS: "{key} is rate-limited: try again later",
}
#: Retries do not help against these; the first one may still belong to another request.
_REFUSALS, _ENOUGH = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN), 2
_OVER = (Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED)


def smoke_test(installed: Installation, case: AgentCase, patience: float) -> SmokeTestResult:
    """Start the program as for a session, in a temporary empty repository.

    `patience` is in seconds.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mergewright-") as place:
        agent, error = _ask(installed, case, Path(place), began + patience)
    seconds = time.monotonic() - began
    ended_well = agent.exit is not None and agent.exit.code == 0
    succeeded = agent.activity is Activity.READY or (
        agent.activity is Activity.EXITED and ended_well
    )
    said = agent.summary if succeeded else agent.question or agent.error
    if agent.activity not in _OVER:
        waited = f"no answer within {patience:g} seconds"
        over = waited if seconds >= patience else "the model's API refuses the key"
        said = f"{over}: {agent.evidence or 'no output'}"
    remedy = _remedy(installed, case, error) if error and not succeeded else ""
    return SmokeTestResult(
        succeeded=succeeded, says=said or agent.evidence, seconds=seconds, remedy=remedy
    )


def _refused(error: UpstreamError | None) -> bool:
    """Whether the model's API refuses the key, however often the program retries."""
    return error is not None and error.status in _REFUSALS and error.times >= _ENOUGH


def _remedy(installed: Installation, case: AgentCase, error: UpstreamError) -> str:
    """Return what to do about a model that does not answer."""
    key, _ = key_source(installed.settings, case.type, case.agent, case.project)
    table = f"[agent-types.{case.type}]"
    if not error.status:
        return f"{error.place} cannot be reached: check `endpoint` of {table}"
    return f"{error.place} answered {error.status}: " + _REMEDIES.get(
        error.status, "check {key}, and `model` and `endpoint` of {table}"
    ).format(key=key, table=table)


def _ask(
    installed: Installation, case: AgentCase, place: Path, until: float
) -> tuple[Agent, UpstreamError | None]:
    runtime = RUNTIMES[installed.settings.runtime.kind](
        Options(data=place / "runtime", path=os.environ.get("PATH", ""))
    )
    host = LocalHost(runtime, {case.type: program_of(installed, case.type)}, place / "host")
    run = RunRef(session="check-1", run=1, agent_type=case.type, branch="main")
    _make_workspace(host, run, place / "origin.git")
    prompt = Prompts(installed.settings.prompts).render(Prompt(name="check"), {}, "")
    with _proxy(endpoint_of(installed, case), place) as (endpoint, proxy):
        host.runs.start(run, StartSpec(prompt=prompt, limits=RunLimits(endpoint=endpoint)))
        agent = Agent()
        try:
            while agent.activity not in _OVER and time.monotonic() < until:
                if proxy and _refused(proxy.last_error):
                    break
                time.sleep(_PAUSE)
                look = host.runs.look([RunQuery(run=run)], utc_now())
                if run.name in look.probes and run.name in look.readings:
                    agent = look.readings[run.name].agent
        finally:
            runtime.stop(run.name)
        return agent, proxy.last_error if proxy else None


def _make_workspace(host: LocalHost, run: RunRef, origin: Path) -> None:
    """Make a workspace with one empty commit."""
    init(origin)
    commit = git(origin, "commit-tree", git(origin, "mktree").strip(), "-m", "Begin").strip()
    host.workspace(run.session, run.branch, origin).create(commit, None, commit)


@contextmanager
def _proxy(real: Endpoint, place: Path) -> Iterator[tuple[Endpoint, ModelProxy | None]]:
    """Yield the endpoint behind a model proxy, as in a session; without a key, as it is."""
    if not real.key:
        yield real, None
        return
    shown = token_urlsafe(32)

    def behind(word: str) -> Endpoint:
        if not compare_digest(word.encode(), shown.encode()):
            raise ModelUnavailable("unknown run token", HTTPStatus.UNAUTHORIZED)
        return real

    proxy = ModelProxy(behind, lambda *_: None, place / "port")
    proxy.start()
    try:
        yield Endpoint(url=proxy.url, key=shown), proxy
    finally:
        proxy.stop()
