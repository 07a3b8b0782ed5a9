"""Writes every comment and check-run text that the bot posts on GitHub, with a function for each.

`comment_body` calls the function that an action names as its topic. Text of agents, programs and
other people is neutralized before it becomes part of a message.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final

from bot.text.neutralize import cut, has_closing_keyword, neutralize, one_line, without_markup
from bot.text.page_text import outcome_words, sentence
from lifecycle.model.actions import StatusSummary
from lifecycle.model.names import NAME
from lifecycle.model.status import Status, status_words
from lifecycle.model.text import full_stop
from lifecycle.read.sentences import person

_AT = "\u200b@\u200b"  #: An @ that mentions nobody.
# GitHub accepts bodies of up to 65,536 characters, and titles of up to 256.
_BODY_LIMIT, _VALUE_LIMIT, _TITLE_LIMIT = 20_000, 4_000, 256

#: The name of the check run that reports a repository's own configuration.
CONFIGURATION_CHECK: Final = f"{NAME} configuration"
_STATUS_WORD = re.compile(r"[a-z]+")
#: The first words of a message, by its priority.
PRIORITIES: Final[Mapping[str, str]] = {
    "urgent": "Urgent",
    "action": "Action needed",
    "warning": "Warning",
    "info": "For information",
}


def ready(sha: str) -> str:
    """Say that the pull request can be merged, and that the bot does so on command."""
    return f"{_ready(sha)} Comment `/{NAME} merge` to merge it."


def ready_by_hand(sha: str, why: str = "") -> str:
    """Say that the pull request can be merged, but only by people.

    `why` says why the bot cannot merge it; if empty, the reason is `auto-merge = "off"`.
    """
    return f"{_ready(sha)} {_by_hand('Merge it on GitHub', why)}"


def ready_behind(sha: str) -> str:
    """Say that the pull request is behind its base, and that the bot merges it on command."""
    command = f"Comment `/{NAME} merge` to update it, run its checks again and merge it."
    return f"{_ready_but_behind(sha)} {command}"


def ready_behind_by_hand(sha: str, why: str = "") -> str:
    """Say that the pull request is behind its base, and that only people can merge it.

    `why` is as in `ready_by_hand`.
    """
    update = f"Update it on GitHub or comment `/{NAME} update`."
    return f"{_ready_but_behind(sha)} {update} {_by_hand('Then merge it on GitHub', why)}"


def _ready(sha: str) -> str:
    return f"Ready to merge: {sha[:7]} needs no more checks or reviews, and nothing blocks it."


def _ready_but_behind(sha: str) -> str:
    behind = f"{sha[:7]} is behind its base branch, and nothing else blocks it"
    return f"Ready to merge after an update: {behind}."


def _by_hand(what: str, why: str) -> str:
    """Say what people do instead of the bot. `why` says why, unless the policy is the reason."""
    if not why:
        return f"{what}."
    lifted = "Once an administrator lifts this rule for the bot"
    return f"{what}: {why}. {lifted}, the comment `/{NAME} merge` works too."


def attention(session: str, because: str, remedy: str, priority: str) -> str:
    """Say that a session waits for a person. `priority` is a key of `PRIORITIES`."""
    return _notice(priority, f"session `{session}`: {full_stop(because)}", remedy)


def paused(session: str, because: str, remedy: str, priority: str) -> str:
    """Say that a session is paused, because of a budget, a usage limit or a disk limit."""
    return _notice(priority, f"session `{session}` is paused: {full_stop(because)}", remedy)


def warning(session: str, because: str) -> str:
    """Warn of something that needs no action yet, such as a budget that is nearly used up."""
    return _notice("warning", f"session `{session}`: {full_stop(because)}", "")


def ended(session: str, because: str, remedy: str, priority: str, status: str) -> str:
    """Say that a session has ended without a merge. `status` is its last status."""
    how = "has failed" if status == Status.ERRORED else "has ended"
    text = f"session `{session}` {how}: {full_stop(because)}"
    return _notice(priority, text, remedy)


def handed_to_human(sha: str) -> str:
    """Say that somebody else pushed to the agent's branch, and that the agent gets no work now."""
    return (
        f"Somebody other than {NAME.title()} pushed {sha[:7]} to this branch, so the agent gets no "
        "more work on it for now. The agent continues when somebody with write access comments or "
        f"requests changes here, or after `/{NAME} resume`."
    )


