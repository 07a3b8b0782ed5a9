"""Preparing foreign text for pages."""

import pytest

from bot.text import page_text
from lifecycle.model.status import Status, status_words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ümlaut 🏳️‍🌈 👩‍🚀", "plain ümlaut 🏳️‍🌈 👩‍🚀"),
        ("two\nlines\tand\r\nmore", "two lines and more"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a window's title\x07rest", "rest"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\rest", "rest"),
        ("a\x00b\x7fc\x9bd\u202ee", "a b c d e"),
        ("\x1b", ""),
        ("\x1b(Btext", "text"),
        ("\x1b\rtext", "text"),
        ("\x1b]0;never ends\nrest", "rest"),
    ],
)
def test_a_line_holds_words_only(text: str, shown: str) -> None:
    assert page_text.line(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\n\ttwo\n", "one\n\ttwo\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("10%\r50%\r100%\nnext", "100%\nnext"),
        ("10%\r100%\r\x1b[0m\nnext", "100%\nnext"),
        ("\x1b[2K\x1b[1Gdone\x07", "done"),
        ("\x1b]0;never ends\nnext", "\nnext"),
    ],
)
def test_a_block_keeps_its_lines(text: str, shown: str) -> None:
    assert page_text.block(text) == shown


@pytest.mark.parametrize(
    "sign", ["\u202e", "\u200b", "\u3164", "\ufe00", "\U000e0041", "\u2065", "\ufe0f", "\u2800"]
)
def test_invisible_characters_in_code_are_shown(sign: str) -> None:
    assert page_text.code(f"a{sign}b\t c\r") == "a\ufffdb\t c"


def test_an_emoji_in_code_keeps_its_variation_selector_and_hides_no_others() -> None:
    assert page_text.code("x = '\u2764\ufe0f'") == "x = '\u2764\ufe0f'"
    assert page_text.code("\u2764\ufe0f\ufe0e\ufe0f") == "\u2764\ufe0f\ufffd\ufffd"


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("https://github.com/a/b", "https://github.com/a/b"),
        ("http://ghes.local/a", "http://ghes.local/a"),
        ("javascript:alert(1)", ""),
        (" https://x", ""),
        ("data:text/html,x", ""),
        ("//evil.example", ""),
        ("", ""),
    ],
)
def test_only_http_urls_are_links(address: str, safe: str) -> None:
    assert page_text.link(address) == safe


def test_statuses_are_shown_in_words_of_english() -> None:
    """The names are for programs; a person reads that a session was stopped, not killed."""
    shown = {status: status_words(status) for status in Status}
    assert shown[Status.KILLED] == "stopped"
    assert shown[Status.ERRORED] == "failed"
    assert shown[Status.TERMINATED] == "closed or unlabelled"
    assert shown[Status.SPAWNING] == "starting"
    assert shown[Status.NEEDS_INPUT] == "needs input"
    assert not [words for words in shown.values() if "_" in words]
