"""Tests `cause` of a decision: the key of what people are notified of, on GitHub and elsewhere."""

from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.policy import Mode
from lifecycle.model.status import Status
from lifecycle.react.reactions import NEEDS_PEOPLE
from tests.lifecycle.decisions import ASKING, AT_WORK, decision, ready
from tests.lifecycle.troubles import every_trouble
from tests.lifecycle.universe import HEAD, facts


def test_comments_notify_people_of_the_cause() -> None:
    notified = 0
    for session in every_trouble():
        found = decision(session)
        posted = [
            action.key
            for action in found.actions
            if isinstance(action, Comment) and action.topic in ("attention", "paused")
        ]
        assert found.cause or (not posted and found.status not in NEEDS_PEOPLE), session
        assert posted in ([], [found.cause and keys.notice(found.cause)]), session
        notified += len(posted)
    assert notified


def test_a_merge_that_waits_for_a_person_is_a_cause() -> None:
    waiting = decision(ready(), mode=Mode.PROPOSE)
    assert (waiting.status, waiting.cause) == (Status.MERGEABLE, keys.ready_to_merge(HEAD))
    assert decision(ready(), mode=Mode.MERGE).cause is None


def test_a_session_that_continues_by_itself_has_none() -> None:
    assert decision(facts(agent=AT_WORK)).cause is None


def test_where_the_bot_only_observes_there_is_a_cause_too() -> None:
    found = decision(facts(agent=ASKING), mode=Mode.OBSERVE)
    assert (found.status, found.actions) == (Status.NEEDS_INPUT, ())
    assert found.cause is not None
