"""Describes problems of the bot: one function for each."""

from datetime import timedelta

from lifecycle.read.sentences import duration


def standby(reason: str) -> str:
    """Return that this instance does not act; `reason` says why."""
    return f"this instance is on standby: {reason}"


def no_leader() -> str:
    """Return that no process acts on the database."""
    return "no bot is running: start it by `mergewright serve`"


def no_scheduler() -> str:
    """Return that the periodic work is not done."""
    return "the scheduler is not running; the server's log says why"


def not_writable() -> str:
    """Return that the bot cannot write to its database."""
    return "the database cannot be written; check the disk and the server's log"


def sweep_late(seconds: float) -> str:
    """Return that the states of the agents are out of date."""
    return f"the bot has not checked its agents for {_words(seconds)}; see the server's log"


def worker_failing(name: str) -> str:
    """Return that the last run of a worker failed."""
    return f"the last run of the worker `{name}` failed; the server's log says why"


def inbox_waits(count: int, seconds: float) -> str:
    """Return that deliveries wait longer than they should."""
    many = "1 delivery waits" if count == 1 else f"{count:,} deliveries wait"
    return f"{many} to be processed, the oldest for {_words(seconds)}"


def failed_actions(count: int) -> str:
    """Return that actions of open sessions were given up."""
    many = "1 action" if count == 1 else f"{count:,} actions"
    return f"the bot has given up on {many} of open sessions; their pages offer a retry"


def low_limit(account: str, resource: str, remaining: int, limit: int) -> str:
    """Return that a rate limit of GitHub is nearly used up."""
    left = f"{remaining:,} of {limit:,} requests are left"
    return f"GitHub's rate limit `{resource}` for {account}: {left}"


def _words(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))
