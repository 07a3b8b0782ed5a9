"""Messages to the agent: failed checks, requests of people, conflicts, reminders."""

import re
from collections.abc import Iterator
from typing import Final

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.facts import Remark, Thread
from lifecycle.model.key import Key, StartCause
from lifecycle.model.names import MAKES_PULL
from lifecycle.read import causes
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import SessionView

#: Names of prompts: for a person's answer to the agent's question, for failed checks, and for
#: people's remarks.
ANSWER: Final = "answer"
FIX_CI: Final = "fix_ci"
ADDRESS_REVIEW: Final = "address_review"
#: The prompt of the first run; the issue's discussion is part of the message.
START: Final = "start"
#: The same for a session that continues a person's pull request.
ADOPT: Final = "adopt"
#: The first message of a person in a chat.
CHAT: Final = "chat"
#: A person's message in a chat that was not written in the terminal.
CHAT_MESSAGE: Final = "chat_message"
#: The request to finish the work of a chat as a pull request.
PULL_REQUEST: Final = "pull_request"
#: The recorded result of an answer that fits no choice, or was written before the question.
REFUSED: Final = "refused"
_NO_ANSWER: Final = (
    "The agent did not get this answer: it matches none of the choices, or it was written before "
    "the question. Answer with the number or the words of a choice, or with `yes`, `always` or "
    "`no`; to several questions, with one line each."
)


def message(judged: Judged, cause: Key, prompt: do.Prompt, covers: tuple[Key, ...] = ()) -> Wanted:
    """Send the agent a message; if its program has ended, start a new run with it as the prompt.

    `cause`: the message's key, to which the run is added here. `covers`: further keys, to which the
    run is added too. They are recorded as done together with the message.
    """
    facts = judged.view.facts
    if judged.view.parked or judged.signals.availability is Availability.EXITED:
        run = facts.run + 1
        yield do.Start(
            key=keys.start(StartCause.MESSAGE, run),
            run=run,
            prompt=prompt,
            resume=facts.agent.native_id,
            permission_mode=judged.view.permission_mode,
            covers=tuple(key.of_run(run) for key in (cause, *covers)),
            waiting=tuple(waiting(judged.view, prompt.name)),
        )
    else:
        yield do.SendMessage(
            key=cause.of_run(facts.run),
            run=facts.run,
            prompt=prompt,
            covers=tuple(key.of_run(facts.run) for key in covers),
        )


def waiting(view: SessionView, covered: str = "") -> Iterator[dict[str, str]]:
    """Yield the issue's discussion, failed checks to fix, review threads and requested changes.

    `covered` is the name of a prompt that the agent also gets: items which that prompt already
    contains are not yielded. If `covered` is empty, all items are yielded.
    """
    if covered != START:
        yield from discussion(view)
    for one in view.several or (view,):
        if covered != FIX_CI:
            for check in one.checks_to_fix:
                log = "\n".join(filter(None, (check.notes, check.log)))
                yield {"what": f"a check fails: {check.name}", "text": "", "log": log}
        if covered != ADDRESS_REVIEW:
            for thread in one.threads:
                what = f"a review thread at {_place(thread)}"
                yield {"what": what, "text": _conversation(one, thread), "log": thread.diff}
            for verdict in one.pull.verdicts if one.pull else ():
                remark = None if verdict.approved else verdict.remark
                if remark is not None and one.counts(remark):
                    what = f"@{remark.author} requests changes"
                    yield {"what": what, "text": remark.body, "log": ""}


def forward(judged: Judged) -> Wanted:
    """Forward people's messages to the agent; while it asks something, only those that answer it.

    These are the command `answer`, and messages that were written after the question.
    """
    view, agent = judged.view, judged.view.facts.agent
    asked = judged.signals.availability is Availability.WAITING
    for cause, command in causes.forwarded(view).items():
        if command.kind == "review":  # It answers no question, and may be for another agent.
            if not asked and view.requested_agent is None:
                yield from message(judged, cause, review_prompt(view))
            continue
        values = {"actor": command.actor, "text": command.text}
        if command.kind == MAKES_PULL:
            if not asked:
                yield from message(judged, cause, do.Prompt(name=PULL_REQUEST, values=values))
            continue
        if not asked:
            name = CHAT_MESSAGE if view.is_chat else "tell"
            yield from message(judged, cause, do.Prompt(name=name, values=values))
        elif command.kind == ANSWER or agent.since is None or command.at >= agent.since:
            # Other messages from before the question wait until it is answered.
            values |= {"question": agent.question, "at": command.at.isoformat()}
            yield from message(judged, cause, do.Prompt(name=ANSWER, values=values))


