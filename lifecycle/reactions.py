"""The table that turns a status into actions. Every status has a row, even the quiet ones.

A row's condition sees the signals alone; what it yields is keyed by its cause, so a cause that was
answered once is not answered again.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from lifecycle import actions as do
from lifecycle import keys
from lifecycle.backoff import delay
from lifecycle.messages import Judged, address_review, remind, repair, resolve_conflict
from lifecycle.policy import Mode
from lifecycle.reasons import ADVICE
from lifecycle.signals import (
    Ci,
    Output,
    PullStage,
    Signals,
    Stage,
    Talk,
    When,
    both,
    ci,
    merge,
    output,
    pull,
    stage,
    talk,
)
from lifecycle.status import Merge, Status

S = Status


class Reaction(NamedTuple):
    """One row: in which statuses, under which signals, what follows."""

    name: str
    statuses: frozenset[Status]
    when: When
    then: Callable[[Judged], Iterator[do.Action]]


UNDER_WAY: Final = frozenset(
    {
        S.WORKING,
        S.PR_OPEN,
        S.CI_FAILED,
        S.REVIEW_PENDING,
        S.CHANGES_REQUESTED,
        S.APPROVED,
        S.MERGEABLE,
        S.NEEDS_INPUT,
        S.STUCK,
    }
)
STOPPED: Final = frozenset({S.KILLED, S.TERMINATED, S.ERRORED, S.DONE})
EVERY: Final = frozenset(Status)


def always(_: Signals) -> bool:
    return True


# -- the program -----------------------------------------------------------------------------------


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
    """A run that broke off is followed by another that goes on where it stopped."""
    view, facts = judged.view, judged.view.facts
    began = view.given or facts.created
    ended = facts.agent.exit.at if facts.agent.exit else facts.agent.since or began
    if view.passed(ended, delay(view.crashes + 1, view.policy.restart_seconds)):
        run = facts.run + 1
        yield do.Start(
            key=keys.of_run("start:crash", run),
            run=run,
            prompt=do.Prompt(name="resume"),
            resume=facts.agent.native_id,
        )


def stop(judged: Judged) -> Iterator[do.Action]:
    """An outcome other than a merge ends the program at once and keeps the workspace."""
    run = judged.view.facts.run
    if run:
        yield do.Stop(key=keys.of_run("stop", run), run=run)


def release(judged: Judged) -> Iterator[do.Action]:
    """After a merge the agent may finish its turn; then everything it held is given back."""
    view, facts = judged.view, judged.view.facts
    since = view.pull.merged_at if view.pull else None
    since = since or (facts.ended.at if facts.ended else view.now)
    idle = judged.signals.talk not in (Talk.ACTIVE, Talk.UNSURE)
    if facts.run and (idle or view.passed(since, view.policy.merged_grace_seconds)):
        yield do.Release(key=keys.of_run("release", facts.run), run=facts.run)


# -- its work --------------------------------------------------------------------------------------


def publish(judged: Judged) -> Iterator[do.Action]:
    """Commits go to GitHub at the end of a turn."""
    head = judged.view.facts.work.head
    yield do.Publish(key=f"push:{head}", head=head)


def open_pull(judged: Judged) -> Iterator[do.Action]:
    """What was pushed becomes a pull request."""
    view, facts = judged.view, judged.view.facts
    if view.pushed:
        yield do.OpenPull(key=f"pull:{facts.branch}", head=facts.work.head, draft=view.policy.draft)


# -- people ----------------------------------------------------------------------------------------


def announce(judged: Judged) -> Iterator[do.Action]:
    """The issue says who is at work on it."""
    facts = judged.view.facts
    yield do.Comment(
        key="comment:started",
        number=facts.issue.number,
        topic="started",
        values={"session": facts.session, "agent": facts.agent_type, "branch": facts.branch},
    )


def reply(judged: Judged) -> Iterator[do.Action]:
    """A thread is answered with the commit that was pushed after the agent heard it."""
    view, pull = judged.view, judged.view.pull
    pushed = view.past.pushes.get(pull.head) if pull else None
    if pull is None or pushed is None:
        return
    unheard = {remark.id for remark in view.unheard}
    for thread in view.threads:
        heard = [view.past.heard(f"heard:{remark.id}") for remark in thread.remarks]
        told = max((telling.at for telling in heard if telling), default=None)
        if told and told < pushed and not unheard & {remark.id for remark in thread.remarks}:
            yield do.Reply(
                key=f"reply:{thread.id}:{thread.remarks[-1].id}",
                number=pull.number,
                thread=thread.id,
                topic="done_in",
                values={"sha": pull.head},
            )


def acknowledge(judged: Judged) -> Iterator[do.Action]:
    """Every command is seen to have arrived; `help` is answered."""
    for wish in judged.view.facts.wishes:
        if wish.comment is not None:
            yield do.React(key=f"react:{wish.key}", comment=wish.comment, content="eyes")
        if wish.kind == "help":
            yield do.Comment(
                key=f"comment:help:{wish.key}",
                number=_conversation(judged),
                topic="help",
                values={"text": wish.text},
            )


def _conversation(judged: Judged) -> int:
    """Where people are talking: the pull request, or the issue before there is one."""
    pull = judged.view.pull
    return pull.number if pull else judged.view.facts.issue.number


def tell_people(judged: Judged) -> Iterator[do.Action]:
    """An open question or escalation is told once, with its remedy."""
    yield do.Comment(
        key=f"comment:{judged.cause}",
        number=_conversation(judged),
        topic="attention",
        values=_explained(judged),
    )


def tell_the_end(judged: Judged) -> Iterator[do.Action]:
    """An outcome other than a merge is told on the issue."""
    yield do.Comment(
        key=f"comment:ended:{judged.status}:{judged.reason}:r{judged.view.facts.run}",
        number=judged.view.facts.issue.number,
        topic="ended",
        values={**_explained(judged), "status": judged.status.value},
    )


def _explained(judged: Judged) -> dict[str, str]:
    advice = ADVICE.get(judged.reason)
    return {
        "session": judged.view.facts.session,
        "because": judged.because,
        "remedy": advice.remedy if advice else "",
    }


# -- the merge -------------------------------------------------------------------------------------


def land(judged: Judged) -> Iterator[do.Action]:
    """Merge by policy or by a person's word, at the judged commit; otherwise say it is ready."""
    view, pull = judged.view, judged.view.pull
    if pull is None:
        return
    wish = view.wish("merge")
    asked = wish is not None and wish.head == pull.head
    if view.policy.mode is Mode.MERGE or asked:
        yield do.MergePull(
            key=f"merge:{pull.head}",
            number=pull.number,
            sha=pull.head,
            method=view.policy.merge_method,
        )
    else:
        yield do.Comment(
            key=f"comment:ready:{pull.head}",
            number=pull.number,
            topic="ready",
            values={"sha": pull.head},
        )


