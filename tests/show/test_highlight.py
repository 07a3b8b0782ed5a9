"""Syntax highlighting of lines of code."""

import time

import pytest

from bot.show.highlight import comment_mark, tokens


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        ("a/b.py", "#"),
        ("Makefile", "#"),
        ("x.ts", "//"),
        ("x.SQL", "--"),
        ("README.md", None),
        ("strange", None),
        ("", None),
    ],
)
def test_comments_depend_on_the_extension(path: str, mark: str | None) -> None:
    assert comment_mark(path) == mark


@pytest.mark.parametrize(
    ("line", "mark", "expected"),
    [
        ("return 1", "#", [("return", "keyword"), (" ", ""), ("1", "number")]),
        (
            "x = 'a\\'#b' # c 'd'",
            "#",
            [("x = ", ""), ("'a\\'#b'", "string"), (" ", ""), ("# c 'd'", "comment")],
        ),
        ('f("//") // it', "//", [("f(", ""), ('"//"', "string"), (") ", ""), ("// it", "comment")]),
        ("'never ends\\", "#", [("'never ends\\", "string")]),
        ("returned x1", "#", [("returned x1", "")]),
        ("", "#", []),
    ],
)
def test_the_parts_of_a_line(line: str, mark: str, expected: list[tuple[str, str]]) -> None:
    found = tokens(line, mark)
    assert [(one.text, one.kind) for one in found] == expected
    assert "".join(one.text for one in found) == line


@pytest.mark.parametrize("piece", ['\\"', "'", "`", '"\\', "a", "1", "//", " "])
def test_a_hostile_line_takes_linear_time(piece: str) -> None:
    """Ten times the text takes less than 60 times the time; quadratic time would be 100 times."""

    def seconds(count: int) -> float:
        line, best = piece * count, float("inf")
        for _ in range(5):
            begun = time.process_time()
            tokens(line, "#")
            best = min(best, time.process_time() - begun)
        return best

    assert seconds(20_000) < 60 * max(seconds(2_000), 0.0005)
