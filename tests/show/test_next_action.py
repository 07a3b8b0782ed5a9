"""The one thing to do next."""

from itertools import product

import pytest

from bot.intake.local_commands import LOCAL_COMMANDS
from bot.show.next_action import NextAction, next_action
from bot.show.session_head import session_head
from bot.show.session_summary import waits_for_person
from bot.text import next_action as say
from bot.text.next_action import BUTTONS
from lifecycle.judge.reasons import ADVICE, needs_person
from lifecycle.model.facts import Ended, Facts, Issue, Pull, Work
from lifecycle.model.names import FROZEN
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import TERMINAL, Blocker, Reason, Status
from tests.show.conftest import NOW, a_session

HEAD = "a" * 40
PULL = Pull(number=34, head=HEAD, url="https://github.com/acme/widgets/pull/34")
PAGE = "/sessions/widgets-12"


def of(status: Status, reason: str, *, pulls: tuple[Pull, ...] = (PULL,)) -> NextAction:
    over = status in TERMINAL
    ended = Ended(status=status, reason=Reason.COMPLETED, because="", at=NOW) if over else None
    session = a_session(
        status=status, reason=reason, pulls=pulls, ended=ended, work=Work(head=HEAD)
    )
    return next_action(session)


@pytest.mark.parametrize(
    ("status", "reason", "command", "argument", "head", "url"),
    [
        (Status.NEEDS_INPUT, Reason.AGENT_QUESTION, "", "", "", f"{PAGE}#text"),
        (Status.NEEDS_INPUT, Reason.PROTECTED_PATHS, "allow", HEAD, "", ""),
        (Status.NEEDS_INPUT, Reason.REPAIRS_EXHAUSTED, "", "", "", PULL.url),
        (Status.NEEDS_INPUT, Reason.ACTION_FAILED, "retry", "", "", ""),
        (Status.NEEDS_INPUT, Reason.CHECKS_MISSING, "merge", "", HEAD, ""),
        (Status.MERGEABLE, Reason.AWAITS_MERGE, "merge", "", HEAD, ""),
        (Status.MERGEABLE, Reason.AWAITS_MANUAL_MERGE, "", "", "", PULL.url),
        (Status.MERGEABLE, Reason.PULL_REQUEST, "", "", "", ""),
        (Status.PAUSED, Reason.PAUSED_BY_PERSON, "resume", "", "", ""),
        (Status.PAUSED, Reason.BUDGET_EXHAUSTED, "budget", "+5", "", ""),
        (Status.STUCK, Reason.NO_PROGRESS, "restart", "", "", ""),
        (Status.STUCK, Reason.AUTH_FAILED, "", "", "", f"{PAGE}/terminal"),
        (Status.REVIEW_PENDING, Reason.PULL_REQUEST, "", "", "", PULL.url),
        (Status.CI_FAILED, Reason.PULL_REQUEST, "", "", "", ""),
        (Status.CI_FAILED, Reason.PERSON_PUSHED, "resume", "", "", ""),
        (Status.CHANGES_REQUESTED, Reason.PERSON_PUSHED, "resume", "", "", ""),
        (Status.REVIEW_PENDING, Reason.PERSON_PUSHED, "", "", "", PULL.url),
        (Status.MERGEABLE, Reason.PERSON_PUSHED, "", "", "", ""),
        (Status.WORKING, Reason.AGENT_AT_WORK, "", "", "", ""),
        (Status.ERRORED, Reason.PROVIDER_EXIT, "start", "", "", ""),
        (Status.KILLED, Reason.MANUALLY_KILLED, "start", "", "", ""),
        (Status.MERGED, Reason.PR_MERGED, "", "", "", ""),
    ],
)
def test_the_next_action(
    status: Status, reason: Reason, command: str, argument: str, head: str, url: str
) -> None:
    found = of(status, reason)
    assert (found.command, found.argument, found.head, found.url) == (command, argument, head, url)
    assert bool(found.label) == bool(command or url)
    assert found.text


@pytest.mark.parametrize("status", list(Status))
def test_a_person_who_is_needed_can_do_something(status: Status) -> None:
    for reason, pulls in product(Reason, ((), (PULL,))):
        found = of(status, reason, pulls=pulls)
        assert not found.command or found.command in LOCAL_COMMANDS
        if needs_person(status, reason) and reason in ADVICE:
            assert found.text, reason
            assert found.label or not pulls, reason


def test_a_merge_and_a_push_are_confirmed() -> None:
    assert of(Status.MERGEABLE, Reason.AWAITS_MERGE).confirm
    assert of(Status.NEEDS_INPUT, Reason.COMMITS_HELD).confirm
    assert not of(Status.PAUSED, Reason.PAUSED_BY_PERSON).confirm


def test_the_commit_that_is_allowed_is_named() -> None:
    found = of(Status.NEEDS_INPUT, Reason.COMMITS_HELD)
    assert (found.label, found.argument) == ("Allow the push of aaaaaaa", HEAD)


def test_every_button_gives_a_command() -> None:
    assert BUTTONS.keys() <= LOCAL_COMMANDS.keys()


def test_a_failed_session_of_a_closed_issue_can_be_started() -> None:
    session = a_session(status=Status.ERRORED, reason=Reason.PROVIDER_EXIT)
    assert waits_for_person(session)
    assert next_action(session).command == "start"


@pytest.mark.parametrize("status", list(Status))
def test_nothing_is_next_for_a_frozen_session_until_it_ends(status: Status) -> None:
    blockers = (Blocker(FROZEN, "@ann froze everything"),)
    found = next_action(a_session(status=status, reason=Reason.AGENT_QUESTION, blockers=blockers))
    assert (found == NextAction(text=say.FROZEN)) == (status not in TERMINAL)


@pytest.mark.parametrize("status", list(Status))
def test_nothing_is_next_in_an_observed_project_until_the_session_ends(status: Status) -> None:
    facts = Facts(
        session="widgets-12", project="widgets", created=NOW, issue=Issue(number=12, title="A")
    )
    head = session_head(a_session(status=status), facts, Policy(mode=Mode.OBSERVE), NOW, None)
    assert (head.next == NextAction(text=say.OBSERVED)) == (status not in TERMINAL)
