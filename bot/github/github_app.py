"""The GitHub App: the permissions that it needs, its installations and its webhook deliveries."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from bot.github.api_client import ApiClient
from bot.github.rest import (
    AppInstallation,
    HookConfiguration,
    InstalledRepositories,
    InstalledRepository,
)
from bot.github.transport import decode

_DELIVERIES = "app/hook/deliveries"
#: Status codes below 500 of deliveries that are worth a retry; 0 means no connection. A delivery
#: that was refused for its content would be refused again.
_UNANSWERED = {0, 408, 429}


class AppPermission(Struct, frozen=True):
    """A repository permission, named as in GitHub's API."""

    name: str
    level: Literal["read", "write"]
    why: str  #: What the bot needs it for.


#: The permissions that all features together need; `write` includes `read`.
PERMISSIONS = (
    AppPermission("actions", "write", "read logs of failed jobs, rerun flaky jobs"),
    AppPermission(
        "checks", "write", "read and rerun checks, report the session's status as a check"
    ),
    AppPermission("contents", "write", "fetch, push and delete branches, merge"),
    AppPermission("issues", "write", "read, label and close issues, comment, react"),
    AppPermission("merge_queues", "write", "receive events of merge queues, enqueue pull requests"),
    AppPermission("metadata", "read", "see the repository and who may write to it"),
    AppPermission("pull_requests", "write", "open pull requests, read reviews, reply to them"),
    AppPermission("statuses", "read", "read commit statuses"),
)


def missing_permissions(granted: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each missing permission. `granted` maps permission names to levels."""
    return tuple(
        f"the permission {one.name}: {one.level} is missing"
        f" (it has {granted.get(one.name) or 'none'}); it is needed to {one.why}"
        for one in PERMISSIONS
        if granted.get(one.name) not in {one.level, "write", "admin"}
    )


class DeliveryAttempt(Struct, frozen=True):
    """One attempt to deliver a webhook."""

    id: int
    guid: str  #: The `X-GitHub-Delivery` header, the same in every attempt.
    delivered_at: datetime
    status_code: int


class AppWebhook:
    """Reads the App's webhook, and requests redelivery. Methods raise `TryLater` or `Refused`.

    Not available with a token, which has no webhook of its own; the webhooks of a repository can be
    read only by its administrators.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    @property
    def is_available(self) -> bool:
        """Whether the bot authenticates as an App, which may have a webhook."""
        return self._api.tokens.is_app

    def url(self) -> str:
        """Return the URL to which GitHub sends the App's webhooks; empty if the App has no webhook.

        https://docs.github.com/rest/apps/webhooks#get-a-webhook-configuration-for-an-app
        """
        return self._api.get_as_app("app/hook/config", HookConfiguration).url

    def failed_attempts(self, since: datetime) -> Iterator[DeliveryAttempt]:
        """Yield failed attempts since a time, newest first.

        Leaves out attempts that the receiving server refused and would refuse again, such as with
        the status 400.
        https://docs.github.com/rest/apps/webhooks#list-deliveries-for-an-app-webhook
        """
        for attempt in self._api.app_pages(_DELIVERIES, DeliveryAttempt, {"status": "failure"}):
            if attempt.delivered_at < since:
                return
            if attempt.status_code >= 500 or attempt.status_code in _UNANSWERED:
                yield attempt

    def redeliver(self, attempt: DeliveryAttempt) -> None:
        """Request one more attempt of a delivery. It gets the same `guid`.

        https://docs.github.com/rest/apps/webhooks#redeliver-a-delivery-for-an-app-webhook
        """
        self._api.do_as_app("POST", f"{_DELIVERIES}/{attempt.id}/attempts")


class AppInstallations:
    """Reads the App's installations. Methods raise `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def repositories(self) -> dict[str, list[InstalledRepository] | None]:
        """Return the repositories of each installation, by the account's login in lower case.

        The value is None if the installation is suspended or its account is not in
        `github.allowed-owners`.
        https://docs.github.com/rest/apps/apps#list-installations-for-the-authenticated-app
        """
        found: dict[str, list[InstalledRepository] | None] = {}
        for one in self._api.app_pages("app/installations", AppInstallation, {}):
            owner = one.account.login.lower() if one.account else ""
            usable = self._api.tokens.allows_owner(owner) and not one.suspended_at
            found[owner] = self._of(owner, one.id) if usable else None
        return found

    def _of(self, owner: str, installation: int) -> list[InstalledRepository]:
        """Return the repositories that an installation gives access to.

        Also stores the installation's id under `OWNER/*`, to request the token that may list them.
        https://docs.github.com/rest/apps/installations#list-repositories-accessible-to-the-app-installation
        """
        every = f"{owner}/*"
        self._api.installations[every] = installation
        return [
            repository
            for request, content in self._api.contents(every, "installation/repositories")
            for repository in decode(request, content, InstalledRepositories).repositories
        ]
