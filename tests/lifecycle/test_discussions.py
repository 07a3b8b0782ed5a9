"""What people write about the issue: in the first message, or sent and acknowledged later."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Facts, Issue, Remark
from tests.lifecycle.decisions import AT_WORK, keys, ordered, review_cause, with_pull
from tests.lifecycle.universe import done, ended, facts, published, pull, remark

FIRST = remark("comment:1", 7200, body="Paint it.")
LATER = remark("comment:2", 300, body="Not in blue.")
EDIT = remark("edit:1", 200, body="More tests\n\nAnd docs.", edit=True)


def about(*remarks: Remark) -> Issue:
    return Issue(number=12, title="More tests", remarks=remarks)


def new(*remarks: Remark, **fields: Any) -> Facts:
    session = facts(issue=about(*remarks), run=0, agent=Agent(), **fields)
    return replace(session, done={})


def test_a_first_run_gets_the_discussion_and_it_is_not_sent_again() -> None:
    outsider = remark("comment:3", allowed=False)
    (start,) = [one for one in ordered(new(FIRST, LATER, outsider)) if isinstance(one, do.Start)]
    assert [one["text"] for one in start.discussion] == ["Paint it.", "Not in blue."]
    assert [one["what"] for one in start.discussion] == ["issue #12, a comment by @rob"] * 2
    assert start.waiting == ()
    assert [str(key) for key in start.covers] == ["remark:comment%3A1#1", "remark:comment%3A2#1"]
    begun = facts(
        issue=about(FIRST, LATER), done=done("remark:comment%3A1#1", "remark:comment%3A2#1")
    )
    assert not [one for one in ordered(begun) if isinstance(one, do.SendMessage | do.React)]


@pytest.mark.parametrize("session", [facts(), published()])
def test_a_later_comment_and_an_edit_are_sent_and_acknowledged(session: Facts) -> None:
    known = {**session.done, **done("remark:comment%3A1#1")}
    sent = ordered(replace(session, issue=about(FIRST, LATER, EDIT), done=known))
    (message,) = [one for one in sent if isinstance(one, do.SendMessage)]
    assert str(message.key) == f"{review_cause('comment:2', 'edit:1')}#1"
    assert message.prompt.values == {"head": "", "pull": ""}
    assert [(one["where"], one["text"]) for one in message.prompt.items] == [
        ("issue #12, a comment by @rob", "Not in blue."),
        ("issue #12, as @rob edited it", "More tests\n\nAnd docs."),
    ]
    assert [one for one in sent if isinstance(one, do.React)] == [
        do.React(key=sent[0].key, comment=2, content="eyes"),
        do.React(key=sent[1].key, issue=12, content="eyes"),
    ]


def test_comments_on_issue_and_pull_request_are_one_message() -> None:
    session = with_pull({"comments": (remark("comment:9"),)}, issue=about(LATER))
    (message,) = [one for one in ordered(session) if isinstance(one, do.SendMessage)]
    assert message.prompt.values["pull"] == "34"
    assert [one["where"] for one in message.prompt.items] == ["", "issue #12, a comment by @rob"]


def test_of_several_pull_requests_one_carries_the_discussion() -> None:
    two = (pull(), pull(number=35, branch="other"))
    sent = ordered(published(pulls=two, issue=about(LATER)))
    assert len([one for one in sent if isinstance(one, do.SendMessage)]) == 1


def test_a_comment_waits_for_the_end_of_the_turn_and_is_acknowledged_at_once() -> None:
    assert keys(facts(issue=about(LATER), agent=AT_WORK)) == ["reaction:comment%3A2"]


@pytest.mark.parametrize(
    "session", [new(LATER), new(LATER, slot=False, waits="all agents are busy")]
)
def test_a_comment_before_the_first_run_is_acknowledged(session: Facts) -> None:
    assert "reaction:comment%3A2" in keys(session)


def test_an_agent_without_memory_gets_the_discussion_of_earlier_runs() -> None:
    session = facts(issue=about(FIRST), agent=ended(1), done=done("remark:comment%3A1#1"))
    (start,) = [one for one in ordered(session) if isinstance(one, do.Start)]
    assert [one["text"] for one in start.waiting] == ["Paint it."]
    assert start.discussion == ()
