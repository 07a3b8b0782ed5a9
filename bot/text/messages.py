"""Every sentence that is posted where people read it."""

import re
from collections.abc import Mapping
from typing import Any, Final

from lifecycle.model.actions import Standing
from lifecycle.model.names import NAME
from lifecycle.model.text import plain

_ZERO_WIDTH = "\u200b"

TOPICS: Final[Mapping[str, str]] = {
    "ready": (
        "{sha} is green, reviewed and clean to merge. Write `/mergewright merge` to have it merged."
    ),
    "ready_by_hand": "{sha} is green, reviewed and clean to merge: merge it on GitHub.",
    "attention": "[{priority}] Session `{session}` needs a person: {because}.\n\n{remedy}",
    "paused": "[{priority}] Session `{session}` is paused: {because}.\n\n{remedy}",
    "warning": "[warning] Session `{session}`: {because}.",
    "ended": "Session `{session}` has ended as **{status}**: {because}.\n\n{remedy}",
    "yielded": (
        "{sha} was pushed by a person: the agent leaves this branch alone until it is asked for "
        "something here, or somebody writes `/mergewright resume`."
    ),
    "reviewed": "**{agent}** has read it over:\n\n{text}",
    "done_in": "Done in {sha}.",
    "answer": "{text}",
    "summary": "Everything of `{project}` is finished: {counts}.",
    "no_session": (
        "`{kind}` was not done: no session works on this. Put the label on the issue, or write "
        "`/mergewright start` there, to have an agent work on it."
    ),
    "outsider": (
        "{login}: nothing is done about this. Mergewright works for people who may write to this "
        "repository; one of them has to put the label on, or to say it."
    ),
    "not_started": "No agent was started: {why}.",
}

#: The name of the check that says what is wrong with a repository's own configuration.
CONFIGURATION_CHECK: Final = f"{NAME} configuration"

#: What a row of a session's history says, by its kind; a decision speaks for itself.
HISTORY: Final[Mapping[str, str]] = {
    "created": "issue #{issue} asks for {agent}: {title}",
    "command": "asks to {kind} {text}",
    "observed": "{changes}",
    "slot": "it may run a program now",
    "decision": "{because}",
    "done": "{action}: {result}",
    "given_up": "{action}: {error}",
    "taken_back": "{action}: its cause is gone",
    "freeze": "no effect goes out any more ({scope})",
    "unfreeze": "effects go out again ({scope})",
}


def happened(kind: str, data: Mapping[str, Any]) -> str:
    """What a row of history says."""
    lines = {"changes": "; ".join(data.get("changes", ()))} if kind == "observed" else {}
    scope = {"scope": data["scope"] or "everywhere"} if "scope" in data else {}
    return HISTORY[kind].format_map({**data, **lines, **scope}).rstrip(": ")


def say(topic: str, values: Mapping[str, str]) -> str:
    """The sentence of a topic. Values that others wrote can neither mention nor command.

    What an agent found keeps its form; everything else is words within a sentence of ours.
    """
    given = {name: harmless(cut(text, _MOST_OF_VALUE)) for name, text in values.items()}
    if topic != "reviewed":
        given = {name: _unmarked(text) for name, text in given.items()}
    if "because" in given:  # Of several lines, where an agent is quoted: they are not ours.
        given["because"] = "\n> ".join(given["because"].splitlines())
    return TOPICS[topic].format(**given).strip()


# GitHub takes bodies of up to 65,536 characters, and titles of up to 256.
_MOST_OF_BODY, _MOST_OF_VALUE, _MOST_OF_LINE, _MOST_OF_TITLE = 20_000, 4_000, 200, 256

#: Of whatever bot listens in the repository: `/mergewright merge`, `/lgtm`.
_COMMAND = re.compile(r"^[ \t>*-]*/(?=[A-Za-z])", re.MULTILINE)
_MENTION = re.compile(r"@(?=[A-Za-z0-9])")
#: `&#64;` is read as `@`, and `&#35;` as `#`, before GitHub looks for mentions and references.
_ENTITY = re.compile(r"&(?=#?\w{1,31};)")
# Between the keyword and what it closes there may be a colon and any markup. Lengths are capped,
# so that a hostile text costs linear time.
_CLOSING = re.compile(
    r"(?<![A-Za-z0-9])(close[sd]?|fix(?:e[sd])?|resolve[sd]?)"
    r"(?=[^A-Za-z0-9#\[]{0,20}(?:\[|#\d|[\w.-]{1,40}/[\w.-]{1,100}#\d|gh-\d|https?://|www\.))",
    re.IGNORECASE,
)
_SKIP = re.compile(
    r"\[(?=(?:skip|no) ci\]|ci skip\]|skip actions\]|actions skip\])|\bskip(?=-checks:)",
    re.IGNORECASE,
)
#: What begins a tag or a hidden comment, and what a link or a picture has in its middle.
_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(\[:])")


def harmless(text: str) -> str:
    """Text an agent or a program wrote, so that GitHub does not act on it.

    Mentions, closing keywords, commands and words that skip checks keep their looks and lose their
    effect; see GitHub's "Linking a pull request to an issue" and "Skipping workflow runs".
    """
    text = plain(text)
    for effective in (_COMMAND, _MENTION, _ENTITY, _CLOSING, _SKIP):
        text = effective.sub(rf"\g<0>{_ZERO_WIDTH}", text)
    return text


