"""What an observation changed, in lines that people read in the history."""

from collections.abc import Iterator

from lifecycle.model.facts import Agent, Check, Exit, Issue, Pull, Remark, Verdict, Work
from lifecycle.model.status import Activity, PullState

_MOST = 200  #: Characters of a line: foreign text is evidence here, not a copy.


def agent_changes(old: Agent, new: Agent) -> Iterator[str]:
    """What became of a run's program; that it was seen once more is no change."""
    if (old.run, old.activity) != (new.run, new.activity) and new.activity is not Activity.NONE:
        yield _line(
            f"agent {new.activity.replace('_', ' ')}", new.question or new.error or new.evidence
        )
    before, after = f"{old.runtime}/{old.program}", f"{new.runtime}/{new.program}"
    if before != after:
        yield f"runtime/program {before} -> {after}"
    if new.exit is not None and old.exit != new.exit:
        yield f"program {_ending(new.exit)}"


def work_changes(old: Work, new: Work) -> Iterator[str]:
    """What became of the workspace."""
    if old.head != new.head:
        yield f"workspace at {new.head[:7] or 'no commit'}"
    if new.dirty and not old.dirty:
        yield "workspace holds uncommitted work"


def issue_changes(old: Issue, new: Issue) -> Iterator[str]:
    """What became of the issue."""
    if old.open != new.open:
        yield "issue reopened" if new.open else _line("issue closed", new.state_reason)
    if (old.labelled, old.labelled_at) != (new.labelled, new.labelled_at):
        yield "label is on the issue" if new.labelled else "label taken off the issue"
    if old.blocked_by != new.blocked_by:
        yield _line("waits for", ", ".join(new.blocked_by)) if new.blocked_by else "waits no more"


def pull_changes(old: tuple[Pull, ...], new: tuple[Pull, ...]) -> Iterator[str]:
    """What became of the pull requests."""
    known = {pull.number: pull for pull in old}
    for pull in new:
        before = known.get(pull.number, Pull(number=pull.number))
        for line in _changed(before, pull, is_new=pull.number not in known):
            yield _line(f"#{pull.number} {line}")


def _changed(old: Pull, new: Pull, *, is_new: bool) -> Iterator[str]:
    if is_new or old.state is not new.state:
        yield "reopened" if not is_new and new.state is PullState.OPEN else f"is {new.state}"
    if old.draft != new.draft:
        yield "is a draft" if new.draft else "is ready for review"
    if old.head != new.head:
        yield f"at {new.head[:7]}, moved by {new.head_by}"
    if old.merge is not new.merge:
        yield f"merge is {new.merge}"
    if old.review is not new.review:
        yield f"review is {new.review}"
    states = {check.id: check.state for check in old.checks} if old.head == new.head else {}
    checks = [check for check in new.checks if states.get(check.id) is not check.state]
    if checks:
        yield f"checks: {_checks(checks)}"
    for verdict in new.verdicts:
        if verdict not in old.verdicts:
            yield _verdict(verdict)
    said = {remark.id for remark in _remarks(old)}
    for remark in _remarks(new):
        if remark.id not in said:
            yield f"@{remark.author} wrote {remark.id}"
    resolved = {thread.id for thread in old.threads if thread.resolved}
    for thread in new.threads:
        if thread.resolved and thread.id not in resolved:
            yield f"thread {thread.id} was resolved"


def _checks(checks: list[Check]) -> str:
    return ", ".join(f"{check.name} {check.state}" for check in checks)


def _verdict(verdict: Verdict) -> str:
    says = "approved" if verdict.approved else "asked for changes on"
    return f"@{verdict.author} {says} {verdict.sha[:7]}"


def _remarks(pull: Pull) -> Iterator[Remark]:
    for thread in pull.threads:
        yield from thread.remarks
    yield from pull.comments


def _ending(ending: Exit) -> str:
    if ending.lost:
        return f"was lost: {ending.lost}"
    if ending.signal is not None:
        return f"was ended by signal {ending.signal}"
    return f"exited with {ending.code}" if ending.code is not None else "is gone"


def _line(what: str, detail: str = "") -> str:
    text = " ".join(f"{what}: {detail}".split()) if detail else what
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"
