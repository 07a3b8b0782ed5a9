"""Makes the client for the bot's GitHub account, and the client for people's sign-in."""

import os

from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.sign_in import GitHubSignIn
from bot.system.clock import Clock, utc_now
from bot.system.redaction import Redaction
from config.load import Secrets, secret_values
from config.settings import Settings


def github_client(settings: Settings, secrets: Secrets, clock: Clock = utc_now) -> GitHub:
    """Return a client for the configured GitHub and account; the caller closes it."""
    credentials = Credentials(
        token=secrets.token,
        app_id=settings.github.app_id,
        private_key=secrets.private_key,
        owners=settings.github.allowed_owners,
    )
    return GitHub(
        settings.github.api_url,
        credentials,
        write_interval_seconds=settings.timing.write_interval_seconds,
        redact=Redaction(secret_values(settings, secrets, os.environ), common_forms=True),
        clock=clock,
    )


def github_sign_in(settings: Settings, secrets: Secrets) -> GitHubSignIn | None:
    """Return the client for sign-in with GitHub, or None if people do not sign in with it."""
    if not settings.sign_in.takes_people:
        return None
    github = settings.github
    return GitHubSignIn(
        github.git_base, github.api_url, settings.sign_in.client_id, secrets.client_secret
    )
