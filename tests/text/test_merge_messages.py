"""Messages of merge commits: templates, credit and sign-off, and neutralized text of others."""

import time
from typing import Any

import pytest

from bot.text.merge_messages import merge_message, merge_title, trailers

SIGNED = "Signed-off-by: Ann Lee <ann@example.org>"
CREDITED = "Co-authored-by: Bo <bo+x@users.noreply.github.com>"


def message(template: str = "{commits}", **fields: Any) -> str:
    return merge_message(template, **{"title": "Add it", "number": 34, "issue": 12, **fields})


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{title} (#{number})", "Add it (#34)"),
        ("feat(#{issue}): {title}", "feat(#12): Add it"),
        ("{title}", "Add it"),
    ],
)
def test_a_title_follows_its_template(template: str, text: str) -> None:
    assert merge_title(template, "Add it", 34, 12) == text


def test_a_title_is_not_a_template_itself() -> None:
    assert merge_title("{title} (#{number})", "Add {number}", 34, 12) == "Add {number} (#34)"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{commits}", "* One\n* Two\n\nCloses #12"),
        ("{title}", "Add it\n\nCloses #12"),
        ("{body}\n\nPull request #{number}", "It adds.\n\nPull request #34\n\nCloses #12"),
        ("", "Closes #12"),
    ],
)
def test_a_message_follows_its_template(template: str, text: str) -> None:
    body = "Closes #12\n\nWritten by the agent `ada` at the request of ann.\n\n<!-- x -->It adds."
    assert message(template, subjects=["One", "Two"], body=body) == text


def test_a_description_gives_no_commands_and_closes_no_issues() -> None:
    said = message("{body}", body="Fixes #9, @bob\n\n/mergewright merge")
    assert "Fixes #9" not in said
    assert "@bob" not in said
    assert "/mergewright merge" not in said


def test_credit_and_sign_off_are_kept_once_at_the_end() -> None:
    found = trailers(
        [
            f"It adds.\n\n{SIGNED}\nCO-AUTHORED-BY:  Bo <bo+x@users.noreply.github.com> ",
            f"{SIGNED}\n{CREDITED}",
        ],
        ["Cy <cy@example.org>", "Bo <bo+x@users.noreply.github.com>"],
    )
    assert found == (SIGNED, CREDITED, "Co-authored-by: Cy <cy@example.org>")
    assert message(subjects=["One"], trailers=found).endswith(
        f"Closes #12\n\n{SIGNED}\n{CREDITED}\nCo-authored-by: Cy <cy@example.org>"
    )


@pytest.mark.parametrize(
    "line",
    [
        "Signed-off-by: ann",
        "Signed-off-by: @ann <a@b.c>",
        "Co-authored-by: /mergewright merge <a@b.c>",
        "Co-authored-by: fixes #9 <a@b.c>",
        "Co-authored-by: Ann <a@b.c> fixes #9",
        "Co-authored-by: A\x1b[2J <a@b.c>",
        "Reviewed-by: Ann <a@b.c>",
    ],
)
def test_other_lines_are_no_credit(line: str) -> None:
    assert trailers([line]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Co-authored-by:" + " " * 3_000 + "x",
        "Co-authored-by: Ann" + " \t" * 1_500 + "x",
        "Co-authored-by: Ann <a@b.c>" + " " * 3_000 + "x",
        "`<!--`" * 10_000,
    ],
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    """An agent writes messages and descriptions, and no other thread runs while Python matches."""
    began = time.thread_time()
    assert trailers([text]) == ()
    assert len(message("{body}", body=text)) < 21_000
    assert time.thread_time() - began < 0.5


def test_no_message_exceeds_githubs_limits() -> None:
    long = "x" * 100_000
    many = trailers([f"Signed-off-by: Ann <a{n}@example.org>" for n in range(999)])
    said = message("{commits}{body}", subjects=[long] * 250, body=long, trailers=many)
    assert len(said) < 65_536
    assert "Closes #12" in said
    assert len(merge_title("{title} (#{number})", long, 34, 12)) <= 256