def reviewed(agent: str, text: str) -> str:
    """Return an agent's review of a pull request."""
    return f"Review by **{agent}**:\n\n{text}"


def done_in(sha: str) -> str:
    """Say which commit the agent pushed after it was sent a review thread."""
    return f"The agent has read this conversation and then pushed {sha[:7]}."


def answer(text: str) -> str:
    """Return `text`, which is the complete reply to a command."""
    return text


def summary(project: str, counts: str) -> str:
    """Say that all sessions of a project have ended. `1 killed` in `counts` becomes `1 stopped`."""
    counts = _STATUS_WORD.sub(lambda word: outcome_words(word[0]), counts)
    return f"All sessions of project `{project}` have ended. Since the last summary: {counts}."


def no_session(kind: str) -> str:
    """Say that the command `kind` had no effect, because there is no session."""
    return (
        f"The command `{kind}` did nothing: there is no session for this issue or pull request. To "
        f"start one, write `/{NAME} start` on an issue or `/{NAME} adopt` on a pull request."
    )


def unknown_session(session: str) -> str:
    """Say that the session named in a command does not exist or is of another repository."""
    return f"There is no session {session} in this repository, so nothing was done."


def several(kind: str, session: str, others: str) -> str:
    """Say which of an issue's sessions got a command without an ID, and how to choose another."""
    return (
        f"This issue has several sessions. `{kind}` went to {session}, the newest one; also open: "
        f"{others}. To choose one, write `/{NAME} SESSION {kind}`."
    )


def outsider(login: str) -> str:
    """Say that the bot ignored a person who may not instruct it by labels, commands or comments."""
    return (
        f"{_AT}{login}'s label, assignment, command, review or comment was "
        "not acted on: only people with write access, and those listed in the configuration, can "
        "instruct the bot. People with the permission `triage` can give the commands `answer` and "
        "`tell`; `merge`, `allow`, `budget` and `adopt` always need write access. Ask somebody "
        "with write access to repeat it."
    )


def not_started(why: str) -> str:
    """Say why the command `start` was refused."""
    return f"Could not start an agent. {sentence(why)}"


def _notice(priority: str, text: str, remedy: str) -> str:
    return f"**{PRIORITIES[priority]}:** {text}\n\n{remedy}".strip()


#: The functions that write comments, by the topic that an action names.
MESSAGES: Final[Mapping[str, Callable[..., str]]] = {
    message.__name__: message
    for message in (
        *(ready, ready_by_hand, ready_behind, ready_behind_by_hand),
        *(attention, paused, warning, ended, handed_to_human, reviewed),
        *(done_in, answer, summary, no_session, outsider, not_started),
        *(unknown_session, several),
    )
}


def comment_body(topic: str, values: Mapping[str, str]) -> str:
    """Return the comment for a topic of `MESSAGES`. `values` are the arguments of its function.

    Values can neither mention people nor give commands. Except in an agent's review, Markdown's
    links and images and HTML tags in them have no effect either. If `because` has several lines,
    for example a question, those after the first are quoted. Raises `KeyError` for another topic.
    """
    safe = {name: neutralize(cut(text, _VALUE_LIMIT)) for name, text in values.items()}
    if topic != "reviewed":
        safe = {name: without_markup(text) for name, text in safe.items()}
    if "because" in safe:
        safe["because"] = "\n> ".join(safe["because"].splitlines())
    return MESSAGES[topic](**safe).strip()


