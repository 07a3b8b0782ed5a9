"""An issue as GitHub tells it -> an `IssueReading`."""

from bot.github.pulls import login_of
from bot.github.shapes import IssueRepository, TimelineEvent
from bot.github.snapshots import Edit, IssueReading, Labeling, Reopening
from lifecycle.model.facts import Issue

LABELINGS = {
    "LabeledEvent": True,
    "UnlabeledEvent": False,
    "AssignedEvent": True,
    "UnassignedEvent": False,
}


def issue_snapshot(repository: IssueRepository) -> IssueReading:
    """One reading of an issue, with who labelled and who changed it."""
    said = repository.issue_or_pull_request
    events = said.timeline_items.nodes
    renamed = [
        Edit(actor=login_of(event.actor), at=event.created_at)
        for event in events
        if event.typename == "RenamedTitleEvent"
    ]
    reopened = [
        Reopening(actor=login_of(event.actor), at=event.created_at)
        for event in events
        if event.typename == "ReopenedEvent"
    ]
    rewritten = (
        [Edit(actor=login_of(said.editor), at=said.last_edited_at)] if said.last_edited_at else []
    )
    return IssueReading(
        issue=Issue(
            number=said.number,
            title=said.title,
            body=said.body,
            url=said.url,
            author=login_of(said.author),
            private=repository.is_private,
            open=not said.closed,
            state_reason=(said.state_reason or "").lower() if said.closed else "",
        ),
        is_pull=said.typename == "PullRequest",
        labels=(
            *(label.name for label in said.labels.nodes),
            *(f"@{one.login}" for one in (said.assignees.nodes if said.assignees else ())),
        ),
        labelings=tuple(
            Labeling(
                label=_worn(event),
                actor=login_of(event.actor),
                at=event.created_at,
                added=LABELINGS[event.typename],
            )
            for event in events
            if event.typename in LABELINGS and _worn(event)
        ),
        edits=tuple(sorted([*renamed, *rewritten], key=lambda edit: edit.at)),
        # Of two in one second, which is all that GitHub tells, the later in the timeline counts.
        reopened=max(reversed(reopened), key=lambda event: event.at, default=None),
    )


def _worn(event: TimelineEvent) -> str:
    """The label, or whom it was assigned to as `@login`; empty where that is gone."""
    if event.label:
        return event.label.name
    return f"@{login_of(event.assignee)}" if event.assignee else ""
