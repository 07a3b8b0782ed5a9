"""The faults: each disturbs a bot with many sessions at random moments."""

import contextlib
import os
import random
import shutil
import signal
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.demo.audit import processes_of
from bot.github.auth import RENEW_EARLY
from bot.store import StoreDamaged
from bot.store.opening import PAGE_BYTES
from scripts.faults.lives import Lives
from scripts.faults.unrelated import send_unrelated

#: Injects a fault into these sessions at moments that the random generator chooses. The event is
#: set when all sessions have ended.
Inject = Callable[[Lives, random.Random, threading.Event], None]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to disturb the bot, with the configuration and time limits of its run."""

    name: str
    inject: Inject
    about: str  #: What happens, as a clause.
    bots: int = 1  #: The number of bots on the same database.
    module: str = "bot.cli"  #: The Python module that the bots run.
    runs_may_repeat: bool = False  #: It kills agents, so a prompt may be sent again in a new run.
    disk_mb: int = 0  #: The size in MB of a disk for the bot's data; 0: the disk of this machine.
    app: bool = False  #: Whether the bot is an App, not an account with a token.
    descriptors: int = 0  #: The hard limit of a bot's open files; 0: the limit of this machine.
    isolation: str = ""  #: The isolation of its agents; empty: any.
    seconds: float = 120.0  #: So long without progress is a violation.
    most_seconds: float = 900.0  #: Unfinished sessions are a violation after this time.


#: A bot without work makes fewer API requests than this in five seconds.
_FEW_REQUESTS = 25
#: How far ahead the clock is. GitHub accepts no signature from more than a minute ahead; a bot that
#: starts more than five minutes ahead takes its agents for idle.
_AHEAD_SECONDS = (120.0, 240.0)
#: The bot ends orphans of a supervisor within two sweeps, which are late on a busy machine.
_ORPHAN_SECONDS = 30.0
_EXIT_SECONDS = 120.0


def kills(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Kill the bot with SIGKILL thirty times, also while it starts."""
    (bot,) = lives.bots
    for number in range(1, 31):
        if dice.random() > 0.25:
            bot.wait_until_ready()
        if over.wait(dice.uniform(0.0, 1.5)):
            return
        bot.kill()
        lives.log(f"the bot is killed ({number})")
        bot.start()