def report(summary: StatusSummary, page: str, slug: str = "") -> str:
    """Return the status comment of a session, for its issue and its pull requests.

    `page` is the URL of the session's page. `slug` is the GitHub App's name, which people can
    mention to give commands; it is empty if the bot has a token instead of an App.
    """
    question = neutralize(cut(summary.question, _VALUE_LIMIT)).splitlines()
    facts = (
        *(f"Agent `{summary.agent}`", f"branch `{summary.branch}`"),
        f"pull request #{summary.pull}" if summary.pull else "",
        summary.cost,
        f"[session `{summary.session}`]({page})",
    )
    commands = ", ".join(f"`{name}`" for name in (*summary.commands, "help"))
    mention = f" or `@{slug} COMMAND`" if slug else ""
    blocks = (
        f"**{NAME.title()}: {status_words(summary.status)}.** {_sentence(summary.because)}",
        "\n".join(f"> {line}".rstrip() for line in question),
        "Merge blocked by:" if summary.blockers else "",
        "\n".join(f"- {_sentence(one.sentence)}" for one in summary.blockers),
        summary.remedy,
        " · ".join(filter(None, facts)),
        f"<sub>Comment `/{NAME} COMMAND`{mention}. Commands in this status: {commands}.</sub>",
    )
    return "\n\n".join(filter(None, blocks))


def report_title(summary: StatusSummary) -> str:
    """Return the status and its reason in one line, as the title of the check run."""
    return one_line(f"{status_words(summary.status).capitalize()}: {summary.because}")


def _sentence(text: str) -> str:
    return sentence(without_markup(one_line(text)))


def pull_title(template: str, number: str, issue_title: str, subjects: list[str]) -> str:
    """Return a pull request's title: the commit's subject if there is one commit, else the issue's.

    `template` may use this text as `{title}`, and the issue's number as `{number}`. Without an
    issue, the number is the end of the session's ID, such as `p3`.
    """
    title = subjects[0] if len(subjects) == 1 and subjects[0] else issue_title
    title = one_line(title) or f"Changes for issue {number}"
    return cut(template.replace("{number}", number).replace("{title}", title), _TITLE_LIMIT)


def pull_body(
    issue: int, agent: str, requester: str, summary: str, subjects: list[str], template: str = ""
) -> str:
    """Return a pull request's description. `issue` is 0 if there is none.

    Our own lines come first, because a code fence or HTML comment that the agent left open hides
    everything below it. `template`, the repository's pull request template, comes last, unless the
    agent's summary has all headings of the template. Without a summary, `subjects` are listed.
    """
    by = f" at the request of {person(requester).replace('@', _AT)}" if requester else ""
    text = neutralize(cut(summary, _BODY_LIMIT)).strip() or "\n".join(
        f"- {one_line(subject)}" for subject in subjects
    )
    closes = f"Closes #{issue}" if issue else ""
    ours = f"Written by the agent `{agent}`{by}."
    headings = {line.strip() for line in template.splitlines() if line.startswith("#")}
    filled = headings and headings <= {line.strip() for line in text.splitlines()}
    form = "" if filled else cut(template, _BODY_LIMIT).strip()
    return "\n\n".join(filter(None, (closes, ours, cut(text, _BODY_LIMIT), form)))


def closes_others(message: str, issue: int) -> bool:
    """Whether a commit message might close other issues than `issue` on the default branch.

    `issue` is 0 if there is none.
    """
    others = re.sub(rf"(?<![\w/])#{issue}\b", "x", message) if issue else message
    # A bracket alone is no link yet: `Fix [parser]` closes nothing.
    return has_closing_keyword(others.replace("[", ""))


def foreign_branch(branch: str) -> str:
    """Say why a run cannot use a branch on GitHub: the bot has not created it."""
    return (
        f"the branch {branch} already exists on GitHub and was not created by Mergewright; "
        "delete or rename it there"
    )


def tracked_env_files(names: Iterable[str]) -> str:
    """Say why a run does not start: git tracks files into which secrets would be written."""
    return (
        f"the repository contains {', '.join(names)}, but the setting `env-files` would copy files"
        " of the server to these paths: remove them from the repository or from the setting"
    )


def without_git_lfs(repository: str) -> str:
    """Return why a run does not start: files of Git LFS cannot be written."""
    return (
        f"{repository} has files of Git LFS, and git-lfs is not installed on Mergewright's server:"
        " ask its administrator to install it, or set lfs-max-mb = 0 to have only the pointers of"
        " these files in checkouts"
    )


