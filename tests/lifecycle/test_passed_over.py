"""Rows that are not asked at most visits, because they could not stand."""

from itertools import chain

from lifecycle.judge.escalations import ESCALATIONS, escalation
from lifecycle.judge.judge import judge
from lifecycle.judge.pauses import PAUSES, pause
from lifecycle.judge.stalls import first
from lifecycle.model.policy import Policy
from lifecycle.react.reactions import REACTIONS
from lifecycle.read.session_view import SessionView
from tests.lifecycle.troubles import every_trouble
from tests.lifecycle.universe import NOW, every_fact


def test_the_escalation_shortcut_skips_no_escalation() -> None:
    for given in chain(every_fact(), every_trouble()):
        view = SessionView(given, Policy(), NOW)
        assert view.several or escalation(view) == first(ESCALATIONS, view)


def test_the_pause_shortcut_skips_no_pause() -> None:
    for given in chain(every_fact(), every_trouble()):
        view = SessionView(given, Policy(), NOW)
        assert pause(view) == first(PAUSES, view)


def test_skipped_reactions_order_nothing() -> None:
    rows = [row for row in REACTIONS if row.people]
    for given in chain(every_fact(), every_trouble()):
        judged = judge(given, Policy(), NOW)
        if not judged.people:
            assert not [row.name for row in rows for _ in row.then(judged)]