def refuse(judged: Judged) -> Wanted:
    """Reply why an answer did not reach the agent, and repeat the question."""
    facts = judged.view.facts
    for command in judged.asked:
        key = keys.forward(command.key).of_run(facts.run)
        done, failure = facts.done.get(key), facts.failures.get(key)
        why = _NO_ANSWER if done is not None and done.result == REFUSED else ""
        if failure is not None and judged.signals.availability is Availability.WAITING:
            why = f"The agent could not get this answer: {failure.detail}."
        if why:
            text = f"{why}\n\n{facts.agent.question}".strip()
            key = keys.answer_refused(command.key)
            yield judged.reply(command.key, key, "answer", text=text)


def review_prompt(view: SessionView) -> do.Prompt:
    """Return the prompt for an agent that reviews the pull request."""
    values = {"pull": str(view.pull.number), "base": view.pull.base_branch} if view.pull else {}
    return do.Prompt(name="review", values=values)


def remind(judged: Judged) -> Wanted:
    """Remind the agent of uncommitted work, once after each request and each failed or lost run."""
    cause = causes.uncommitted(judged.view)
    if cause and judged.view.history.last_sent(cause) is None:
        yield from message(judged, cause, do.Prompt(name="uncommitted"))


def reword(judged: Judged) -> Wanted:
    """Ask the agent to reword commit messages that prevented a push."""
    view, cause = judged.view, causes.commit_messages(judged.view)
    tries = view.history.first_sent(causes.REWORD)
    if cause and causes.due(view, cause, tries, view.policy.ci_repairs):
        why = view.facts.failures[keys.push(view.facts.work.head)].detail
        yield from message(judged, cause, do.Prompt(name="reword", values={"why": why}))


def move_commits(judged: Judged) -> Wanted:
    """Have the agent move commits from another branch or detached HEAD to the session's branch."""
    view, cause = judged.view, causes.off_branch(judged.view)
    commits, tries = view.facts.work.off_branch, view.history.first_sent(causes.MOVE)
    if commits and cause and causes.due(view, cause, tries, view.policy.ci_repairs):
        values = {"head": commits.head, "where": commits.branch}
        yield from message(judged, cause, do.Prompt(name="move_commits", values=values))


def repair(judged: Judged) -> Wanted:
    """Send failed checks with the end of their logs to the agent, until its tries are used up.

    There is one message for each head and set of failed checks, because these make up its key.
    """
    view, pull, cause = judged.view, judged.view.pull, causes.ci(judged.view)
    if pull and cause and causes.due(view, cause, causes.repairs(view), view.policy.ci_repairs):
        prompt = do.Prompt(
            name=FIX_CI,
            values={
                "head": pull.head,
                "pull": str(pull.number),
                "red_on_base": ", ".join(c.name for c in view.failed_checks if c.red_on_base),
            },
            items=tuple(
                {"name": check.name, "url": check.url, "log": check.log, "notes": check.notes}
                for check in view.checks_to_fix
            ),
        )
        yield from message(judged, cause, prompt)


def address_review(judged: Judged) -> Wanted:
    """Send reviews and comments to the agent, `Policy.review_debounce_seconds` after the newest."""
    view, pull, cause = judged.view, judged.view.pull, causes.review(judged.view)
    rounds, most = causes.review_rounds(view), view.policy.review_rounds
    if not cause or causes.spent(cause, rounds, most):
        return
    newest = max(remark.at for remark in view.unsent_remarks)
    if wait := view.wait(newest, view.policy.review_debounce_seconds):
        yield wait
        return
    ids = [remark.id for remark in view.unsent_remarks]
    about_pull = pull is not None and len(view.unsent_remarks) > len(_unsent_discussion(view))
    prompt = do.Prompt(
        name=ADDRESS_REVIEW,
        values={"head": pull.head, "pull": str(pull.number)}
        if pull is not None and about_pull
        else {"head": "", "pull": ""},
        items=tuple(_requests(view, set(ids))),
    )
    yield from message(judged, cause, prompt, tuple(keys.remark(remark_id) for remark_id in ids))