def freezes(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Suspend the leading one of two bots with SIGSTOP for longer than its lease, six times."""
    for number in range(1, 7):
        if over.wait(dice.uniform(0.2, 3.0)):
            return
        leader = lives.wait_for_leader()
        with leader.suspended():
            lives.log(f"{leader.name} is suspended ({number})")
            if over.wait(dice.uniform(4.0, 8.0)):
                return
        if not over.wait(dice.uniform(0.0, 1.0)) and not leader.alive:
            leader.start()  # It noticed that another had taken over, and ended itself.


def terminals(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Kill all tmux servers with SIGKILL three times, with the agents in them.

    Each time, an agent has just received a message, which may be lost with its server.
    """
    for number in range(1, 4):
        if over.wait(dice.uniform(1.0, 8.0)):
            return
        before = lives.messages_received()
        while lives.messages_received() == before:
            if over.wait(0.02):
                return
        over.wait(dice.uniform(0.0, 0.3))
        servers = [pid for pid, command in processes_of(lives.folder) if _is_tmux(command)]
        for pid in servers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        lives.log(f"the tmux servers are killed ({number})")


def supervisors(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Kill supervisors of agents with SIGKILL, ten times, so that their children are orphaned."""
    folders = set[Path]()
    for number in range(1, 11):
        if over.wait(dice.uniform(0.3, 2.0)):
            return
        found = [
            (pid, command)
            for pid, command in processes_of(lives.folder)
            if "supervise.py" in command and not _is_tmux(command)
        ]
        if found:
            pid, command = dice.choice(found)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            folders.add(Path(command.split(" ")[-1]))
            lives.log(f"a supervisor is killed ({number})")
    deadline, left = time.monotonic() + _ORPHAN_SECONDS, ["unknown"]
    while left and time.monotonic() < deadline:
        time.sleep(0.2)
        commands = [command for folder in folders for _, command in processes_of(folder)]
        left = [command for command in commands if command.startswith("sleep")]
    lives.violations_seen += [f"{command} outlives its supervisor" for command in left]


def engines(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Kill dockerd, containerd or both six times, and start them again up to 5 seconds later.

    The programs in the containers survive. New agents are started once the engine runs again.
    """
    engine = lives.engine
    if engine is None or engine.below is None:
        raise RuntimeError("there is no engine with two daemons")
    both = (engine.below, engine)  # The lower one starts first.
    for number, killed in enumerate(dice.sample([*(both[:1], both[1:], both)] * 2, 6), 1):
        if over.wait(dice.uniform(0.3, 4.0)):
            return
        for daemon in killed:
            daemon.end(signal.SIGKILL)
        names = " and ".join(daemon.name for daemon in killed)
        lives.log(f"{names} killed ({number})")
        over.wait(dice.uniform(0.2, 5.0))
        for daemon in killed:
            daemon.start()
        lives.log(f"{names} started again ({number})")


def connections(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Reset the connection at 3 % of the chunks between the bot and GitHub, in both directions."""
    lives.proxy.seed(dice.getrandbits(32))
    lives.proxy.resets = 0.03
    over.wait()
    lives.log(f"{lives.proxy.count} connections were reset")


def clock(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Make the machine's clock look wrong to the bot, by up to an hour, four times, then right."""
    for number in range(1, 6):
        if over.wait(dice.uniform(1.0, 6.0)):
            return
        _set_clock(lives, dice.uniform(-3600.0, 3600.0) if number < 5 else 0.0)


def app_clock(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Restart the bot while its clock is minutes ahead, then run the fault `clock`.

    GitHub uses its own time to check an App's signatures and to expire the App's tokens. During
    this fault, the tokens are so short-lived that the bot renews them every few seconds.
    """
    (bot,) = lives.bots
    lives.github.world.token_lasts = RENEW_EARLY + timedelta(seconds=5)
    if over.wait(dice.uniform(0.5, 4.0)):
        return
    bot.kill()
    _set_clock(lives, dice.uniform(*_AHEAD_SECONDS))
    bot.start()
    lives.wait_for_leader()  # A bot reads the clock when it starts.
    clock(lives, dice, over)


def disk(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Fill the disk that has the bot's data, four times, for 2 to 6 seconds each."""
    ballast = lives.paths.data / "ballast"
    for number in range(1, 5):
        if over.wait(dice.uniform(0.5, 4.0)):
            return
        lives.log(f"the disk is full ({number})")
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(65536))
                file.flush()
        over.wait(dice.uniform(2.0, 6.0))
        ballast.unlink()


def damage(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Damage the database, twice; the bot must exit, and continue with the restored database."""
    (bot,) = lives.bots
    database = lives.paths.database
    for number in range(1, 3):
        if over.wait(dice.uniform(1.0, 5.0)):
            return
        bot.kill()
        files = [path for path in database.parent.glob(f"{database.name}*") if path.is_file()]
        copies = {path: path.read_bytes() for path in files}
        how = dice.choice((_zero_a_page, _cut_in_half))
        how(database, dice)
        # A page may be free, or have a newer version in the write-ahead log.
        harmless = not _is_damaged(database)
        what = f"{how.__name__[1:].replace('_', ' ')} of the database"
        lives.log(f"{what} ({number}){', without effect' if harmless else ''}")
        bot.start()
        if harmless:
            continue
        if (code := bot.wait(_EXIT_SECONDS)) != StoreDamaged.EXIT_CODE:
            lives.violations_seen.append(f"the bot exits with {code} on a damaged database")
        bot.kill()
        for path in database.parent.glob(f"{database.name}*"):
            path.unlink()
        for path, content in copies.items():
            path.write_bytes(content)
        bot.start()


def flood(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Send 20,000 deliveries about issues and pull requests without a session."""
    (bot,) = lives.bots
    before, most = lives.api_requests(), 100 + 60 * lives.sessions
    repo = lives.scene.repo
    repository = {"id": repo.id, "full_name": repo.full_name, "name": repo.name}
    send_unrelated(bot.url, lives.scene.secret, repository, 20_000, dice, over)
    spent, seen = 0, -_FEW_REQUESTS
    while seen + _FEW_REQUESTS <= spent <= most:  # Sessions come first: the rest may be read later.
        seen = spent
        time.sleep(5.0)
        spent = lives.api_requests() - before
    lives.log(f"{spent} API requests since the flood began")
    if spent > most:
        lives.violations_seen.append(f"unrelated deliveries: {spent} API requests were made")


def descriptors(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Hold 1,500 idle connections to the bot, three times, for 3 to 8 seconds each."""
    (bot,) = lives.bots
    for number in range(1, 4):
        if over.wait(dice.uniform(0.5, 3.0)):
            return
        with contextlib.ExitStack() as held:
            for _ in range(1500):
                with contextlib.suppress(OSError):
                    held.enter_context(socket.create_connection(("127.0.0.1", bot.port), 1.0))
            lives.log(f"idle connections are held ({number})")
            if not bot.is_healthy():
                lives.violations_seen.append("the bot is silent beside idle connections")
            over.wait(dice.uniform(3.0, 8.0))


FAULTS: Sequence[Fault] = (
    Fault(name="freezes", inject=freezes, bots=2, about="the leading bot is suspended"),
    Fault(name="kills", inject=kills, about="the bot is killed"),
    Fault(
        name="terminals",
        inject=terminals,
        runs_may_repeat=True,
        about="the tmux servers are killed",
    ),
    Fault(
        name="clock",
        inject=clock,
        module="scripts.faults.shifted_bot",
        about="the machine's clock jumps",
    ),
    Fault(
        name="app-clock",
        inject=app_clock,
        module="scripts.faults.shifted_bot",
        app=True,
        about="the machine's clock jumps, and the bot is an App",
    ),
    Fault(name="disk", inject=disk, disk_mb=192, about="the disk is full"),
    Fault(name="damage", inject=damage, about="the database is damaged"),
    Fault(
        name="supervisors",
        inject=supervisors,
        runs_may_repeat=True,
        about="supervisors of agents are killed",
    ),
    Fault(
        name="engines",
        inject=engines,
        isolation="docker",
        most_seconds=600.0,
        about="the container engine is killed",
    ),
    Fault(name="connections", inject=connections, about="connections to GitHub are reset"),
    Fault(name="flood", inject=flood, about="unrelated webhooks arrive in masses"),
    Fault(
        name="descriptors",
        inject=descriptors,
        descriptors=1024,
        about="idle connections use up descriptors",
    ),
)


def _set_clock(lives: Lives, seconds: float) -> None:
    """Make the machine's clock look `seconds` wrong to the bot from now on; see `shifted_bot`."""
    with lives.clock.open("a") as file:
        file.write(f"{time.time()} {seconds}\n")
    lives.log(f"the clock is {seconds:+.0f} s wrong")


def _zero_a_page(database: Path, dice: random.Random) -> None:
    page = dice.randrange(max(1, database.stat().st_size // PAGE_BYTES))
    with database.open("r+b") as file:
        file.seek(page * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))


def _is_damaged(database: Path) -> bool:
    """Whether SQLite finds damage in a copy of the database and its write-ahead log."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (database, database.with_name(f"{database.name}-wal")):
            if path.exists():
                shutil.copy(path, folder)
        try:
            with contextlib.closing(sqlite3.connect(Path(folder) / database.name)) as copy:
                return bool(copy.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
        except sqlite3.DatabaseError:
            return True


def _cut_in_half(database: Path, dice: random.Random) -> None:
    del dice
    os.truncate(database, database.stat().st_size // 2)


def _is_tmux(command: str) -> bool:
    return Path(command.split(" ", 1)[0]).name.startswith("tmux")
