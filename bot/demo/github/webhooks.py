"""Webhooks: the body of each event, which is signed, sent in order and kept for redelivery."""

import hmac
import json
import queue
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import monotonic
from typing import Any

import httpx

from bot.demo.github.hosting import Event
from bot.demo.github.repository import Forge, Repository
from bot.demo.github.shapes import base, commits, issues, pulls
from bot.demo.github.shapes.base import Json
from bot.demo.github.world import App

#: The shape of each part of an event's body.
_PARTS: dict[str, Callable[[Any], Json]] = {
    "issue": issues.issue,
    "blocked_issue": issues.issue,
    "blocking_issue": issues.issue,
    "comment": issues.comment,
    "pull_request": pulls.pull,
    "review": pulls.webhook_review,
    "thread": pulls.thread,
    "check_run": commits.webhook_check_run,
    "check_suite": commits.check_suite,
}
#: Parts whose shape needs the repository.
_PARTS_OF_REPOSITORY: dict[str, Callable[[Any, Repository], Json]] = {"label": base.label}
#: Parts that become several members of the body, without a member of their own name.
_WHOLE: dict[str, Callable[[Any, Repository], Json]] = {
    "push": commits.push,
    "status": commits.webhook_status,
}
#: Events whose pull request GitHub sends without computed members.
_SIMPLE_PULL = (
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
)
_SECONDS_TO_ANSWER = 10.0


@dataclass(frozen=True, kw_only=True)
class Hook:
    """The webhook of a repository, or of an App for all repositories on which it is installed."""

    id: int
    repo: Repository | None = None
    app: App | None = None
    url: str
    secret: str
    created_at: datetime

    def gets_events_of(self, repo: Repository) -> bool:
        """Whether the hook receives the events of this repository."""
        if self.app:
            return self.app.serves(repo) and not self.app.suspended
        return self.repo is repo


