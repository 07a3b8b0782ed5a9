"""Implements `mergewright reload`: makes the running bot load its configuration again."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from bot.app.reloading import NotReloaded, ReloadResult
from bot.cli import context
from bot.cli.doctor import not_installed, refusals
from bot.cli.options import PROBLEM, CliError
from bot.store import runs_here
from bot.system.clock import utc_now
from bot.system.locations import Paths
from config.load import Secrets
from config.settings import Settings

_WAIT_SECONDS, _POLL_SECONDS = 60.0, 0.1


def loader(config: Path | None) -> Callable[[], tuple[Settings, Secrets]]:
    """Return a function that loads a running bot's configuration again.

    The function raises `NotReloaded` for a configuration that `serve` would refuse. It uses a copy
    of the environment, because the bot later removes secrets from the original.
    """
    path, environ = context.file(config).absolute(), dict(os.environ)

    def load() -> tuple[Settings, Secrets]:
        try:
            installed = context.installation(path, environ)
        except CliError as failure:
            raise NotReloaded(str(failure)) from None
        if problems := [*refusals(installed), *not_installed(installed)]:
            raise NotReloaded("\n".join(problems))
        return installed.settings, installed.secrets

    return load


def reload(config: Path | None) -> ReloadResult:
    """Make the bot on this machine reload; return the result, which may be a refusal.

    Raises `CliError`, also if there is no result within a minute.
    """
    settings = context.settings(config)
    with context.store(settings) as store:
        bot = store.lease.bot(utc_now()) or ""
    host, _, pid, _ = (bot.split(":") + [""] * 4)[:4]
    if not pid.isdigit():
        raise CliError(
            "no bot is running; `mergewright serve` starts with the new configuration", PROBLEM
        )
    path, asked = Paths(settings.data).last_reload, utc_now()
    why = "" if runs_here(bot) else "it has ended, or runs on another machine or in a container"
    try:
        if not why:
            os.kill(int(pid), signal.SIGHUP)
    except (ProcessLookupError, PermissionError) as failure:
        why = failure.strerror or str(failure)
    if why:
        raise CliError(
            f"the bot (process {pid} on {host.partition('/')[0]}) cannot be notified: {why};"
            " run this where it runs and as its user",
            PROBLEM,
        )
    until = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < until:
        result = ReloadResult.read(path)
        if result is not None and result.at >= asked:
            return result
        time.sleep(_POLL_SECONDS)
    raise CliError(f"the bot has not reloaded within {_WAIT_SECONDS:.0f} s; see its log", PROBLEM)
