"""GitHub says CLEAN, but the bot sees a pending required check: people learn which check."""

from typing import Any

import pytest

from lifecycle.model import actions as do
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Mode
from lifecycle.model.status import CheckState, Merge, Reason, Status
from tests.lifecycle.decisions import READY, decision, effects, with_pull
from tests.lifecycle.universe import HEAD, NOW, ago, check

UNREPORTED = check(CheckState.PENDING, "build", required=True, reported=False)


def disputed(*checks: Any, seconds: float = 1800, **fields: Any) -> Facts:
    fields = {"clean_since": ago(seconds), "head_since": ago(seconds), **READY, **fields}
    return with_pull({"checks": (check(), *checks), **fields})


@pytest.mark.parametrize("one", [UNREPORTED, check(CheckState.PENDING, "build", required=True)])
def test_people_are_notified_of_the_check_that_differs(one: Any) -> None:
    found = decision(disputed(one), mode=Mode.MERGE)
    assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.CHECKS_DISPUTED)
    assert found.because == (
        f"GitHub has said for 30 minutes that {HEAD[:7]} can be merged, but these required "
        "checks have not finished or reported: build"
    )
    (notice,) = [a for a in effects(found) if isinstance(a, do.Comment)]
    assert str(notice.key) == f"notice:checks_disputed:{HEAD}:0"
    assert "Merge the pull request on GitHub" in notice.values["remedy"]


def test_they_are_notified_again_at_growing_intervals() -> None:
    early = decision(disputed(UNREPORTED, seconds=60))
    assert early.reason is not Reason.CHECKS_DISPUTED
    assert early.recheck_at is not None
    assert (early.recheck_at - NOW).total_seconds() == 1740
    later = decision(disputed(UNREPORTED, seconds=3600))
    assert "for 1 hour" in later.because


@pytest.mark.parametrize(
    ("checks", "fields"),
    [
        ((), {}),
        ((check(CheckState.PENDING, "slow"),), {}),
        ((UNREPORTED,), {"clean_since": None, "merge": Merge.PROTECTED}),
        ((UNREPORTED,), {"draft": True}),
        ((UNREPORTED, check(CheckState.FAILED, "lint", required=True)), {}),
    ],
)
def test_nothing_else_is_a_dispute(checks: tuple[Any, ...], fields: dict[str, Any]) -> None:
    assert decision(disputed(*checks, **fields)).reason is not Reason.CHECKS_DISPUTED
