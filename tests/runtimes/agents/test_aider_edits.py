"""Removal of file edits from the text of Aider's responses; the rest is shown as a summary."""

import pytest

from runtimes.agents.aider.reader import _without_edits


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("I add x.\na.py\n```python\nx = 1\n```\nDone.", "I add x.\nDone."),
        ("I add x:\n```\nx = 1\n```\n\nDone.", "I add x:\n\nDone."),
        ("a.py\n```\n1\n```\nb.py\n```\n2\n```\nDone.", "Done."),
        ("Two words\n```\nx\n```", "Two words"),
        ("a.py\n````\n```\nx\n```\n````\nDone.", "Done."),
        ("a.py\n````x\ny\n```\nDone.", "Done."),
        ("````\n```\n````\nDone.\n```", ""),
        ("```\nx\n````\nDone.", "```\nx\n````\nDone."),
        ("```\nx\n ```", "```\nx\n ```"),
        ("It is y.\n```", "It is y.\n```"),
        ("a.py", "a.py"),
        ("```\n```\n```\nDone.", "Done."),
        ("``\nx\n``", "``\nx\n``"),
        ("```\n```x\n1\n```\nDone.", "Done."),
    ],
)
def test_a_code_block_is_removed_with_the_name_above(words: str, kept: str) -> None:
    assert _without_edits(words) == kept


def test_many_fences_without_an_end_are_read_in_bounded_time() -> None:
    words = "```a\n" * 100_000
    assert _without_edits(words) == words
