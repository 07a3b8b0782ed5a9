"""Removes what a bot did after it had lost its lease to another bot.

Such a bot is called a former leader. Every action is checked right before its effect, but the
process can be suspended between the check and the effect: by a signal, by a debugger, or with its
machine. When it continues, its request or `git push` takes effect, although another bot has carried
out the same action meanwhile. A `git push` even outlives its process. Only actions that were due
when the former leader was replaced can have been carried out twice in this way. The store keeps
these actions, because the bot that replaced the leader may itself be replaced or restarted.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from msgspec.structs import replace

from bot.act.dispatch import ActionDispatcher, marker_of
from bot.act.results import RetryLater
from bot.github.errors import GitHubFailure, TryLater
from bot.store import (
    DueAction,
    FactsReader,
    InheritedAction,
    OutboxTable,
    Session,
    SessionsTable,
)
from bot.system.clock import Clock
from lifecycle.model import actions, keys
from lifecycle.model.key import KeyKind
from runtimes.base import RuntimeFailure
from runtimes.host import run_name
from runtimes.workspaces.git import GitFailure

log = logging.getLogger(__name__)

#: How many times the actions are checked after a former leader has ended.
_LOOKS = 2
#: How long actions are checked for a former leader whose end cannot be observed.
_LONGEST = timedelta(days=1)
#: Actions that show a state, which a former leader may have replaced by an older state.
_Shown = actions.Report | actions.ReportCheck | actions.ShowStatus | actions.Label


@dataclass(eq=False)
class LateEffects:
    """Removes duplicate effects of former leaders, which are bots that lost the lease.

    Each resync calls `remove`. The effects of an action are searched for until shortly after its
    former leader has ended, but at most for a day.
    """

    outbox: OutboxTable
    sessions: SessionsTable
    facts: FactsReader
    dispatcher: ActionDispatcher
    may_run: Callable[[str], bool]  #: Whether this former leader may still run.
    may_act: Callable[[], bool]  #: Whether this bot holds the lease.
    clock: Clock
    #: How many checks followed the end of each former leader.
    _looks: Counter[str] = field(default_factory=Counter, init=False)

    def remove(self) -> None:
        """Remove the duplicate effects that exist now."""
        suspects = self.outbox.inherited()
        ended = {one.former for one in suspects if not self.may_run(one.former)}
        failed = set[int]()
        for due in {one.seq: one for one in suspects}.values():
            if not self.may_act():
                return
            try:
                self._remove(due)
            except (GitHubFailure, GitFailure, RuntimeFailure, OSError) as failure:
                log.warning(
                    "%s: %s: duplicates that an earlier bot may have made are not removed yet: %s",
                    due.subject,
                    due.action.key,
                    failure,
                )
                failed.add(due.seq)

        def expected(one: InheritedAction) -> bool:
            again = one.former not in ended or one.seq in failed
            return again and self.clock() < one.at + _LONGEST

        for former in {one.former for one in suspects}:
            if any(expected(one) for one in suspects if one.former == former):
                self._looks[former] = 0
                continue
            self._looks[former] += 1
            if self._looks[former] >= _LOOKS:
                self.outbox.forget_inherited(former)
                del self._looks[former]

    def _remove(self, due: DueAction) -> None:
        github, action = self.dispatcher.github, due.action
        if isinstance(action, actions.Comment) and action.number:
            github.write.remove_duplicates(due.repository, action.number, marker_of(due))
        session = self.sessions.get(due.session) if due.session else None
        if session is None or session.project not in self.dispatcher.locations.projects:
            return
        match action:
            case actions.Report(number=number):
                key = keys.marker(session.id, keys.report(number))
                github.write.remove_duplicates(session.repository, number, key)
                self._show_again(due, action)
            case actions.ReportCheck() | actions.ShowStatus() | actions.Label():
                self._show_again(due, action)
            case actions.Reply(number=number, threads=threads):
                key = marker_of(due)
                github.reviews.remove_duplicates(session.repository, number, threads, key)
            case actions.Publish(head=head) if self._did(session, KeyKind.DELETE_BRANCH):
                home = self.dispatcher.locations.projects[session.project].home
                github.write.delete_branch(home, session.branch, head)
            case actions.Start() | actions.MergeRemote() if self._did(session, KeyKind.RELEASE):
                self._release_again(session)
            case _:
                pass  # It has no second effect: GitHub or git compares the commit it names.

    def _did(self, session: Session, kind: KeyKind) -> bool:
        """Whether the session has ended and an action of this kind was done for it."""
        return session.ended is not None and any(
            key.kind is kind for key in self.facts.get(session.id).done
        )

    def _show_again(self, due: DueAction, action: _Shown) -> None:
        """Show the current state again, which a late `action` may have replaced by an older one.

        This repeats the newest done action that writes to the same report, check run or label. Does
        nothing if `action` itself is the newest.
        """
        done = [entry.action for entry in self.outbox.of(due.session) if entry.state == "done"]
        newest = next((one for one in done if _place(one) == _place(action)), action)
        if newest != action:
            if isinstance(newest, actions.ReportCheck):
                newest = replace(newest, check=None)  # GitHub shows the one that came last.
            result = self.dispatcher.do(replace(due, action=newest), lambda: None)
            if isinstance(result, RetryLater):
                raise TryLater(result.why)

    def _release_again(self, session: Session) -> None:
        """Release the session again if its workspace or program was recreated after its release."""
        locations = self.dispatcher.locations
        runs = {run_name(session.id, number) for number in range(1, session.run + 1)}
        if locations.workspace_of(session).exists or runs & locations.host.runtime.look().keys():
            log.warning(
                "%s: an earlier bot recreated its workspace or restarted its agent: removed again",
                session.id,
            )
            self.dispatcher.agents.release(session, session.run)


def _place(action: actions.Action) -> object:
    """Return a value that is equal for actions which write to the same report, check run or label.

    For any other action, this is its key.
    """
    match action:
        case actions.Report(number=number) | actions.ShowStatus(number=number):
            return type(action), number
        case actions.ReportCheck(head=head):
            return type(action), head
        case actions.Label(number=number, name=name):
            return type(action), number, name
        case _:
            return action.key
