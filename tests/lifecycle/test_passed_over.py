"""Under every policy, decisions stay the same if rules that cannot apply are skipped."""

from collections.abc import Iterator
from functools import cache

import pytest
from msgspec.structs import replace

from lifecycle.judge import stages
from lifecycle.judge.commands import COMMAND_RULES
from lifecycle.judge.escalations import ESCALATIONS, escalation
from lifecycle.judge.judge import judge
from lifecycle.judge.pauses import PAUSES, pause
from lifecycle.judge.stalls import first
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy
from lifecycle.react.reactions import REACTIONS
from lifecycle.read.session_view import SessionView
from tests.lifecycle.troubles import every_session
from tests.lifecycle.universe import NOW, POLICIES, command


@cache
def combinations() -> list[tuple[Facts, Policy]]:
    """All facts under the default policy, and a third of them under each other policy."""
    default, *others = POLICIES.values()
    every = every_session()
    pairs = [(facts, default) for facts in every]
    return pairs + [
        (facts, policy)
        for place, policy in enumerate(others)
        for facts in every[place :: len(others)]
    ]


def views() -> Iterator[SessionView]:
    for facts, policy in combinations():
        yield SessionView(facts, policy, NOW)


def test_the_escalation_shortcut_skips_no_escalation() -> None:
    """The shortcut applies where at most one pull request is open."""
    for view in views():
        if not view.several:
            assert escalation(view) == first(ESCALATIONS, view), (view.facts, view.policy)


def test_the_pause_shortcut_skips_no_pause() -> None:
    for view in views():
        assert pause(view) == first(PAUSES, view), (view.facts, view.policy)


def test_skipped_reactions_order_nothing() -> None:
    rows = [row for row in REACTIONS if row.people]
    for facts, policy in combinations():
        judged = judge(facts, policy, NOW)
        if not judged.people:
            assert not [row.name for row in rows for _ in row.then(judged)], (facts, policy)


def test_the_outcome_shortcut_skips_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    views = [SessionView(facts, policy, NOW) for facts, policy in combinations()]
    short = [stages.stage_of(view) for view in views]
    monkeypatch.setattr(stages, "_may_end", lambda view: True)
    assert short == [stages.stage_of(view) for view in views]


def test_no_command_changes_a_session_to_a_status_in_which_it_is_ineffective() -> None:
    """A command is ineffective in the statuses `CommandRule.ineffective`.

    `apply_commands` looks only at the status before a command, so the command must not lead there.
    """
    rows = [(kind, row) for kind, row in COMMAND_RULES.items() if row.ineffective]
    assert rows
    for facts, policy in combinations():
        status = judge(facts, policy, NOW).status
        for kind, row in rows:
            if status in row.works and status not in row.ineffective:
                given = replace(facts, commands=(*facts.commands, command(kind, at=NOW)))
                assert judge(given, policy, NOW).status not in row.ineffective, (facts, policy)
