"""The rules of all commands: the statuses in which each works, and its replies.

A command is judged by the status that the session would have without this command and later
commands. The key of its reply records whether it was applied or refused; once it exists, the
command is not judged again. A command that is applied without a reply, such as `stop`, is judged
again until the session has ended.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.judge.judge import Judged, judge
from lifecycle.judge.pauses import frozen_by, is_undone
from lifecycle.judge.reasons import advice_on
from lifecycle.model import keys
from lifecycle.model.facts import Command, Facts
from lifecycle.model.key import Key
from lifecycle.model.names import MAKES_PULL, MODE, PERMISSION_MODES, agent_names, agent_of, mode_of
from lifecycle.model.policy import AutoMerge, MergeMethod, Policy
from lifecycle.model.status import HELD, TERMINAL, Merge, Origin, PullState, Status, status_words
from lifecycle.model.text import full_stop
from lifecycle.read.budgets import raised, shows_cost, spending_line
from lifecycle.read.merging import barred
from lifecycle.read.restores import RESTORABLE, RESTORES, names
from lifecycle.read.sentences import short
from lifecycle.read.session_view import earliest

S = Status
_EVERY: Final = frozenset(S)
_ALIVE: Final = _EVERY - TERMINAL
_STARTED: Final = _ALIVE - {S.QUEUED, S.SPAWNING}
_METHODS: Final = frozenset(method.value for method in MergeMethod)


def no_fault(_judged: Judged, _command: Command) -> str:
    return ""


def _no_words(_judged: Judged, command: Command) -> str:
    return "" if command.text.strip() else "The command has no text."


def _no_amount(_judged: Judged, command: Command) -> str:
    return "" if raised(command) else "The command needs an amount in US dollars, such as `+5`."


def _nothing_given_up(judged: Judged, _command: Command) -> str:
    return "" if judged.view.facts.failures else "There are no failed actions to retry."


def _not_to_merge(judged: Judged, command: Command) -> str:
    if judged.view.policy.auto_merge is AutoMerge.OFF:
        return "The configuration keeps the bot from merging; merge the pull request on GitHub."
    if why := barred(judged.view):
        return f"{why[0].upper()}{why[1:]}; merge the pull request on GitHub."
    pulls = judged.view.facts.pulls
    if not pulls:
        return "There is no pull request yet."
    if command.text and command.text not in _METHODS:
        return f"The merge method must be one of {', '.join(sorted(_METHODS))}."
    heads = {pull.head for pull in pulls if pull.state is PullState.OPEN}
    if not heads or command.head in {pull.head for pull in pulls} - heads:
        return "The pull request is closed."
    return "" if command.head in heads else _CHANGED if len(heads) == 1 else _AMBIGUOUS


_CHANGED: Final = (
    "The pull request has new commits or another base branch since your command. Review the "
    "changes, then repeat the command."
)
_AMBIGUOUS: Final = (
    "Several pull requests are open. Either your command specifies none, or the one it specifies "
    "has changed since. Review the one to merge, then repeat the command on that pull request."
)


def _no_such_agent(judged: Judged, command: Command) -> str:
    known, agent = judged.view.facts.agents, agent_of(command.text)
    if agent and agent not in known:
        return f"There is no agent `{agent}`; known agents: {', '.join(known)}."
    return _not_in_mode(judged, command)


def mode_fault(agent: str, mode: str, allowed: Collection[str]) -> str:
    """Return why an agent cannot run in a permission mode; empty if it can.

    `mode` is empty if none was given. `allowed` are the agent's modes; empty if it has none.
    """
    if not mode or mode in allowed:
        return ""
    if not allowed:
        return f"`{agent}` has no permission modes, so it cannot run with `{MODE}{mode}`"
    return f"`{agent}` may not run with `{MODE}{mode}` here, only with {' or '.join(allowed)}"


def _not_in_mode(judged: Judged, command: Command) -> str:
    view = judged.view
    agent = agent_of(command.text) or view.facts.agent_type
    allowed = view.facts.allowed_modes.get(agent, PERMISSION_MODES)
    mode = mode_of(command.text) or ("" if allowed else view.permission_mode)
    fault = mode_fault(agent, mode, allowed)
    return fault and f"{fault}."


def _not_to_hand_over(judged: Judged, command: Command) -> str:
    facts = judged.view.facts
    if agent_of(command.text) in agent_names(facts.agent_name, facts.agent_type):
        return "This session has that agent already."
    return _no_such_agent(judged, command)


def _no_chat(judged: Judged, _command: Command) -> str:
    facts = judged.view.facts
    if facts.origin is not Origin.CHAT:
        return (
            "This session is not a chat: the bot opens a pull request once the agent has committed."
        )
    made = judged.view.command(MAKES_PULL)
    return "" if made is None else "The pull request of this chat was already requested."


def _not_to_review(judged: Judged, command: Command) -> str:
    if judged.view.pull is None:
        return "There is no pull request yet."
    return _no_such_agent(judged, command)


def _not_to_update(judged: Judged, _command: Command) -> str:
    pull = judged.view.pull
    if pull is None:
        return "There is no pull request yet."
    if pull.merge is Merge.CONFLICT:
        return (
            "GitHub cannot update a branch that conflicts with its base: resolve the conflict "
            "first, or have the agent do it with `/mergewright tell TEXT`."
        )
    return ""


def _nothing_to_cancel(judged: Judged, _command: Command) -> str:
    view = judged.view
    asked = view.policy.merges_by_itself or view.command("merge") is not None
    return "" if asked and not view.merge_cancelled else "There is no merge to cancel."


def _not_frozen(judged: Judged, _command: Command) -> str:
    return "" if frozen_by(judged.view.facts) else "The session is not frozen."


def _nothing_held(judged: Judged, command: Command) -> str:
    head = judged.view.facts.work.head
    refused = judged.view.facts.failures.get(keys.push(head))
    if refused is None or refused.reason not in HELD:
        return "No commit waits for permission."
    if not head.startswith(command.text):
        return f"The commit that waits for permission is `{short(head)}`."
    if not names(judged.view.facts, command, head):
        return (
            f"Another commit has the same prefix; the one that waits is `{head}`. Repeat the "
            "command with this full hash."
        )
    return ""


_EXISTS: Final = "There is already a session here ({status}): {because} {remedy}"
_OVER: Final = "The session has ended: {because} {remedy}"
_AS_SOON: Final = "as soon as the limits of concurrent sessions allow it."
_AT_REST: Final = "Once the agent's turn is over and nothing pauses the session,"
_FOR_AGENT: Final = (
    "The agent gets your message now if it waits for one, otherwise at the end of its turn, or "
    "once the session starts or resumes."
)


class CommandRule(NamedTuple):
    """The statuses in which a command works, and its replies.

    Replies may use `{because}` (with its full stop), `{status}`, `{heading}` (the status with a
    capital letter), `{remedy}`, `{blockers}`, `{budget}`, `{text}` and `{agent}`. The values show
    the session as if the command had not been given. In `if_ineffective`, and in `applied` if
    `tells_after` is set, the values include the effect of the command.
    """

    applied: str  #: The reply if it is applied; if empty, no reply, because people see the effect.
    works: frozenset[Status] = _ALIVE
    otherwise: str = _OVER  #: The reply in every other status.
    over: str = ""  #: The reply if refused in a terminal status; if empty, `otherwise`.
    in_cleanup: str = ""  #: The reply if refused only until `cleanup` ends; if empty, `over`.
    #: The command is refused if the session has one of these statuses, and would keep one after it.
    ineffective: frozenset[Status] = frozenset()
    if_ineffective: str = ""  #: The reply if it is refused because of `ineffective`.
    #: Returns what is wrong with the command itself; empty if nothing is.
    fault: Callable[[Judged, Command], str] = no_fault
    tells_after: bool = False  #: Whether `applied` describes the session after the command.


_STATUS = "{heading}: {because}{blockers}{budget}"

COMMAND_RULES: Final[Mapping[str, CommandRule]] = {
    "help": CommandRule("{text}", works=_EVERY, otherwise=""),
    "status": CommandRule(_STATUS, works=_EVERY, otherwise=""),
    "why": CommandRule(_STATUS + "\n\n{remedy}", works=_EVERY, otherwise=""),
    "freeze": CommandRule(
        "This session is frozen: the bot does nothing for it until somebody writes "
        "`/mergewright unfreeze`. A running agent finishes its turn.",
        works=_EVERY,
        otherwise="",
    ),
    "unfreeze": CommandRule(
        "The session is no longer frozen.", works=_EVERY, otherwise="", fault=_not_frozen
    ),
    "start": CommandRule(
        f"The session continues {_AS_SOON}",
        works=RESTORABLE,
        otherwise=_EXISTS,
        over="The session cannot be started again ({status}): {because} Open a new issue for "
        "further work.",
        in_cleanup="The session is still ending: {because} Repeat the command in a minute.",
        ineffective=TERMINAL,
        if_ineffective="The session would end again at once: {because} {remedy}",
        fault=_no_such_agent,
    ),
    "adopt": CommandRule("", works=frozenset(), otherwise=_EXISTS, over=_OVER),
    MAKES_PULL: CommandRule(
        "When its turn ends, the agent is asked to commit its work; then the commits are pushed "
        "and the pull request is opened.",
        fault=_no_chat,
    ),
    "stop": CommandRule("", otherwise="The session has already ended: {because}"),
    "pause": CommandRule(
        "Paused: the program is stopped; the conversation and the work are kept. "
        "Write `/mergewright resume` to continue."
    ),
    "resume": CommandRule(
        f"Nothing pauses the session any more. An agent that was stopped continues {_AS_SOON}",
        works=_STARTED,
        otherwise="The session is not paused ({status}): {because}",
        over=_OVER,
        ineffective=frozenset({S.PAUSED}),
        if_ineffective="The session stays paused: {because} {remedy}",
    ),
    "restart": CommandRule(
        f"The agent is started again {_AS_SOON}",
        works=_STARTED,
        otherwise="There is nothing to restart ({status}): {because} {remedy}",
        ineffective=frozenset({S.PAUSED}),
        if_ineffective="The session stays paused: {because} {remedy}",
        fault=_not_in_mode,
    ),
    "retry": CommandRule(
        "The failed actions are retried.", works=_EVERY - {S.ERRORED}, fault=_nothing_given_up
    ),
    "allow": CommandRule(f"{_AT_REST} the commit is pushed unchanged.", fault=_nothing_held),
    "tell": CommandRule(_FOR_AGENT, fault=_no_words),
    "answer": CommandRule(_FOR_AGENT, fault=_no_words),
    "merge": CommandRule(
        "The current commit is merged once nothing blocks it and the session neither is paused nor "
        "waits for a person.{blockers}",
        fault=_not_to_merge,
        tells_after=True,
    ),
    "cancel": CommandRule(
        "The bot does not merge this pull request until somebody writes `/mergewright merge`.",
        fault=_nothing_to_cancel,
    ),
    "update": CommandRule(f"{_AT_REST} the branch is updated.", fault=_not_to_update),
    "agent": CommandRule(
        "`{agent}` takes over once nothing pauses the session and the limits of concurrent "
        "sessions allow it.",
        fault=_not_to_hand_over,
    ),
    "review": CommandRule(
        f"{_AT_REST} the review starts.",
        works=_STARTED,
        otherwise="There is nothing to review ({status}): {because} {remedy}",
        fault=_not_to_review,
    ),
    "budget": CommandRule("Budget raised.{budget}", fault=_no_amount, tells_after=True),
}


#: The commands that a report may name: those that do not work in every status.
_REPORTED: Final = tuple((kind, row) for kind, row in COMMAND_RULES.items() if row.works != _EVERY)
#: Commands that a report names without knowing whether they would be refused: they need a text, or
#: it names them before they work, because they will when `cleanup` ends.
_UNEXAMINED: Final = frozenset({"tell", "answer", "agent", "budget", "start"})


def offered(judged: Judged) -> tuple[str, ...]:
    """Return the commands that a report names: they work in this status, but not in every status.

    Commands that would be refused now are left out; this is not checked for the commands in
    `_UNEXAMINED`. `cancel` is named only after a command to merge. The facts of `judged` must be
    those of `AppliedCommands`, which contain no refused commands.
    """
    facts, pull = judged.view.facts, judged.view.pull
    given = Command(key="", kind="", actor="", at=judged.view.now, head=pull.head if pull else "")

    def refused(kind: str, row: CommandRule) -> bool:
        if kind == "cancel" and judged.view.command("merge") is None:
            return True
        command = replace(given, kind=kind, text=facts.work.head if kind == "allow" else "")
        return bool(_refusal(row, command, judged, list(facts.commands), facts))

    return tuple(
        kind
        for kind, row in _REPORTED
        if judged.status in row.works and (kind in _UNEXAMINED or not refused(kind, row))
    )


class AppliedCommands(Struct, frozen=True):
    """The facts with only those commands that take effect, and the replies to new commands."""

    facts: Facts
    answers: tuple[tuple[Key, str], ...] = ()  #: Keys and texts of the replies.
    recheck_at: datetime | None = None  #: When time alone may change the replies; if None, never.


def apply_commands(facts: Facts, policy: Policy, now: datetime) -> AppliedCommands:
    """Apply or refuse every command that has no reply yet, oldest first."""
    if not facts.commands:
        return AppliedCommands(facts)
    applied: list[Command] = []
    answers: list[tuple[Key, str]] = []
    recheck_at: datetime | None = None
    for command in sorted(facts.commands, key=lambda command: command.at):
        row = COMMAND_RULES.get(command.kind)
        if row is None or _known(keys.command_refused(command.key), facts):
            continue
        if _known(keys.command_applied(command.key), facts) or _had_its_effect(command, facts):
            applied.append(command)
            continue
        before = judge(replace(facts, commands=tuple(applied)), policy, now)
        refusal = _refusal(row, command, before, applied, facts)
        if not refusal:
            applied.append(command)
            if row.tells_after:
                before = judge(replace(facts, commands=tuple(applied)), policy, now)
        key_of = keys.command_refused if refusal else keys.command_applied
        applies = "" if is_undone(command, facts) else row.applied
        if text := refusal or _say(applies, before, command):
            answers.append((key_of(command.key), text))
        recheck_at = earliest(recheck_at, before.recheck_at)
    return AppliedCommands(replace(facts, commands=tuple(applied)), tuple(answers), recheck_at)


def _refusal(
    row: CommandRule, command: Command, before: Judged, applied: list[Command], facts: Facts
) -> str:
    """Return why a command is refused; empty if it is applied."""
    if before.status not in row.works:
        over = row.over if before.status in TERMINAL else ""
        shown = before.as_shown()
        if row.in_cleanup and shown is not before and shown.status in row.works:
            return _say(row.in_cleanup, shown, command)
        return _say(over or row.otherwise, before, command)
    if fault := row.fault(before, command):
        return fault
    # No command changes a session to such a status, so only one that has it is judged once more.
    if before.status in row.ineffective:
        brought = replace(facts, commands=(*applied, command))
        after = judge(brought, before.view.policy, before.view.now)
        if after.status in row.ineffective:
            return _say(row.if_ineffective, after, command)
    return ""


def _say(sentence: str, judged: Judged, command: Command) -> str:
    view = judged.view
    # Only commands that were given on GitHub get their replies there.
    with_cost = not command.number or shows_cost(view.facts, view.policy)
    spent = spending_line(view.facts, view.policy, view.now, with_cost=with_cost)
    blockers = "\n".join(f"- {blocker.sentence}" for blocker in judged.blockers)
    given = {
        "status": status_words(judged.status),
        "heading": status_words(judged.status).capitalize(),
        "because": full_stop(judged.because),
        "remedy": advice_on(judged.reason),
        "blockers": f"\n\nThe merge is blocked by:\n\n{blockers}" if blockers else "",
        "budget": f"\n\nSo far {full_stop(spent)}",
        "text": command.text,
        "agent": agent_of(command.text),
    }
    return sentence.format(**given).strip()


def _had_its_effect(command: Command, facts: Facts) -> bool:
    """After `start`, whether the session was restored; after other commands, whether it ended."""
    if command.kind == RESTORES:
        return facts.restored_at is not None and facts.restored_at >= command.at
    return facts.ended is not None and facts.ended.at >= command.at


def _known(key: Key, facts: Facts) -> bool:
    return key in facts.done or key in facts.pending or key in facts.failures
