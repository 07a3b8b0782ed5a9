"""Titles and labels that hold the merge of a pull request but no other action."""

from typing import Any

import pytest

from lifecycle.model import actions as do
from lifecycle.model.policy import Mode
from lifecycle.model.status import CheckState, Merge, Status
from tests.lifecycle.decisions import READY, decision, effects, with_pull
from tests.lifecycle.universe import HEAD, check, command, thread


def held(**fields: Any) -> dict[str, Any]:
    return {**READY, "labels": ("Do-Not-Merge",), **fields}


@pytest.mark.parametrize(
    ("fields", "policy", "holds"),
    [
        ({"title": "WIP: more tests"}, {}, True),
        ({"title": "wip more tests"}, {}, True),
        ({"title": "Do not merge yet"}, {}, True),
        ({"title": "More tests (WIP)"}, {}, False),
        ({"labels": ("Do-Not-Merge",)}, {}, True),
        ({"labels": ("do-not-merge-later",)}, {}, False),
        ({"labels": ("hold",)}, {"blocking_labels": ("HOLD",)}, True),
        ({"title": "More tests [hold]"}, {"blocking_titles": (r"\[hold\]$",)}, True),
        ({"title": "WIP: x"}, {"blocking_titles": ()}, False),
        ({"title": "WIP: x"}, {"blocking_titles": ("(", "^wip")}, True),
        ({"title": "x"}, {"blocking_titles": ("(",)}, False),
    ],
)
def test_titles_and_labels_hold_the_merge(
    fields: dict[str, Any], policy: dict[str, Any], holds: bool
) -> None:
    words = (command("merge", head=HEAD),)
    found = decision(with_pull({**READY, **fields}, commands=words), mode=Mode.MERGE, **policy)
    assert any(isinstance(a, do.MergePull) for a in found.actions) is not holds
    assert (found.status is Status.APPROVED) is holds
    assert [blocker.name for blocker in found.blockers] == ["held"] * holds


@pytest.mark.parametrize(
    "fields",
    [
        {"checks": (check(CheckState.FAILED, log="boom"),)},
        {"threads": (thread(),)},
        {"merge": Merge.CONFLICT},
        {"verdicts": ()},
    ],
)
def test_nothing_else_is_held(fields: dict[str, Any]) -> None:
    def kinds(pulls: dict[str, Any]) -> list[str]:
        found = effects(decision(with_pull(pulls), reviewers=("rob",)))
        return [str(action.key) for action in found]

    assert kinds(held(**fields)) == kinds({**READY, **fields})
