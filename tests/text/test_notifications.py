"""The words of notifications."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bot.text import notifications as say
from bot.text.notifications import DigestLine, Words
from lifecycle.model.status import Status

PAGE = "https://bot.example/sessions/widgets-12"


def needed(**changes: Any) -> Words:
    usual = {
        "session": "widgets-12",
        "title": "It breaks",
        "status": Status.NEEDS_INPUT,
        "because": "all failed checks also fail on main: unit",
        "remedy": "Fix the base branch.",
        "priority": "action",
        "choices": None,
        "url": PAGE,
    }
    return say.needed(**{**usual, **changes})


@pytest.mark.parametrize(
    ("changes", "title", "link"),
    [
        ({}, "widgets-12 needs you: It breaks", f"Act on it: {PAGE}"),
        ({"choices": ()}, "widgets-12 needs you: It breaks", f"Answer: {PAGE}"),
        ({"priority": "warning"}, "widgets-12 needs you: It breaks", f"Act on it: {PAGE}"),
        (
            {"status": Status.MERGEABLE},
            "widgets-12 needs you: It breaks",
            f"Act on it: {PAGE}",
        ),
        (
            {"status": Status.PAUSED, "priority": "info"},
            "widgets-12 is paused: It breaks",
            f"See: {PAGE}",
        ),
    ],
)
def test_the_title_says_whether_a_person_is_needed(
    changes: dict[str, Any], title: str, link: str
) -> None:
    words = needed(**changes)
    assert words.title == title
    assert words.text.endswith(f"\n\n{link}")


def test_choices_have_the_numbers_that_answer_them() -> None:
    words = needed(choices=("Blue", "Green"), because="the agent asks: Which? (Blue / Green)")
    assert words.text.splitlines()[:5] == [
        "Action needed: The agent asks: Which? (Blue / Green)",
        "",
        "1. Blue",
        "2. Green",
        "",
    ]


@pytest.mark.parametrize(
    ("status", "title"),
    [
        (Status.MERGED, "widgets-12 is merged: It breaks"),
        (Status.ERRORED, "widgets-12 has failed: It breaks"),
        (Status.KILLED, "widgets-12 has ended: It breaks"),
    ],
)
def test_the_title_says_how_a_session_has_ended(status: Status, title: str) -> None:
    words = say.ended("widgets-12", "It breaks", status, "it is over", "", PAGE)
    assert words == Words(title, f"It is over.\n\nSee: {PAGE}")


def test_titles_of_people_are_one_short_line() -> None:
    words = needed(title=f"@everyone\n{'x' * 500}")
    assert "\n" not in words.title
    assert "@everyone" not in words.title
    assert len(words.title) == 120


def test_a_digest_without_news_says_so() -> None:
    words = say.digest(datetime(2030, 7, 2, tzinfo=UTC), [], [], [], PAGE)
    assert words.text == (
        f"Sessions that need you: none\n\nEnded since yesterday: none\n\nSee: {PAGE}"
    )


def test_a_digest_names_open_problems() -> None:
    line = DigestLine("widgets-12", "It breaks", "it asks")
    words = say.digest(datetime(2030, 7, 2, tzinfo=UTC), [line], [], ["the disk is full"], PAGE)
    assert "Sessions that need you: 1\n- widgets-12 It breaks: it asks\n" in words.text
    assert "Problems: 1\n- the disk is full\n" in words.text
