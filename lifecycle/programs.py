"""What is done about the program: started, started again, stopped, given back."""

from collections.abc import Iterator
from typing import Final

from lifecycle import actions as do
from lifecycle import keys
from lifecycle.backoff import delay
from lifecycle.messages import Judged
from lifecycle.signals import Talk

_DAY_SECONDS: Final = 86_400.0


def start(judged: Judged) -> Iterator[do.Action]:
    """The first run, or the first one after a restore."""
    facts = judged.view.facts
    run = max(1, facts.run)
    ordered = keys.of_run("", run)
    if not any(key.startswith("start:") and key.endswith(ordered) for key in facts.pending):
        yield do.Start(
            key=keys.of_run("start:first", run),
            run=run,
            prompt=do.Prompt(name="start" if run == 1 else "resume"),
            resume=facts.agent.native_id,
        )


def restart(judged: Judged) -> Iterator[do.Action]:
    """A run that broke off is followed by another that goes on where it stopped.

    One that was lost with what it ran on uses up none of the agent's own tries.
    """
    view, facts, end = judged.view, judged.view.facts, judged.view.facts.agent.exit
    began = view.given or facts.created
    ended = end.at if end else facts.agent.since or began
    lost = end is not None and bool(end.lost)
    tries = view.losses if lost else view.crashes
    if view.passed(ended, delay(tries + 1, view.policy.restart_seconds)):
        run = facts.run + 1
        yield do.Start(
            key=keys.of_run("start:lost" if lost else "start:crash", run),
            run=run,
            prompt=do.Prompt(name="resume"),
            resume=facts.agent.native_id,
        )


def stop(judged: Judged) -> Iterator[do.Action]:
    """An outcome other than a merge ends the program at once and keeps the workspace."""
    run = judged.view.facts.run
    if run:
        yield do.Stop(key=keys.of_run("stop", run), run=run)


def give_back(judged: Judged) -> Iterator[do.Action]:
    """What ended without a merge keeps its workspace for a while; then it is released too."""
    view, facts = judged.view, judged.view.facts
    since = facts.ended.at if facts.ended else view.now
    if facts.run and view.passed(since, view.policy.workspace_days * _DAY_SECONDS):
        yield do.Release(key=keys.of_run("release", facts.run), run=facts.run)


def release(judged: Judged) -> Iterator[do.Action]:
    """After a merge the agent may finish its turn; then everything it held is given back."""
    view, facts = judged.view, judged.view.facts
    since = view.pull.merged_at if view.pull else None
    since = since or (facts.ended.at if facts.ended else view.now)
    idle = judged.signals.talk not in (Talk.ACTIVE, Talk.UNSURE)
    if facts.run and (idle or view.passed(since, view.policy.merged_grace_seconds)):
        yield do.Release(key=keys.of_run("release", facts.run), run=facts.run)