@dataclass(kw_only=True)
class Delivery:
    """One delivery attempt. `status_code` is None while it is pending."""

    id: int
    guid: str
    hook: Hook
    repo: Repository
    event: str
    action: str | None
    body: bytes
    headers: dict[str, str]
    delivered_at: datetime
    redelivery: bool = False
    status: str = ""
    status_code: int | None = None
    duration: float = 0.0
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str = ""

    @property
    def ok(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


class Webhooks:
    """The hooks of all repositories and Apps, and the thread that sends to them."""

    def __init__(self, world: Forge) -> None:
        self.world = world
        self.hooks: list[Hook] = []
        self.deliveries: list[Delivery] = []
        self._waiting: queue.Queue[Delivery | None] = queue.Queue()
        self._client = httpx.Client(timeout=_SECONDS_TO_ANSWER, trust_env=False)
        self._thread = threading.Thread(target=self._send_all, name="webhooks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sending. The delivery in progress ends first; waiting ones are dropped."""
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._waiting.put(None)
        self._thread.join(_SECONDS_TO_ANSWER)
        self._client.close()

    def add(self, repo: Repository, url: str, secret: str) -> int:
        """Create a hook, send it a ping and return its id."""
        hook_id = self.world.identity("H")["id"]
        hook = Hook(id=hook_id, repo=repo, url=url, secret=secret, created_at=self.world.now())
        self.hooks.append(hook)
        body = {
            "zen": "Keep it logically awesome.",
            "hook_id": hook.id,
            "hook": hook_shape(hook, repo),
        }
        self._deliver(hook, repo, "ping", None, {**body, **_context(repo, repo.owner.login)})
        return hook.id

    def add_app(self, app: App, url: str, secret: str) -> int:
        """Create an App's hook and return its id."""
        hook_id = self.world.identity("H")["id"]
        self.hooks.append(
            Hook(id=hook_id, app=app, url=url, secret=secret, created_at=self.world.now())
        )
        return int(hook_id)

    def publish(self, event: Event) -> None:
        """Queue an event for every hook of its repository. The body shows the current state."""
        repo = event.repo
        assert isinstance(repo, Repository)
        hooks = [hook for hook in self.hooks if hook.gets_events_of(repo)]
        if not hooks:
            return
        body = _body(event, repo)
        for hook in hooks:
            self._deliver(hook, repo, event.name, event.action, body)

    def tell(self, app: App, action: str) -> None:
        """Send an App the event `installation` with this action, even while it is suspended."""
        self._tell(app, next(iter(self.world.repositories.values())), "installation", action)

    def tell_of(self, app: App, repo: Repository, action: str) -> None:
        """Send an App the event that its installation gained or lost a repository.

        `action` is `added` or `removed`.
        """
        short = {"id": repo.id, "node_id": repo.node_id, "name": repo.name}
        short |= {"full_name": repo.full_name, "private": repo.private}
        lists = {
            f"repositories_{kind}": [short] if kind == action else []
            for kind in ("added", "removed")
        }
        more = {**lists, "repository_selection": "selected", "requester": None}
        self._tell(app, repo, "installation_repositories", action, more)

    def _tell(
        self, app: App, repo: Repository, event: str, action: str, more: Json | None = None
    ) -> None:
        installation = base.installation(app, repo.owner, self.world)
        sender = base.user(repo.owner, self.world)
        body = {"action": action, "installation": installation, "sender": sender, **(more or {})}
        for hook in self.hooks:
            if hook.app is app:
                self._deliver(hook, repo, event, action, body)

    def redeliver(self, delivery_id: int) -> Delivery:
        """Deliver an event again, with the same GUID."""
        with self.world.lock:
            first = next(d for d in self.deliveries if d.id == delivery_id)
            again = replace(
                first,
                id=self.world.identity("D")["id"],
                delivered_at=self.world.now(),
                redelivery=True,
                status="",
                status_code=None,
            )
            self._queue(again)
            return again

    def _deliver(
        self, hook: Hook, repo: Repository, event: str, action: str | None, body: Json
    ) -> None:
        raw = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        guid = str(uuid.uuid4())
        secret = hook.secret.encode()
        headers = {
            "User-Agent": "GitHub-Hookshot/5d1a2b7",
            "Accept": "*/*",
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": guid,
            "X-GitHub-Hook-ID": str(hook.id),
            "X-GitHub-Hook-Installation-Target-ID": str((hook.app or repo).id),
            "X-GitHub-Hook-Installation-Target-Type": "integration" if hook.app else "repository",
        }
        if secret:
            for name, method in (("X-Hub-Signature", "sha1"), ("X-Hub-Signature-256", "sha256")):
                headers[name] = f"{method}={hmac.new(secret, raw, method).hexdigest()}"
        self._queue(
            Delivery(
                id=self.world.identity("D")["id"],
                guid=guid,
                hook=hook,
                repo=repo,
                event=event,
                action=action,
                body=raw,
                headers=headers,
                delivered_at=self.world.now(),
            )
        )

    def _queue(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        self._waiting.put(delivery)

    def _send_all(self) -> None:
        while delivery := self._waiting.get():
            self._send(delivery)

    def _send(self, delivery: Delivery) -> None:
        begun = monotonic()
        try:
            answer = self._client.post(
                delivery.hook.url, content=delivery.body, headers=delivery.headers
            )
        except httpx.TimeoutException:
            delivery.status, delivery.status_code = "timed out", 504
        except httpx.HTTPError:
            delivery.status, delivery.status_code = "failed to connect to host", 502
        else:
            delivery.response_headers = dict(answer.headers)
            delivery.response_body = answer.text
            delivery.status = "OK" if answer.is_success else answer.reason_phrase
            delivery.status_code = answer.status_code
        delivery.duration = round(monotonic() - begun, 2)


def _body(event: Event, repo: Repository) -> Json:
    body: Json = {} if event.action is None else {"action": event.action}
    for name, part in event.parts.items():
        if name in _WHOLE:
            body |= _WHOLE[name](part, repo)
        elif name == "pull_request" and event.name in _SIMPLE_PULL:
            body[name] = pulls.pull_simple(part)
        elif name in _PARTS:
            body[name] = _PARTS[name](part)
        elif name in _PARTS_OF_REPOSITORY:
            body[name] = _PARTS_OF_REPOSITORY[name](part, repo)
        elif name == "requested_reviewer":
            body[name] = base.user(part, repo.world)
        else:
            body[name] = part
    if event.name == "pull_request":
        body["number"] = event.parts["pull_request"].number
    return {**body, **_context(repo, event.by.login)}


def _context(repo: Repository, sender: str) -> Json:
    world = repo.world
    context: Json = {
        "repository": base.repository(repo),
        "sender": base.user(world.account(sender), world),
    }
    for app in world.apps.values():
        if app.installed:
            number = app.installation_of(repo.owner)
            context["installation"] = {"id": number, "node_id": app.node_id}
    return context


def hook_shape(hook: Hook, repo: Repository) -> Json:
    """Return a repository's webhook in the form of the API."""
    here = f"{base.api_of(repo)}/hooks/{hook.id}"
    return {
        "type": "Repository",
        "id": hook.id,
        "name": "web",
        "active": True,
        "events": ["*"],
        "config": {"content_type": "json", "insecure_ssl": "0", "url": hook.url},
        "created_at": base.time(hook.created_at),
        "updated_at": base.time(hook.created_at),
        "url": here,
        "test_url": f"{here}/test",
        "ping_url": f"{here}/pings",
        "deliveries_url": f"{here}/deliveries",
        "last_response": {"code": None, "status": "unused", "message": None},
    }


def delivery_item(delivery: Delivery) -> Json:
    """Return a delivery as JSON, in the form that the REST API lists."""
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": base.time(delivery.delivered_at),
        "redelivery": delivery.redelivery,
        "duration": delivery.duration,
        "status": delivery.status,
        "status_code": delivery.status_code or 0,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": None,
        "repository_id": delivery.repo.id,
        "throttled_at": None,
    }


def delivery_whole(delivery: Delivery) -> Json:
    return {
        **delivery_item(delivery),
        "url": delivery.hook.url,
        "request": {"headers": delivery.headers, "payload": json.loads(delivery.body)},
        "response": {"headers": delivery.response_headers, "payload": delivery.response_body},
    }
