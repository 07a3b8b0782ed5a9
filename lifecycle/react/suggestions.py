"""Renders reviewers' suggestions, which contain the new lines only, as patches."""

import re

from lifecycle.model.facts import Thread

# One that is never closed extends to the end of the text, as on the page.
_SUGGESTION = re.compile(
    r"^(?P<fence>`{3,}|~{3,})suggestion[^\n]*\n(?P<lines>.*?)(?:^(?P=fence)[`~ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)


def as_patches(body: str, thread: Thread) -> str:
    """A remark's text with each suggestion as a patch without context.

    A suggestion whose lines are outside the hunk stays as it is.
    """
    old = _replaced(thread)
    if not old:
        return body
    first = (thread.line or 0) - len(old) + 1

    def patch(found: re.Match[str]) -> str:
        new = found["lines"].splitlines()
        start = first if new else first - 1  # As patches count what is taken away.
        head = f"@@ -{first},{len(old)} +{start},{len(new)} @@"
        lines = [f"--- a/{thread.path}", f"+++ b/{thread.path}", head]
        lines += [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
        return "\n".join((f"{found['fence']}diff", *lines, found["fence"]))

    return _SUGGESTION.sub(patch, body.replace("\r\n", "\n"))


def _replaced(thread: Thread) -> list[str]:
    """The lines a thread is about; its hunk ends with the last of them."""
    if thread.line is None:
        return []
    shown = [line[1:] for line in thread.diff.splitlines() if line[:1] in ("+", " ")]
    count = thread.line - (thread.start or thread.line) + 1
    return shown[-count:] if 0 < count <= len(shown) else []