def tidy(judged: Judged) -> Iterator[do.Action]:
    """After the merge: the branch goes by policy, and the issue is closed if GitHub did not."""
    view, pull, policy = judged.view, judged.view.pull, judged.view.policy
    if pull is None:
        return
    if policy.delete_branch:
        key = f"branch:{view.facts.branch}"
        yield do.DeleteBranch(key=key, branch=view.facts.branch, sha=pull.head)
    if policy.close_issue:
        yield do.CloseIssue(key="issue:close", number=view.facts.issue.number)


#: The agent can be given something to do: it finished its turn, or ended by itself.
at_rest = talk(Talk.QUIET, Talk.ENDED)
can_publish = both(at_rest, output(Output.UNPUSHED))
can_open = both(pull(PullStage.NONE), output(Output.PUSHED, Output.DIRTY))
#: At rest with nothing left to push: what is said now is about what people see.
can_hear = both(at_rest, output(Output.NOTHING, Output.PUSHED, Output.DIRTY))
#: `cleanup` alone does not say so: a session that was stopped reads as it too.
merged = stage(Stage.MERGED)

REACTIONS: Final = (
    Reaction("start", frozenset({S.SPAWNING}), always, start),
    Reaction("announce", frozenset({S.SPAWNING}) | UNDER_WAY, always, announce),
    Reaction("acknowledge", EVERY, always, acknowledge),
    Reaction("restart", UNDER_WAY, talk(Talk.CRASHED), restart),
    Reaction("publish", UNDER_WAY, can_publish, publish),
    Reaction("open_pull", UNDER_WAY, can_open, open_pull),
    Reaction("remind", UNDER_WAY, both(at_rest, output(Output.DIRTY)), remind),
    Reaction("repair", UNDER_WAY, both(can_hear, ci(Ci.FAILING)), repair),
    Reaction("address_review", UNDER_WAY, can_hear, address_review),
    Reaction(
        "resolve_conflict", UNDER_WAY, both(can_hear, merge(Merge.CONFLICT)), resolve_conflict
    ),
    Reaction("reply", UNDER_WAY, always, reply),
    Reaction("tell_people", frozenset({S.NEEDS_INPUT, S.STUCK}), always, tell_people),
    Reaction("land", frozenset({S.MERGEABLE}), always, land),
    Reaction("tidy", frozenset({S.MERGED, S.CLEANUP}), merged, tidy),
    Reaction("release", frozenset({S.MERGED}), always, release),
    Reaction("stop", STOPPED, always, stop),
    Reaction("tell_the_end", STOPPED, always, tell_the_end),
)

#: The rows of each status, in their order.
ANSWERS: Final = {
    status: tuple(row for row in REACTIONS if status in row.statuses) for status in Status
}

#: Statuses in which nothing follows by itself: somebody else has to move.
QUIET: Final = frozenset({S.QUEUED, S.PAUSED})
