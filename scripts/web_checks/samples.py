"""A site with sessions of many kinds and a month of costs, for its pages to show."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from bot.show.changes import branch_diff
from bot.show.terminal import StepLog
from bot.store import Delivery, NewSession, Observation, SessionDecision
from lifecycle.model.facts import (
    Agent,
    Check,
    Ended,
    Issue,
    Pull,
    Remark,
    Thread,
    Usage,
    Verdict,
    Work,
)
from lifecycle.model.status import (
    TERMINAL,
    Activity,
    Blocker,
    CheckState,
    Merge,
    Probe,
    Reason,
    Review,
    Status,
)
from runtimes.agents.shared.messages import Message
from runtimes.agents.shared.messages import MessageKind as Kind
from runtimes.workspaces.changes import Patch
from tests.web.people import People, fill

#: The sessions that pages and stories open.
ASKING, FAILING, MERGEABLE, PAUSED, STOPPED = (
    f"widgets-{number}" for number in (48, 45, 42, 39, 33)
)
_HEAD, _BASE = "3f2a91c" + "0" * 33, "b" * 40
_DAYS: Final = 30
_PATCH = """diff --git a/widgets/cart.py b/widgets/cart.py
--- a/widgets/cart.py
+++ b/widgets/cart.py
@@ -12,7 +12,10 @@ def total(items: list[Item]) -> Decimal:
     \"\"\"Return the sum of all items.\"\"\"
-    return sum(item.price for item in items)
+    # Prices may be in several currencies.
+    if len({item.currency for item in items}) > 1:
+        raise MixedCurrencies("convert the prices first")
+    return sum((item.price for item in items), Decimal())
diff --git a/tests/test_cart.py b/tests/test_cart.py
--- a/tests/test_cart.py
+++ b/tests/test_cart.py
@@ -1,3 +1,6 @@
 from widgets.cart import total
