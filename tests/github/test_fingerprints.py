"""A fingerprint differs as soon as one of its fields does."""

from typing import Any

import pytest
from msgspec import Raw
from msgspec.json import encode

from bot.github.fingerprints import fingerprint_of

PULL: dict[str, Any] = {
    "state": "OPEN",
    "updatedAt": "2026-11-21T11:00:00Z",
    "isDraft": False,
    "headRefOid": "a" * 40,
    "mergeable": "MERGEABLE",
    "mergeStateStatus": "BEHIND",
    "reviewDecision": None,
    "baseRef": {"target": {"oid": "b" * 40}},
    "reviewThreads": {"nodes": [{"isResolved": False}]},
    "statusCheckRollup": {
        "state": "SUCCESS",
        "contexts": {
            "checkRunCountsByState": [{"state": "SUCCESS", "count": 2}],
            "statusContextCountsByState": [],
        },
    },
}
COUNTS: dict[str, Any] = {"checkRunCountsByState": [], "statusContextCountsByState": None}


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "CLOSED"},
        {"updatedAt": "2026-11-21T11:00:01Z"},
        {"isDraft": True},
        {"headRefOid": "c" * 40},
        {"mergeable": "UNKNOWN"},
        {"mergeStateStatus": "DIRTY"},
        {"reviewDecision": "APPROVED"},
        {"baseRef": {"target": {"oid": "c" * 40}}},
        {"baseRef": None},
        {"reviewThreads": {"nodes": [{"isResolved": True}]}},
        {"statusCheckRollup": None},
        {"statusCheckRollup": {"state": "SUCCESS", "contexts": COUNTS}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_field_of_a_fingerprint_counts(changed: dict[str, Any]) -> None:
    before = fingerprint_of(Raw(encode(PULL)), pull=True)
    after = fingerprint_of(Raw(encode(PULL | changed)), pull=True)
    assert before is not None
    assert after is not None
    assert before == fingerprint_of(Raw(encode(PULL)), pull=True)
    assert after != before
