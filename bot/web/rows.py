"""What the page shows of a session: foreign text made plain, links checked, words grouped."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from bot.store import HistoryRow, Session
from bot.web import plain
from lifecycle.facts import Facts, Pull
from lifecycle.status import Status


class Group(Struct, frozen=True, kw_only=True):
    """Statuses that are shown together, the ones that want a person first."""

    key: str
    title: str
    statuses: Mapping[Status, str]  #: Each with its tone, a class of the style sheet.


GROUPS = (
    Group(
        key="people",
        title="Needs a person",
        statuses={
            Status.NEEDS_INPUT: "warn",
            Status.STUCK: "bad",
            Status.PAUSED: "warn",
        },
    ),
    Group(
        key="review",
        title="In review",
        statuses={
            Status.CI_FAILED: "bad",
            Status.CHANGES_REQUESTED: "warn",
            Status.MERGEABLE: "good",
            Status.APPROVED: "good",
            Status.REVIEW_PENDING: "busy",
            Status.PR_OPEN: "busy",
        },
    ),
    Group(
        key="work",
        title="At work",
        statuses={
            Status.WORKING: "busy",
            Status.SPAWNING: "busy",
            Status.QUEUED: "calm",
        },
    ),
    Group(
        key="over",
        title="Finished",
        statuses={
            Status.CLEANUP: "calm",
            Status.MERGED: "landed",
            Status.DONE: "landed",
            Status.ERRORED: "bad",
            Status.KILLED: "calm",
            Status.TERMINATED: "calm",
        },
    ),
)
_GROUP_OF: Mapping[str, Group] = {status: group for group in GROUPS for status in group.statuses}


def tone(status: str) -> str:
    """How a status looks, as a class of the style sheet."""
    return _GROUP_OF[status].statuses[Status(status)]


class PullLink(Struct, frozen=True, kw_only=True):
    """A pull request of a session."""

    number: int
    url: str
    title: str
    state: str


class Row(Struct, frozen=True, kw_only=True):
    """One session in the list; also what `/api/sessions` answers."""

    id: str
    project: str
    repository: str
    title: str
    issue: int
    issue_url: str
    pulls: tuple[PullLink, ...]
    status: str
    since: datetime  #: When `status` became what it is.
    activity: str
    because: str
    reason: str
    blockers: tuple[str, ...]
    requester: str
    agent_type: str
    branch: str
    run: int
    created: datetime

    @property
    def group(self) -> str:
        """The key of the group it is shown in."""
        return _GROUP_OF[self.status].key

    @property
    def tone(self) -> str:
        """How its status looks."""
        return tone(self.status)

    @property
    def sort(self) -> str:
        """Newest first, as a word that a browser can compare."""
        return f"{self.created.timestamp():017.6f} {self.id}"


class Step(Struct, frozen=True, kw_only=True):
    """One thing that happened to a session."""

    at: datetime
    kind: str
    actor: str
    status: str  #: For decisions: what it became.
    text: str
    actions: tuple[str, ...]  #: Keys of what it asked for.


class Letter(Struct, frozen=True, kw_only=True):
    """One action of a session's outbox."""

    key: str
    state: str  #: `waiting`, `done` or `given up`.
    at: datetime | None
    text: str


class Detail(Struct, frozen=True, kw_only=True):
    """All the page shows of one session; also what `/api/sessions/ID` answers."""

    session: Row
    history: tuple[Step, ...]  #: Newest first.
    outbox: tuple[Letter, ...]  #: What needs attention first.
    attach: str  #: The command line that shows the agent's terminal; empty: there is none.
    log: str  #: The last lines the agent's program printed.


def row_of(session: Session) -> Row:
    """A session as a row of the list."""
    return Row(
        id=session.id,
        project=session.project,
        repository=session.repository,
        title=plain.line(session.issue.title) or f"Issue {session.issue.number}",
        issue=session.issue.number,
        issue_url=plain.link(session.issue.url),
        pulls=tuple(_pull(pull) for pull in session.pulls),
        status=session.status,
        since=session.since,
        activity=session.activity,
        because=plain.line(session.because),
        reason=session.reason,
        blockers=tuple(plain.line(blocker.partition(": ")[2]) for blocker in session.blockers),
        requester=session.requester,
        agent_type=session.agent_type,
        branch=session.branch,
        run=session.run,
        created=session.created,
    )


def detail_of(
    session: Session, facts: Facts, history: Sequence[HistoryRow], attach: str, log: str
) -> Detail:
    """A session with its past and what is under way."""
    return Detail(
        session=row_of(session),
        history=tuple(_step(row) for row in sorted(history, key=lambda row: -row.seq)),
        outbox=_outbox(facts),
        attach=plain.line(attach),
        log=plain.block(log),
    )


def _pull(pull: Pull) -> PullLink:
    return PullLink(
        number=pull.number,
        url=plain.link(pull.url),
        title=plain.line(pull.title),
        state=pull.state,
    )


def _step(row: HistoryRow) -> Step:
    status = str(row.data.get("status", ""))
    said = row.data.get("because") or ", ".join(
        f"{name}: {value}" for name, value in row.data.items()
    )
    return Step(
        at=row.at,
        kind=row.kind,
        actor=plain.line(row.actor),
        status=status,
        text=plain.line(str(said)),
        actions=tuple(plain.line(key) for key in row.data.get("actions", ())),
    )


def _outbox(facts: Facts) -> tuple[Letter, ...]:
    given_up = [
        Letter(key=key, state="given up", at=failure.at, text=plain.line(failure.detail))
        for key, failure in facts.failures.items()
    ]
    waiting = [Letter(key=key, state="waiting", at=None, text="") for key in sorted(facts.pending)]
    done = [
        Letter(key=key, state="done", at=done.at, text=plain.line(done.result))
        for key, done in sorted(facts.done.items(), key=lambda item: item[1].at, reverse=True)
    ]
    return (*given_up, *waiting, *done)
