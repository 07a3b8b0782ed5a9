"""Freezes hold every action and keep the status."""

import pytest
from msgspec.structs import replace

from lifecycle.decide import decide
from lifecycle.judge.pauses import frozen_by
from lifecycle.model.facts import Frozen
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import PullState
from tests.lifecycle.decisions import AT_WORK, READY, decision, with_pull
from tests.lifecycle.life import until_reviewed
from tests.lifecycle.universe import (
    NOW,
    ago,
    command,
    facts,
    published,
)

FREEZE = Frozen(scope="project", by="bob", at=ago(60))


def test_a_frozen_session_orders_no_actions_and_keeps_its_status() -> None:
    session = published(agent=AT_WORK, commands=(command("stop"), command("help", text="x")))
    free = decide(session, Policy(), NOW)
    frozen = decide(replace(session, frozen=FREEZE), Policy(), NOW)
    assert free.actions
    assert frozen.actions == ()
    assert (frozen.status, frozen.because) == (free.status, free.because)


@pytest.mark.parametrize(
    ("scope", "what"), [("all", "everything"), ("project", "the project"), ("session", "the sess")]
)
def test_a_freeze_is_a_blocker_with_author_scope_and_time(scope: str, what: str) -> None:
    session = published(frozen=replace(FREEZE, scope=scope))
    blocker = decision(session).blockers[0]
    assert blocker.sentence.startswith(f"@bob froze {what}")
    assert blocker.sentence.endswith("at 2030-01-01 11:59 UTC")
    assert decision(published()).blockers == decision(session).blockers[1:]
    local = published(frozen=replace(FREEZE, scope=scope, by="cli:ann"))
    assert decision(local).blockers[0].sentence.startswith(f"ann (on the server) froze {what}")
    unknown = published(frozen=replace(FREEZE, scope=scope, by=""))
    assert decision(unknown).blockers[0].sentence.startswith(f"somebody froze {what}")


def test_a_frozen_session_requests_no_slot() -> None:
    queued = facts(run=0, slot=False, done={})
    queued = replace(queued, done={})
    assert decision(queued).wants_slot
    assert not decision(replace(queued, frozen=FREEZE)).wants_slot


def test_the_latest_freeze_or_unfreeze_counts() -> None:
    freeze, unfreeze = command("freeze", at=ago(30)), command("unfreeze", at=ago(20))
    assert frozen_by(facts(commands=(freeze,))) == Frozen(scope="session", by="alice", at=ago(30))
    assert frozen_by(facts(commands=(freeze, unfreeze))) is None
    assert frozen_by(facts(commands=(unfreeze, replace(freeze, at=ago(10))))) is not None
    assert frozen_by(facts(commands=(command("help"),))) is None
    assert frozen_by(facts(frozen=FREEZE, commands=(freeze, unfreeze))) is FREEZE


def test_a_label_on_an_open_pull_request_freezes_its_session() -> None:
    for state, by in ((PullState.OPEN, FREEZE), (PullState.MERGED, None)):
        assert frozen_by(with_pull({"frozen": FREEZE, "state": state})) is by
    assert decision(with_pull({**READY, "frozen": FREEZE}), mode=Mode.MERGE).actions == ()


def test_a_freeze_holds_all_actions_until_the_unfreeze() -> None:
    life = until_reviewed().person_commands("freeze").ci_fails().reviewer_asks().waits(3600)
    out = list(life.out)
    assert life.received() == ["start"]
    life.person_commands("pause").waits(3600)
    assert life.out == out
    life.person_commands("resume").person_commands("unfreeze")
    assert life.received()[-1] != "start"
    assert len(life.sent("reaction:")) == 4
