"""The servers of the ingest benchmark. Arguments: function, port, database file, secret."""

import asyncio
import hmac
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from litestar.types import HTTPScope, Receive, Send

from bot.intake.inbox import Inbox
from bot.intake.terminal_input import TerminalInput
from bot.show.changes import BranchDiff
from bot.show.run_log import LogPage
from bot.show.terminal import Terminal
from bot.store import Delivery, Store
from bot.system.http_server import HttpServer
from bot.web.app import build
from bot.web.health import Health
from config.settings import Settings
from lifecycle.judge.capacity import Caps
from lifecycle.model.policy import Policy


def mergewright(port: int, store: Store, secret: str) -> None:
    """Run the web server as `mergewright serve` does."""
    app = build(
        Inbox(store, frozenset({"acme/widgets"}), lambda: None),
        store,
        webhook_secrets=[secret],
        page_token="",
        health=lambda: Health(scheduler=True),
        settings=Settings(),
        policy_of=lambda _: Policy(),
        caps=lambda: Caps(sessions=4),
        terminal=Terminal(
            attach=lambda _: "",
            log=lambda _: "",
            resources=lambda _: None,
            log_page=lambda *_: LogPage(lines=(), cursor=0, more=False),
            transcript=lambda *_: [],
            last=lambda *_: (0, []),
            screen=lambda _: "",
            changes=lambda _: BranchDiff(base="", head="", files=(), complete=True),
            steps=lambda _: [],
            step_records=lambda _: [],
            preserved=lambda _: [],
        ),
        keyboard=TerminalInput(store, lambda _: False, lambda: None),
    )
    server = HttpServer(app, "127.0.0.1", port)
    server.start()
    print("listening", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    server.stop()


def bare(port: int, store: Store, secret: str) -> None:
    """Run a minimal server, which checks a signature, writes to its own `Store`, and responds."""

    async def app(scope: HTTPScope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        body, more = b"", True
        while more:
            message = await receive()
            assert message["type"] == "http.request"
            body, more = body + message["body"], message["more_body"]
        proof = b"sha256=" + hmac.digest(secret.encode(), body, "sha256").hex().encode()
        assert hmac.compare_digest(proof, headers[b"x-hub-signature-256"])
        delivery = Delivery(
            id=headers[b"x-github-delivery"].decode(),
            event=headers[b"x-github-event"].decode(),
            at=datetime.now(UTC),
            body=body,
        )
        await asyncio.wrap_future(store.deliveries.add([delivery]))
        start = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 202, "headers": start})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    print("listening", flush=True)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_config=None,
    )


def main() -> None:
    which, port, database, secret = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM} if which == "mergewright" else ())
    store = Store(Path(database))
    {"mergewright": mergewright, "bare": bare}[which](int(port), store, secret)
    store.close()


if __name__ == "__main__":
    main()
