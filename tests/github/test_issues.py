"""The conversion of issues."""

from datetime import timedelta

from bot.github.issues import issue_snapshot
from bot.github.shapes import (
    Actor,
    IssueOrPull,
    IssueRepository,
    NamedNode,
    NodeList,
    TimelineEvent,
)
from tests.github.pages import START, user


def test_edits_of_title_and_body_are_listed_oldest_first() -> None:
    renamed = (
        TimelineEvent(typename="RenamedTitleEvent", created_at=START, actor=user("zoe")),
        TimelineEvent(
            typename="RenamedTitleEvent", created_at=START + timedelta(minutes=2), actor=None
        ),
    )
    issue = IssueOrPull(
        typename="Issue",
        number=12,
        title="Retry",
        body="Please.",
        url="https://github.example/acme/widgets/issues/12",
        closed=False,
        last_edited_at=START + timedelta(minutes=1),
        author=user("zoe"),
        editor=user("ann"),
        labels=NodeList(nodes=()),
        timeline_items=NodeList(nodes=renamed),
    )
    reading = issue_snapshot(IssueRepository(is_private=True, issue_or_pull_request=issue))
    assert reading.issue.private
    assert [edit.actor for edit in reading.edits] == ["zoe", "ann", ""]


def test_a_bot_that_labels_has_the_login_it_comments_with() -> None:
    put = TimelineEvent(
        typename="LabeledEvent",
        created_at=START,
        actor=Actor(typename="Bot", login="ci-bot"),
        label=NamedNode(name="mergewright"),
    )
    issue = IssueOrPull(
        typename="Issue",
        number=12,
        title="Retry",
        body="",
        url="",
        closed=False,
        last_edited_at=None,
        author=None,
        editor=None,
        labels=NodeList(nodes=()),
        timeline_items=NodeList(nodes=(put,)),
    )
    reading = issue_snapshot(IssueRepository(is_private=False, issue_or_pull_request=issue))
    assert [one.actor for one in reading.labelings] == ["ci-bot[bot]"]
