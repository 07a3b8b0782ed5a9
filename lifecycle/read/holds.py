"""Recognises titles and labels of pull requests that block the merge, such as `WIP`."""

import re
from collections.abc import Callable
from functools import lru_cache

from lifecycle.model.policy import Policy


@lru_cache(maxsize=1024)
def held_by(title: str, labels: tuple[str, ...], policy: Policy) -> str:
    """Return which label or title blocks the merge, as a phrase; empty if none does."""
    blocking = {label.casefold() for label in policy.blocking_labels}
    for label in labels:
        if label.casefold() in blocking:
            return f"the pull request's label `{label}`"
    held = any(_search(expression)(title) for expression in policy.blocking_titles)
    return f'the pull request\'s title "{title}"' if held else ""


@lru_cache(maxsize=256)
def _search(expression: str) -> Callable[[str], object]:
    """Compile a regular expression. An invalid one never matches; `config check` reports it."""
    try:
        return re.compile(expression, re.IGNORECASE).search
    except re.error:
        return lambda _title: None
