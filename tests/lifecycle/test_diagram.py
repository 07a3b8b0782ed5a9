"""The documentation's table and picture say what the tables say."""

import re

from lifecycle.diagram import mermaid, status_table
from lifecycle.judge.rules import RULES
from lifecycle.judge.signals import OVER
from lifecycle.model.status import TERMINAL, Status

ROWS = status_table().splitlines()
LINES = mermaid().splitlines()


def test_the_table_has_a_row_for_every_rule_in_its_order() -> None:
    assert ROWS[:2] == ["| status | when |", "|---|---|"]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in ROWS[2:]]
    assert [(status, when) for status, when in cells] == [
        (f"`{rule.status}`", rule.reads) for rule in RULES
    ]


def test_the_picture_leads_from_the_label_to_every_outcome() -> None:
    edges = re.findall(r"(\S+) --> (\S+)", mermaid())
    assert edges[:3] == [("[*]", "queued"), ("queued", "spawning"), ("spawning", "working")]
    assert ("under_way", "cleanup") in edges
    for outcome in OVER:
        assert ("cleanup", outcome.value) in edges
        assert (outcome.value, "[*]") in edges


def test_the_picture_shows_what_is_under_way_in_the_order_it_is_read() -> None:
    start, end = LINES.index("    state under_way {"), LINES.index("    }")
    shown = [line.strip() for line in LINES[start + 2 : end]]
    early = (Status.QUEUED, Status.SPAWNING)
    read = [r.status.value for r in RULES if r.status not in TERMINAL and r.status not in early]
    assert shown == list(dict.fromkeys(read))


def test_every_status_that_is_read_is_in_the_picture() -> None:
    words = set(re.findall(r"\w+", mermaid()))
    assert {rule.status.value for rule in RULES} <= words
