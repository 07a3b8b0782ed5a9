"""What a repository says of itself in `.github/mergewright.toml`: the server's policy, or less."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from config.contradictions import unfit_paths
from config.load import misfits
from config.settings import SettingsTable
from lifecycle.model.policy import AutoMerge, Mode, Policy

#: Where the file is, on the default branch.
PATH: Final = ".github/mergewright.toml"
_ORDERS: Final = ([*Mode], [*AutoMerge])  #: Each from the narrowest to the widest.
#: A file is read up to so many characters, and so much that is wrong with it is told.
_MOST, _MOST_PROBLEMS = 50_000, 50
_DAY: Final = 86_400  #: The longest wait, in seconds; far longer ones have no date.


class RepositoryFile(SettingsTable, frozen=True, kw_only=True):
    """The whole file."""

    policy: Policy = Policy()


class FileProblem(NamedTuple):
    """What is wrong with the file, and where; line 1 where that cannot be told."""

    line: int
    says: str


class RepositoryError(Exception):
    """The file cannot be used; `problems` has all that is wrong with it."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__("\n".join(f"{PATH}, line {one.line}: {one.says}" for one in problems))
        self.problems = problems


def _any(_said: Any, _server: Any) -> bool:
    return True


def _less(said: Any, server: Any) -> bool:
    return bool(said <= server)


def _more(said: Any, server: Any) -> bool:
    return bool(said >= server)


def _budget(said: Any, server: Any) -> bool:
    """0 is no limit, the widest there is."""
    return bool(server == 0 or 0 < said <= server)


def _narrower(said: Any, server: Any) -> bool:
    order = next(order for order in _ORDERS if said in order)
    return order.index(said) <= order.index(server)


def _among(said: Any, server: Any) -> bool:
    return set(said) <= set(server)


#: What a repository may set, and whether a value stays within the server's. All else is the
#: server's own: how machine and agents are looked after.
MAY_SET: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "mode": _narrower,
    "auto_merge": _narrower,
    "merge_method": _any,
    "self_review": _any,
    "draft": _any,
    "check_run": _any,
    "state_labels": _any,
    "public_cost": _less,
    "delete_branch": _any,
    "close_issue": _any,
    "require_review": _more,
    "threads_block": _more,
    "resolve_threads": _less,
    "bots": _among,
    "ci_repairs": _less,
    "conflict_repairs": _less,
    "review_rounds": _less,
    "restarts": _less,
    "settle_seconds": _more,
    "review_debounce_seconds": _more,
    "nothing_to_show": _any,
    "session_usd": _budget,
    "session_hours": _budget,
    "session_tokens": _budget,
    "issue_usd": _budget,
    "day_usd": _budget,
    "budget_warning": _less,
    "pushes_per_hour": _budget,
    "protected_paths": _any,  # Those of the server stay protected with them.
}

_WAITS: Final = ("settle_seconds", "review_debounce_seconds")


def narrowed(text: str, server: Policy) -> Policy:
    """The server's policy with what the file says. Raises `RepositoryError`."""
    values, refused = _said(text, server)
    if refused:
        raise RepositoryError([problem for _, problem in refused])
    return replace(server, **values)


def still_narrowed(text: str, server: Policy) -> tuple[Policy, list[FileProblem]]:
    """The same of a file that was good under another policy of the server's.

    What it may not say any more is the server's to say, and told. Raises `RepositoryError` for a
    file that cannot be read at all.
    """
    values, refused = _said(text, server)
    kept = {name: values[name] for name in values.keys() - dict(refused).keys()}
    return replace(server, **kept), [problem for _, problem in refused]


def _said(text: str, server: Policy) -> tuple[dict[str, Any], list[tuple[str, FileProblem]]]:
    """What a file says, by the policy's fields; and each that is not the file's to say."""
    if len(text) > _MOST:
        raise RepositoryError([FileProblem(1, f"it has more than {_MOST:,} characters")])
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise RepositoryError([FileProblem(1, "it is nested too deeply")]) from None
    except ValueError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise RepositoryError([FileProblem(line, str(error))]) from None
    found_wrong = islice(misfits(document, RepositoryFile, ""), _MOST_PROBLEMS)
    problems = [_placed(text, says) for says in found_wrong]
    if problems:
        raise RepositoryError(problems)
    said = msgspec.convert(document, RepositoryFile).policy
    given = [name.replace("-", "_") for name in document.get("policy", {})]
    refused = [(name, _placed(text, says)) for name, says in _widenings(said, given, server)]
    values = {name: getattr(said, name) for name in given}
    if "protected_paths" in values:
        both = (*server.protected_paths, *said.protected_paths)
        values["protected_paths"] = tuple(dict.fromkeys(both))
    return values, refused


def _widenings(said: Policy, given: list[str], server: Policy) -> Iterator[tuple[str, str]]:
    """What a file may not say: each field, and what is wrong with it."""
    if "protected_paths" in given:
        for says in unfit_paths("policy.protected-paths", said.protected_paths):
            yield "protected_paths", says
    for name in given:
        where, value, most = name.replace("_", "-"), getattr(said, name), getattr(server, name)
        if name not in MAY_SET:
            yield name, f"policy.{where}: only the server's configuration says this"
        elif isinstance(value, int | float) and value < 0:
            yield name, f"policy.{where} = {value}: expected 0 or more"
        elif name in _WAITS and value > max(_DAY, most):
            yield name, f"policy.{where} = {value}: expected at most {_DAY}, a day"
        elif not MAY_SET[name](value, most):
            says = f"the server allows no more than {_shown(most)}"
            yield name, f"policy.{where} = {_shown(value)}: {says}"


def _shown(value: Any) -> str:
    return repr([*value] if isinstance(value, tuple) else msgspec.to_builtins(value))


def _placed(text: str, says: str) -> FileProblem:
    """The line that sets the key a sentence begins with."""
    key = re.match(r"[\w.-]*?([\w-]+)(?=[\[: ])", says)
    if key:
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(rf"\s*(?:policy\.|\[)?{re.escape(key[1])}\s*[]=]", line):
                return FileProblem(number, says)
    return FileProblem(1, says)
