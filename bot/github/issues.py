"""Converts the response of issue.graphql to an `IssueSnapshot`."""

from collections.abc import Iterable, Iterator

from bot.github.pulls import edits_of, login_of, remark_of
from bot.github.shapes import IssueRepository, TimelineEvent
from bot.github.snapshots import IssueEvent, IssueSnapshot, Labeling
from lifecycle.model.facts import Issue

_LABELINGS = {
    "LabeledEvent": True,
    "UnlabeledEvent": False,
    "AssignedEvent": True,
    "UnassignedEvent": False,
}


def issue_snapshot(repository: IssueRepository, me: str) -> IssueSnapshot:
    """Return a snapshot of an issue or pull request, with who labelled and who edited it."""
    found = repository.issue_or_pull_request
    comments = found.comments.nodes
    events = found.timeline_items.nodes
    edits = _of_type("RenamedTitleEvent", events)
    texts = found.user_content_edits.nodes if found.user_content_edits else ()
    edits += [IssueEvent(actor=login_of(one.editor), at=one.edited_at) for one in texts]
    if found.last_edited_at and all(one.edited_at != found.last_edited_at for one in texts):
        edits.append(IssueEvent(actor=login_of(found.editor), at=found.last_edited_at))
    return IssueSnapshot(
        issue=Issue(
            number=found.number,
            title=found.title,
            body=found.body,
            url=found.url,
            author=login_of(found.author),
            private=repository.is_private,
            open=not found.closed,
            state_reason=(found.state_reason or "").lower() if found.closed else "",
            milestone=found.milestone.title if found.milestone else "",
            linked=tuple(dict.fromkeys(_references(repository))),
        ),
        is_pull=found.typename == "PullRequest",
        labels=(
            *(label.name for label in found.labels.nodes),
            *(f"@{one.login}" for one in (found.assignees.nodes if found.assignees else ())),
        ),
        labelings=tuple(
            Labeling(
                label=_label(event),
                actor=login_of(event.actor),
                at=event.created_at,
                added=_LABELINGS[event.typename],
            )
            for event in events
            if event.typename in _LABELINGS and _label(event)
        ),
        edits=tuple(sorted(edits, key=lambda edit: edit.at)),
        # GitHub's times are whole seconds: of two events in the same second, the last one counts.
        reopened=max(
            reversed(_of_type("ReopenedEvent", events)), key=lambda event: event.at, default=None
        ),
        comments=tuple(remark_of("comment", comment, me) for comment in comments),
        earlier_comments=found.comments.total_count - len(comments),
        edited_by=dict(edits_of("comment", comments)),
    )


def _references(repository: IssueRepository) -> Iterator[str]:
    """Yield the issues and pull requests that refer to an issue, as `#5` or `owner/name#5`."""
    for reference in repository.issue_or_pull_request.references.nodes:
        place, number = reference.source.repository, reference.source.number
        if place is not None and number:
            here = place.name_with_owner == repository.name_with_owner
            yield f"{'' if here else place.name_with_owner}#{number}"


def _of_type(typename: str, events: Iterable[TimelineEvent]) -> list[IssueEvent]:
    return [
        IssueEvent(actor=login_of(event.actor), at=event.created_at)
        for event in events
        if event.typename == typename
    ]


def _label(event: TimelineEvent) -> str:
    """Return an event's label, or its assignee as `@login`; empty if either was deleted."""
    if event.label:
        return event.label.name
    return f"@{login_of(event.assignee)}" if event.assignee else ""