def _requests(view: SessionView, unsent: set[str]) -> Iterator[dict[str, str]]:
    """Yield items for the unsent remarks: whole threads, other remarks, remarks on the issue.

    `unsent`: the ids of these remarks; the set is changed.
    """
    about_issue = _unsent_discussion(view)
    unsent -= {remark.id for remark in about_issue}
    for thread in view.threads:
        ids = {remark.id for remark in thread.remarks}
        if ids & unsent:
            unsent -= ids
            text = _conversation(view, thread)
            yield {"where": _place(thread), "diff": thread.diff, "text": text}
    for remark in view.unsent_remarks:
        if remark.id in unsent:
            yield {"where": "", "diff": "", "text": f"@{remark.author}: {remark.body}"}
    for remark in about_issue:
        yield {"where": _about(view, remark), "diff": "", "text": remark.body}


def _unsent_discussion(view: SessionView) -> list[Remark]:
    return [remark for remark in view.discussion if remark in view.unsent_remarks]


def _about(view: SessionView, remark: Remark) -> str:
    """Return a phrase that says who commented on the issue or edited it."""
    number = view.facts.issue.number
    if remark.edit:
        return f"issue #{number}, as @{remark.author} edited it"
    return f"issue #{number}, a comment by @{remark.author}"


def discussion(view: SessionView) -> tuple[dict[str, str], ...]:
    """Return the remarks on the issue that are for the agent, oldest first, as prompt items."""
    return tuple(
        {"what": _about(view, remark), "text": remark.body, "log": ""} for remark in view.discussion
    )


def _conversation(view: SessionView, thread: Thread) -> str:
    """Return as one text the thread's comments that count (`view.counts`) or are by Mergewright."""
    return "\n\n".join(
        f"@{remark.author}: {as_patches(remark.body, thread)}"
        for remark in thread.remarks
        if remark.own or view.counts(remark)
    )


def _place(thread: Thread) -> str:
    lines = "-".join(str(line) for line in (thread.start, thread.line) if line)
    return f"{thread.path}:{lines}" if lines else thread.path


def resolve_conflict(judged: Judged) -> Wanted:
    """Ask the agent to resolve a conflict with the base branch, once for this base and head."""
    view, pull, cause = judged.view, judged.view.pull, causes.conflict(judged.view)
    most, tries = view.policy.conflict_repairs, causes.conflict_repairs(view)
    if pull and cause and causes.due(view, cause, tries, most):
        values = {"base": pull.base_branch, "pull": str(pull.number)}
        yield from message(judged, cause, do.Prompt(name="resolve_conflict", values=values))


# A suggestion; one that is never closed extends to the end of the text, as on the page.
# https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/commenting-on-a-pull-request
_SUGGESTION = re.compile(
    r"^(?P<fence>`{3,}|~{3,})suggestion[^\n]*\n(?P<lines>.*?)(?:^(?P=fence)[`~ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)


def as_patches(body: str, thread: Thread) -> str:
    """Return a comment's text with each suggested change as a patch without context lines.

    If the thread's hunk does not show the lines to replace, the text is returned unchanged.
    """
    old = _replaced(thread)
    if not old:
        return body
    first = (thread.line or 0) - len(old) + 1

    def patch(found: re.Match[str]) -> str:
        new = found["lines"].splitlines()
        start = first if new else first - 1  # In a patch that only removes lines: the line before.
        head = f"@@ -{first},{len(old)} +{start},{len(new)} @@"
        lines = [f"--- a/{thread.path}", f"+++ b/{thread.path}", head]
        lines += [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
        return "\n".join((f"{found['fence']}diff", *lines, found["fence"]))

    return _SUGGESTION.sub(patch, body.replace("\r\n", "\n"))


def _replaced(thread: Thread) -> list[str]:
    """Return the lines that a thread is about; empty if its hunk does not show them all."""
    if thread.line is None:
        return []
    shown = [line[1:] for line in thread.diff.splitlines() if line[:1] in ("+", " ")]
    count = thread.line - (thread.start or thread.line) + 1
    return shown[-count:] if 0 < count <= len(shown) else []
