"""Runs the bot as a process: sets up logging, handles signals, returns the exit status."""

import logging
import os
import signal
import time
from collections.abc import Callable

from bot.app.application import App
from bot.app.reloading import NotReloaded, ReloadResult, changed
from bot.notify.senders import NotifierUnavailable
from bot.store import StoreDamaged, StoreFailure
from bot.system.clock import SteadyClock, utc_now
from bot.system.descriptors import raise_limit
from bot.system.http_server import CannotListen
from bot.system.isolation import problems, unisolated
from bot.system.log import set_up_log
from bot.system.redaction import Redaction
from bot.system.tracing import TracingUnavailable, set_up_tracing, stop_tracing
from bot.text.prompts import PromptError
from config.load import VARIABLES, Secrets, secret_values
from config.settings import Settings
from runtimes.base import RuntimeFailure

log = logging.getLogger(__name__)

#: Failures that keep the bot from starting and that a person can fix; each names its remedy.
CANNOT_START = (
    CannotListen,
    NotifierUnavailable,
    OSError,
    PromptError,
    RuntimeFailure,
    StoreFailure,
    TracingUnavailable,
)
#: The bot warns about a limit on open files below this, which leaves few connections to agents and
#: pages.
_FEW_FILES = 4096
#: How long a reloaded bot waits for its lease at most, before it reports the result.
_LEAD_SECONDS = 5.0


def serve(
    settings: Settings,
    secrets: Secrets,
    load: Callable[[], tuple[Settings, Secrets]] | None = None,
    *,
    new_database: bool = False,
) -> None:
    """Run the bot until it is ended by SIGTERM or SIGINT, or can no longer act.

    On SIGHUP, `load` reads the configuration again, and the bot continues with it in the same
    process, while agents keep running. If the configuration is refused, the bot continues with the
    old one. SIGHUP stops the bot if `load` is None or the bot's terminal was closed. If running
    work does not finish within 5 seconds, the process exits, with status 1 if the bot was to
    continue after a SIGHUP.

    The exit status is 1 if the bot lost its lease, and `StoreDamaged.EXIT_CODE` if its database is
    damaged. `new_database` says whether an empty database may be created in a folder with files of
    sessions. Raises one of `CANNOT_START` if the bot cannot start. On SIGHUP, raises it only if the
    bot cannot start with the old configuration either.
    """
    set_up_log(settings.log, Redaction(secret_values(settings, secrets, os.environ)))
    if (files := raise_limit()) < _FEW_FILES:
        log.warning(
            "this process may have only %s files open: raise the limit of its service "
            "(LimitNOFILE, ulimit -n) to %s or more",
            *(files, _FEW_FILES),
        )
    for name in (*VARIABLES.values(), *settings.notifier_variables):
        # Child processes (git, tmux, agents) must not see these secrets.
        os.environ.pop(name, None)
    signals = _Signals()
    app = _started(settings, secrets, new_database=new_database)
    while True:
        app.wait(signals.came)
        if damage := app.wiring.store.damage:
            # Exit like a crash: the next bot repeats unfinished actions, and agents keep running.
            log.critical("the bot stops: %s", damage)
            logging.shutdown()
            os._exit(StoreDamaged.EXIT_CODE)
        if app.ended or signals.end or load is None or signals.terminal_closed():
            break
        signals.reload = False
        wanted = _load_again(load, settings, secrets)
        if isinstance(wanted, ReloadResult):
            _report(wanted, app)
            continue
        differences = changed(settings, wanted[0]) or ("secrets",)
        _stop(app, reloads=True)
        try:
            app, refused = _started(*wanted), ""
        except CANNOT_START as failure:
            app, refused = _started(settings, secrets), str(failure)
        else:
            settings, secrets = wanted
        _wait_to_lead(app)
        _report(ReloadResult(utc_now(), () if refused else differences, refused), app)
    _stop(app)
    stop_tracing()
    if app.wiring.leader_lease.lost:
        raise SystemExit(1)


class _Signals:
    """Records which signals arrived. The handlers only set flags."""

    def __init__(self) -> None:
        self.end = self.reload = False
        self._has_terminal = _has_terminal()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(self, "end", True))
        signal.signal(signal.SIGHUP, lambda *_: setattr(self, "reload", True))

    def came(self) -> bool:
        """Whether a signal to end or to reload arrived."""
        return self.end or self.reload

    def terminal_closed(self) -> bool:
        """Whether the bot's terminal was closed. SIGHUP then ends the bot instead of reloading."""
        return self._has_terminal and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _started(settings: Settings, secrets: Secrets, *, new_database: bool = False) -> App:
    set_up_log(settings.log, Redaction(secret_values(settings, secrets, os.environ)))
    set_up_tracing(settings.tracing)
    app = App(settings, secrets, new_database=new_database, clock=SteadyClock())
    for problem in problems(settings):
        log.error("agents are not started: %s", problem)
    if warning := unisolated(settings):
        log.warning("%s", warning)
    try:
        app.start()
    except CANNOT_START:
        app.stop()
        raise
    host, port = settings.server.host, app.server.port
    log.info("listening on %s, port %s; public URL: %s", host, port, settings.public_url)
    return app


def _wait_to_lead(app: App) -> None:
    """Wait up to 5 seconds until this bot has the lease, because another one may still hold it."""
    until = time.monotonic() + _LEAD_SECONDS
    while app.wiring.leader_lease.standby_reason and time.monotonic() < until:
        time.sleep(_LEAD_SECONDS / 100)


def _stop(app: App, *, reloads: bool = False) -> None:
    """Stop the bot. If threads do not finish in time, end the process.

    `reloads` says whether the bot is to start again. If so, or if it lost its lease, the ended
    process exits with 1, so that systemd restarts it.
    """
    if not app.stop():
        log.warning("stopped while work was under way: the next start repeats it")
        logging.shutdown()
        os._exit(int(reloads or app.wiring.leader_lease.lost))


def _load_again(
    load: Callable[[], tuple[Settings, Secrets]], settings: Settings, secrets: Secrets
) -> tuple[Settings, Secrets] | ReloadResult:
    """Return the new configuration, or a result that says it is refused or unchanged."""
    try:
        wanted = load()
    except NotReloaded as refusal:
        return ReloadResult(utc_now(), refused=str(refusal))
    if wanted[0].data != settings.data:
        return ReloadResult(utc_now(), refused="server.data cannot change while the bot runs")
    return ReloadResult(utc_now()) if wanted == (settings, secrets) else wanted


def _report(result: ReloadResult, app: App) -> None:
    """Log and store how a reload ended. A refusal is an incident until the next success."""
    store = app.wiring.store
    if result.refused:
        log.error("the configuration was not reloaded: %s", result.refused)
        text = f"The changed configuration was refused: {result.refused}"
        store.incidents.report("reload", text, result.at)
    else:
        log.info("reloaded: %s", ", ".join(result.changed) or "nothing has changed")
        store.incidents.clear("reload", result.at)
    result.write(app.wiring.paths.last_reload)
