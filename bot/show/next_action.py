"""The next action that a person can take for a session."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from bot.show.session_summary import waits_for_person
from bot.store import Session
from bot.text import next_action as say
from bot.text import page_text
from lifecycle.judge.reasons import ADVICE, advice_on
from lifecycle.model.facts import Pull
from lifecycle.model.names import FROZEN
from lifecycle.model.status import HELD, TERMINAL, PullState, Reason, Status
from lifecycle.read.restores import RESTORABLE


class NextAction(Struct, frozen=True, kw_only=True):
    """A sentence, and a button or a link that does what the sentence says."""

    text: str
    label: str = ""  #: The text of the button or link; if empty, there is neither.
    command: str = ""  #: The command that the button submits; if empty, there is no button.
    argument: str = ""  #: The command's text.
    head: str = ""  #: The reviewed commit, for `merge`; if empty, the command needs none.
    confirm: str = ""  #: The sentence to confirm first; if empty, nothing is to be confirmed.
    url: str = ""  #: The address of the link; if empty, there is no link.


#: The command that resolves a reason, and the command's argument. For any other reason, the button
#: has a command that may help: the field `again` of the reason's `ADVICE`.
_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    Reason.AWAITS_MERGE: ("merge", ""),
    Reason.CHECKS_MISSING: ("merge", ""),
    Reason.BUDGET_EXHAUSTED: ("budget", "+5"),
    Reason.PAUSED_BY_PERSON: ("resume", ""),
    Reason.CHAT_PAUSED: ("resume", ""),
    Reason.PERSON_PUSHED: ("resume", ""),
    Reason.MANUALLY_KILLED: ("start", ""),
    Reason.TIMEOUT: ("start", ""),
}
#: Reasons that people resolve on GitHub, at the pull request.
_ON_GITHUB: Final = frozenset(
    {
        *(Reason.AWAITS_MANUAL_MERGE, Reason.MERGE_BARRED, Reason.REPAIRS_EXHAUSTED),
        *(Reason.CHECKS_HELD, Reason.CHECKS_DISPUTED, Reason.WAITED_TOO_LONG, Reason.BASE_RED),
        Reason.PR_CLOSED,
    }
)
#: Reasons that people resolve by a message to the agent, with the label of the link.
_BY_MESSAGE: Final[Mapping[str, str]] = {
    Reason.AGENT_QUESTION: say.ANSWER,
    Reason.UNCOMMITTED_WORK: say.MESSAGE,
    Reason.OFF_BRANCH: say.MESSAGE,
    Reason.COMMIT_MESSAGES: say.MESSAGE,
    Reason.NOTHING_TO_SHOW: say.MESSAGE,
}
#: Statuses in which the agent acts next, unless a person has pushed to the branch.
_BY_AGENT: Final = (Status.CI_FAILED, Status.CHANGES_REQUESTED)


def next_action(session: Session) -> NextAction:
    """Return what a person can do next. If its label is empty, there is nothing to click."""
    status, reason = Status(session.status), session.reason
    if status not in TERMINAL and any(one.name == FROZEN for one in session.blockers):
        return NextAction(text=say.FROZEN)
    if reason == Reason.IN_CHAT:
        return NextAction(text=say.IN_CHAT, label=say.TALK, url=f"/sessions/{session.id}/terminal")
    handed_over = reason == Reason.PERSON_PUSHED and status in _BY_AGENT
    if not (waits_for_person(session) or handed_over) and status in say.BY_ITSELF:
        text = say.BY_ITSELF[status]
        review = status is Status.REVIEW_PENDING
        return _on_github(session, text) if review else NextAction(text=text)
    text = advice_on(reason)
    pull = _open_pull(session)
    page = f"/sessions/{session.id}"
    if reason in HELD and session.work.head:
        found = _command("allow", text, argument=session.work.head)
        return replace(found, label=say.allow(session.work.head))
    if reason in _BY_MESSAGE:
        return NextAction(text=text, label=_BY_MESSAGE[reason], url=f"{page}#text")
    if reason in _ON_GITHUB:
        return _on_github(session, text)
    again = ADVICE[reason].again if reason in ADVICE else ""
    command, argument = _COMMANDS.get(reason, (again, ""))
    if status in RESTORABLE:
        command = "start"
    if command == "merge" and pull is None:
        command = ""
    if command:
        return _command(command, text, argument, pull.head if pull and command == "merge" else "")
    return NextAction(text=text, label=say.LOOK, url=f"{page}/terminal")


def _command(command: str, text: str, argument: str = "", head: str = "") -> NextAction:
    words = say.BUTTONS[command]
    return NextAction(
        text=text,
        label=words.label,
        command=command,
        argument=argument,
        head=head,
        confirm=words.confirm,
    )


def _on_github(session: Session, text: str) -> NextAction:
    pull = _open_pull(session) or (session.pulls[-1] if session.pulls else None)
    url = page_text.link(pull.url) if pull else ""
    if pull is None or not url:
        return NextAction(text=text)
    return NextAction(text=text, label=say.open_pull(pull.number), url=url)


def _open_pull(session: Session) -> Pull | None:
    return next((one for one in session.pulls if one.state is PullState.OPEN), None)
