"""Removes the facts that a restore or a `retry` command makes obsolete.

A restore begins a new run: messages to earlier runs and actions on their programs no longer count.
Actions on GitHub still count as done, and a request to turn a chat into a pull request stays in
force. A retry removes the records of failed actions.
`runtimes.workspaces.preparation` prepares the workspace of the new run.
"""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from lifecycle.model import keys
from lifecycle.model.facts import Command, Facts
from lifecycle.model.key import KeyKind
from lifecycle.model.names import MAKES_PULL
from lifecycle.model.status import HELD, Status

#: The outcomes after which a session can be restored.
RESTORABLE: Final = frozenset({Status.ERRORED, Status.KILLED, Status.TERMINATED, Status.DONE})

#: The command that restores a session. Adding the label and reopening the issue or pull request
#: count as this command.
RESTORES: Final = "start"


def allowed(facts: Facts, head: str) -> bool:
    """Whether a person allowed the push of the commit `head`, whatever it changes."""
    return any(
        command.kind == "allow" and names(facts, command, head) for command in facts.commands
    )


def names(facts: Facts, command: Command, head: str) -> bool:
    """Whether a command names the commit `head` by its full hash or by a valid abbreviation.

    An abbreviation is not valid if another known commit begins with it, because an agent could
    craft a commit whose hash begins like that of `head`. The known commits are those whose push was
    done, refused or ordered, and the session's newest commit when the command was granted.
    """
    others = {*_pushes(facts), command.head} - {head}
    return head.startswith(command.text) and not any(one.startswith(command.text) for one in others)


def _pushes(facts: Facts) -> set[str]:
    """Return the commits of all pushes that were done, refused or ordered."""
    known = (*facts.done, *facts.failures, *facts.pending)
    return {key.cause[0] for key in known if key.kind is KeyKind.PUSH}


def this_life(facts: Facts) -> Facts:
    """Return the facts without those that a restore, a retry or an `allow` makes obsolete.

    After a restore, `restored_at` and `run` are set for the run that is to begin.
    """
    if not facts.commands:
        return facts
    restored, retried = _asked(facts, RESTORES), _asked(facts, "retry")
    facts = _let_out(facts)
    if restored is None and retried is None:
        return facts
    forgiven = max(filter(None, (restored, retried)))
    failures = {key: failed for key, failed in facts.failures.items() if failed.at >= forgiven}
    facts = replace(facts, failures=failures, commands=_unambiguous(facts, forgiven))
    if restored is None:
        return facts
    ended = facts.ended
    if ended is not None and ended.at < restored and ended.status in RESTORABLE:
        ended = None
    return replace(
        facts,
        ended=ended,
        restored_at=restored,
        commands=tuple(
            command
            for command in facts.commands
            if command.at >= restored or command.kind == MAKES_PULL
        ),
        done={key: done for key, done in facts.done.items() if done.at >= restored or not key.run},
        run=max(facts.run, 1 + _last_run(facts, restored)),
    )


def _let_out(facts: Facts) -> Facts:
    """Return the facts without the refusal to push the head, if a person allowed that commit."""
    head = facts.work.head
    held = facts.failures.get(keys.push(head))
    if held is None or held.reason not in HELD:
        return facts
    if not allowed(facts, head):
        return facts
    others = {key: failed for key, failed in facts.failures.items() if failed is not held}
    return replace(facts, failures=others)


def _unambiguous(facts: Facts, before: datetime) -> tuple[Command, ...]:
    """Return the commands, except each `allow` older than `before` that fits several commits.

    An `allow` may give only the first digits of a commit's hash. After a retry, which removes the
    records of refused pushes, digits that several commits share could seem to fit a single commit.
    """
    commits = _pushes(facts) | {facts.work.head}

    def counts(command: Command) -> bool:
        named = [commit for commit in commits if commit.startswith(command.text)]
        return command.kind != "allow" or command.at >= before or len(named) < 2

    return tuple(filter(counts, facts.commands))


def _asked(facts: Facts, kind: str) -> datetime | None:
    return max((command.at for command in facts.commands if command.kind == kind), default=None)


def _last_run(facts: Facts, before: datetime) -> int:
    """Return the number of the last run that was started before this time; 0 if none was."""
    started = (
        key.run
        for key, done in facts.done.items()
        if key.kind is KeyKind.START and done.at < before
    )
    return max(started, default=0)
