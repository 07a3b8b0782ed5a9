"""The pull observer: attribution to sessions, and facts added to a read."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.errors import Refused, TryLater
from bot.github.snapshots import Labeling
from lifecycle.model.facts import Check, Frozen, Remark, Thread, Verdict
from lifecycle.model.names import FREEZES
from lifecycle.model.status import CheckState, Merge, Mover, PullState
from tests.harness.observers import Bench


@pytest.mark.parametrize(
    "pull",
    [
        {"repository": "mallory/widgets"},
        {"repository": ""},
        {"author": "mallory"},
        {"author": "ada", "head": "c9"},
        {"author": "", "head": "c9"},
        {"state": PullState.CLOSED, "head": "c9"},
    ],
)
def test_a_foreign_or_old_pull_request_does_not_belong_to_the_session(
    bench: Bench, pull: dict[str, Any]
) -> None:
    bench.pushed("a1")
    bench.pull(**pull)
    assert bench.reads() == ()
    assert bench.waiting() == []


@pytest.mark.parametrize(
    "pull", [{}, {"author": "ada"}, {"head": "c9"}, {"state": PullState.CLOSED}]
)
def test_a_writers_pull_request_at_a_pushed_head_belongs_to_the_session(
    bench: Bench, pull: dict[str, Any]
) -> None:
    bench.pushed("a1")
    bench.pull(**pull)
    assert [found.number for found in bench.reads()] == [34]


def test_a_vanished_pull_request_changes_nothing(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    before = bench.reads()
    bench.github.pulls.clear()
    assert bench.reads() == before != ()


def test_remarks_by_outsiders_and_unknown_editors_are_not_allowed(bench: Bench) -> None:
    bench.pushed("a1")
    at = bench.scenario.clock()
    written = [
        Remark(id=f"comment:{n}", author=author, body="x", at=at)
        for n, author in enumerate(["ada", "mallory", "ada", "ada", ""])
    ]
    # Bots have no permission level; the policy decides whether they count.
    robot = Remark(id="comment:9", author="robot[bot]", body="x", at=at, bot=True)
    verdicts = tuple(
        Verdict(author=author, approved=True, sha="a1") for author in ("rob", "mallory", "")
    )
    bench.pull(comments=(*written, robot), verdicts=verdicts)
    (pull,) = bench.reads()
    assert [remark.allowed for remark in pull.comments] == [True] + [False] * 4 + [True]
    assert [verdict.allowed for verdict in pull.verdicts] == [True, False, False]
    assert [(one.login, one.issue, one.number) for one in bench.store.outsiders.unnotified()] == [
        ("mallory", 12, 34)
    ]


def test_remarks_that_address_the_bot_or_its_app_are_marked(bench: Bench) -> None:
    bench.pushed("a1")
    written = [
        Remark(id=f"comment:{n}", author="ada", body=body, at=bench.scenario.clock())
        for n, body in enumerate(["x", "/mergewright merge", "Ah.\n@acme-bot[bot] stop", "@acme x"])
    ]
    asking = Verdict(author="rob", approved=False, sha="a1", remark=written[2])
    threads = (Thread(id="T1", remarks=(written[1],)),)
    bench.pull(comments=tuple(written), verdicts=(asking,), threads=threads)
    (pull,) = bench.reads()
    assert [remark.to_bot for remark in pull.comments] == [False, True, True, False]
    assert pull.verdicts[0].remark
    assert pull.verdicts[0].remark.to_bot
    assert pull.threads[0].remarks[0].to_bot


def test_a_missing_log_delays_a_failed_check_for_a_few_attempts_only(bench: Bench) -> None:
    bench.pushed("a1")
    bench.github.log = TryLater("the host of the logs cannot be reached")
    bench.pull(checks=(Check(id="unit", name="unit", state=CheckState.FAILED, run_id=5),))
    for _ in range(7):  # Over about two minutes, as failed reads are repeated with backoff.
        assert bench.reads() == ()
    assert [check.state for check in bench.reads()[0].checks] == ["failed"]
    bench.github.log = "it broke"
    assert bench.reads()[0].checks[0].log == "it broke"


def test_the_pusher_is_determined_only_when_the_head_moved(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    (first,) = bench.reads()
    assert (first.head_by, first.person, first.carried) == (Mover.BOT, None, frozenset())
    bench.mover = AssertionError("it has not moved")
    bench.pull(title="renamed")
    assert bench.reads()[0].head_by is Mover.BOT


def test_a_head_that_the_bot_pushed_counts_from_its_push_or_the_opening(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    bench.pushed_at = bench.created_at - timedelta(minutes=1)
    assert bench.reads()[0].head_since == bench.created_at
    bench.pushed_at = bench.created_at + timedelta(minutes=1)
    bench.pull(head="a2")
    assert bench.reads()[0].head_since == bench.pushed_at
    bench.pushed_at = None
    bench.pull(head="a3")
    assert bench.reads()[0].head_since == bench.scenario.clock()


def test_an_earlier_push_of_the_bot_counts_from_when_the_branch_is_seen_there_again(
    bench: Bench,
) -> None:
    bench.pushed("a1")
    for head, pushed_at in (("a1", bench.created_at), ("a2", None), ("a1", bench.created_at)):
        bench.pull(head=head)
        bench.pushed_at = pushed_at
        (pull,) = bench.reads()
    assert pull.head_since == bench.scenario.clock()


def test_a_branch_update_keeps_approvals_and_a_persons_push_is_remembered(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    bench.reads()
    bench.mover = Mover.UPDATE
    for head in ("a2", "a3"):
        bench.pull(head=head)
        (pull,) = bench.reads()
    assert (pull.head_by, pull.carried) == (Mover.UPDATE, frozenset({"a1", "a2"}))
    bench.mover = Mover.PERSON
    bench.github.pushed_by = ("ada", "mergewright-bot", "rob")
    bench.pull(head="a4")
    (pull,) = bench.reads()
    assert pull.person is not None
    assert (pull.person.by, pull.contributors) == ("ada", frozenset({"ada", "rob"}))
    assert (pull.head_by, pull.carried) == (Mover.PERSON, frozenset())
    assert (pull.person.sha, pull.person.at) == ("a4", pull.head_since)
    bench.mover = Mover.BOT
    bench.pull(head="a5")
    (later,) = bench.reads()
    assert (later.head_by, later.person) == (Mover.BOT, pull.person)
    assert later.contributors == pull.contributors


def test_a_push_by_an_unknown_person_is_remembered_and_an_outage_changes_nothing(
    bench: Bench,
) -> None:
    bench.pushed("a1")
    bench.pull()
    before = bench.reads()
    bench.mover, bench.github.pushed_by = Mover.PERSON, TryLater("down")
    bench.pull(head="a2")
    assert bench.reads() == before
    bench.github.pushed_by = Refused("There is no such list.", 404)
    (pull,) = bench.reads()
    assert pull.person is not None
    assert (pull.person.by, pull.contributors) == ("", frozenset())


def test_the_time_is_kept_since_when_checks_of_a_head_are_pending(bench: Bench) -> None:
    def reads(*states: CheckState, head: str = "a1") -> Any:
        bench.scenario.clock.passes(60)
        checks = tuple(Check(id=str(n), name=str(n), state=s) for n, s in enumerate(states))
        bench.pull(head=head, checks=checks)
        return bench.reads()[0].pending_since

    bench.pushed("a1")
    assert reads(CheckState.PASSED) is None
    since = reads(CheckState.PENDING)
    assert since == bench.scenario.clock()
    assert reads(CheckState.PENDING, CheckState.PASSED) == since
    assert reads(CheckState.PENDING, head="a2") == bench.scenario.clock()
    assert reads(CheckState.PASSED, CheckState.FAILED, head="a2") is None


def test_the_time_is_kept_when_another_base_branch_was_first_seen(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(base_branch="main")
    bench.github.pulls[34] = replace(bench.github.pulls[34], labels=("wip",))
    assert bench.reads()[0].labels == ("wip",)
    assert bench.reads()[0].base_since is None
    bench.pull(base_branch="release")
    (pull,) = bench.reads()
    assert pull.base_since == bench.scenario.clock()
    bench.scenario.clock.passes(60)
    bench.pull(base_branch="release", title="renamed")
    assert bench.reads()[0].base_since == pull.base_since


def test_without_a_known_pusher_nothing_changes(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    before = bench.reads()
    bench.mover = ValueError("the mirror cannot be refreshed")
    bench.pull(head="a2")
    assert bench.reads() == before


def test_an_approval_by_the_bot_itself_does_not_count(bench: Bench) -> None:
    bench.pushed("a1")
    bench.github.writers.add("mergewright-bot")
    bench.pull(verdicts=(Verdict(author="mergewright-bot", approved=True, sha="a1"),))
    assert [verdict.allowed for verdict in bench.reads()[0].verdicts] == [False]


@pytest.mark.parametrize("listed", [False, True])
def test_an_approval_by_a_listed_bot_with_write_access_counts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.setattr(bench.people, "is_listed", lambda *_: listed)
    bench.pushed("a1")
    bench.github.writers.add("ci[bot]")
    bench.pull(
        verdicts=tuple(
            Verdict(author=author, approved=True, sha="a1", bot=True)
            for author in ("ci[bot]", "lint[bot]")
        )
    )
    assert [verdict.allowed for verdict in bench.reads()[0].verdicts] == [listed, False]


def test_a_bot_that_approves_is_not_notified(bench: Bench) -> None:
    bench.pushed("a1")
    by = {"helper[bot]": True, "mallory": False}
    bench.pull(
        verdicts=tuple(
            Verdict(author=author, approved=True, sha="a1", bot=bot) for author, bot in by.items()
        )
    )
    bench.reads()
    assert [one.login for one in bench.store.outsiders.unnotified()] == ["mallory"]


def test_a_bots_remark_edited_by_an_outsider_is_not_allowed(bench: Bench) -> None:
    bench.pushed("a1")
    at = bench.scenario.clock()
    written = [
        Remark(id=f"comment:{n}", author="lint[bot]", body="x", at=at, bot=True) for n in (1, 2, 3)
    ]
    bench.pull(comments=tuple(written))
    assert [remark.allowed for remark in bench.reads()[0].comments] == [True, False, False]


def test_flaky_checks_are_marked_and_checks_red_on_the_base_need_no_log(
    bench: Bench,
) -> None:
    bench.pushed("a1")
    bench.github.log = AssertionError("nobody wants it")
    failed: dict[str, Any] = {"state": CheckState.FAILED, "run_id": 5, "red_on_base": True}
    bench.pull(
        checks=(
            Check(id="1", name="e2e (chrome)", **failed),
            Check(id="2", name="unit", state=CheckState.PASSED),
        )
    )
    assert [check.flaky for check in bench.reads()[0].checks] == [True, False]


@pytest.mark.parametrize(
    ("states", "green"),
    [
        (("passed", "skipped"), True),
        (("passed", "failed"), False),
        (("passed", "pending"), False),
        (("skipped",), False),
        ((), False),
    ],
)
def test_checks_are_green_since_every_one_that_ran_passed(
    bench: Bench, states: tuple[str, ...], green: bool
) -> None:
    bench.pushed("a1")
    checks = tuple(Check(id=state, name=state, state=CheckState(state)) for state in states)
    bench.pull(checks=checks, merge=Merge.CLEAN)
    (first,) = bench.reads()
    assert (first.green_since == bench.scenario.clock()) is green
    assert bench.reads()[0].green_since == first.green_since
    bench.pull(checks=(Check(id="a", name="a", state=CheckState.FAILED),), merge=Merge.CLEAN)
    assert bench.reads()[0].green_since == first.green_since
    bench.pull(checks=(Check(id="a", name="a", state=CheckState.PASSED),), merge=Merge.CLEAN)
    assert bench.reads()[0].green_since == bench.scenario.clock()


def test_a_head_is_clean_since_github_said_so(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.UNKNOWN)
    assert bench.reads()[0].clean_since is None
    bench.pull(merge=Merge.CLEAN)
    since = bench.reads()[0].clean_since
    assert since == bench.scenario.clock()
    bench.scenario.clock.passes(60)
    assert bench.reads()[0].clean_since == since
    bench.pull(merge=Merge.PROTECTED)
    assert bench.reads()[0].clean_since is None


def test_a_pull_request_from_before_the_first_push_does_not_belong_to_the_session(
    bench: Bench,
) -> None:
    bench.scenario.session()
    bench.pull()
    assert bench.reads() == ()
    bench.pull(author="rob", head="e1")
    assert bench.reads() == ()


def test_a_pull_request_from_a_fork_does_not_belong_to_the_session(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(author="rob", repository="rob/widgets")
    assert bench.reads() == ()
    bench.pull(author="rob")
    assert [pull.number for pull in bench.reads()] == [34]


def test_the_freezing_label_counts_on_the_pull_request_too(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    (plain,) = bench.reads()
    assert plain.frozen is None
    put = Labeling(label=FREEZES, actor="ada", at=bench.scenario.clock(), added=True)
    bench.labelled(34, labels=(FREEZES,), labelings=(put,))
    bench.github.pulls[34] = replace(bench.github.pulls[34], labels=(FREEZES.upper(),))
    for _ in range(2):
        (pull,) = bench.reads()
        assert pull.frozen == Frozen(scope="session", by="ada", at=put.at)
        bench.github.issues[34] = None  # It is requested once.
    bench.pull()
    (thawed,) = bench.reads()
    assert thawed.frozen is None
