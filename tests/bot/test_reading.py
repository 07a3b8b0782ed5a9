"""Reading GitHub: what fails waits alone, strangers may nothing, foreign pull requests stay so."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.errors import Refused, TryLater
from bot.github.readings import Edit, IssueReading, Labeling, PullReading
from bot.identities import Identities
from bot.journal import log_step
from bot.people import People
from bot.store import NewSession, NewWish, Touch
from bot.watch_issues import WatchIssues
from bot.watch_pulls import WatchPulls
from bot.wishes import Wishes
from config.settings import AgentSettings, Project
from lifecycle.actions import Publish
from lifecycle.decide import decide
from lifecycle.facts import Check, Issue, Pull, Remark, Verdict
from lifecycle.policy import Policy
from lifecycle.status import CheckState, Merge, Mover, PullState, Status

PROJECTS: Mapping[str, Project] = {
    "widgets": Project(repository="acme/widgets", flaky_checks=("e2e *",)),
    "gears": Project(repository="acme/gears"),
}
IDENTITIES = {"ada": AgentSettings(types=("claude",)), "rob": AgentSettings(types=("shell",))}
REPOSITORY = "acme/widgets"


class GitHub:
    """What GitHub answers, as the test says."""

    def __init__(self) -> None:
        self.read = self
        self.writers = {"ada", "rob"}
        self.issues: dict[int, Any] = {}
        self.pulls: dict[int, Any] = {}
        self.log: Any = "it broke"
        self.refuses: set[str] = set()
        self.asked = 0

    def me(self) -> str:
        return "mergewright-bot"

    def may_write(self, repository: str, login: str) -> bool:
        self.asked += 1
        if repository in self.refuses:
            raise Refused("no access", 403)
        return login in self.writers

    def issue(self, repository: str, number: int) -> Any:
        return answer(self.issues.get(number))

    def pull(self, repository: str, number: int) -> Any:
        return answer(self.pulls.get(number))

    def pulls_of(self, repository: str, branch: str) -> list[int]:
        return sorted(self.pulls)

    def check_log(self, repository: str, run_id: int) -> Any:
        return answer(self.log)


def answer(what: Any) -> Any:
    if isinstance(what, Exception):
        raise what
    return what


class Bench:
    def __init__(self, room: Any) -> None:
        self.room, self.store = room, room.store
        self.github = GitHub()
        github: Any = self.github
        self.people = People(github, room.clock)
        self.mover: Any = Mover.BOT
        self.pulls = WatchPulls(
            *(room.store, github, self.people, lambda *_: answer(self.mover)),
            *(PROJECTS, room.clock, log_step),
        )
        self.issues = WatchIssues(
            *(room.store, github, self.people, self.pulls, PROJECTS),
            *(Identities(room.store, IDENTITIES, PROJECTS), room.clock, log_step),
        )
        self.wishes = Wishes(
            *(room.store, github, self.people, self.issues, room.clock, lambda: True),
            lambda _: True,
        )

    def touches(self, *subjects: str) -> None:
        touches = [Touch(repository=REPOSITORY, subject=subject) for subject in subjects]
        self.store.touch(touches, self.room.clock())

    def waiting(self) -> list[str]:
        later = self.room.clock() + timedelta(days=1)
        return [touch.subject for touch in self.store.due_touches(later, ("",))]

    def labelled(self, number: int = 12, by: str = "ada", **changes: Any) -> IssueReading:
        put = Labeling(label="mergewright", actor=by, at=self.room.clock(), added=True)
        reading = IssueReading(
            issue=Issue(number=number, title="It breaks", author="mallory"),
            is_pull=False,
            labels=("mergewright",),
            labelings=(put,),
            edits=(),
        )
        self.github.issues[number] = reading = replace(reading, **changes)
        return reading

    def pushed(self, sha: str) -> str:
        name: str = self.room.session()
        self.room.orders(name, Publish(key=f"push:{sha}", head=sha))
        due = self.store.due_actions(self.room.clock())[0]
        self.store.mark_done(due.seq, sha, self.room.clock())
        return name

    def pull(
        self, author: str = "mergewright-bot", repository: str = REPOSITORY, **pull: Any
    ) -> None:
        self.github.pulls[34] = PullReading(
            pull=Pull(number=34, **{"head": "a1", "base": "b1", **pull}),
            head_repository=repository,
            head_branch="mergewright/12-it-breaks",
            author=author,
            merged_by="",
            body="",
            edited_by={"comment:2": "mallory", "comment:3": ""},
        )

    def reads(self) -> tuple[Pull, ...]:
        self.touches("pull:34")
        self.room.clock.passes(120)
        self.pulls.read_touched()
        found: tuple[Pull, ...] = self.store.session("widgets-12").pulls
        return found


@pytest.fixture
def bench(room: Any) -> Bench:
    return Bench(room)


@pytest.mark.parametrize("broken", [TryLater("down"), ValueError("odd")])
def test_an_issue_that_cannot_be_read_keeps_no_other_waiting(
    bench: Bench, broken: Exception
) -> None:
    bench.github.issues[1] = broken
    bench.labelled(12)
    bench.touches("issue:1", "issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is not None
    assert bench.waiting() == ["issue:1"]
    assert bench.store.due_touches(bench.room.clock(), ("",)) == []


def test_a_pull_request_that_cannot_be_read_keeps_no_other_waiting(bench: Bench) -> None:
    bench.pushed("a1")
    bench.github.pulls[33] = ValueError("odd")
    bench.pull()
    bench.touches("pull:33", "pull:34")
    bench.pulls.read_touched()
    assert bench.store.session("widgets-12").pulls
    assert "pull:33" in bench.waiting()


def test_a_touch_that_comes_during_a_read_is_looked_at_too(bench: Bench) -> None:
    bench.labelled(12)
    read = bench.github.issue

    def touched(repository: str, number: int) -> Any:
        bench.touches("issue:12")
        return read(repository, number)

    bench.github.issue = touched  # type: ignore[method-assign]
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.waiting() == ["issue:12"]


@pytest.mark.parametrize("actor", ["mallory", ""])
def test_a_label_by_a_stranger_or_by_nobody_starts_nothing(bench: Bench, actor: str) -> None:
    bench.labelled(by=actor)
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is None


def test_a_label_nobody_is_known_to_have_put_on_starts_nothing(bench: Bench) -> None:
    bench.labelled(labelings=())
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is None


@pytest.mark.parametrize("editor", ["mallory", ""])
def test_an_edit_by_a_stranger_in_the_second_of_the_label_starts_nothing(
    bench: Bench, editor: str
) -> None:
    bench.labelled(edits=(Edit(actor=editor, at=bench.room.clock()),))
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is None


def test_an_issue_that_was_deleted_ends_its_session(bench: Bench) -> None:
    bench.room.session()
    for _ in range(2):
        bench.touches("issue:12", "issue:99")
        bench.issues.read_touched()
        assert bench.waiting() == []
    facts = bench.store.facts("widgets-12")
    assert (facts.issue.open, facts.issue.state_reason) == (False, "deleted")
    assert facts.issue.title == "It breaks"
    decision = decide(facts, Policy(), bench.room.clock())
    assert decision.status is Status.TERMINATED
    assert decision.because == "the issue was closed as deleted"


def test_an_issue_that_cannot_be_read_is_no_deleted_one(bench: Bench) -> None:
    before = bench.store.session(bench.room.session())
    bench.github.issues[12] = Refused("no access", 403)
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") == before


def test_a_project_that_is_not_configured_any_more_has_lost_no_label(bench: Bench) -> None:
    bench.room.session()
    bench.labelled()
    bench.issues._projects = {}
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12").issue.labelled


def wish(key: str, actor: str, at: Any) -> NewWish:
    return NewWish(
        key=key, repository=REPOSITORY, number=12, kind="stop", actor=actor, at=at, comment=7
    )


def test_a_permission_that_cannot_be_read_leaves_the_wish_and_asks_later(bench: Bench) -> None:
    bench.room.session()
    bench.github.refuses.add(REPOSITORY)
    bench.store.add_wish(wish("comment:7", "ada", bench.room.clock()))
    assert bench.wishes.settle() == 0
    assert bench.wishes.settle() == 0
    assert bench.github.asked == 1
    bench.github.refuses.clear()
    bench.room.clock.passes(60)
    assert bench.wishes.settle() == 1
    assert [wish.actor for wish in bench.store.session("widgets-12").wishes] == ["ada"]


def test_a_repository_that_refuses_keeps_only_its_own_wishes_waiting(bench: Bench) -> None:
    bench.room.session()
    at = bench.room.clock()
    elsewhere = replace(wish("comment:1", "ada", at), repository="acme/gears")
    bench.store.create_session(
        replace(new_session(bench), id="gears-12", repository="acme/gears", branch="g")
    )
    bench.github.refuses.add("acme/gears")
    bench.store.add_wish(elsewhere)
    bench.store.add_wish(wish("comment:7", "ada", at))
    assert bench.wishes.settle() == 1
    assert bench.store.session("widgets-12").wishes
    assert [wish.key for wish in bench.store.new_wishes()] == ["comment:1"]


def new_session(bench: Bench) -> NewSession:
    return NewSession(
        id="x",
        project="gears",
        repository="x",
        created=bench.room.clock(),
        issue=Issue(number=12, title="x"),
        branch="x",
    )


def test_a_wish_of_a_stranger_is_refused(bench: Bench) -> None:
    bench.room.session()
    bench.store.add_wish(wish("comment:7", "mallory", bench.room.clock()))
    bench.wishes.settle()
    assert bench.store.session("widgets-12").wishes == ()
    assert bench.store.new_wishes() == []


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
def test_a_foreign_or_old_pull_request_is_not_taken_for_the_sessions(
    bench: Bench, pull: dict[str, Any]
) -> None:
    bench.pushed("a1")
    bench.pull(**pull)
    assert bench.reads() == ()
    assert bench.waiting() == []


@pytest.mark.parametrize(
    "pull", [{}, {"author": "ada"}, {"head": "c9"}, {"state": PullState.CLOSED}]
)
def test_a_pull_request_at_a_pushed_head_by_someone_who_may_is_the_sessions(
    bench: Bench, pull: dict[str, Any]
) -> None:
    bench.pushed("a1")
    bench.pull(**pull)
    assert [found.number for found in bench.reads()] == [34]


def test_a_pull_request_that_vanished_changes_nothing(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    before = bench.reads()
    bench.github.pulls.clear()
    assert bench.reads() == before != ()


def test_what_strangers_and_unknown_editors_wrote_is_not_heard(bench: Bench) -> None:
    bench.pushed("a1")
    at = bench.room.clock()
    said = [
        Remark(id=f"comment:{n}", author=author, body="x", at=at)
        for n, author in enumerate(["ada", "mallory", "ada", "ada", ""])
    ]
    # A bot has no permission to ask for; whether it counts is the policy's to say.
    robot = Remark(id="comment:9", author="robot[bot]", body="x", at=at, bot=True)
    verdicts = tuple(
        Verdict(author=author, approved=True, sha="a1") for author in ("rob", "mallory", "")
    )
    bench.pull(comments=(*said, robot), verdicts=verdicts)
    (pull,) = bench.reads()
    assert [remark.allowed for remark in pull.comments] == [True] + [False] * 4 + [True]
    assert [verdict.allowed for verdict in pull.verdicts] == [True, False, False]


def test_a_log_that_does_not_come_hides_a_failed_check_only_for_a_few_tries(bench: Bench) -> None:
    bench.pushed("a1")
    bench.github.log = TryLater("the host of the logs cannot be reached")
    bench.pull(checks=(Check(id="unit", name="unit", state=CheckState.FAILED, run_id=5),))
    assert bench.reads() == ()
    assert bench.reads() == ()
    assert [check.state for check in bench.reads()[0].checks] == ["failed"]
    bench.github.log = "it broke"
    assert bench.reads()[0].checks[0].log == "it broke"


def test_what_was_read_is_not_remembered_for_ever(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.CLEAN)
    bench.reads()
    bench.room.clock.passes(120)
    bench.pulls.read_touched()
    assert bench.pulls._read_at == {}


def test_a_priority_label_moves_its_session_also_later(bench: Bench) -> None:
    bench.github.issues[12] = bench.labelled(labels=("mergewright", "priority:high"))
    bench.touches("issue:12")
    bench.issues.read_touched()
    made = bench.store.session("widgets-12")
    assert made is not None
    assert (made.priority, made.agent_name, made.agent_type) == (1, "ada", "claude")
    bench.github.issues[12] = bench.labelled(labels=("mergewright", "priority:low"))
    bench.touches("issue:12")
    bench.issues.read_touched()
    later = bench.store.session("widgets-12")
    assert later is not None
    assert later.priority == -1


def test_who_moved_the_branch_is_asked_only_when_it_moved(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    (first,) = bench.reads()
    assert (first.head_by, first.person, first.carried) == (Mover.BOT, None, frozenset())
    bench.mover = AssertionError("it has not moved")
    bench.pull(title="renamed")
    assert bench.reads()[0].head_by is Mover.BOT


def test_an_update_carries_approvals_on_and_a_persons_push_is_remembered(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    bench.reads()
    bench.mover = Mover.UPDATE
    for head in ("a2", "a3"):
        bench.pull(head=head)
        (pull,) = bench.reads()
    assert (pull.head_by, pull.carried) == (Mover.UPDATE, frozenset({"a1", "a2"}))
    bench.mover = Mover.PERSON
    bench.pull(head="a4")
    (pull,) = bench.reads()
    assert (pull.head_by, pull.carried) == (Mover.PERSON, frozenset())
    assert pull.person is not None
    assert (pull.person.sha, pull.person.at) == ("a4", pull.head_since)
    bench.mover = Mover.BOT
    bench.pull(head="a5")
    (later,) = bench.reads()
    assert (later.head_by, later.person) == (Mover.BOT, pull.person)


def test_where_nobody_can_say_who_moved_the_branch_nothing_changes(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull()
    before = bench.reads()
    bench.mover = ValueError("the mirror cannot be refreshed")
    bench.pull(head="a2")
    assert bench.reads() == before


def test_an_approval_by_the_bot_itself_is_none(bench: Bench) -> None:
    bench.pushed("a1")
    bench.github.writers.add("mergewright-bot")
    bench.pull(verdicts=(Verdict(author="mergewright-bot", approved=True, sha="a1"),))
    assert [verdict.allowed for verdict in bench.reads()[0].verdicts] == [False]


def test_what_a_stranger_made_of_a_bots_words_is_not_allowed(bench: Bench) -> None:
    bench.pushed("a1")
    at = bench.room.clock()
    said = [
        Remark(id=f"comment:{n}", author="lint[bot]", body="x", at=at, bot=True) for n in (1, 2, 3)
    ]
    bench.pull(comments=tuple(said))
    assert [remark.allowed for remark in bench.reads()[0].comments] == [True, False, False]


def test_checks_the_project_calls_flaky_are_marked_and_those_red_on_the_base_need_no_log(
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
