"""The documentation's state diagram."""

import re

from lifecycle.decide import decide
from lifecycle.judge.signals import OVER
from lifecycle.model.facts import Ended
from lifecycle.model.policy import Policy
from lifecycle.model.status import TERMINAL, Reason, Status
from scripts.core_tables import mermaid
from tests.lifecycle.universe import NOW, ago, command, done, published

EDGES = set(re.findall(r"(\S+) --> (\w+|\[\*\])", mermaid()))


def test_the_diagram_shows_every_status_and_every_outcome() -> None:
    assert {status.value for status in Status} <= set(re.findall(r"\w+", mermaid()))
    assert {end for start, end in EDGES if start == "live"} == {stage.value for stage in OVER}


def test_the_diagram_returns_from_exactly_the_restorable_outcomes() -> None:
    for status in TERMINAL - {Status.CLEANUP}:
        end = Ended(status=status, reason=Reason.COMPLETED, because="it is over", at=ago(100))
        over = published(ended=end, done=done("stop#1"), commands=(command("start"),))
        restored = decide(over, Policy(), NOW).status not in TERMINAL
        assert ((status.value, "live") in EDGES) is restored
        assert ((status.value, "[*]") in EDGES) is not restored


def test_the_diagram_shows_the_exits_of_paused_and_merged() -> None:
    assert {end for start, end in EDGES if start == "paused"} == {"under_way"}
    assert {end for start, end in EDGES if start == "merged"} == {"cleanup", "[*]"}
