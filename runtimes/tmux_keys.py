"""Commands of tmux that press keys."""

from collections.abc import Iterator, Sequence
from itertools import groupby


def presses(target: str, keys: Sequence[str]) -> Iterator[str]:
    """Yield tmux commands that press keys in their order; characters are sent as they are."""
    for named, group in groupby(keys, lambda key: len(key) > 1):
        if named:
            yield f"send-keys -t {target} {' '.join(map(_quoted, group))}"
        else:
            yield f"send-keys -l -t {target} -- {_quoted(''.join(group))}"


def _quoted(text: str) -> str:
    """Return a text as one word of a tmux command: within single quotes nothing is special."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
