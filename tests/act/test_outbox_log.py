"""What the outbox logs: each news once, with what it is about."""

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bot.act.results import RetryLater
from bot.system.log import RedactingJsonFormatter
from bot.system.redaction import Redaction
from lifecycle.model.actions import CloseIssue
from lifecycle.model.key import parse
from tests.harness.outbox import OutboxBench


@pytest.fixture
def bench(scenario: Any) -> Iterator[OutboxBench]:
    made = OutboxBench(scenario)
    scenario.orders(scenario.session(), CloseIssue(key=parse("close_issue"), number=12))
    yield made
    made.workers.shutdown()


class Lines(logging.Handler):
    """Formats each log record as JSON in the thread that logs it, and keeps the parsed JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(RedactingJsonFormatter(Redaction()))
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


def test_an_action_that_is_deferred_for_the_same_reason_is_logged_once(
    bench: OutboxBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for why in ("full", "full", "full", "busy"):
        until = bench.scenario.clock() + timedelta(seconds=1)
        bench.doing = lambda due, check, why=why, until=until: RetryLater(why, until)
        bench.drains()
        bench.scenario.clock.passes(2)
    deferred = [one.getMessage() for one in caplog.records if "deferred" in one.getMessage()]
    assert [line.rpartition(" ")[2] for line in deferred] == ["full", "busy"]


def test_a_line_has_session_repository_and_number(
    bench: OutboxBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    handler = Lines()
    logging.getLogger("bot.act.outbox").addHandler(handler)
    try:
        bench.drains()
    finally:
        logging.getLogger("bot.act.outbox").removeHandler(handler)
    (line,) = handler.lines
    assert (line["session"], line["repository"], line["number"]) == (
        *("widgets-12", "acme/widgets"),
        12,
    )
