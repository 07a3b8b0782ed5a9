"""Implements `mergewright notify` and the doctor's check of notifiers."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from bot.cli import context
from bot.cli.context import Installation
from bot.cli.github_checks import CheckResult, fail, ok, warn
from bot.cli.options import PROBLEM, CliError
from bot.cli.progress import progress
from bot.cli.screens import report, table
from bot.notify.message import Notification, NotSent, Sender
from bot.notify.senders import NotifierUnavailable, sender_of
from bot.system.clock import utc_now
from bot.system.locations import Paths
from bot.system.redaction import Redaction
from bot.text.notifications import trial
from config.contradictions import nearest
from config.load import secret_values
from config.notifier_secrets import unfit_secrets
from config.settings import Settings
from config.tables import NotifierSettings
from lifecycle.judge.reasons import Priority

_SECONDS = 10.0


class NotifierState(Struct, frozen=True, kw_only=True):
    """A notifier with its settings and the number of its messages that wait for delivery."""

    name: str
    settings: NotifierSettings
    undelivered: int


class Trial(Struct, frozen=True, kw_only=True):
    """The result of sending a test message by a notifier."""

    name: str
    error: str  #: Why it was not delivered; empty if it was.


def show(config: Path | None, *, as_json: bool) -> None:
    """Print all notifiers. Raises `CliError`."""
    settings = context.settings(config)
    waiting = _undelivered(settings)
    states = [
        NotifierState(name=name, settings=one, undelivered=waiting.get(name, 0))
        for name, one in settings.notify.items()
    ]
    report(states, _listing(states), as_json=as_json)


def _undelivered(settings: Settings) -> dict[str, int]:
    if not settings.notify or not Paths(settings.data).database.exists():
        return {}
    with context.store(settings) as store:
        return store.notifications.undelivered()


def send_trials(config: Path | None, only: str, *, as_json: bool) -> bool:
    """Send a test message by the notifier `only`, or by all notifiers if it is empty.

    Returns whether all were sent. Raises `CliError`.
    """
    installed = context.installation(config)
    settings = installed.settings
    if only and only not in settings.notify:
        raise CliError(f"no notifier {only!r}; {nearest(only, dict(settings.notify))}")
    if not settings.notify:
        raise CliError("no notifier: add a table [notify.NAME]", PROBLEM)
    redact = Redaction(secret_values(settings, installed.secrets, os.environ), common_forms=True)
    with progress("Sending test messages ..."):
        trials = [
            Trial(name=name, error=redact(_send_trial(installed, name)))
            for name in settings.notify
            if only in ("", name)
        ]
    report(trials, _results(trials), as_json=as_json)
    return not any(one.error for one in trials)


def _send_trial(installed: Installation, name: str) -> str:
    """Send a test message. Returns why it was not delivered; empty if it was."""
    page = installed.settings.public_url
    words = trial(name, page)
    message = Notification.of(
        "test", utc_now(), Priority.INFO, words, {"notifier": name, "url": page}
    )
    try:
        _sender(installed, name).send(message, repeated=False)
    except (NotSent, NotifierUnavailable) as failure:
        return str(failure)
    return ""


def _sender(installed: Installation, name: str) -> Sender:
    """Return a notifier's sender. Raises `NotifierUnavailable`."""
    if problem := next(_unfit(installed, name), ""):
        raise NotifierUnavailable(problem)
    settings, secrets = installed.settings.notify[name], installed.secrets.notifiers
    return sender_of(name, settings, secrets, utc_now)


def _unfit(installed: Installation, name: str) -> Iterator[str]:
    """Yield a problem for each secret of a notifier that is missing or cannot be used."""
    settings, secrets = installed.settings.notify[name], installed.secrets.notifiers
    for key, variable in (("url", settings.url), ("secret", settings.secret)):
        if variable and variable not in secrets:
            yield f"set {variable}, or {variable}_FILE (notify.{name}.{key})"
    yield from unfit_secrets({name: settings}, secrets)


def check(installed: Installation) -> CheckResult:
    """Check all notifiers' secrets, and connect to the receivers whose addresses are known."""
    if not installed.settings.notify:
        return ok("none configured")
    unfit: list[str] = []
    unreached: list[str] = []
    for name in installed.settings.notify:
        try:
            address = _sender(installed, name).address()
        except (NotSent, NotifierUnavailable) as failure:
            unfit.append(f"{name}: {failure}")
            continue
        if address and (problem := _problem(address)):
            unreached.append(f"{name}: {address[0]}:{address[1]} cannot be reached: {problem}")
    if unfit:
        return fail("some cannot send anything", "\n-> ".join(unfit))
    remedy = "to send a test message: mergewright notify --test"
    if unreached:
        return warn("; ".join(unreached), remedy)
    return ok(f"{', '.join(installed.settings.notify)}; {remedy}")


def _problem(address: tuple[str, int]) -> str:
    """Return why no server answers at the host and port; empty if one does."""
    try:
        socket.create_connection(address, _SECONDS).close()
    except OSError as failure:
        return failure.strerror or str(failure)
    except UnicodeError as failure:  # A part of the host's name is too long.
        return str(failure)
    return ""


def _listing(found: list[NotifierState]) -> RenderableType:
    """Return a table with a line for each notifier."""
    if not found:
        return Text("No notifiers: add a table [notify.NAME] to the configuration.")
    rows = table("NAME", "KIND", "PROJECTS", "PRIORITY", "QUIET", "DIGEST", "WAITING")
    for one in found:
        settings = one.settings
        rows.add_row(
            *(one.name, settings.kind, " ".join(settings.projects) or "all"),
            *(f"{settings.priority}+", settings.quiet or "-", settings.digest or "-"),
            str(one.undelivered),
        )
    return rows


def _results(found: list[Trial]) -> RenderableType:
    """Return a table with a line for each test message."""
    rows = table()
    for one in found:
        verdict = Text("fail", "red") if one.error else Text("sent", "green")
        rows.add_row(verdict, Text(one.name), Text(one.error, overflow="fold"))
    return rows