+
+def test_currencies_are_not_mixed() -> None:
+    with pytest.raises(MixedCurrencies):
+        total([euro(3), dollar(4)])
"""
_LOG = """tests/test_cart.py::test_currencies_are_not_mixed FAILED
E       Failed: DID NOT RAISE <class 'widgets.cart.MixedCurrencies'>
1 failed, 213 passed in 8.41s"""
_SCREEN = """\x1b[1m● Bash\x1b[0m(pytest -q tests/test_cart.py)
  \x1b[32m213 passed\x1b[0m, \x1b[31m1 failed\x1b[0m in 8.41s
\x1b[2m  The last test fails: prices of several currencies are added up.\x1b[0m
\x1b[1m● Update\x1b[0m(widgets/cart.py)
\x1b[7m auto-accept edits on \x1b[0m \x1b[90m(shift+tab to cycle)\x1b[0m"""


class Sample(Struct, frozen=True, kw_only=True):
    """A session as the board shows it."""

    number: int
    title: str
    status: Status
    because: str
    minutes: float  #: Since it has the status.
    agent: str
    person: str
    reason: Reason = Reason.PULL_REQUEST
    activity: Activity = Activity.IDLE
    cost: float = 1.0
    blockers: tuple[Blocker, ...] = ()
    question: str = ""
    pull: int = 0  #: The number of its pull request; 0: it has none.


_QUESTION = "Which currency shall the cart fall back to?\n1. EUR\n2. USD\n3. None: raise an error"
_SAMPLES: Final = (
    Sample(
        number=29,
        title="Log slow queries",
        status=Status.MERGED,
        because="pull request #81 was merged",
        minutes=2900,
        agent="bert",
        person="rob",
        reason=Reason.PR_MERGED,
        activity=Activity.EXITED,
        cost=1.34,
    ),
    Sample(
        number=31,
        title="Cache the price list",
        status=Status.MERGED,
        because="pull request #84 was merged",
        minutes=1500,
        agent="ada",
        person="alice",
        reason=Reason.PR_MERGED,
        activity=Activity.EXITED,
        cost=2.07,
    ),
    Sample(
        number=33,
        title="Try another tax library",
        status=Status.KILLED,
        because="@alice stopped the session",
        minutes=1300,
        agent="ada",
        person="alice",
        reason=Reason.MANUALLY_KILLED,
        activity=Activity.EXITED,
        cost=0.42,
    ),
    Sample(
        number=39,
        title="Rename Widget to Gadget",
        status=Status.PAUSED,
        because="@rob paused the session",
        minutes=95,
        agent="bert",
        person="rob",
        reason=Reason.PAUSED_BY_PERSON,
        activity=Activity.EXITED,
        cost=0.88,
    ),
    Sample(
        number=42,
        title="Sort the price list by name",
        status=Status.MERGEABLE,
        because="a person has to command the merge",
        minutes=21,
        agent="ada",
        person="alice",
        reason=Reason.AWAITS_MERGE,
        cost=1.71,
        pull=93,
    ),
    Sample(
        number=44,
        title="Show prices without tax",
        status=Status.REVIEW_PENDING,
        because="pull request #95 awaits a review",
        minutes=34,
        agent="bert",
        person="carol",
        cost=2.2,
        blockers=(Blocker("review_missing", "a review is missing"),),
        pull=95,
    ),
    Sample(
        number=45,
        title="Refuse carts with mixed currencies",
        status=Status.CI_FAILED,
        because="checks failed on 3f2a91c: unit",
        minutes=4,
        agent="ada",
        person="alice",
        activity=Activity.ACTIVE,
        cost=3.65,
        blockers=(Blocker("ci_failing", "failing checks: unit"),),
        pull=96,
    ),
    Sample(
        number=46,
        title="Import prices from a spreadsheet",
        status=Status.WORKING,
        because="the agent is at work",
        minutes=2,
        agent="claude",
        person="carol",
        reason=Reason.AGENT_AT_WORK,
        activity=Activity.ACTIVE,
        cost=0.36,
    ),
    Sample(
        number=48,
        title="Choose a currency for the cart",
        status=Status.NEEDS_INPUT,
        because="the agent asks a question",
        minutes=7,
        agent="bert",
        person="rob",
        reason=Reason.AGENT_QUESTION,
        activity=Activity.WAITING_INPUT,
        question=_QUESTION,
        cost=0.61,
    ),
    Sample(
        number=51,
        title="Drop Python 3.10",
        status=Status.QUEUED,
        because="the session waits for its turn in the queue",
        minutes=1,
        agent="",
        person="alice",
        reason=Reason.NO_SLOT,
        activity=Activity.NONE,
        cost=0,
    ),
)

#: The titles of sessions that were merged before, oldest first.
_PAST: Final = (
    *("Read settings from a file", "Speed up the search", "Translate the receipt to French"),
    *("Round prices to five cents", "Validate postal codes", "Add a dark colour scheme"),
    *("Export orders as CSV", "Replace the deprecated mail client", "Show when a price changed"),
    *("Retry payments that time out", "Log in with a passkey", "Paginate the order list"),
    *("Compress uploaded images", "Warn about low stock", "Test the discount rules"),
    *("Remove unused feature flags", "Name the failing field in errors", "Upgrade to Python 3.13"),
    *("Send receipts as PDF", "Cache exchange rates", "Fix the timezone of reports"),
    *("Let people delete their account", "Sort search results by price", "Document the API"),
)


@contextmanager
def sample_site(folder: Path) -> Iterator[People]:
    """Serve a site with the samples, on which people of all levels may sign in."""
    with ExitStack() as opened:
        people = People(folder, opened)
        fill(people)
        site = people.site
        now = site.store.clock()
        _add_past(people, now)
        for sample in _SAMPLES:
            _add(people, sample, now)
        site.store.db.write(
            lambda connection: connection.execute(
                "UPDATE usage SET active_seconds = cost_usd * 900"
            )
        )
        site.screen, site.log = _SCREEN, _LOG
        site.changes = branch_diff(_BASE, _HEAD, Patch(_PATCH, complete=True))
        says = "the set-up of the workspace ended after 4 s"
        site.steps = [StepLog(step="setup", says=says, failed=False, log="added 214 packages")]
        site.transcript = lambda *_: _talk(now)
        ignored = Delivery(id="d-2", event="ping", at=now, body=b"{}")
        site.store.deliveries.add([ignored]).result()
        site.store.deliveries.mark_done("d-2", (), ())
        site.store.deliveries.mark_failed("d-1", "it is not valid JSON")
        yield people


def _add(people: People, sample: Sample, now: datetime) -> None:
    """Create the session of a sample, and record a decision that gives it the sample's status."""
    store, at = people.site.store, now - timedelta(minutes=sample.minutes)
    name, created = f"widgets-{sample.number}", at - timedelta(minutes=70)
    url = f"https://github.com/acme/widgets/issues/{sample.number}"
    store.sessions.create(
        NewSession(
            id=name,
            project="widgets",
            repository="acme/widgets",
            created=created,
            issue=Issue(number=sample.number, title=sample.title, url=url),
            branch=f"mergewright/{sample.number}-{sample.title.split()[0].lower()}",
            requester=sample.person,
            agent_type="shell" if sample.agent else "",
        )
    )
    store.db.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET agent_name = ? WHERE id = ?", (sample.agent, name)
        )
    )
    (loaded,) = store.facts.load([name])
    over = Ended(status=sample.status, reason=sample.reason, because=sample.because, at=at)
    decision = SessionDecision(
        status=sample.status,
        reason=sample.reason,
        because=sample.because,
        run=1,
        blockers=sample.blockers,
        actions=(),
        ended=over if sample.status in TERMINAL else None,
    )
    store.decisions.record([(loaded, decision)], at)[0].result()
    if sample.status is not Status.QUEUED:
        _observe(people, name, sample, at)


def _observe(people: People, name: str, sample: Sample, at: datetime) -> None:
    """Record the facts of a session whose agent was started."""
    agent = Agent(
        run=1,
        activity=sample.activity,
        since=at,
        seen=at,
        question=sample.question,
        runtime=Probe.ALIVE,
        program=Probe.ALIVE,
        usage=Usage(
            input=round(sample.cost * 70_000),
            output=round(sample.cost * 4_100),
            cache_read=round(sample.cost * 410_000),
            cost_usd=sample.cost,
        ),
    )
    work = Work(path=f"/srv/{name}", branch="x", base=_BASE, head=_HEAD, dirty=False)
    pulls = (_pull(sample, at),) if sample.pull else ()
    seen = Observation(session=name, run=1, agent=agent, work=work, pulls=pulls)
    people.site.store.observations.record([seen], at)


def _pull(sample: Sample, at: datetime) -> Pull:
    failing = sample.status is Status.CI_FAILED
    approved = sample.status is Status.MERGEABLE
    remark = Remark(id="1", author="rob", body="Which currencies do we support?", at=at)
    thread = Thread(id="t", path="widgets/cart.py", line=14, remarks=(remark,))
    unit = CheckState.FAILED if failing else CheckState.PASSED
    ci = "https://github.com/acme/widgets/actions/runs/1"
    return Pull(
        number=sample.pull,
        url=f"https://github.com/acme/widgets/pull/{sample.pull}",
        title=sample.title,
        head=_HEAD,
        base=_BASE,
        base_branch="main",
        merge=Merge.CLEAN,
        review=Review.APPROVED if approved else Review.PENDING,
        verdicts=(Verdict(author="rob", approved=True, sha=_HEAD, allowed=True),) * approved,
        checks=(
            Check(id="a", name="unit", state=unit, required=True, log=_LOG * failing, url=ci),
            Check(id="b", name="lint", state=CheckState.PASSED, url=ci),
            Check(id="c", name="docs", state=CheckState.PENDING if failing else CheckState.PASSED),
        ),
        threads=(thread,) * failing,
        head_since=at,
        read_at=at,
    )


def _add_past(people: People, now: datetime) -> None:
    """Add sessions whose pull requests were merged in the last 30 days.

    The agent, requester and cost of each session are chosen at random, with a fixed seed.
    """
    chance = random.Random(7)
    for number, title in enumerate(_PAST, 2):
        days = _DAYS - 1 - (number - 2) * (_DAYS - 1) // len(_PAST)
        sample = Sample(
            number=number,
            title=title,
            status=Status.MERGED,
            because=f"pull request #{50 + number} was merged",
            minutes=1440 * days,
            agent=chance.choice(("ada", "bert", "claude")),
            person=chance.choice(("alice", "rob", "carol")),
            reason=Reason.PR_MERGED,
            activity=Activity.EXITED,
            cost=round(chance.uniform(0.6, 4.4), 2),
        )
        _add(people, sample, now)


def _talk(now: datetime) -> list[Message]:
    """A short conversation: a prompt, a thought, a tool call with its result, and an answer."""
    used = Usage(input=1_200, output=310, cache_read=48_000)
    return [
        Message(kind=Kind.PROMPT, text="Refuse carts with mixed currencies (#45).", at=now),
        Message(kind=Kind.THOUGHT, text="The total adds up prices of any currency.", at=now),
        Message(kind=Kind.CALL, tool="Bash", text="pytest -q tests/test_cart.py", at=now),
        Message(kind=Kind.RESULT, text=_LOG, at=now),
        Message(kind=Kind.ANSWER, text="The test fails as expected.", used=used, at=now),
    ]
