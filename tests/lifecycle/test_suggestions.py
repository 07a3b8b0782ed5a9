"""A suggestion in a review is sent as a patch that git accepts."""

import re
import subprocess
from pathlib import Path

import pytest

from lifecycle.model.facts import Thread
from lifecycle.react.messages import as_patches

FILE = "one\ntwo\nthree\nfour\n"
HUNK = "@@ -1,3 +1,4 @@\n one\n+two\n-gone\n three\n+four"
THREAD = Thread(id="t", path="a/b.txt", line=4, diff=HUNK)


def patch_of(text: str) -> str:
    return text.partition("diff\n")[2].rpartition("```")[0]


@pytest.mark.parametrize(
    ("start", "body", "comes_to"),
    [
        pytest.param(None, "```suggestion\n4\n```", "one\ntwo\nthree\n4\n", id="one line"),
        pytest.param(3, "```suggestion\n3\n4\n5\n```", "one\ntwo\n3\n4\n5\n", id="several"),
        pytest.param(2, "```suggestion\n```", "one\n", id="taken away"),
        pytest.param(1, "Say:\r\n```suggestion\r\n1\r\n```\r\n", "1\n", id="as browsers send it"),
        pytest.param(
            None, "````suggestion\n```\n````", "one\ntwo\nthree\n```\n", id="with a fence in it"
        ),
    ],
)
def test_git_applies_a_suggestion(
    tmp_path: Path, start: int | None, body: str, comes_to: str
) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a/b.txt"
    file.write_text(FILE)
    thread = Thread(id="t", path="a/b.txt", line=4, start=start, diff=HUNK)
    subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
        input=patch_of(as_patches(body, thread)).encode(),
        check=True,
    )
    assert file.read_text() == comes_to


def test_text_around_a_suggestion_is_kept() -> None:
    body = "Like so:\n```suggestion\n4\n```\nor not?\n```suggestion\nfour!\n```"
    text = as_patches(body, THREAD)
    assert text.startswith(
        "Like so:\n```diff\n--- a/a/b.txt\n+++ b/a/b.txt\n@@ -4,1 +4,1 @@\n-four\n+4"
    )
    assert "\n```\nor not?\n```diff\n" in text
    assert text.endswith("-four\n+four!\n```")


@pytest.mark.parametrize(
    "thread",
    [
        pytest.param(Thread(id="t", path="a"), id="about a whole file"),
        pytest.param(Thread(id="t", path="a", line=9, start=1, diff=HUNK), id="a hunk too short"),
        pytest.param(Thread(id="t", path="a", line=1, start=4, diff=HUNK), id="lines reversed"),
    ],
)
def test_a_suggestion_without_a_location_is_kept_as_text(thread: Thread) -> None:
    body = "```suggestion\n4\n```"
    assert as_patches(body, thread) == body


def test_many_unclosed_suggestions_become_one_patch() -> None:
    body = "```suggestion\n" * 4000
    patch = re.compile("```diff\n")
    assert len(patch.findall(as_patches(body, THREAD))) == 1
