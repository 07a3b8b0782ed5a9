"""Messages to the agent: failed checks, requests of people, conflicts, reminders."""

import re
from collections.abc import Iterator
from typing import Final

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.facts import Remark, Thread
from lifecycle.model.key import Key, StartCause
from lifecycle.read import causes
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import SessionView

#: Names of prompts: a person's answer to the agent's question, failed checks, and remarks.
ANSWER: Final = "answer"
FIX_CI: Final = "fix_ci"
ADDRESS_REVIEW: Final = "address_review"
#: The prompt of the first run, which comes with the discussion.
START: Final = "start"
#: The result of an answer that fits no choice, or was written before the question.
REFUSED: Final = "refused"
_NO_ANSWER: Final = (
    "The agent did not get this answer: it matches none of the choices, or it was written before "
    "the question. Answer with the number or the words of a choice, or with `yes`, `always` or "
    "`no`; to several questions, with one line each."
)


def message(judged: Judged, cause: Key, prompt: do.Prompt, covers: tuple[Key, ...] = ()) -> Wanted:
    """Send a message to the running program, or start a new run with it as the prompt."""
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
    """Return the discussion of the issue and the open work of the agent's pull requests.

    What the prompt `covered` has is omitted.
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
    """Forward a person's message or answer to the agent, also while it waits for one."""
    view, agent = judged.view, judged.view.facts.agent
    asked = judged.signals.availability is Availability.WAITING
    for cause, command in causes.forwarded(view).items():
        if command.kind == "review":  # An answer it is none; and it is for who takes over.
            if not asked and view.requested_agent is None:
                yield from message(judged, cause, review_prompt(view))
            continue
        values = {"actor": command.actor, "text": command.text}
        if not asked:
            yield from message(judged, cause, do.Prompt(name="tell", values=values))
        elif command.kind == ANSWER or agent.since is None or command.at >= agent.since:
            # Other words from before the question wait until it is answered.
            values |= {"question": agent.question, "at": command.at.isoformat()}
            yield from message(judged, cause, do.Prompt(name=ANSWER, values=values))


def refuse(judged: Judged) -> Wanted:
    """Reply to an answer that was not accepted with the reason, and repeat the question."""
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
    """The prompt for an agent that reviews the pull request."""
    values = {"pull": str(view.pull.number), "base": view.pull.base_branch} if view.pull else {}
    return do.Prompt(name="review", values=values)


def remind(judged: Judged) -> Wanted:
    """Remind the agent once of uncommitted work after each request."""
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
    """Ask the agent to move its commits to the session's branch, from another one or none."""
    view, cause = judged.view, causes.off_branch(judged.view)
    commits, tries = view.facts.work.off_branch, view.history.first_sent(causes.MOVE)
    if commits and cause and causes.due(view, cause, tries, view.policy.ci_repairs):
        values = {"head": commits.head, "where": commits.branch}
        yield from message(judged, cause, do.Prompt(name="move_commits", values=values))


def repair(judged: Judged) -> Wanted:
    """Send failed checks with the end of their logs to the agent, until its tries are used up.

    The cause `causes.ci` is the message's key: one message for each head and set of failed checks.
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
    """Send reviews and comments to the agent, once people have stopped writing for a moment."""
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
    """Whole threads first, with file and line; then other reviews and comments; then the issue."""
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
    """What a remark about the issue is, for people."""
    number = view.facts.issue.number
    if remark.edit:
        return f"issue #{number}, as @{remark.author} edited it"
    return f"issue #{number}, a comment by @{remark.author}"


def discussion(view: SessionView) -> tuple[dict[str, str], ...]:
    """What people with write access wrote about the issue, oldest first."""
    return tuple(
        {"what": _about(view, remark), "text": remark.body, "log": ""} for remark in view.discussion
    )


def _conversation(view: SessionView, thread: Thread) -> str:
    """The comments of a thread that count, and the bot's."""
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
    """A remark's text with each suggestion as a patch without context.

    A suggestion whose lines are outside the hunk stays as it is.
    """
    old = _replaced(thread)
    if not old:
        return body
    first = (thread.line or 0) - len(old) + 1

    def patch(found: re.Match[str]) -> str:
        new = found["lines"].splitlines()
        start = first if new else first - 1  # As patches count what is taken away.
        head = f"@@ -{first},{len(old)} +{start},{len(new)} @@"
        lines = [f"--- a/{thread.path}", f"+++ b/{thread.path}", head]
        lines += [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
        return "\n".join((f"{found['fence']}diff", *lines, found["fence"]))

    return _SUGGESTION.sub(patch, body.replace("\r\n", "\n"))


def _replaced(thread: Thread) -> list[str]:
    """The lines a thread is about; its hunk ends with the last of them."""
    if thread.line is None:
        return []
    shown = [line[1:] for line in thread.diff.splitlines() if line[:1] in ("+", " ")]
    count = thread.line - (thread.start or thread.line) + 1
    return shown[-count:] if 0 < count <= len(shown) else []
