"""Prepares a branch's patch for pages: by file and line, with highlighted code."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from bot.show.highlight import Token, comment_mark, tokens
from bot.text import page_text
from runtimes.workspaces.changes import Patch

_FILES = 300  #: The most files that are shown.
#: The most lines that are shown of one file, and of all files together.
_FILE_LINES, _ALL_LINES = 400, 2_000
#: A longer line is cut.
_LINE_CHARACTERS = 500
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)", re.DOTALL)
_KINDS: Final = {"+": "added", "-": "removed", " ": "same"}


class DiffLine(Struct, frozen=True, kw_only=True):
    """One line of a file's patch."""

    kind: str  #: `added`, `removed`, `same` or `hunk`.
    old: int | None = None  #: The line's number before the change; if None, it had none.
    new: int | None = None  #: The line's number after the change; if None, it has none.
    tokens: tuple[Token, ...] = ()


class FileDiff(Struct, frozen=True, kw_only=True):
    """The changes of one file."""

    path: str
    before: str = ""  #: Its old path; if empty, it was not renamed.
    state: str = "changed"  #: `added`, `deleted`, `renamed`, `changed` or `binary`.
    added: int = 0  #: The number of added lines, shown or not.
    removed: int = 0  #: The number of removed lines, shown or not.
    lines: tuple[DiffLine, ...] = ()
    more: int = 0  #: How many lines are not shown.


class BranchDiff(Struct, frozen=True, kw_only=True):
    """The changes of a session's branch."""

    base: str  #: The commit that the branch is compared with.
    head: str  #: The branch's last commit.
    files: tuple[FileDiff, ...]
    complete: bool  #: If False, the patch is too large, and its end is left out.

    @property
    def added(self) -> int:
        """The number of added lines."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return sum(file.removed for file in self.files)


class NoChanges(Exception):
    """No commits are known yet, or their changes cannot be shown; the message says why."""


def branch_diff(base: str, head: str, patch: Patch) -> BranchDiff:
    """Return the changes in `patch`, in which secrets have to be masked already.

    The patch has the changes of the commit `head` since its merge base with the commit `base`.
    """
    files, left, complete = list[FileDiff](), _ALL_LINES, patch.complete
    for lines in _by_file(patch.text):
        if len(files) == _FILES:
            complete = False
            break
        file = _file(lines, min(left, _FILE_LINES))
        left -= len(file.lines)
        files.append(file)
    return BranchDiff(base=base, head=head, files=tuple(files), complete=complete)


def _by_file(text: str) -> Iterator[list[str]]:
    """Split a patch by file: yield the lines of each file's part, from `diff --git ...` on.

    Lines of a file's contents begin with `+`, `-` or a space, so none can be mistaken for the
    beginning of a part.
    """
    lines: list[str] = []
    # Not `splitlines`, which ends lines at other characters too.
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            if lines:
                yield lines
            lines = [line]
        elif lines:
            lines.append(line)
    if lines:
        yield lines


def _file(lines: list[str], most: int) -> FileDiff:
    header, body = _parts(lines)
    named = dict(line.partition(" ")[::2] for line in header)
    path = _path(named.get("+++", "/dev/null"))
    before = _path(named.get("---", "/dev/null"))
    if path is None:
        path = before or _only_name(header)
    shown, counts = _lines(body, comment_mark(path), most)
    old_name, new_name = _after("rename from ", header), _after("rename to ", header)
    return FileDiff(
        path=page_text.line(new_name or path),
        before=page_text.line(old_name),
        state=_state(header, renamed=bool(old_name)),
        added=counts["+"],
        removed=counts["-"],
        lines=tuple(shown),
        more=max(0, sum(counts.values()) - len([one for one in shown if one.kind != "hunk"])),
    )


def _after(words: str, header: list[str]) -> str:
    """Return the rest of the first line that begins with `words`, or an empty string."""
    return next((line.removeprefix(words) for line in header if line.startswith(words)), "")


def _parts(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split a file's lines into the header and the hunks. A binary file has no hunks."""
    for place, line in enumerate(lines):
        if line.startswith("@@ "):
            return lines[:place], lines[place:]
    return lines, []


def _path(name: str) -> str | None:
    """Return the path in `a/PATH` or `b/PATH`, quoted or not; None for `/dev/null`."""
    path = name.strip('"\t')
    return None if path == "/dev/null" else path.partition("/")[2]


def _only_name(header: list[str]) -> str:
    """Return the path of a file without hunks, from `a/PATH b/PATH` in its header's first line."""
    names = header[0].removeprefix("diff --git ")
    return names[: len(names) // 2].strip('"').partition("/")[2]


def _state(header: list[str], *, renamed: bool) -> str:
    def has(start: str) -> bool:
        return any(line.startswith(start) for line in header)

    if has("Binary "):
        return "binary"
    if renamed:
        return "renamed"
    # `new mode` alone is a changed mode.
    return "added" if has("new file ") else "deleted" if has("deleted file ") else "changed"


def _lines(body: list[str], mark: str | None, most: int) -> tuple[list[DiffLine], dict[str, int]]:
    """Return the first `most` lines of a file's hunks, and the number of all lines by sign.

    The signs are `+`, `-` and, for an unchanged line, a space. `mark` is the result of
    `comment_mark` for the file.
    """
    shown: list[DiffLine] = []
    counts = {"+": 0, "-": 0, " ": 0}
    old = new = 0
    for text in body:
        sign, rest = text[:1], text[1:]
        if match := _HUNK.match(text):
            old, new = int(match[1][:9]), int(match[2][:9])
            line = DiffLine(kind="hunk", tokens=_tokens(match[3].strip(), None))
        elif sign in counts:
            counts[sign] += 1
            if len(shown) >= most:
                continue
            line = DiffLine(
                kind=_KINDS[sign],
                old=old if sign != "+" else None,
                new=new if sign != "-" else None,
                tokens=_tokens(rest, mark),
            )
            old += sign != "+"
            new += sign != "-"
        else:  # "\ No newline at end of file", or the end of a patch that was cut.
            continue
        if len(shown) < most:
            shown.append(line)
    return shown, counts


def _tokens(text: str, mark: str | None) -> tuple[Token, ...]:
    text = page_text.code(text[: _LINE_CHARACTERS + 1])
    cut = text if len(text) <= _LINE_CHARACTERS else f"{text[: _LINE_CHARACTERS - 1]}…"
    if mark is None:
        return (Token(cut),) if cut else ()
    return tuple(tokens(cut, mark))
