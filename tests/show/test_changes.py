"""A patch by file and line."""

import pytest

from bot.show import changes
from bot.show.changes import BranchDiff, FileDiff, branch_diff
from runtimes.workspaces.changes import Patch

PATCH = """diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,3 @@ def main():
 one
-two = 1
+two = 2  # better
 three
\\ No newline at end of file
diff --git a/new.txt b/new.txt
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+<script>\x1b[2Jalert(1)</script>
+--- a/not a header
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
"""


def read(text: str = PATCH, *, complete: bool = True) -> BranchDiff:
    return branch_diff("b" * 40, "a" * 40, Patch(text, complete))


def words(file: FileDiff) -> list[tuple[str, int | None, int | None, str]]:
    return [
        (one.kind, one.old, one.new, "".join(token.text for token in one.tokens))
        for one in file.lines
    ]


def test_files_have_their_state_and_numbers() -> None:
    assert [(one.path, one.before, one.state, one.added, one.removed) for one in read().files] == [
        ("src/a.py", "", "changed", 1, 1),
        ("new.txt", "", "added", 2, 0),
        ("gone", "", "deleted", 0, 1),
        ("new name.txt", "old name.txt", "renamed", 0, 0),
        ("run.sh", "", "changed", 0, 0),
        ("logo.png", "", "binary", 0, 0),
    ]
    assert (read().added, read().removed) == (3, 2)


def test_lines_have_their_numbers_before_and_after() -> None:
    assert words(read().files[0]) == [
        ("hunk", None, None, "def main():"),
        ("same", 1, 1, "one"),
        ("removed", 2, None, "two = 1"),
        ("added", None, 2, "two = 2  # better"),
        ("same", 3, 3, "three"),
    ]


def test_code_is_marked_and_text_is_not() -> None:
    kinds = {token.kind for line in read().files[0].lines for token in line.tokens}
    assert {"number", "comment"} <= kinds
    assert {token.kind for line in read().files[1].lines for token in line.tokens} == {""}


def test_hidden_characters_are_shown_and_contents_are_no_headers() -> None:
    assert [one[3] for one in words(read().files[1])][1:] == [
        "<script>\ufffd[2Jalert(1)</script>",
        "--- a/not a header",
    ]


def test_long_patches_files_and_lines_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_FILE_LINES", 2)
    monkeypatch.setattr(changes, "_ALL_LINES", 3)
    monkeypatch.setattr(changes, "_LINE_CHARACTERS", 4)
    first, second, third, *_ = read(complete=False).files
    assert [one[3] for one in words(first)] == ["def…", "one"]
    assert (first.more, first.added, first.removed) == (3, 1, 1)
    assert (len(second.lines), second.more) == (1, 2)
    assert (len(third.lines), third.removed) == (0, 1)
    assert not read(complete=False).complete


def test_many_files_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_FILES", 2)
    assert [one.path for one in read().files] == ["src/a.py", "new.txt"]
    assert not read().complete


def test_what_is_no_patch_has_no_files() -> None:
    for text in ("", "\n", "warning: nonsense\n", "@@ -1 +1 @@\n+x\n"):
        assert read(text).files == ()


def test_a_patch_that_was_cut_anywhere_can_be_read() -> None:
    for end in range(len(PATCH)):
        read(PATCH[:end], complete=False)
