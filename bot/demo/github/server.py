"""The stand-in's HTTP server, with methods for what people do on GitHub."""

import asyncio
import logging
import re
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Queue
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import uvicorn

from bot.demo.github import git_http, lfs
from bot.demo.github.git import Git
from bot.demo.github.graphql.endpoint import GraphQL
from bot.demo.github.hosting import Move
from bot.demo.github.http import Answer, Request
from bot.demo.github.pages import Pages
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Forge, Repository
from bot.demo.github.rest.endpoint import Rest
from bot.demo.github.traffic import Seen, Traffic
from bot.demo.github.webhooks import Delivery, Webhooks
from bot.demo.github.world import App, Thing, Token, User

_log = logging.getLogger(__name__)
_REST, _GRAPHQL = "/api/v3", "/api/graphql"


class GitHubServer:
    """A GitHub on this machine, with its repositories under `root`.

    Use it as a context manager. All methods may be called from any thread. Acting through its
    objects has the same effects as a request: changes of state, webhooks and commits.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.world = Forge()
        self.traffic = Traffic()
        self._callbacks: list[Callable[[Pull], None]] = []
        self._pages: Pages | None = None
        self._heads: Queue[Pull | None] = Queue()

    def __enter__(self) -> Self:
        listening = socket.create_server(("127.0.0.1", 0))
        self.world.url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        self._webhooks = self._new_webhooks()
        self.world.publish = self._webhooks.publish
        self.world.head_moved = self._head_moved
        self._rest = Rest(self.world, self.traffic, self._webhooks)
        self._graphql = GraphQL(self.world, self.traffic)
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            lifespan="off",
            log_level="critical",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._threads = [
            threading.Thread(
                target=self._server.run, args=([listening],), name="github", daemon=True
            ),
            threading.Thread(target=self._call_back, name="github callbacks", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._heads.put(None)
        for thread in self._threads:
            thread.join(10)
        self._webhooks.close()

    def _new_webhooks(self) -> Webhooks:
        return Webhooks(self.world)

    # -- people and repositories

    @property
    def url(self) -> str:
        """The URL of the server. REST is at `api/v3/` below it, GraphQL at `api/graphql`."""
        return self.world.url

    def user(self, login: str, token: str = "", scopes: str | None = None) -> User:
        """Return the account of this login; create it if there is none.

        The account gets the `token`, unless that is empty. `scopes` makes the token a classic one.
        """
        with self.world.lock:
            user = self.world.account(login)
            if token:
                self.world.tokens[token] = Token(user=user, scopes=scopes)
            return user

    def bot_account(self, login: str, token: str = "") -> User:
        """Return the account of this login, which a program uses; create it if there is none.

        The account gets the `token`, unless that is empty. The type of a new account is `Bot` if
        the login ends in `[bot]`, otherwise `User`.
        """
        return self.user(login, token)

    def app(self, slug: str, public_key: str) -> App:
        """Register an App by the PEM of its public key, and install it on every repository."""
        with self.world.lock:
            return self.world.app(slug, public_key)

    def sign_in_app(self, slug: str, callback: str) -> App:
        """Register an App with which people sign in. GitHub sends them back to `callback`."""
        with self.world.lock:
            app = self.world.app(slug)
            app.callbacks, app.client_secret = (callback,), secrets.token_hex(20)
            return app

    def app_webhook(self, app: App, url: str, secret: str) -> int:
        """Add a webhook to an App and return its id."""
        with self.world.lock:
            return self._webhooks.add_app(app, url, secret)

    def suspend(self, app: App, *, suspended: bool = True) -> None:
        """Suspend or restore an App's installation. The App gets the event."""
        with self.world.lock:
            app.suspended = suspended
            self._webhooks.tell(app, "suspend" if suspended else "unsuspend")

    def install_on(self, app: App, repo: Repository, *, installed: bool = True) -> None:
        """Add a repository to an App's installation, or remove it. The App gets the event."""
        with self.world.lock:
            (app.excluded.discard if installed else app.excluded.add)(repo.id)
            self._webhooks.tell_of(app, repo, "added" if installed else "removed")

    def uninstall(self, app: App) -> None:
        """Uninstall an App from every account. Its tokens become invalid."""
        with self.world.lock:
            app.owners = set()
            kept = {secret: one for secret, one in self.world.tokens.items() if one.app is not app}
            self.world.tokens = kept

    def repository(
        self,
        full_name: str,
        files: Mapping[str, str | None] = {"README.md": "# Read me\n"},
        default_branch: str = "main",
        private: bool = False,
    ) -> Repository:
        """Create a repository whose first commit has these files.

        The account before the `/` in `full_name` owns and administers it.
        """
        login, name = full_name.split("/")
        with self.world.lock:
            owner = self.world.account(login, organization=True)
            git = Git(self.root / login / f"{name}.git")
            git.init(default_branch)
            first = git.commit_files(default_branch, files, "Initial commit", owner.signature, None)
            repo = Repository(
                world=self.world,
                owner=owner,
                name=name,
                git=git,
                default_branch=default_branch,
                private=private,
                heads={default_branch: first},
                permissions={owner.login: "admin"},
                add_hook=self._webhooks.add,
                **self.world.identity("R"),
            )
            self.world.repositories[full_name.lower()] = self.world.add(repo)
            return repo

    # -- what was asked

    @property
    def requests(self) -> list[Seen]:
        """All requests that were answered so far, oldest first."""
        return list(self.traffic.seen)

    def count(self, method: str, path: str, operation: str = "") -> int:
        """Count successful requests with this method whose path matches the pattern `path`.

        Only requests whose GraphQL operation contains `operation` count.
        """
        return sum(
            seen.method == method
            and seen.status < 400
            and bool(re.search(path, seen.path))
            and operation in seen.operation
            for seen in self.requests
        )

    @property
    def pushes(self) -> list[Move]:
        """Every move of a branch, by a push, a merge or a deletion."""
        with self.world.lock:
            return [move for repo in self.world.repositories.values() for move in repo.moves]

    @property
    def deliveries(self) -> list[Delivery]:
        """Every attempt to deliver a webhook, in order. A pending one has no status yet."""
        return list(self._webhooks.deliveries)

    def redeliver(self, delivery_id: int) -> Delivery:
        return self._webhooks.redeliver(delivery_id)

    def show_pages(self, person: str, reviewer: str, label: str, links: str = "") -> None:
        """Show pages of issues and pull requests, on which these two people act; see `Pages`."""
        self._pages = Pages(self.world, person, reviewer, label, links)

    def on_head(self, callback: Callable[[Pull], None]) -> None:
        """Call `callback` in another thread whenever a pull request opens or its head moves."""
        self._callbacks.append(callback)

    def _head_moved(self, pull: Thing) -> None:
        if isinstance(pull, Pull):
            self._heads.put(pull)

    def _call_back(self) -> None:
        while pull := self._heads.get():
            for callback in self._callbacks:
                try:
                    callback(pull)
                except Exception:  # noqa: BLE001 - the next heads must still be reported
                    _log.exception("a callback for %s#%s failed", pull.repo.full_name, pull.number)

    # -- HTTP

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        request = Request(
            world=self.world,
            method=scope["method"],
            path=unquote(scope["path"]),
            query_string=scope["query_string"].decode(),
            headers={name.decode().lower(): value.decode() for name, value in scope["headers"]},
            body=body,
        )
        await self._send(await self._respond(request), send)

    async def _respond(self, request: Request) -> Answer:
        try:
            return await asyncio.to_thread(self._answer, request)
        except Exception:  # noqa: BLE001 - a fault of the stand-in must not look like silence
            _log.exception("%s %s failed in the stand-in itself", request.method, request.path)
            return Answer(status=500, body={"message": "Server Error"})

    def _answer(self, request: Request) -> Answer:
        operation = ""
        if git_http.serves(request.path):
            answer = git_http.answer(request)
        elif lfs.serves(request.path):
            answer = lfs.answer(request)
        elif request.path == _GRAPHQL:
            answer, operation = self._graphql.answer(request)
        elif request.path.startswith(f"{_REST}/"):
            answer = self._rest.answer(request, request.path.removeprefix(_REST))
        else:
            shown = self._pages.answer(request) if self._pages else None
            answer = shown or self._rest.page(request)
        self.traffic.saw(
            Seen(
                method=request.method,
                path=request.path,
                user=request.login,
                status=answer.status,
                operation=operation,
            )
        )
        return answer

    async def _send(self, answer: Answer, send: Any) -> None:
        raw = answer.raw
        headers = [(name.lower().encode(), text.encode()) for name, text in answer.headers.items()]
        if answer.status not in (204, 304):
            headers.append((b"content-length", str(len(raw)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": raw})
