"""Measures deliveries that concern no session: their processing, and their API requests."""

import json
import random
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bot.github.reader import FINGERPRINT_BATCH
from bot.intake.inbox import Inbox
from bot.store import Delivery, Store
from scripts.benchmarks.figure import Figure
from scripts.faults.unrelated import unrelated

DELIVERIES, PER_SECOND, REQUESTS = 6000, 2000.0, 5.0
_REPOSITORY = "acme/widgets"
_BATCH = 500
#: Its description makes a delivery as large as GitHub's, about 12 KB.
_HERE = {"id": 1, "full_name": _REPOSITORY, "description": "x" * 11_000}


def run() -> dict[str, Figure]:
    """Store unrelated deliveries, process them all, and count the requests that would follow."""
    dice, now = random.Random(1), datetime.now(UTC)
    sent = [unrelated(dice, _HERE) for _ in range(DELIVERIES)]
    rows = [
        Delivery(id=str(at), event=event, at=now, body=json.dumps(body).encode())
        for at, (event, body) in enumerate(sent)
    ]
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        store = Store(Path(folder) / "mergewright.db", clock=lambda: datetime.now(UTC))
        triggers = {_REPOSITORY: {"mergewright"}}
        inbox = Inbox(store, frozenset(triggers), lambda: None, triggers=triggers)
        for at in range(0, DELIVERIES, _BATCH):
            inbox.accept(rows[at : at + _BATCH]).result()
        begun = time.perf_counter()
        while inbox.process():
            pass
        rate = DELIVERIES / (time.perf_counter() - begun)
        due = [one.subject for one in store.refreshes.due(datetime.now(UTC), ("",), DELIVERIES)]
        store.close()
    others = sum(subject.startswith("other:") for subject in due)
    requests = (len(due) - others + others / FINGERPRINT_BATCH) * 1000 / DELIVERIES
    return {
        "flood.drain": Figure(
            value=rate, unit="per s", limit=f">= {PER_SECOND:g}", holds=rate >= PER_SECOND
        ),
        "flood.requests": Figure(
            value=requests,
            unit="per 1000",
            limit=f"<= {REQUESTS:g}",
            holds=requests <= REQUESTS,
        ),
    }
