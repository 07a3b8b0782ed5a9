"""The manifest of the GitHub App, and its conversion to credentials.

See https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from msgspec import Struct

from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.github_app import PERMISSIONS
from bot.github.shapes import Login
from bot.intake.events import EVENTS

#: Every App gets these events and cannot subscribe to them. GitHub refuses manifests with events
#: that the permissions do not cover; `merge_group` requires `merge_queues`.
_UNASKED = {"installation", "installation_repositories", "ping"}
#: The events that the App subscribes to.
EVENTS_ASKED = sorted(EVENTS.keys() - _UNASKED)
#: GitHub's limit for the name of an App.
_NAME_LENGTH = 34


class NewApp(Struct, frozen=True):
    """A new App with its credentials. The repr contains no secret."""

    id: int
    slug: str
    html_url: str
    owner: Login
    pem: str
    client_id: str = ""
    client_secret: str = ""
    webhook_secret: str | None = None

    def __repr__(self) -> str:
        return f"NewApp({self.id})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return only the id, so that tracebacks printed by Rich do not show the credentials."""
        return [("id", self.id)]


def callback_url(public_url: str) -> str:
    """Return the URL to which GitHub sends people back after sign-in.

    `public_url` ends with a slash.
    """
    return f"{public_url}login/callback"


def webhook_url(public_url: str) -> str:
    """Return the URL to which GitHub sends webhooks. `public_url` ends with a slash."""
    return f"{public_url}webhooks/github"


def manifest(owner: str, public_url: str, callback: str) -> Mapping[str, object]:
    """Return the manifest of a private App with the least permissions.

    `public_url` is the server's URL with a trailing slash; GitHub sends the browser to `callback`
    with a code.
    """
    return {
        "name": f"mergewright-{owner}"[:_NAME_LENGTH].rstrip("-"),
        "url": public_url,
        "hook_attributes": {"url": webhook_url(public_url), "active": True},
        "redirect_url": callback,
        "callback_urls": [callback_url(public_url)],
        "public": False,
        "default_permissions": {one.name: one.level for one in PERMISSIONS},
        "default_events": EVENTS_ASKED,
    }


def converted(api_url: str, code: str) -> NewApp:
    """Exchange the code that GitHub sent for the credentials of the new App.

    Raises `GitHubFailure`.
    """
    with closing(GitHub(api_url, Credentials())) as github:
        return github.convert_manifest(code, NewApp)
