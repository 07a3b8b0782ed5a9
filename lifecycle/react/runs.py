"""What is done about the program: started, started again, stopped, given back."""

from typing import Final

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.judge.stages import parked
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.backoff import delay
from lifecycle.model.key import KeyKind, ParkCause, StartCause
from lifecycle.react.messages import review_prompt, waiting
from lifecycle.read.availability import Availability

_DAY_SECONDS: Final = 86_400.0


def start(judged: Judged) -> Wanted:
    """The first run, or the first one after a restore."""
    facts = judged.view.facts
    run = max(1, facts.run)
    if not any(key.kind is KeyKind.START and key.run == run for key in facts.pending):
        yield _start(judged, StartCause.FIRST, run)


def restart(judged: Judged) -> Wanted:
    """A run that broke off is followed by another that goes on where it stopped.

    One that was lost with what it ran on uses up none of the agent's own tries.
    """
    view, facts, end = judged.view, judged.view.facts, judged.view.facts.agent.exit
    began = view.instructed_at or facts.created
    ended = end.at if end else facts.agent.since or began
    lost = end is not None and bool(end.lost)
    tries = view.losses if lost else view.crashes
    if wait := view.wait(ended, delay(tries + 1, view.policy.restart_seconds)):
        yield wait
    else:
        yield from _next_run(judged, StartCause.LOST if lost else StartCause.CRASH)


def begin_again(judged: Judged) -> Wanted:
    """A person wants a new run, whatever the program is doing."""
    command = judged.view.command("restart")
    if command is not None and not judged.view.history.started_since(command.at):
        yield from _next_run(judged, StartCause.RESTART, command.key)


def hand_over(judged: Judged) -> Wanted:
    """A person wants another agent: it takes over at once, whatever the program is doing."""
    command = judged.view.requested_agent
    if command is not None:
        yield from _next_run(judged, StartCause.AGENT, command.key)


def resume(judged: Judged) -> Wanted:
    """What was ended in the middle of its work goes on, and what a person wants to go on."""
    view, end = judged.view, judged.view.facts.agent.exit
    over = view.history.ended.get(view.facts.run) or (end.at if end else view.now)
    if judged.signals.availability is Availability.INTERRUPTED or view.commanded_since(
        over, "resume"
    ):
        yield from _next_run(judged, StartCause.RESUME)


def _next_run(judged: Judged, cause: StartCause, command: str = "") -> Wanted:
    yield _start(judged, cause, judged.view.facts.run + 1, command)


def _start(judged: Judged, cause: StartCause, run: int, asked: str = "") -> do.Action:
    """A run that goes on with the conversation there is, or hands the session over.

    Who takes over had no part in that conversation, and is told what there is to do.
    """
    view, command = judged.view, judged.view.requested_agent
    if command is None:
        prompt = do.Prompt(name="start" if run == 1 else "resume")
        resume = view.facts.agent.native_id
        return do.Start(
            key=keys.start(cause, run, asked),
            run=run,
            prompt=prompt,
            resume=resume,
            waiting=tuple(waiting(view)),
        )
    reviews = command.kind == "review"
    prompt = do.Prompt(name="start" if run == 1 else "take_over")
    return do.Start(
        key=keys.start(cause, run, asked),
        run=run,
        prompt=review_prompt(view) if reviews else prompt,
        agent=command.text,
        covers=(keys.forward(command.key).of_run(run),) if reviews else (),
        waiting=tuple(waiting(view)),
    )


def pause(judged: Judged) -> Wanted:
    """The program of a paused session is ended; its conversation is kept, its slot is free."""
    if judged.view.instructed_at is not None:
        at_rest = judged.signals.availability in (
            Availability.IDLE,
            Availability.WAITING,
            Availability.EXITED,
        )
        yield _park(judged, ParkCause.AT_REST if at_rest else ParkCause.INTERRUPTED)


def park(judged: Judged) -> Wanted:
    """The program of one that has waited on people for long is ended, until its next cause."""
    view, pull = judged.view, judged.view.pull
    if parked(view):
        return
    times = [view.instructed_at, view.facts.agent.since, view.history.last_push]
    times += [pull.head_since, pull.green_since] if pull else []
    since = max(filter(None, times), default=view.facts.created)
    wait = view.wait(since, view.policy.park_seconds)
    yield wait or _park(judged, ParkCause.AT_REST)


def _park(judged: Judged, cause: ParkCause) -> do.Action:
    run = judged.view.facts.run
    return do.Stop(key=keys.park(cause, run), run=run)


def stop(judged: Judged) -> Wanted:
    """An outcome other than a merge ends the program at once and keeps the workspace."""
    run = judged.view.facts.run
    if run:
        yield do.Stop(key=keys.stop(run), run=run)


def give_back(judged: Judged) -> Wanted:
    """What ended without a merge keeps its workspace for a while; then it is released too."""
    view, facts = judged.view, judged.view.facts
    since = facts.ended.at if facts.ended else view.now
    if facts.run:
        wait = view.wait(since, view.policy.workspace_days * _DAY_SECONDS)
        yield wait or do.Release(key=keys.release(facts.run), run=facts.run)


def release(judged: Judged) -> Wanted:
    """After a merge the agent may finish its turn; then everything it held is given back."""
    view, facts = judged.view, judged.view.facts
    since = view.pull.merged_at if view.pull else None
    since = since or (facts.ended.at if facts.ended else view.now)
    idle = judged.signals.availability not in (Availability.ACTIVE, Availability.UNKNOWN)
    if facts.run:
        wait = None if idle else view.wait(since, view.policy.merge_grace_seconds)
        yield wait or do.Release(key=keys.release(facts.run), run=facts.run)
