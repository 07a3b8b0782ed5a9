"""What followed from a delivery, in words."""

import pytest

from bot.store import Ignored
from bot.text.deliveries import refresh_words, subject_words, why_ignored


@pytest.mark.parametrize("reason", Ignored)
def test_every_reason_has_words(reason: Ignored) -> None:
    assert why_ignored(reason, "acme/widgets") != reason


def test_a_reason_names_the_repository() -> None:
    known = why_ignored("repository", "acme/{gears}")
    assert known.startswith("the repository acme/{gears} is not a project here")
    assert why_ignored("repository", "").startswith("its repository is not")


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("issue:12", "issue #12"),
        ("pull:34", "pull request #34"),
        ("other:34", "pull request #34"),
        ("branch:a/b", "branch a/b"),
        ("sha:0a1b2c3d4e", "commit 0a1b2c3"),
        ("access:", "people's permissions"),
        ("new-kind:5", "new-kind:5"),
    ],
)
def test_subjects_are_words(subject: str, words: str) -> None:
    assert subject_words(subject) == words
    assert refresh_words("acme/widgets", subject) == f"the bot reads {words} of acme/widgets again"
