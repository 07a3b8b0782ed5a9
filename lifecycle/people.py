"""What people are told, and how they are answered."""

from collections.abc import Iterator

from lifecycle import actions as do
from lifecycle.messages import Judged
from lifecycle.reasons import ADVICE


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


def stand_back(judged: Judged) -> Iterator[do.Action]:
    """Who pushed to the agent's branch is told once that it leaves the branch to them."""
    pull = judged.view.pull
    if pull is not None and pull.person is not None and judged.view.yielded:
        yield do.Comment(
            key=f"comment:yielded:{pull.person.sha}",
            number=pull.number,
            topic="yielded",
            values={"sha": pull.person.sha},
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
