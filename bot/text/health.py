"""Describes problems of the bot, with one function for each."""

from datetime import timedelta

from bot.text.next_action import BUTTONS
from lifecycle.read.sentences import duration


def standby(reason: str) -> str:
    """Say that this instance does not act. `reason` says why."""
    return f"this instance does not act: {reason}"


def no_leader() -> str:
    """Say that no process acts on the database."""
    return "no bot is running: start it with `mergewright serve`"


def no_scheduler() -> str:
    """Say that the periodic jobs do not run."""
    return "the periodic jobs are not running; the server's log says why"


def not_writable() -> str:
    """Say that the bot cannot write to its database."""
    return "the database cannot be written; check the disk and the server's log"


def sweep_late(seconds: float) -> str:
    """Say that the states of the agents are out of date. `seconds` is the age of the last sweep."""
    return f"the bot has not checked its agents for {_words(seconds)}; see the server's log"


def worker_failing(name: str) -> str:
    """Say that the last run of a worker failed."""
    return f"the last run of the worker `{name}` failed; the server's log says why"


def inbox_waits(count: int, seconds: float) -> str:
    """Say that deliveries wait for too long: `count` wait, the oldest for `seconds`."""
    many = "1 webhook delivery waits" if count == 1 else f"{count:,} webhook deliveries wait"
    return f"{many} to be processed, the oldest for {_words(seconds)}; see the server's log"


def failed_actions(count: int) -> str:
    """Say that the bot has given up actions of open sessions."""
    many = "1 action" if count == 1 else f"{count:,} actions"
    button = BUTTONS["retry"].label
    return f'the bot has given up on {many} of open sessions; press "{button}" on their pages'


def low_limit(account: str, resource: str, remaining: int, limit: int) -> str:
    """Say that a rate limit of GitHub is nearly used up."""
    unit = "points" if resource == "graphql" else "requests"
    left = f"{remaining:,} of {limit:,} {unit} are left"
    return f"GitHub's rate limit `{resource}` for {account}: {left}"


def _words(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))
