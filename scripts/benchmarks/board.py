"""Measures the pages with thousands of sessions: the time to load each, and its size."""

import sqlite3
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
from lifecycle.model.facts import Check, Ended, Issue, Pull
from lifecycle.model.status import CheckState, Reason, Status
from scripts.benchmarks.figure import Figure
from tests.web.conftest import Site

SESSIONS = 5_000
_TOKEN = "token-of-the-bench"
#: A folder in memory: creating the sessions is not measured and would wait for the disk.
_MEMORY = Path("/dev/shm")
#: The limits of a page, until its last byte on loopback; a browser shows it milliseconds later.
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
#: The measured pages by name: the path, and a text that shows that the page has content.
_PATHS = {
    "all": ("/", '<article class="row"'),
    "group": ("/?group=over", '<article class="row"'),
    "search": ("/?search=part+49", '<article class="row"'),
    "agents": ("/agents", "250 sessions"),
    "agent": ("/agents/agent-7", '<rect class="good"'),
    "projects": ("/projects", "widgets"),
    "project": ("/projects/widgets", '<article class="row"'),
    "costs": ("/costs", '<rect class="busy"'),
    "year": ("/costs?from={year}", '<rect class="busy"'),
    "deliveries": ("/deliveries", '<article class="row delivery"'),
    "health": ("/health", "Deliveries to process"),
}
_AGENTS, _PEOPLE, _DAYS, _DELIVERIES = 20, 50, 365, 20_000


def run() -> dict[str, Figure]:
    """Fill a store, and measure the response time and size of each page, without its assets."""
    figures: dict[str, Figure] = {}
    with (
        tempfile.TemporaryDirectory(
            prefix="mw-", dir=_MEMORY if _MEMORY.is_dir() else None
        ) as name,
        closing(Site(Path(name), token=_TOKEN)) as site,
    ):
        _fill(site.store)
        site.http.headers["authorization"] = f"Bearer {_TOKEN}"
        year = (utc_now() - timedelta(days=_DAYS - 1)).date()
        for page, (path, shows) in _PATHS.items():
            figures |= _measured(site.http, page, path.format(year=year), shows)
    return figures


def _measured(client: httpx.Client, page: str, path: str, shows: str) -> dict[str, Figure]:
    times, size = list[float](), 0.0
    for _ in range(_TIMES):
        begun = time.perf_counter()
        response = client.get(path)
        times.append(1000 * (time.perf_counter() - begun))
        if response.status_code != 200 or shows not in response.text:
            raise RuntimeError(f"{path} answered {response.status_code} without its content")
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
    store.db.write(_use_models)
    store.db.write(_deliver)


def _use_models(connection: sqlite3.Connection) -> None:
    """Have every session use models on two days of the last year."""
    today = utc_now().date()
    rows = [
        (f"bench-{number}", run, str(today - timedelta(days=(number * 2 + run) % _DAYS)))
        for number in range(1, SESSIONS + 1)
        for run in (1, 2)
    ]
    connection.executemany(
        """INSERT INTO usage (session, run, day, repository, requester, agent, cost_usd, input)
            SELECT id, ?2, ?3, repository, requester, agent_name, 1.25, 90000
            FROM sessions WHERE id = ?1""",
        rows,
    )


def _deliver(connection: sqlite3.Connection) -> None:
    """Write processed deliveries of the usual size."""
    now, body = utc_now().timestamp(), b"x" * 8_000
    numbers = range(_DELIVERIES)
    connection.executemany(
        """INSERT INTO deliveries (id, event, at, state, done_at, body)
            VALUES (?, 'check_run', ?, 'done', ?, ?)""",
        [(f"d-{number}", now - number, now - number, body) for number in numbers],
    )
    effect = '[{"repository": "acme/widgets", "subject": "issue:%d"}]'
    connection.executemany(
        "INSERT INTO delivery_outcomes VALUES (?, 'acme/widgets', ?, '', ?)",
        [(f"d-{number}", now - number, effect % (number % SESSIONS + 1)) for number in numbers],
    )


def _new(number: int) -> NewSession:
    return NewSession(
        id=f"bench-{number}",
        project="widgets",
        repository="acme/widgets",
        created=utc_now() - timedelta(minutes=number),
        issue=Issue(
            number=number,
            title=f"Part {number} breaks when it is used with another part",
            body=_BODY,
            url=f"https://github.example/acme/widgets/issues/{number}",
        ),
        branch=f"mergewright/{number}-part-breaks",
        requester=f"person-{number % _PEOPLE}",
        agent_type="shell",
        agent_name=f"agent-{number % _AGENTS}",
    )


def _pull(number: int) -> Pull:
    url = f"https://github.example/acme/widgets/pull/{10_000 + number}"
    title = f"Repair part {number}"
    return Pull(number=10_000 + number, url=url, title=title, head="a" * 40, checks=_CHECKS)


def _decide(store: Store, names: Sequence[str]) -> None:
    decided = []
    for place, loaded in enumerate(store.facts.load(names)):
        status, reason = _STATUSES[place % len(_STATUSES)]
        because = "checks failed on aaaaaaa: unit-0, unit-1, unit-2, unit-3, unit-4"
        over = Ended(status=status, reason=reason, because=because, at=utc_now())
        decision = SessionDecision(
            status=status,
            reason=reason,
            because=because,
            run=1,
            wants_slot=status is Status.QUEUED,
            frees_slot=status is not Status.QUEUED,
            ended=over if status is Status.MERGED else None,
        )
        decided.append((loaded, decision))
    for written in store.decisions.record(decided, utc_now()):
        written.result()
