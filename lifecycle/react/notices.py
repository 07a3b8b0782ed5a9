"""Comments, reactions and labels that notify people and reply to them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.judge.reasons import ADVICE, Priority, advice_on
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.facts import Thread
from lifecycle.model.names import CALLS_PEOPLE
from lifecycle.model.status import Status
from lifecycle.read.budgets import budget_key, describe
from lifecycle.read.session_view import SessionView

#: GitHub's name of the reaction that acknowledges a command or a remark.
SEEN: Final = "eyes"
#: How often the attention label may change within an hour: changes count in GitHub's limits.
_LABELS_PER_HOUR: Final = 60


def replies(
    command: str, comment: int | None, number: int, topic: str, values: Mapping[str, str]
) -> tuple[do.Action, ...]:
    """Return the reaction and the comment that answer a command on an issue without a session.

    `command`: its key. `comment`: the id of the comment with the command; without it there is no
    reaction. `number`: the issue's number. `topic`: as in `Comment`; if empty, there is only the
    reaction.
    """
    seen = keys.reaction(command)
    react = do.React(key=seen, comment=comment, content=SEEN) if comment else None
    key = keys.reply_without_session(topic, command)
    post = topic and do.Comment(key=key, number=number, topic=topic, values=values)
    return tuple(action for action in (react, post) if action)


def reply(judged: Judged) -> Wanted:
    """Answer review threads with the hash of the commit pushed after the agent got them."""
    view, pull = judged.view, judged.view.pull
    pushed = view.history.pushes.get(pull.head) if pull and view.threads else None
    if pull is None or pushed is None:
        return
    answered = [thread for thread in view.threads if _received_before(view, thread, pushed)]
    if answered:
        yield do.Reply(
            key=keys.reply(thread.remarks[-1].id for thread in answered),
            number=pull.number,
            threads=tuple(thread.id for thread in answered),
            topic="done_in",
            values={"sha": pull.head},
            resolve=view.policy.resolve_threads,
        )


def _received_before(view: SessionView, thread: Thread, pushed: datetime) -> bool:
    """Whether the commit pushed at `pushed` counts as the agent's answer to a thread.

    It counts if all comments had been sent to the agent before the push. If a run is lost, they are
    sent again to the next run. If that happens after the push, the commit counts nevertheless if
    the agent is at rest, and has neither pushed nor committed anything since then.
    """
    if {remark.id for remark in view.unsent_remarks} & {remark.id for remark in thread.remarks}:
        return False
    causes = [keys.remark(remark.id) for remark in thread.remarks]
    sent = [message.at for cause in causes if (message := view.history.last_sent(cause))]
    if not sent or max(sent) < pushed:
        return bool(sent)
    tried = [at for cause in causes if (at := view.history.first_tried(cause))]
    return max(tried) < pushed and view.without_commit_since(max(sent))


def notify_of_handover(judged: Judged) -> Wanted:
    """After each push by a person, notify people once that the agent gets no work for now."""
    pull = judged.view.pull
    if pull is not None and pull.person is not None and judged.view.handed_to_human:
        sha = pull.person.sha
        yield judged.comment(keys.handed_to_human(sha), "handed_to_human", sha=sha)


def acknowledge(judged: Judged) -> Wanted:
    """React to each command in a comment, and post its reply once it is applied or refused."""
    for command in judged.asked:
        if command.comment is not None:
            key = keys.reaction(command.key)
            yield do.React(key=key, comment=command.comment, content=SEEN)
    given = {command.key: command.number for command in judged.asked}
    for key, text in judged.answers:
        number = given[key.cause[0]]
        yield do.Comment(key=key, number=number, topic="answer", values={"text": text})


def acknowledge_remarks(judged: Judged) -> Wanted:
    """React to each new remark on the issue that is for the agent and was not sent to it yet.

    A remark is new if it was made after the session began or was last restored.
    """
    view = judged.view
    began = view.facts.restored_at or view.facts.created
    began = began.replace(microsecond=0)  # As GitHub's times are.
    for remark in view.discussion:
        if remark.at < began or view.history.last_sent(keys.remark(remark.id)) is not None:
            continue
        key = keys.reaction(remark.id)
        if remark.edit:
            yield do.React(key=key, issue=view.facts.issue.number, content=SEEN)
        else:
            comment = int(remark.id.rpartition(":")[2])
            yield do.React(key=key, comment=comment, content=SEEN)


def post_review_result(judged: Judged) -> Wanted:
    """Post the result of a review that a person commanded."""
    view, agent, command = judged.view, judged.view.facts.agent, judged.view.command("review")
    sent = view.history.last_sent(keys.forward(command.key)) if command else None
    if command is None or sent is None or agent.since is None or not agent.summary:
        return
    if sent.run == agent.run and agent.since > sent.at:
        name = view.facts.agent_name or view.facts.agent_type
        key = keys.review_result(command.key)
        yield judged.reply(command.key, key, "reviewed", agent=name, text=agent.summary)


def notify_people(judged: Judged) -> Wanted:
    """Notify people once of each escalation, stall and pause, and repeatedly of long waits.

    The comment names the remedy. Nobody is notified of a `Finding` without a key.
    """
    if judged.cause:
        topic = "paused" if judged.status is Status.PAUSED else "attention"
        yield judged.comment(keys.notice(judged.cause), topic, **_explained(judged))


def warn(judged: Judged) -> Wanted:
    """Warn people once of each budget that has reached its warning threshold."""
    view = judged.view
    for reached in view.budgets.nearly:
        key = budget_key(reached, view.facts, view.now)
        budget = describe(reached, view.facts, view.policy)
        because = f"at least {view.policy.budget_warning:.0%} of {budget} is used"
        yield judged.comment(
            keys.warning(key), "warning", session=view.facts.session, because=because
        )


def add_attention_label(judged: Judged) -> Wanted:
    """Add the attention label to the issue, or else to the pull request, if people are needed."""
    return _attention_label(judged, on=True)


def remove_attention_label(judged: Judged) -> Wanted:
    """Remove the attention label, because the session no longer needs people."""
    return _attention_label(judged, on=False)


def _attention_label(judged: Judged, *, on: bool) -> Wanted:
    # The key counts changes of the label, because the same cause may add it several times.
    changes, number = judged.view.history.attention_labels, judged.view.facts.subject_number
    if not number or on is not (changes % 2 == 0):
        return
    if wait := judged.view.pace(judged.view.history.label_changes, _LABELS_PER_HOUR):
        yield wait
    else:
        yield do.Label(key=keys.attention_label(changes), number=number, name=CALLS_PEOPLE, on=on)


def post_outcome(judged: Judged) -> Wanted:
    """Post an outcome other than a merge, without waiting until the program has stopped."""
    shown = judged.as_shown()
    yield do.Comment(
        key=keys.outcome(shown.status, shown.reason, shown.view.facts.run),
        number=shown.view.facts.subject_number,
        topic="ended",
        values={**_explained(shown), "status": shown.status.value},
    )


def post_summary(judged: Judged) -> Wanted:
    """Post a summary when a project's last open session ends, if several sessions have ended."""
    facts = judged.view.facts
    if facts.ended is not None and sum(facts.finished.values()) > 1:
        counts = (f"{count} {status}" for status, count in sorted(facts.finished.items()))
        yield do.Comment(
            key=keys.summary(facts.ended.at),
            number=facts.subject_number,
            topic="summary",
            values={"project": facts.project, "counts": ", ".join(counts)},
        )


def _explained(judged: Judged) -> dict[str, str]:
    advice = ADVICE.get(judged.reason)
    return {
        "session": judged.view.facts.session,
        "because": judged.because,
        "remedy": advice_on(judged.reason),
        "priority": (advice.priority if advice else Priority.INFO).value,
    }
