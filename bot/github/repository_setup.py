"""Creates the label and the webhook that the bot needs in a repository."""

from collections.abc import Sequence

from bot.github import rest
from bot.github.api_client import ApiClient
from bot.github.errors import IgnoreRefused


class RepositorySetup:
    """What `mergewright setup` writes to GitHub. Methods raise `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def create_label(self, repo: str, name: str, color: str, description: str) -> None:
        """Create a label in a repository, unless it has a label of that name.

        https://docs.github.com/rest/issues/labels#create-a-label
        """
        body = {"name": name, "color": color, "description": description}
        with IgnoreRefused("already_exists"):
            self._api.do(repo, "POST", "labels", body)

    def create_webhook(self, repo: str, url: str, secret: str, events: Sequence[str]) -> None:
        """Create a webhook in a repository, or update its existing one with this URL.

        https://docs.github.com/rest/repos/webhooks#create-a-repository-webhook
        https://docs.github.com/rest/repos/webhooks#update-a-repository-webhook
        """
        config = {"url": url, "content_type": "json", "secret": secret, "insecure_ssl": "0"}
        wanted = {"active": True, "events": [*events], "config": config}
        known = self._api.pages(repo, "hooks", rest.RepositoryWebhook)
        if same := next((hook for hook in known if hook.config.url == url), None):
            self._api.do(repo, "PATCH", f"hooks/{same.id}", wanted)
        else:
            self._api.do(repo, "POST", "hooks", {"name": "web", **wanted})
