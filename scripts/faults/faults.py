"""The faults, one row each: what they do to whole lives at random moments."""

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.demo.audit import processes_of
from scripts.faults.lives import Lives

#: A fault: the lives it disturbs, its dice, and an event that is set when the lives are over.
Inject = Callable[[Lives, random.Random, threading.Event], None]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to disturb the bot, and what its lives need to get over it."""

    name: str
    inject: Inject
    about: str
    bots: int = 1
    runs_may_repeat: bool = False  #: It kills agents: one may run and be asked again.
    seconds: float = 240.0  #: The time after which unfinished lives are a violation.


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
    """Stop the leading of two bots with SIGSTOP for longer than its lease, six times."""
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
    """Kill the tmux server with SIGKILL three times, with all agents in it."""
    for number in range(1, 4):
        if over.wait(dice.uniform(1.0, 8.0)):
            return
        servers = [pid for pid, command in processes_of(lives.folder) if _is_tmux(command)]
        for pid in servers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        lives.log(f"the tmux server is killed ({number})")


def supervisors(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Kill supervisors of agents with SIGKILL, ten times, so that nobody ends their children."""
    for number in range(1, 11):
        if over.wait(dice.uniform(0.3, 2.0)):
            return
        found = [pid for pid, command in processes_of(lives.folder) if "supervise" in command]
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(found), signal.SIGKILL)
            lives.log(f"a supervisor is killed ({number})")


def connections(lives: Lives, dice: random.Random, over: threading.Event) -> None:
    """Reset three of a hundred chunks between the bot and GitHub, answers included."""
    lives.proxy.seed(dice.getrandbits(32))
    lives.proxy.resets = 0.03
    while not over.wait(5.0):
        lives.log(f"{lives.proxy.count} connections were reset")


FAULTS: Sequence[Fault] = (
    Fault(name="freezes", inject=freezes, bots=2, about="the leading bot is suspended"),
    Fault(name="kills", inject=kills, about="the bot is killed"),
    Fault(
        name="terminals",
        inject=terminals,
        runs_may_repeat=True,
        about="the tmux server is killed",
    ),
    Fault(
        name="supervisors",
        inject=supervisors,
        runs_may_repeat=True,
        about="supervisors of agents are killed",
    ),
    Fault(name="connections", inject=connections, about="connections to GitHub are reset"),
)


def _is_tmux(command: str) -> bool:
    return Path(command.split(" ", 1)[0]).name.startswith("tmux")
