"""Starts, restarts and stops the agent's program, and removes its workspace at the end."""

from typing import Final

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.key import KeyKind, ParkCause, StartCause
from lifecycle.model.names import agent_of
from lifecycle.model.policy import delay
from lifecycle.model.status import Origin
from lifecycle.react.messages import ADOPT, CHAT, START, discussion, review_prompt, waiting
from lifecycle.read import causes
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import SessionView

_DAY_SECONDS: Final = 86_400.0
_AT_REST: Final = ParkCause.AT_REST
_RESTS: Final = frozenset({Availability.IDLE, Availability.WAITING, Availability.EXITED})
#: In a chat these states count as rest too: a stop interrupts only a turn, and only the person
#: continues the chat.
_RESTS_IN_CHAT: Final = _RESTS | {
    Availability.NONE,
    Availability.BLOCKED,
    Availability.CRASHED,
}


def start(judged: Judged) -> Wanted:
    """Start the first run of a new or restored session."""
    facts = judged.view.facts
    run = max(1, facts.run)
    if not any(key.kind is KeyKind.START and key.run == run for key in facts.pending):
        yield _start(judged, StartCause.FIRST)


def restart(judged: Judged) -> Wanted:
    """Start another run after a failed one, with growing delays, to resume the conversation.

    Runs that were lost with their machine or runtime are counted apart from those that failed.
    """
    view, facts, end = judged.view, judged.view.facts, judged.view.facts.agent.exit
    began = view.instructed_at or facts.created
    ended = end.at if end else facts.agent.since or began
    lost = end is not None and bool(end.lost)
    cause = StartCause.LOST if lost else StartCause.CRASH
    wait = view.wait(
        ended, delay(causes.runs_in_a_row(view, cause) + 1, view.policy.restart_seconds)
    )
    yield wait or _start(judged, cause)


def restart_on_command(judged: Judged) -> Wanted:
    """Start a new run on the command `restart`, even during a turn of the agent."""
    command = judged.view.command("restart")
    if command is not None and not judged.view.history.started_since(command.at):
        yield _start(judged, StartCause.RESTART, command.key)


def hand_over(judged: Judged) -> Wanted:
    """Start a run of another agent on command, even during a turn of the current one."""
    command = judged.view.requested_agent
    if command is not None:
        yield _start(judged, StartCause.AGENT, command.key)


def resume(judged: Judged) -> Wanted:
    """After a stop during a turn, or on the command `resume`, start a run that continues the work.

    A chat that is not paused gets a new run whenever its program has ended or was stopped.
    """
    view, end = judged.view, judged.view.facts.agent.exit
    availability = judged.signals.availability
    if view.is_chat:
        # Its program runs unless it is paused; the question of a program that is gone is void.
        if view.parked or availability is not Availability.WAITING:
            yield _start(judged, StartCause.RESUME)
        return
    over = view.history.ended.get(view.facts.run) or (end.at if end else view.now)
    asked = availability is Availability.EXITED and view.commanded_since(over, "resume")
    if asked or availability is Availability.INTERRUPTED:
        yield _start(judged, StartCause.RESUME)


def _start(judged: Judged, cause: StartCause, asked: str = "") -> do.Action:
    """Return the action that starts a run of the requested agent, or else of the current one.

    The current agent resumes its conversation. `asked`: the key of the command that asks for the
    run; empty without such a command.
    """
    view, command = judged.view, judged.view.requested_agent
    run = max(1, view.facts.run) if cause is StartCause.FIRST else view.facts.run + 1
    prompt = _beginning(view, run, takes_over=command is not None)
    reviews = command is not None and command.kind == "review"
    first = cause is StartCause.FIRST
    covers = [keys.forward(command.key).of_run(run)] if command and reviews else []
    covers += [keys.remark(one.id).of_run(run) for one in view.discussion] if first else []
    return do.Start(
        key=keys.start(cause, run, asked),
        run=run,
        prompt=review_prompt(view) if reviews else prompt,
        resume="" if command else view.facts.agent.native_id,
        agent=agent_of(command.text) if command else "",
        permission_mode=view.permission_mode,
        covers=tuple(covers),
        discussion=discussion(view) if first else (),
        waiting=tuple(waiting(view, START if first else "")),
    )


def _beginning(view: SessionView, run: int, *, takes_over: bool) -> do.Prompt:
    """Return the usual prompt for the beginning of a run.

    Runs that start for a message or a review get a different prompt. In a chat, the prompt of the
    first run is the person's first message. If there is no such message, and in later runs of a
    chat, the prompt's name is empty, and the agent's program starts without a message.
    """
    if view.is_chat:
        said = run == 1 and view.facts.issue.body
        return do.Prompt(name=CHAT if said else "")
    if run == 1:
        return do.Prompt(name=ADOPT if view.facts.origin is Origin.PULL else START)
    return do.Prompt(name="take_over" if takes_over else "resume")


def pause(judged: Judged) -> Wanted:
    """Stop the program of a paused session to free its slot; its conversation is kept."""
    if judged.view.instructed_at is not None:
        at_rest = judged.signals.availability in (_RESTS_IN_CHAT if judged.view.is_chat else _RESTS)
        yield _park(judged, _AT_REST if at_rest else ParkCause.INTERRUPTED)


def park(judged: Judged) -> Wanted:
    """Stop a program that has waited `Policy.park_seconds` for people; a message resumes it."""
    view, pull = judged.view, judged.view.pull
    if view.parked or view.is_chat:  # A chat has its own limit.
        return
    times = (
        view.instructed_at,
        view.facts.agent.since,
        view.history.last_push(),
        pull.head_since if pull else None,
        pull.green_since if pull else None,
    )
    since = max(filter(None, times), default=view.facts.created)
    yield view.wait(since, view.policy.park_seconds) or _park(judged, _AT_REST)


def _park(judged: Judged, cause: ParkCause) -> do.Action:
    run = judged.view.facts.run
    return do.Stop(key=keys.park(cause, run), run=run)


def stop(judged: Judged) -> Wanted:
    """Stop the program at once after an outcome other than a merge; keep the workspace."""
    run = judged.view.facts.run
    if run:
        yield do.Stop(key=keys.stop(run), run=run)


def release_later(judged: Judged) -> Wanted:
    """Release the workspace of an unmerged session `Policy.workspace_days` after its end."""
    view, facts = judged.view, judged.view.facts
    since = facts.ended.at if facts.ended else view.now
    if facts.run:
        wait = view.wait(since, view.policy.workspace_days * _DAY_SECONDS)
        yield wait or do.Release(key=keys.release(facts.run), run=facts.run)


def release(judged: Judged) -> Wanted:
    """Release runtime and workspace once the work is merged and the agent's turn has ended.

    They are released `Policy.merge_grace_seconds` after the merge even if the turn has not ended.
    """
    view, facts = judged.view, judged.view.facts
    since = view.pull.merged_at if view.pull else None
    since = since or (facts.ended.at if facts.ended else view.now)
    idle = judged.signals.availability not in (Availability.ACTIVE, Availability.UNKNOWN)
    if facts.run:
        wait = None if idle else view.wait(since, view.policy.merge_grace_seconds)
        yield wait or do.Release(key=keys.release(facts.run), run=facts.run)
