"""A real round trip: a program of an agent type is asked for one word, and may answer it."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hmac import compare_digest
from http import HTTPStatus
from pathlib import Path
from secrets import token_urlsafe

from msgspec import Struct

from bot.cli.findings import Installation
from bot.cli.standing import Case, endpoint_of, program_of
from bot.clock import utc_now
from bot.models import NoModel
from bot.prompts import Prompts
from bot.web.model_door import ModelDoor
from lifecycle.actions import Prompt
from lifecycle.facts import Agent
from lifecycle.status import Activity
from runtimes import RUNTIMES
from runtimes.agents.base import Endpoint, RunFiles, Terms
from runtimes.base import Launch, Options

_PAUSE = 0.1
_OVER = (Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED)


class Answer(Struct, frozen=True, kw_only=True):
    """What came of it."""

    well: bool
    says: str
    seconds: float


def round_trip(installed: Installation, case: Case, patience: float) -> Answer:
    """Start the program as for a session, in an empty repository that is gone afterwards."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mergewright-") as place:
        agent = _ask(installed, case, Path(place), began + patience)
    seconds = time.monotonic() - began
    ended_well = agent.exit is not None and agent.exit.code == 0
    well = agent.activity is Activity.READY or (agent.activity is Activity.EXITED and ended_well)
    said = agent.summary if well else agent.question or agent.error
    if agent.activity not in _OVER:
        said = f"no answer within {patience:g} seconds: {agent.evidence or 'it shows nothing'}"
    return Answer(well=well, says=said or agent.evidence, seconds=seconds)


def _ask(installed: Installation, case: Case, place: Path, until: float) -> Agent:
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
    with _door(endpoint_of(installed, case), place) as endpoint:
        command = program.prepare(files, prompt, "", Terms(endpoint=endpoint))
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
                time.sleep(_PAUSE)
                if seen := runtime.look().get(handle):
                    screen = runtime.screens([handle]).get(handle) if program.wants_screen else None
                    agent = reader.read(seen, screen, utc_now())
        finally:
            runtime.stop(handle)
    return agent


@contextmanager
def _door(real: Endpoint, place: Path) -> Iterator[Endpoint]:
    """The endpoint behind our own door, as a session has it; itself, where it has no key."""
    if not real.key:
        yield real
        return
    shown = token_urlsafe(32)

    def behind(word: str) -> Endpoint:
        if not compare_digest(word.encode(), shown.encode()):
            raise NoModel("this is no session's pass", HTTPStatus.UNAUTHORIZED)
        return real

    door = ModelDoor(behind, lambda *_: None, place / "port")
    door.start()
    try:
        yield Endpoint(url=door.url, key=shown)
    finally:
        door.stop()
