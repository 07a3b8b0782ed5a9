"""A real round trip: a program of an agent type is asked for one word, and may answer it."""

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hmac import compare_digest
from http import HTTPStatus
from pathlib import Path
from secrets import token_urlsafe

from msgspec import Struct

from bot.cli.agent_health import AgentCase, endpoint_of, program_of
from bot.cli.check_result import Installation
from bot.model_proxy.endpoints import ModelUnavailable, key_source
from bot.model_proxy.proxy import ModelProxy, UpstreamError
from bot.system.clock import utc_now
from bot.text.prompts import Prompts
from lifecycle.model.actions import Prompt
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes import RUNTIMES
from runtimes.agents.base import Endpoint, RunFiles, RunLimits
from runtimes.base import Launch, Options

_PAUSE = 0.1
_NEW_KEY = "it does not take {key}: set it to a key that is good"
#: By what a model's endpoint answers.
_REMEDIES: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: _NEW_KEY,
    HTTPStatus.FORBIDDEN: _NEW_KEY,
    HTTPStatus.NOT_FOUND: "correct `model` of {table}, or its `endpoint`",
    HTTPStatus.TOO_MANY_REQUESTS: "it limits how much {key} may ask: try again later",
}
#: No second try changes that; it may yet be another one's answer that was heard once.
_REFUSALS, _ENOUGH = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN), 2
_OVER = (Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED)


class SmokeTestResult(Struct, frozen=True, kw_only=True):
    """What came of it."""

    well: bool
    says: str
    seconds: float
    remedy: str = ""  #: What may help where it did not answer; empty: what it says has to do.


def smoke_test(installed: Installation, case: AgentCase, patience: float) -> SmokeTestResult:
    """Start the program as for a session, in an empty repository that is gone afterwards."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mergewright-") as place:
        agent, trouble = _ask(installed, case, Path(place), began + patience)
    seconds = time.monotonic() - began
    ended_well = agent.exit is not None and agent.exit.code == 0
    well = agent.activity is Activity.READY or (agent.activity is Activity.EXITED and ended_well)
    said = agent.summary if well else agent.question or agent.error
    if agent.activity not in _OVER:
        waited = f"no answer within {patience:g} seconds"
        over = waited if seconds >= patience else "the model refuses it"
        said = f"{over}: {agent.evidence or 'it shows nothing'}"
    remedy = _remedy(installed, case, trouble) if trouble and not well else ""
    return SmokeTestResult(well=well, says=said or agent.evidence, seconds=seconds, remedy=remedy)


def _refused(trouble: UpstreamError | None) -> bool:
    """Whether the model takes no key of ours, however long its program tries."""
    return trouble is not None and trouble.status in _REFUSALS and trouble.times >= _ENOUGH


def _remedy(installed: Installation, case: AgentCase, trouble: UpstreamError) -> str:
    """What to do about a model that does not answer: programs may not say, or try for long."""
    key, _ = key_source(installed.settings, case.type, case.agent, case.project)
    table = f"[agent-types.{case.type}]"
    if not trouble.status:
        return f"{trouble.place} cannot be reached: check `endpoint` of {table}"
    return f"{trouble.place} answered {trouble.status}: " + _REMEDIES.get(
        trouble.status, "check {key}, and `model` and `endpoint` of {table}"
    ).format(key=key, table=table)


def _ask(
    installed: Installation, case: AgentCase, place: Path, until: float
) -> tuple[Agent, UpstreamError | None]:
    _, program = program_of(installed, case.type)
    files = RunFiles(
        session="check-1",
        run=1,
        dir=place / "check-1_r1",
        workspace=place / "repository",
        branch="main",
    )
    files.dir.mkdir(mode=0o700)
    subprocess.run(
        ["git", "init", "--quiet", "--initial-branch=main", str(files.workspace)], check=True
    )
    runtime = RUNTIMES[installed.settings.runtime.kind](
        Options(data=place / "runtime", path=installed.environ.get("PATH", ""))
    )
    prompt = Prompts(installed.settings.prompts).render(Prompt(name="check"), {}, "")
    with _door(endpoint_of(installed, case), place) as (endpoint, door):
        command = program.prepare(files, prompt, "", RunLimits(endpoint=endpoint))
        launch = Launch(
            name=files.dir.name,
            argv=command.argv,
            cwd=files.workspace,
            env=command.env,
            dir=files.dir,
        )
        handle = runtime.start(launch)
        reader, agent = program.reader(files), Agent()
        try:
            while agent.activity not in _OVER and time.monotonic() < until:
                if door and _refused(door.trouble):
                    break
                time.sleep(_PAUSE)
                if seen := runtime.look().get(handle):
                    screen = runtime.screens([handle]).get(handle) if program.wants_screen else None
                    agent = reader.read(seen, screen, utc_now())
        finally:
            runtime.stop(handle)
        return agent, door.trouble if door else None


@contextmanager
def _door(real: Endpoint, place: Path) -> Iterator[tuple[Endpoint, ModelProxy | None]]:
    """The endpoint behind our own door, as a session has it; itself, where it has no key."""
    if not real.key:
        yield real, None
        return
    shown = token_urlsafe(32)

    def behind(word: str) -> Endpoint:
        if not compare_digest(word.encode(), shown.encode()):
            raise ModelUnavailable("this is no session's pass", HTTPStatus.UNAUTHORIZED)
        return real

    door = ModelProxy(behind, lambda *_: None, place / "port")
    door.start()
    try:
        yield Endpoint(url=door.url, key=shown), door
    finally:
        door.stop()
