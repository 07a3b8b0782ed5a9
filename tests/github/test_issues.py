"""The conversion of issues."""

from datetime import timedelta
from typing import Any

from bot.github.issues import issue_snapshot
from bot.github.shapes import (
    Actor,
    CommentNode,
    ContentEdit,
    IssueOrPull,
    IssueRepository,
    Milestone,
    NamedNode,
    NewestNodes,
    NodeList,
    Reference,
    ReferringSubject,
    RepositoryName,
    TimelineEvent,
)
from tests.github.pages import START, user


def _repository(*, private: bool = False, **fields: Any) -> IssueRepository:
    """GitHub's response to a query of one issue of a repository."""
    fields = {
        "body": "",
        "last_edited_at": None,
        "author": None,
        "editor": None,
        "timeline_items": NodeList(nodes=()),
        **fields,
    }
    issue = IssueOrPull(
        typename="Issue",
        number=12,
        title="Retry",
        url="https://github.example/acme/widgets/issues/12",
        closed=False,
        labels=NodeList(nodes=()),
        **fields,
    )
    return IssueRepository(
        name_with_owner="acme/widgets", is_private=private, issue_or_pull_request=issue
    )


def test_edits_of_title_and_body_are_listed_oldest_first() -> None:
    renamed = (
        TimelineEvent(typename="RenamedTitleEvent", created_at=START, actor=user("zoe")),
        TimelineEvent(
            typename="RenamedTitleEvent", created_at=START + timedelta(minutes=2), actor=None
        ),
    )
    response = _repository(
        private=True,
        body="Please.",
        last_edited_at=START + timedelta(minutes=1),
        author=user("zoe"),
        editor=user("ann"),
        timeline_items=NodeList(nodes=renamed),
        user_content_edits=NodeList(
            nodes=(
                ContentEdit(edited_at=START + timedelta(minutes=1), editor=user("ann")),
                ContentEdit(edited_at=START + timedelta(seconds=30), editor=user("eve")),
            )
        ),
    )
    reading = issue_snapshot(response, "mergewright-bot")
    assert reading.issue.private
    assert [edit.actor for edit in reading.edits] == ["zoe", "eve", "ann", ""]


def test_a_bot_that_labels_has_the_login_it_comments_with() -> None:
    put = TimelineEvent(
        typename="LabeledEvent",
        created_at=START,
        actor=Actor(typename="Bot", login="ci-bot"),
        label=NamedNode(name="mergewright"),
    )
    response = _repository(timeline_items=NodeList(nodes=(put,)))
    reading = issue_snapshot(response, "mergewright-bot")
    assert [one.actor for one in reading.labelings] == ["ci-bot[bot]"]


def test_comments_and_references_of_an_issue_are_read() -> None:
    def comment(id: str, body: str) -> CommentNode:
        author = user("mergewright-bot")
        return CommentNode(
            full_database_id=id,
            body=body,
            created_at=START,
            last_edited_at=START if id == "8" else None,
            author=author,
            editor=user("mallory"),
        )

    def reference(place: str, number: int) -> Reference:
        repository = RepositoryName(name_with_owner=place)
        return Reference(source=ReferringSubject(number=number, repository=repository))

    hidden = Reference(source=ReferringSubject())
    places = (reference("acme/widgets", 5), hidden, reference("acme/gears", 6))
    mine = comment("7", "Done. <!-- mergewright:key=a -->")
    response = _repository(
        milestone=Milestone(title="2.0"),
        comments=NewestNodes(total_count=5, nodes=(mine, comment("8", "By its owner."))),
        references=NodeList(nodes=(*places, *places)),
    )
    reading = issue_snapshot(response, "mergewright-bot")
    assert reading.issue.linked == ("#5", "acme/gears#6")
    assert reading.issue.milestone == "2.0"
    assert [(one.id, one.own) for one in reading.comments] == [
        ("comment:7", True),
        ("comment:8", False),
    ]
    assert reading.edited_by == {"comment:8": "mallory"}
    assert reading.earlier_comments == 3
