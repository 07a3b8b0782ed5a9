"""A repository's own policy in `.github/mergewright.toml`: as strict as the server's or stricter.

`MAY_SET` has the settings that the file may contain. Those whose values do not differ in
strictness, such as the merge method, may have any value.
"""

import operator
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from config.contradictions import unfit_paths
from config.load import misfits
from config.tables import SettingsTable
from lifecycle.model.policy import AutoMerge, Mode, Policy

#: The file's path on the default branch.
PATH: Final = ".github/mergewright.toml"
_ORDERS: Final = ([*Mode], [*AutoMerge])  #: Each from the strictest value to the least strict.
#: The most characters in a file, and the most problems that are reported.
_MOST, _MOST_PROBLEMS = 50_000, 50
_DAY: Final = 86_400  #: The most seconds in a field of `_WAITS`, unless the server has more.


class RepositoryFile(SettingsTable, frozen=True, kw_only=True):
    """The content of a repository's `.github/mergewright.toml`."""

    policy: Policy = Policy()


class FileProblem(NamedTuple):
    """A problem and its line in the file, or line 1 if that is unknown."""

    line: int
    says: str


class RepositoryError(Exception):
    """A repository's own policy file is invalid, for the reasons in `problems`."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__("\n".join(f"{PATH}, line {one.line}: {one.says}" for one in problems))
        self.problems = problems


def _any(_value: Any, _server: Any) -> bool:
    return True


def _budget(value: Any, server: Any) -> bool:
    """Whether a limit is at most the server's, where 0 means no limit."""
    return bool(server == 0 or 0 < value <= server)


def _narrower(value: Any, server: Any) -> bool:
    order = next(order for order in _ORDERS if value in order)
    return order.index(value) <= order.index(server)


def _among(value: Any, server: Any) -> bool:
    return set(value) <= set(server)


#: The fields of the policy that a repository may set, each with a function that says whether the
#: repository's value is at least as strict as the server's. Only the server sets other fields.
MAY_SET: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "mode": _narrower,
    "auto_merge": _narrower,
    "merge_method": _any,
    "self_review": _any,
    "draft": _any,
    "check_run": _any,
    "state_labels": _any,
    "public_cost": operator.le,
    "delete_branch": _any,
    "close_issue": _any,
    "require_review": operator.ge,
    "contributors_approve": operator.le,
    "blocking_labels": lambda value, server: set(value) >= set(server),
    "expect_checks": operator.ge,
    "threads_block": operator.ge,
    "resolve_threads": operator.le,
    "bots": _among,
    "ci_repairs": operator.le,
    "conflict_repairs": operator.le,
    "review_rounds": operator.le,
    "restarts": operator.le,
    "settle_seconds": operator.ge,
    "review_debounce_seconds": operator.ge,
    "nothing_to_show": _any,
    "session_usd": _budget,
    "session_hours": _budget,
    "session_tokens": _budget,
    "issue_usd": _budget,
    "issue_hours": _budget,
    "issue_tokens": _budget,
    "day_usd": _budget,
    "day_hours": _budget,
    "day_tokens": _budget,
    "person_usd": _budget,
    "person_hours": _budget,
    "person_tokens": _budget,
    "agent_usd": _budget,
    "agent_hours": _budget,
    "agent_tokens": _budget,
    "budget_warning": operator.le,
    "pushes_per_hour": _budget,
    "max_file_mb": _budget,
    "protected_paths": _any,  # They are added to those of the server.
}

#: What a repository's file may do to a value: nothing, only make it stricter, or choose any.
Right = Literal["none", "narrow", "choose"]

_WAITS: Final = ("settle_seconds", "review_debounce_seconds")


def right_to(name: str) -> Right:
    """Return what a repository's file may do to the policy's field `name`."""
    if name not in MAY_SET:
        return "none"
    # Protected paths are added to those of the server.
    return "choose" if MAY_SET[name] is _any and name != "protected_paths" else "narrow"


