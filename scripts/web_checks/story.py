"""Runs stories: functions that use the pages and raise `AssertionError` if something is wrong."""

import re
import time
import traceback
from collections.abc import Callable, Sequence

from msgspec import Struct

from scripts.web_checks.browser import Browsers


class Result(Struct, frozen=True, kw_only=True):
    """How a story came out."""

    name: str
    problem: str  #: Empty: none.
    seconds: float


def told(name: str, story: Callable[[], None], browsers: Browsers) -> Result:
    """Play a story; what went wrong on a page meanwhile fails it too."""
    begun, found = time.monotonic(), ""
    browsers.take_problems()
    try:
        story()
    except AssertionError as problem:
        found = str(problem)
    except Exception:  # noqa: BLE001 - the other stories are played all the same
        found = traceback.format_exc()
    found = "\n".join([*([found] if found else ()), *dict.fromkeys(browsers.take_problems())])
    seconds = time.monotonic() - begun
    print(f"{seconds:6.1f} s  {'FAILED' if found else 'passed'}  {name}", flush=True)
    return Result(name=name, problem=found, seconds=seconds)


def table(results: Sequence[Result]) -> str:
    """Return a table of the results, with the problems below it."""
    width = max((len(one.name) for one in results), default=5)
    lines = [f"{'story':{width}}  result  seconds"]
    for one in results:
        lines.append(
            f"{one.name:{width}}  {'FAILED' if one.problem else 'passed'}  {one.seconds:7.1f}"
        )
    for one in results:
        if one.problem:
            lines.append(f"\n{one.name}:\n{_indented(one.problem)}")
    failed = sum(bool(one.problem) for one in results)
    lines.append(f"\n{len(results) - failed} passed, {failed} failed")
    return "\n".join(lines)


def _indented(text: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "\n".join(f"  {line}" for line in plain.splitlines()[:60])
