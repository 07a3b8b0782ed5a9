"""Writes every message that notifiers send, with a function for each: its title and its text.

Like GitHub, chat services act on mentions and markup, so both are neutralized in text of agents and
other people.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from bot.text.messages import PRIORITIES
from bot.text.neutralize import cut, neutralize, one_line, without_markup
from bot.text.page_text import sentence
from lifecycle.judge.reasons import Priority
from lifecycle.model.status import Status, status_words
from lifecycle.model.text import full_stop, plain

#: The most characters of a message and of a part of it. Chat services accept at least 2,000.
_TEXT_LIMIT, _PART_LIMIT = 1_800, 1_000
_MOST_LISTED = 10
_ENDS: Final[Mapping[str, str]] = {Status.MERGED: "is merged", Status.ERRORED: "has failed"}
_CALLS: Final = (Priority.URGENT, Priority.ACTION)


class Words(NamedTuple):
    """The title and the text of a message."""

    title: str
    text: str


class DigestLine(NamedTuple):
    """A session in a digest."""

    session: str
    title: str
    says: str  #: The outcome of the session, or why it waits.


def needed(
    session: str,
    title: str,
    status: str,
    because: str,
    remedy: str,
    priority: str,
    choices: Sequence[str] | None,
    url: str,
) -> Words:
    """Say that a session waits for a person, or that it does not continue for now.

    `choices` are the answers that the agent's question offers; None if the agent asks no question.
    """
    calls = priority in _CALLS or status in (Status.NEEDS_INPUT, Status.STUCK)
    head = "needs you" if calls else f"is {status_words(status)}"
    offered = "\n".join(f"{number}. {_line(one)}" for number, one in enumerate(choices or (), 1))
    link = "See" if not calls else "Act on it" if choices is None else "Answer"
    return _words(
        f"{session} {head}: {_line(title)}",
        f"{PRIORITIES[priority]}: {_block(sentence(because))}",
        offered,
        remedy,
        f"{link}: {url}",
    )


def no_longer_needed(session: str, title: str, because: str, url: str) -> Words:
    """Say that a session no longer waits for the reason `because` of an earlier message."""
    return _words(
        f"{session}: an earlier message is settled: {_line(title)}",
        f"It said: {_block(full_stop(because))}",
        f"See: {url}",
    )


def ended(session: str, title: str, status: str, because: str, remedy: str, url: str) -> Words:
    """Say that a session has ended. `status` is its last status."""
    how = _ENDS.get(status, "has ended")
    return _words(
        f"{session} {how}: {_line(title)}", _block(sentence(because)), remedy, f"See: {url}"
    )


def incident(text: str, url: str) -> Words:
    """Report a problem that concerns more than one session."""
    return _words("Mergewright reports a problem", _block(sentence(text)), f"See: {url}")


def incident_over(text: str, url: str) -> Words:
    """Say that the problem of an incident is solved."""
    return _words(
        "A problem that Mergewright reported is solved",
        f"The earlier message said: {_block(full_stop(text))}",
        f"See: {url}",
    )


def digest(
    day: datetime,
    waiting: Sequence[DigestLine],
    ended: Sequence[DigestLine],
    incidents: Sequence[str],
    url: str,
) -> Words:
    """Return the summary of the day that ends at a notifier's digest time.

    `waiting` are the sessions that wait for a person, `ended` those that ended on that day.
    """
    return _words(
        f"Mergewright on {day:%-d %B %Y}",
        _list("Sessions that need you", waiting),
        _list("Ended since yesterday", ended),
        "\n".join((f"Problems: {len(incidents)}", *(f"- {_line(one)}" for one in incidents)))
        if incidents
        else "",
        f"See: {url}",
    )


def trial(notifier: str, url: str) -> Words:
    """Return the message of `mergewright notify --test`."""
    return _words(
        "Mergewright: a test message",
        f"The notifier `{notifier}` works. No action is needed.",
        f"See: {url}",
    )


def perhaps_repeated(text: str) -> str:
    """Add that the message may be a duplicate, for receivers that do not recognise duplicates."""
    return (
        f"(You may have this message already: the bot was interrupted while it sent it.)\n\n{text}"
    )


def undelivered(notifier: str, since: str, why: str) -> str:
    """Return the text of the incident that a notifier cannot deliver its messages."""
    return (
        f"The notifier {notifier} has delivered no message since {since}: {why}. Check its receiver"
        f" and [notify.{notifier}] with `mergewright notify --test {notifier}`; the bot keeps"
        " trying to send its messages"
    )


def _list(head: str, lines: Sequence[DigestLine]) -> str:
    return "\n".join((f"{head}: {len(lines) or 'none'}", *_listed(lines)))


def _listed(lines: Sequence[DigestLine]) -> Iterator[str]:
    for one in lines[:_MOST_LISTED]:
        yield f"- {one.session} {cut(_line(one.title), 60)}: {cut(_line(one.says), 120)}"
    if len(lines) > _MOST_LISTED:
        yield f"- and {len(lines) - _MOST_LISTED} more"


def _words(title: str, *parts: str) -> Words:
    # The last part is the link, which is never cut off.
    *others, link = filter(None, parts)
    text = cut("\n\n".join(others), _TEXT_LIMIT)
    return Words(cut(title, 120), f"{text}\n\n{link}")


def _line(text: str) -> str:
    return without_markup(one_line(text))


def _block(text: str) -> str:
    return cut(without_markup(neutralize(plain(text))), _PART_LIMIT)