def narrowed(text: str, server: Policy) -> Policy:
    """Return the server's policy with the settings in the file's `text`.

    Raises `RepositoryError` if the file is invalid or less strict than the server's policy.
    """
    values, refused = _parsed(text, server)
    if refused:
        raise RepositoryError([problem for _, problem in refused])
    return replace(server, **values)


def still_narrowed(text: str, server: Policy) -> tuple[Policy, list[FileProblem]]:
    """Return the policy for a file that was valid under an earlier policy of the server.

    Settings that are no longer allowed are ignored and returned as problems. Raises
    `RepositoryError` if the file is too long, is not TOML, or has unknown keys or wrong types.
    """
    values, refused = _parsed(text, server)
    kept = {name: values[name] for name in values.keys() - dict(refused).keys()}
    return replace(server, **kept), [problem for _, problem in refused]


def _parsed(text: str, server: Policy) -> tuple[dict[str, Any], list[tuple[str, FileProblem]]]:
    """Return the file's values by field of the policy, and the problem of each refused field.

    The values include those of refused fields. Raises `RepositoryError` if the file is too long, is
    not TOML, or has unknown keys or wrong types.
    """
    if len(text) > _MOST:
        raise RepositoryError([FileProblem(1, f"the file has more than {_MOST:,} characters")])
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise RepositoryError([FileProblem(1, "the file is nested too deeply")]) from None
    except ValueError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise RepositoryError([FileProblem(line, str(error))]) from None
    if wrong := [*islice(misfits(document, RepositoryFile, ""), _MOST_PROBLEMS)]:
        raise RepositoryError([_placed(text, says) for says in wrong])
    policy = msgspec.convert(document, RepositoryFile).policy
    given = [name.replace("-", "_") for name in document.get("policy", {})]
    refused = [(name, _placed(text, says)) for name, says in _widenings(policy, given, server)]
    values = {name: getattr(policy, name) for name in given}
    if "protected_paths" in values:
        both = (*server.protected_paths, *policy.protected_paths)
        values["protected_paths"] = tuple(dict.fromkeys(both))
    return values, refused


def _widenings(policy: Policy, given: list[str], server: Policy) -> Iterator[tuple[str, str]]:
    """Yield each refused field in `given`, with the reason.

    A field is refused if only the server may set it, or if its value in `policy` is invalid or less
    strict than the server's.
    """
    if "protected_paths" in given:
        for says in unfit_paths("policy.protected-paths", policy.protected_paths):
            yield "protected_paths", says
    for name in given:
        where, value, most = name.replace("_", "-"), getattr(policy, name), getattr(server, name)
        if name not in MAY_SET:
            yield name, f"policy.{where}: can only be set in the server's configuration"
        elif isinstance(value, int | float) and value < 0:
            yield name, f"policy.{where} = {value}: expected 0 or more"
        elif name in _WAITS and value > max(_DAY, most):
            limit = f"{most}, as on the server" if most > _DAY else f"{_DAY}, a day"
            yield name, f"policy.{where} = {value}: expected at most {limit}"
        elif not MAY_SET[name](value, most):
            says = f"expected {_shown(most)}, as on the server, or stricter"
            yield name, f"policy.{where} = {_shown(value)}: {says}"


def _shown(value: Any) -> str:
    """Return a value in TOML's notation."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr([*value] if isinstance(value, tuple) else msgspec.to_builtins(value))


def _placed(text: str, says: str) -> FileProblem:
    """Return the problem `says`, and the number of the line in `text` that causes it.

    That is the line that sets the key with which `says` begins, or line 1 if no line sets it.
    """
    key = re.match(r"(?:[\w-]*+\.)*+([\w-]++)(?=[\[: ])", says)
    if key:
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(rf"\s*(?:policy\.|\[)?{re.escape(key[1])}\s*[]=]", line):
                return FileProblem(number, says)
    return FileProblem(1, says)