def too_many_lfs_files(megabytes: int, most: int) -> str:
    """Return why a run does not start: the checkout's files of Git LFS exceed the limit."""
    return (
        f"the checkout has {megabytes} MB of Git LFS files, more than lfs-max-mb = {most}: raise"
        " this setting, set it to 0 to have only the pointers of these files in the checkout, or"
        f" list in `sparse` only the folders that the checkout needs; then run `{NAME} reload`"
    )


def lfs_files_missing(paths: str) -> str:
    """Return why a push is refused: neither the bot nor GitHub has these files of Git LFS."""
    return (
        f"the content of Git LFS files is missing, so nobody could check them out: {paths}; have"
        " the agent add them again with git-lfs"
    )


def lfs_file_refused(path: str) -> str:
    """Return why a push is refused: a file of Git LFS contains a secret of the server."""
    return (
        f"{path}, a file of Git LFS, contains a key, token or password of Mergewright's server;"
        " have the agent remove it from this file in every commit"
    )


def rewritten(adopted: str) -> str:
    """Say why commits are not pushed to an adopted branch: they replace a person's commits."""
    return (
        f"the agent's commits are not on top of {adopted[:7]}, which was the pull request's head"
        " when it was adopted; have the agent rebase its own commits onto that head:"
        " Mergewright never rewrites people's commits"
    )


_MOST_HELD = 5  #: Files or commits of one kind.
#: GitHub's refusal of a push that changes a workflow without the right to do so.
_NO_WORKFLOWS = re.compile(r"without `workflows?` (?:permission|scope)")


def held_commits(
    *,
    large: Iterable[tuple[str, int]],
    foreign: Iterable[tuple[str, str]],
    removed: Iterable[tuple[str, str]],
    suspicious: Iterable[tuple[str, str]],
) -> str:
    """Say why a push is held, and which commits or files are the reason; empty if it is not held.

    A pair is a file and its size in bytes (`large`), a commit and an email (`foreign`, `removed`),
    or a commit and a file (`suspicious`; "" is the commit message). Names at most 5 of a kind.
    """
    reasons = (
        (f"the file {path} is {size / 1e6:.0f} MB in size" for path, size in large),
        (
            f"{sha[:7]} has an author or committer who is neither the bot nor in"
            f" `policy.commit-authors`: {email}"
            for sha, email in foreign
        ),
        (
            f"the push would remove the commit {sha[:7]} by {email} from the branch"
            for sha, email in removed
        ),
        (
            f"{path or 'the message'} of {sha[:7]} contains what looks like a token or key"
            for sha, path in suspicious
        ),
    )
    lists = (list(group) for group in reasons)
    shown = ([*one[:_MOST_HELD], *["more like these"] * (len(one) > _MOST_HELD)] for one in lists)
    return "; ".join(chain.from_iterable(shown))


#: GitHub's refusal of a push by the rule "Require signed commits".
_UNSIGNED = re.compile(r"verified signature|must be signed", re.IGNORECASE)
#: Why commits that the bot should sign are not pushed.
NO_SIGNING_KEY: Final = (
    "the commits are to be signed, but there is no key: set signing.key-file and signing.email,"
    f" run `{NAME} reload`, then comment `/{NAME} retry`"
)


def push_refused(reason: str) -> str:
    """Return why GitHub refused a push, with the remedy if a setting or permission is missing."""
    if _UNSIGNED.search(reason):
        return (
            f"{reason}; a rule of the repository requires signed commits on this branch: set"
            f" `policy.sign-commits`, run `{NAME} reload`, and check the key with `{NAME} doctor`."
            f" Then comment `/{NAME} retry`"
        )
    if "stale info" in reason:  # The lease of git's `--force-with-lease` does not hold.
        return f"{reason}: somebody else deleted the branch, or pushed to it what the agent lacks"
    if not _NO_WORKFLOWS.search(reason):
        return reason
    return (
        f"{reason}; if the bot is a GitHub App, grant `workflows: write` and accept it for "
        f"the installation; with a token, add the scope `workflow`. Then comment `/{NAME} retry`"
    )
