"""Prepares text from other people and programs for display. Templates escape it for HTML."""

import re
from collections.abc import Mapping
from typing import Final

from lifecycle.model.status import Activity, Merge, Review, Status, status_words
from lifecycle.model.text import full_stop, plain, settled

# Control characters that separate words. `plain` removes terminal sequences later; a tab replaces
# the characters because, unlike a space, it is part of no sequence.
_GAP = re.compile("[\x00-\x06\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
#: Control characters except the tab, characters without a width or a shape, and characters that
#: change the reading direction. A variation selector after an emoji is common and harmless.
_HIDDEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![#*0-9\xa9\xae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def block(text: str) -> str:
    """Return text of several lines, such as a log, without control characters.

    Newlines and tabs are kept. If a line was overwritten in place, only its last state is kept.
    """
    return settled(text)


def line(text: str) -> str:
    """Return text as one line, such as a title, without control characters."""
    return " ".join(plain(_GAP.sub("\t", text)).split())


def code(text: str) -> str:
    """Return a line of code for reviewers, with each invisible character replaced by U+FFFD.

    Spaces and tabs are kept, and a carriage return at the end is removed.
    Removing characters that move the cursor or change the reading direction would hide an attack.
    """
    return _HIDDEN.sub("\ufffd", text.removesuffix("\r"))


def link(url: str) -> str:
    """Return an http or https URL, or an empty string for anything else."""
    return url if url.startswith(("https://", "http://")) else ""


def outcome_words(status: str) -> str:
    """Return how a session ended, such as "stopped", to be put after a number of sessions."""
    return "done without a merge" if status == Status.DONE else status_words(status)


def activity_words(activity: str) -> str:
    """Return what an agent does in words, such as "turn ended"; `activity` is an `Activity`."""
    return _ACTIVITIES.get(activity, activity.replace("_", " "))


_ACTIVITIES: Final[Mapping[str, str]] = {
    Activity.ACTIVE: "at work",
    Activity.READY: "turn ended",
    Activity.WAITING_INPUT: "waits for an answer",
}


def merge_words(merge: str) -> str:
    """Return in words whether GitHub can merge a pull request; `merge` is a `Merge`."""
    return _MERGES.get(merge, merge)


_MERGES: Final[Mapping[str, str]] = {
    Merge.CLEAN: "possible",
    Merge.BEHIND: "behind its base branch",
    Merge.PROTECTED: "blocked by a rule",
    Merge.QUEUED: "in the merge queue",
    Merge.UNKNOWN: "not yet known",
}


def review_words(review: str) -> str:
    """Return the result of all reviews in words; `review` is a `Review`."""
    return "not required" if review == Review.NONE else review.replace("_", " ")


def sentence(text: str) -> str:
    """Return a phrase with a capital letter, and with a full stop as `full_stop` adds it.

    A first word that is an identifier, such as a commit or `widgets-12`, is not capitalized.
    """
    word = text.partition(" ")[0]
    named = ":" in word[:-1] or any(map(str.isdigit, word)) or _COMMIT.fullmatch(word)
    return full_stop(text if named else text[:1].upper() + text[1:])
