"""The App as GitHub is asked to make it, and what comes back."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from msgspec import Struct

from bot.github.api_client import ApiClient
from bot.github.auth import Credentials
from bot.github.github_app import PERMISSIONS
from bot.github.shapes import Login
from bot.intake.events import EVENTS
from bot.system.clock import utc_now

#: Every App is told of these, and none can ask for them. GitHub refuses a manifest with any other
#: event that its permissions do not cover: `merge_group` is there for `merge_queues`.
_UNASKED = {"installation", "installation_repositories", "ping"}
#: What an App is to be told of.
EVENTS_ASKED = sorted(EVENTS.keys() - _UNASKED)
_TIMEOUT_SECONDS = 30.0
#: GitHub allows no longer name.
_NAME_LENGTH = 34


class NewApp(Struct, frozen=True):
    """What GitHub hands out for an App it just made. Its repr holds no secret."""

    id: int
    slug: str
    html_url: str
    owner: Login
    pem: str
    webhook_secret: str | None = None

    def __repr__(self) -> str:
        return f"NewApp({self.id})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for tracebacks that show variables."""
        return [("id", self.id)]


def manifest(owner: str, public_url: str, callback: str) -> Mapping[str, object]:
    """The App to make for an account: private, with the least it needs.

    `public_url` is where GitHub reaches the server, with a slash at its end; `callback` is where
    the browser is sent with the code.
    """
    return {
        "name": f"mergewright-{owner}"[:_NAME_LENGTH].rstrip("-"),
        "url": public_url,
        "hook_attributes": {"url": f"{public_url}webhooks/github", "active": True},
        "redirect_url": callback,
        "public": False,
        "default_permissions": {one.name: one.level for one in PERMISSIONS},
        "default_events": EVENTS_ASKED,
    }


def converted(api_url: str, code: str) -> NewApp:
    """The new App's keys for the code that the browser brought. Raises `GitHubFailure`."""
    with closing(ApiClient(api_url, Credentials(), _TIMEOUT_SECONDS, utc_now)) as calls:
        return calls.convert_manifest(code, NewApp)
