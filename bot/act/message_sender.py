"""Sends messages, people's answers to dialogs, and people's keystrokes to agents' terminals.

Sending does not wait until the message arrives. The sent message awaits its receipt
(`bot.store.outbox`): either the agent observer sees that the message arrived, or the next decision
sends it again.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from bot.act.results import (
    ActionResult,
    AwaitingReceipt,
    Completed,
    FinalCheck,
    Rejected,
    RetryLater,
    Withdrawn,
)
from bot.act.runs import values_of
from bot.act.workspace_files import LfsUnavailable, fetch_lfs
from bot.store import DueAction, OutboxTable, Receipt, Session, SessionsTable
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.text.prompt_text import one_line, printable
from bot.text.prompts import Prompts
from lifecycle.model import keys
from lifecycle.model.actions import PressKeys, SendMessage
from lifecycle.model.facts import Sent
from lifecycle.model.status import Activity
from lifecycle.react.messages import ANSWER, REFUSED
from runtimes.base import RuntimeFailure
from runtimes.host import OpenDialog, RunRef, UnsentInput

#: How long the message of the first attempt may take to arrive. The time doubles with each later
#: attempt.
_RECEIPT_SECONDS = 8.0
#: How long keys may wait to be typed. Later they would surprise the person.
_KEYS_LAST = timedelta(seconds=10)
#: How long messages wait after a person last typed into the terminal.
_TYPING = timedelta(seconds=10)
#: How many times a message, or one step of an answer, is sent at most.
_ATTEMPTS = 3
#: The most steps that an answer takes.
_STEPS = 50
_SCREEN_LINES = 8  #: How many lines of the agent's screen are shown to people.


@dataclass(frozen=True)
class MessageSender:
    """Sends messages and answers. Every method is safe to repeat after a crash.

    Each attempt has its own idempotency key. The host sends at most one text for each such key.
    """

    sessions: SessionsTable
    outbox: OutboxTable
    locations: Locations
    prompts: Prompts
    clock: Clock

    def send(
        self, session: Session, due: DueAction, message: SendMessage, check: FinalCheck
    ) -> ActionResult:
        """Send a message, or take the next step of an answer to a dialog."""
        typed, now = self.outbox.typed_at(session.id), self.clock()
        if typed is not None and typed <= now < typed + _TYPING:
            return RetryLater("a person types into the agent's terminal", typed + _TYPING)
        run, is_answer = self.locations.run_of(session, message.run), message.prompt.name == ANSWER
        if base := message.prompt.values.get("base"):
            mirror = self.locations.mirror(session.project)
            mirror.refresh()
            tip = mirror.head_of(base)
            workspace, tips = self.locations.workspace_of(session), tuple(filter(None, (tip,)))
            workspace.update_origin(*tips)
            with suppress(LfsUnavailable):  # The next start says so.
                fetch_lfs(self.locations, session, workspace, *tips, write=False)
        text = message.prompt.values["text"].strip() if is_answer else ""
        dialog = self.locations.host.runs.dialog(run, text)
        if stopped := check():
            return stopped
        session = self.sessions.get(session.id) or session
        asks = session.agent.activity is Activity.WAITING_INPUT
        # A message and an answer have the same cause: the next decision orders whichever is right.
        if asks and not is_answer:
            return Withdrawn("the agent asks a question and would take this message as the answer")
        if is_answer and not asks:
            return Withdrawn("the agent no longer asks a question: this text follows as a message")
        if is_answer and dialog is not None:
            return self._answer(session, due, message, dialog)
        if dialog is not None and dialog.id:
            return RetryLater("the agent asks a question and would take this message as the answer")
        return self._paste(session, due, message, run)

    def type(self, session: Session, seq: int, typed: PressKeys, check: FinalCheck) -> ActionResult:
        """Type a person's text and keys into the agent's terminal, at most once.

        Before that, the action is marked as done and its text erased. Other actions are repeated
        after a crash, but repeated keys could confirm a dialog that nobody has read. If keys are
        lost, the person sees that on the screen and types them again. Unless `check` stops the
        action, the result is `Completed` even if the keys were not typed; the history then says
        why.
        """
        if stopped := check():
            return stopped
        runs, run = self.locations.host.runs, self.locations.run_of(session, typed.run)
        if not self.outbox.take_keys(seq, typed, self.clock()):
            return Completed()
        why = ""
        if self.clock() - typed.at > _KEYS_LAST:
            why = "the bot was busy or stopped for too long"
        elif not runs.is_isolated(run):
            why = "the agent does not run in a sandbox"
        else:
            try:
                runs.type(run, typed.keys, typed.paste)
            except (RuntimeFailure, OSError) as failure:
                why = str(failure)
        if why:
            self.outbox.drop_keys(session.id, typed, why, self.clock())
        return Completed()

    def _paste(
        self, session: Session, due: DueAction, message: SendMessage, run: RunRef
    ) -> ActionResult:
        mark, attempt = keys.visible(session.id, message.key), _next_attempt(due.receipt)
        runs = self.locations.host.runs
        if attempt >= _ATTEMPTS:
            return Rejected(
                f"the message {mark} was sent {_ATTEMPTS} times and did not reach the agent; the"
                f" agent's screen ends with: {_last_lines(runs.screen(run))}"
            )
        handover = self.locations.host.records.handover(run)
        values = {
            **values_of(session, message.prompt.values.get("base", "")),
            "summary": handover.summary_path if handover.writable else "",
        }
        text = self.prompts.render(message.prompt, values, mark, session.project)
        receipt = _receipt(due.receipt, attempt, self.clock())
        # Before it is sent: after a crash it may have arrived, although nothing wants it any more.
        self.outbox.note(due.seq, receipt)
        try:
            runs.send(run, text, f"{message.key}{receipt.order}#{attempt}")
        except UnsentInput as typed:
            return RetryLater(
                "the agent's input box holds unsent text; send or delete it at its terminal:"
                f" {one_line(printable(typed.words))}"
            )
        sent = replace(receipt.sent, until=self.clock() + _time_limit(attempt))
        return AwaitingReceipt(replace(receipt, sent=sent))

    def _answer(
        self, session: Session, due: DueAction, message: SendMessage, dialog: OpenDialog
    ) -> ActionResult:
        """Take the next step of an answer to the open dialog.

        A dialog can have several pages; each step answers the page that is shown. An answer is
        refused if it was written before the question was asked, or if it matches none of the
        question's choices.
        """
        if not dialog.id:
            return RetryLater(
                "the dialog on the agent's screen is not recognised: answer at its terminal"
            )
        before, asked_at = due.receipt, session.agent.since
        if before is not None and before.dialog != dialog.id:
            return Completed(result="received")
        early = asked_at and asked_at > datetime.fromisoformat(message.prompt.values["at"])
        if early or (before is None and not dialog.accepts):
            return Completed(result=REFUSED)
        if not dialog.accepts:
            return Rejected("the rest of this answer can only be given at the agent's terminal")
        again = before is not None and before.state == dialog.state
        attempt = _next_attempt(before) if again else 0
        steps = (before.steps if before else 0) + (not again)
        if attempt >= _ATTEMPTS or steps > _STEPS:
            times = attempt or steps
            return Rejected(f"the agent still asks the same question after {times} answers")
        receipt = replace(
            _receipt(before, attempt, self.clock()),
            dialog=dialog.id,
            state=dialog.state,
            steps=steps,
        )
        # Before it is given: after a crash, a dialog that is gone was answered.
        self.outbox.note(due.seq, receipt)
        run, text = self.locations.run_of(session, message.run), message.prompt.values["text"]
        key = f"{message.key}{receipt.order}#{attempt}"
        if not self.locations.host.runs.answer(run, dialog, text.strip(), key):
            if before is None:  # Later it would look as if it had been given.
                return Completed(result=REFUSED)
            return RetryLater("the agent asks another question now")
        return AwaitingReceipt(receipt)


def _receipt(before: Receipt | None, attempt: int, now: datetime) -> Receipt:
    """Return the receipt of an attempt. `before` is the previous attempt's receipt, or None.

    All attempts have the same `order`, the time of the first one, which is a part of their keys.
    """
    return Receipt(
        sent=Sent(at=now, until=now + _time_limit(attempt)),
        order=before.order if before else f"@{now.timestamp()}",
        tries=attempt + 1,
    )


def _time_limit(attempt: int) -> timedelta:
    return timedelta(seconds=_RECEIPT_SECONDS * 2**attempt)


def _next_attempt(receipt: Receipt | None) -> int:
    """Return the number of the next attempt, counted from 0.

    `receipt` is the last attempt's receipt, or None if there was no attempt. If the last attempt's
    message is not known to be lost, that attempt is repeated, so its own number is returned.
    """
    if receipt is None:
        return 0
    return receipt.tries if receipt.sent.missing else receipt.tries - 1


def _last_lines(screen: str) -> str:
    lines = (" ".join(line.split()) for line in printable(screen).splitlines())
    return " | ".join([line for line in lines if line][-_SCREEN_LINES:])
