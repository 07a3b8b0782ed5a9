"""The board with thousands of sessions: the time until a browser has it, and its size."""

import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from statistics import median

import httpx

from bot.store import NewSession, Observation, SessionDecision, Store
from bot.system.clock import utc_now
from lifecycle.model.facts import Check, Issue, Pull
from lifecycle.model.status import CheckState, Reason, Status
from scripts.benchmarks.figure import Figure
from tests.web.conftest import Site

SESSIONS = 5_000
_TOKEN = "token-of-the-bench"
#: Making the sessions is not measured and would wait for the disk.
_MEMORY = Path("/dev/shm")
#: Until the last byte on loopback; a browser shows the page some milliseconds later.
MILLISECONDS, KILOBYTES = 300.0, 150.0
_TIMES = 9
_BATCH = 250
_BODY = "It breaks, and this is how.\n" * 100
#: What of them has which status; all others are finished.
_STATUSES = (
    (Status.NEEDS_INPUT, Reason.REPAIRS_EXHAUSTED),
    (Status.REVIEW_PENDING, Reason.PULL_REQUEST),
    (Status.CI_FAILED, Reason.PULL_REQUEST),
    (Status.WORKING, Reason.AGENT_AT_WORK),
    (Status.QUEUED, Reason.NO_SLOT),
    *([(Status.MERGED, Reason.PR_MERGED)] * 5),
)
_CHECKS = tuple(
    Check(id=f"unit-{number}", name=f"unit-{number}", state=CheckState.FAILED, log="wrong\n" * 200)
    for number in range(5)
)
#: What people open, by name.
_PATHS = {
    "all": "/",
    "group": "/?group=over",
    "search": "/?search=part+49",
}


def run() -> dict[str, Figure]:
    """Fill a store, and read the board as a browser does."""
    figures: dict[str, Figure] = {}
    with (
        tempfile.TemporaryDirectory(
            prefix="mw-", dir=_MEMORY if _MEMORY.is_dir() else None
        ) as name,
        closing(Site(Path(name), token=_TOKEN)) as site,
    ):
        _fill(site.store)
        site.http.headers["authorization"] = f"Bearer {_TOKEN}"
        for page, path in _PATHS.items():
            figures |= _measured(site.http, page, path)
    return figures


def _measured(client: httpx.Client, page: str, path: str) -> dict[str, Figure]:
    times, size = list[float](), 0.0
    for _ in range(_TIMES):
        begun = time.perf_counter()
        response = client.get(path)
        times.append(1000 * (time.perf_counter() - begun))
        if response.status_code != 200 or not re.search('<article class="row"', response.text):
            raise RuntimeError(f"{path} answered {response.status_code} without sessions")
        size = len(response.content) / 1000
    took = median(times)
    return {
        f"board.{page}.time": Figure(
            value=took, unit="ms", limit=f"<= {MILLISECONDS:g}", holds=took <= MILLISECONDS
        ),
        f"board.{page}.size": Figure(
            value=size, unit="kB", limit=f"<= {KILOBYTES:g}", holds=size <= KILOBYTES
        ),
    }


def _fill(store: Store) -> None:
    for first in range(1, SESSIONS + 1, _BATCH):
        numbers = range(first, min(first + _BATCH, SESSIONS + 1))
        for number in numbers:
            store.sessions.create(_new(number))
        now = utc_now()
        pulls = [Observation(session=f"bench-{n}", pulls=(_pull(n),)) for n in numbers]
        store.observations.record(pulls, now)
        _decide(store, [f"bench-{number}" for number in numbers])


def _new(number: int) -> NewSession:
    return NewSession(
        id=f"bench-{number}",
        project="bench",
        repository="acme/bench",
        created=utc_now() - timedelta(minutes=number),
        issue=Issue(
            number=number,
            title=f"Part {number} breaks when it is used with another part",
            body=_BODY,
            url=f"https://github.example/acme/bench/issues/{number}",
        ),
        branch=f"mergewright/{number}-part-breaks",
        requester=f"person-{number % 50}",
        agent_type="shell",
    )


def _pull(number: int) -> Pull:
    url = f"https://github.example/acme/bench/pull/{10_000 + number}"
    title = f"Repair part {number}"
    return Pull(number=10_000 + number, url=url, title=title, head="a" * 40, checks=_CHECKS)


def _decide(store: Store, names: Sequence[str]) -> None:
    decided = []
    for place, loaded in enumerate(store.facts.load(names)):
        status, reason = _STATUSES[place % len(_STATUSES)]
        because = "checks failed on aaaaaaa: unit-0, unit-1, unit-2, unit-3, unit-4"
        decision = SessionDecision(
            status=status,
            reason=reason,
            because=because,
            run=1,
            wants_slot=status is Status.QUEUED,
            frees_slot=status is not Status.QUEUED,
        )
        decided.append((loaded, decision))
    for written in store.decisions.record(decided, utc_now()):
        written.result()