def _unmarked(text: str) -> str:
    """Text that stands among our own: it leads nowhere else, and hides nothing of ours."""
    return _MARKUP.sub(rf"\g<0>{_ZERO_WIDTH}", text)


def cut(text: str, most: int) -> str:
    """At most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _line(text: str) -> str:
    return cut(" ".join(harmless(text[: 2 * _MOST_OF_LINE]).split()), _MOST_OF_LINE)


def report(standing: Standing, page: str, slug: str = "") -> str:
    """How a session stands, for whoever looks at its issue or pull request.

    `page` is the session's address on the page; what it printed is there too. `slug`: what people
    call the bot besides its own name.
    """
    said = [f"**{NAME}** `{standing.status}`: {_unmarked(_line(standing.because))}."]
    if standing.question:
        said.append(_quoted(standing.question))
    if standing.blockers:
        said.append(
            "In the way:\n\n" + "\n".join(f"- {_blocker(one)}" for one in standing.blockers)
        )
    if standing.remedy:
        said.append(standing.remedy)
    facts = [f"agent `{standing.agent}`", f"branch `{standing.branch}`"]
    facts += [f"pull request #{standing.pull}"] if standing.pull else []
    facts += [standing.cost] if standing.cost else []
    facts.append(f"[session `{standing.session}`, with its log]({page})")
    said.append(" · ".join(facts))
    commands = ", ".join(f"`{name}`" for name in (*standing.commands, "help"))
    called = f" or `@{slug} COMMAND`" if slug else ""
    said.append(f"<sub>Write `/{NAME} COMMAND`{called}, here with {commands}.</sub>")
    return "\n\n".join(said)


def report_title(standing: Standing) -> str:
    """The same in one line."""
    return _line(f"{standing.status}: {standing.because}")


def _blocker(told: str) -> str:
    name, _, why = told.partition(": ")
    return f"`{name}`: {_unmarked(_line(why))}"


def _quoted(text: str) -> str:
    lines = harmless(cut(text, _MOST_OF_VALUE)).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def pull_title(template: str, number: int, issue_title: str, subjects: list[str]) -> str:
    """The pull request's title: the one commit's subject, or the issue's title, in its template."""
    title = subjects[0] if len(subjects) == 1 and subjects[0] else issue_title
    title = _line(title) or "Work of an agent"
    return cut(template.replace("{number}", str(number)).replace("{title}", title), _MOST_OF_TITLE)


def pull_body(
    issue: int, agent: str, requester: str, summary: str, subjects: list[str], template: str = ""
) -> str:
    """The pull request's text: for which issue, at whose request, what was done.

    Our own lines come first: a fence or a comment the agent left open hides what follows. Then the
    repository's template for pull requests, unless the agent has filled it in.
    """
    asked = f", asked for by {_ZERO_WIDTH}@{_ZERO_WIDTH}{requester}" if requester else ""
    told = harmless(cut(summary, _MOST_OF_BODY)).strip() or "\n".join(
        f"- {_line(line)}" for line in subjects
    )
    ours = f"Closes #{issue}\n\nWritten by the agent `{agent}`{asked}."
    headings = {line.strip() for line in template.splitlines() if line.startswith("#")}
    filled = headings and headings <= {line.strip() for line in told.splitlines()}
    form = "" if filled else cut(template, _MOST_OF_BODY).strip()
    return "\n\n".join(filter(None, (ours, cut(told, _MOST_OF_BODY), form)))


def foreign_branch(branch: str) -> str:
    """What is said of a branch that was there before us: nothing of it is taken for ours."""
    return (
        f"the branch {branch} is on GitHub already, and Mergewright did not push it: "
        "delete or rename it there"
    )


#: What GitHub says where it takes no change of a workflow from us.
_NO_WORKFLOWS = re.compile(r"without `workflows?` (?:permission|scope)")


def push_refused(reason: str) -> str:
    """Why GitHub does not take a push, with the remedy where it is a right that we lack."""
    if not _NO_WORKFLOWS.search(reason):
        return reason
    return (
        f"{reason}; give the App the permission `workflows: write` and accept that where it is "
        "installed (a token: the scope `workflow`), then write `/mergewright retry`"
    )


def merge_title(title: str, number: int) -> str:
    """The merge commit's first line."""
    return f"{_line(title)} (#{number})"


def closes_others(message: str, issue: int) -> bool:
    """Whether a commit's message, once it is on the default branch, closes issues but this one."""
    told = re.sub(rf"(?<![\w/])#{issue}\b", "x", message)
    # A bracket alone is no link yet: `Fix [parser]` closes nothing.
    return _CLOSING.search(told.replace("[", "")) is not None


def merge_message(issue: int, subjects: list[str]) -> str:
    """The merge commit's text: the commits it brings, and nothing GitHub would act on."""
    told = "\n".join(f"* {_line(line)}" for line in subjects)
    return f"{cut(told, _MOST_OF_BODY)}\n\nCloses #{issue}"
