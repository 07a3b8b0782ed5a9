"""The end of a merged session names who or what caused the merge."""

from typing import Any

import pytest

from lifecycle.decide import decide
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import PullState, Status
from tests.lifecycle.universe import HEAD, NOW, command, done, published, pull

BY_BOT = done(f"merge:{HEAD}")
COMMANDED = (command("merge", head=HEAD),)
APPLIED = done("command_applied:comment-merge")


@pytest.mark.parametrize(
    ("merged_by", "facts", "policy", "why"),
    [
        ("ann", {}, {}, " by @ann"),
        ("ann", {"commands": COMMANDED}, {}, " by @ann"),
        ("", {}, {}, ""),
        (
            "wright",
            {"done": {**BY_BOT, **APPLIED}, "commands": COMMANDED},
            {},
            ", as @alice commanded",
        ),
        ("wright", {"done": BY_BOT}, {"mode": Mode.MERGE}, " automatically (`policy.auto-merge`)"),
        ("wright", {"done": BY_BOT}, {}, ""),
    ],
    ids=[
        "by a person on GitHub",
        "by a person who was faster than the bot",
        "by an unknown account",
        "on command",
        "by policy",
        "by the bot, for a reason that its settings no longer have",
    ],
)
def test_a_merge_has_a_cause(
    merged_by: str, facts: dict[str, Any], policy: dict[str, Any], why: str
) -> None:
    merged = pull(state=PullState.MERGED, merged_by=merged_by)
    decision = decide(published(pulls=(merged,), **facts), Policy(**policy), NOW)
    assert decision.status is Status.MERGED
    assert decision.because == f"pull request #34 was merged{why}"
