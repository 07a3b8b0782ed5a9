"""The policy file of a repository."""

from typing import Any

import pytest
from msgspec.structs import fields, replace

from config.repository import MAY_SET, FileProblem, RepositoryError, narrowed
from lifecycle.model.policy import PROTECTED_PATHS, AutoMerge, MergeMethod, Mode, Policy

SERVER = Policy(mode=Mode.MERGE, bots=("lintbot", "fmtbot"), session_tokens=1000)


def problems(text: str, server: Policy = SERVER) -> list[FileProblem]:
    with pytest.raises(RepositoryError) as wrong:
        narrowed(text, server)
    return wrong.value.problems


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ('mode = "propose"', "mode", Mode.PROPOSE),
        ('auto-merge = "on-command"', "auto_merge", AutoMerge.ON_COMMAND),
        ('merge-method = "rebase"', "merge_method", MergeMethod.REBASE),
        ("draft = true", "draft", True),
        ('bots = ["lintbot"]', "bots", ("lintbot",)),
        ("ci-repairs = 1", "ci_repairs", 1),
        ("settle-seconds = 300", "settle_seconds", 300),
        ("session-usd = 2.5", "session_usd", 2.5),
        ("issue-usd = 9", "issue_usd", 9),
        ("session-usd = 5", "session_usd", 5),
        ('protected-paths = ["ci/**"]', "protected_paths", (*PROTECTED_PATHS, "ci/**")),
    ],
)
def test_a_repository_may_be_stricter_than_the_server(line: str, name: str, value: Any) -> None:
    policy = narrowed(f"[policy]\n{line}\n", SERVER)
    assert getattr(policy, name) == value
    others = [field.name for field in fields(Policy) if field.name != name]
    assert all(getattr(policy, other) == getattr(SERVER, other) for other in others)


@pytest.mark.parametrize(
    ("line", "server", "says"),
    [
        ('mode = "merge"', Policy(), "policy.mode = 'merge': expected 'propose', as on the server"),
        ('auto-merge = "when-approved"', Policy(auto_merge=AutoMerge.OFF), "policy.auto-merge = "),
        ('bots = ["evilbot"]', SERVER, "policy.bots = ['evilbot']: "),
        (
            "require-review = false",
            SERVER,
            "policy.require-review = false: expected true, as on the server, or stricter",
        ),
        ("public-cost = true", SERVER, "policy.public-cost = true: "),
        ("ci-repairs = 4", SERVER, "policy.ci-repairs = 4: expected 3, as on the server"),
        ("settle-seconds = 1", SERVER, "policy.settle-seconds = 1.0: "),
        ("session-usd = 6", SERVER, "policy.session-usd = 6.0: expected 5.0, as on the server"),
        ("pushes-per-hour = 0", SERVER, "policy.pushes-per-hour = 0: "),
        ("session-usd = 0", SERVER, "policy.session-usd = 0.0: "),
        ("day-usd = -1", SERVER, "policy.day-usd = -1.0: expected 0 or more"),
        (
            "stuck-seconds = 1",
            SERVER,
            "policy.stuck-seconds: can only be set in the server's configuration",
        ),
    ],
)
def test_a_repository_cannot_widen_the_servers_policy(line: str, server: Policy, says: str) -> None:
    (problem,) = problems(f"# ours\n[policy]\n{line}\n", server)
    assert problem.line == 3
    assert problem.says.startswith(says)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[policy]\nmode = propose\n", 2, "Invalid value"),
        ("[policy]\ndraft = true\ndraft = true\n", 3, "Cannot overwrite a value"),
        ('[policy]\nmodes = "propose"\n', 2, "policy.modes: unknown key; did you mean 'mode'?"),
        ('[policy]\n\nmode = "pro"\n', 3, "policy.mode = 'pro': did you mean 'propose'?"),
        ("\n[server]\nport = 1\n", 2, "server: unknown key"),
        ('policy = "all"\n', 1, "policy = 'all': expected a table"),
    ],
)
def test_a_problem_has_its_line(text: str, line: int, says: str) -> None:
    problem = problems(text)[0]
    assert (problem.line, problem.says[: len(says)]) == (line, says)


def test_a_missing_or_empty_file_changes_nothing() -> None:
    assert narrowed("", SERVER) == SERVER


def test_what_a_repository_may_set_is_part_of_the_policy() -> None:
    assert MAY_SET.keys() <= {field.name for field in fields(Policy)}


def test_every_problem_of_a_file_is_reported() -> None:
    text = "[policy]\nci-repairs = 9\nsession-usd = 9\n"
    assert [problem.line for problem in problems(text)] == [2, 3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"[policy]\nx = {'[' * 5000}\n", "the file is nested too deeply"),
        (f"[policy]\nx = {'{a=' * 5000}\n", "the file is nested too deeply"),
        ("# " + "x" * 100_000, "the file has more than 50,000 characters"),
        (f'"{"a" * 49_980}\\"" = 1', f'{"a" * 49_980}": unknown key; known: policy'),
    ],
)
def test_a_malicious_file_is_only_invalid(text: str, says: str) -> None:
    assert problems(text) == [FileProblem(1, says)]


def test_the_number_of_reported_problems_is_limited() -> None:
    assert len(problems("\n".join(f"k{number} = 1" for number in range(4000)))) == 50


@pytest.mark.parametrize("name", ["settle-seconds", "review-debounce-seconds"])
def test_delays_are_limited_to_a_day(name: str) -> None:
    (problem,) = problems(f"[policy]\n{name} = 1e9\n")
    assert problem == FileProblem(2, f"policy.{name} = 1000000000.0: expected at most 86400, a day")
    assert narrowed(f"[policy]\n{name} = 86400\n", SERVER) != SERVER
    two_days = replace(SERVER, **{name.replace("-", "_"): 172_800})
    with pytest.raises(RepositoryError, match="expected at most 172800, as on the server"):
        narrowed(f"[policy]\n{name} = 200000\n", two_days)


@pytest.mark.parametrize("path", ["../secrets", "a/../../b", "//etc/**", "a\\u0000b"])
def test_a_path_pattern_that_breaks_git_is_refused(path: str) -> None:
    (problem,) = problems(f'[policy]\nprotected-paths = ["ci/**", "{path}"]\n')
    assert problem.line == 2
    assert problem.says.endswith("expected printable paths inside the repository")
