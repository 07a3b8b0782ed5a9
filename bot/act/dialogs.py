"""Giving a person's answer to an agent that asks in a dialog, once, and to that dialog alone."""

import hashlib
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from bot.act.results import (
    ActionResult,
    Completed,
    FinalCheck,
    Rejected,
    RetryLater,
    Withdrawn,
)
from bot.observe.agents import AgentObserver
from bot.store import Session
from bot.system.clock import Clock
from bot.system.locations import Locations
from lifecycle.model.actions import Tell
from lifecycle.model.status import Activity
from lifecycle.react.messages import ANSWER, REFUSED
from runtimes.agents.shared.dialogs import AnswerStep, Dialog
from runtimes.agents.shared.files import read_text, write_private
from runtimes.base import Gone, Handle, Press, Runtime, Send

#: How long a step of an answer may show no effect, before it is taken again.
_GONE_SECONDS = 8.0
_PAUSE = 0.1
#: How often the same answer is given.
_TRIES = 3
#: How many steps an answer has at most.
_STEPS = 50


class Answers:
    """Answers of people, for agents that ask. Every method may be repeated after a crash."""

    def __init__(
        self,
        locations: Locations,
        session: Callable[[str], Session | None],
        watch: AgentObserver,
        clock: Clock,
    ) -> None:
        self._locations = locations
        self._session = session
        self._watch = watch
        self._clock = clock

    def give(
        self, session: Session, tell: Tell, tried: int, check: FinalCheck
    ) -> ActionResult | None:
        """Answer the dialog that is open now; None: the agent takes answers as messages.

        An answer from before the question, or that is none of its choices, is refused. It is given
        again only to the very dialog it was given to before.
        """
        self._watch.look(session.id)
        dialog = self._dialog(session, tell.run)
        if dialog is None or isinstance(dialog, RetryLater):
            return dialog
        if stopped := check():
            return stopped
        known = self._session(session.id)
        agent = (known or session).agent
        if agent.activity is not Activity.WAITING_INPUT:
            return Withdrawn("it asks nothing any more")
        if not dialog.id:
            return RetryLater(
                "what it asks is in no dialog that is understood: answer at its terminal"
            )
        given = self._given(session, tell)
        if given and given != _name(dialog.id):
            return Completed(result="it was given")
        before = agent.since and agent.since > datetime.fromisoformat(tell.prompt.values["at"])
        if before or (not given and dialog.step(_text(tell)) is None):
            return Completed(result=REFUSED)
        write_private(self._record(session, tell), f"{tell.key} {_name(dialog.id)}\n")
        return self._take_all(session, tell, dialog, tried)

    def was_given(self, session: Session, tell: Tell) -> bool:
        """Whether an answer was given, and what it was given to is open no more."""
        given = self._given(session, tell) if tell.prompt.name == ANSWER else ""
        dialog = self._dialog(session, tell.run) if given else None
        return isinstance(dialog, Dialog) and _name(dialog.id) != given

    def _take_all(self, session: Session, tell: Tell, dialog: Dialog, tried: int) -> ActionResult:
        """Take every step of an answer, each read off what the last one led to."""
        attempt = min(tried, _TRIES - 1)
        for _ in range(_STEPS):
            way = dialog.step(_text(tell))
            if way is None:
                return Rejected("it takes the rest of that answer only at its terminal")
            key = f"{tell.key}#{attempt}:{_name(dialog.state)}"
            if gone := self._take(session, tell, way, key):
                return gone
            after = self._after(session, tell.run, dialog)
            if after.id != dialog.id:
                return Completed(result="it was given")
            if after.state == dialog.state:
                break
            dialog = after
        why = "it was answered, and asks the same still"
        return RetryLater(why) if tried + 1 < _TRIES else Rejected(f"{why}, {_TRIES} times over")

    def _take(self, session: Session, tell: Tell, way: AnswerStep, key: str) -> RetryLater | None:
        handle = self._locations.handle(session.id, tell.run)
        pause = self._locations.programs[session.agent_type].submit_seconds
        try:
            take(self._locations.runtime, handle, way, key, pause)
        except (Gone, OSError) as gone:
            self._watch.look(session.id)
            return RetryLater(str(gone))
        return None

    def _after(self, session: Session, run: int, dialog: Dialog) -> Dialog:
        """What it asks after a step; the same dialog where that changed nothing in time.

        Two looks in a row must say so: one may find a screen that is being drawn.
        """
        until = self._clock() + timedelta(seconds=_GONE_SECONDS)
        last = before = (dialog.id, dialog.state)
        while self._clock() <= until:
            time.sleep(_PAUSE)
            now = self._dialog(session, run) or Dialog()
            if isinstance(now, RetryLater):
                continue
            seen, last = last, (now.id, now.state)
            if last != before and last == seen:
                return now
        return dialog

    def _dialog(self, session: Session, run: int) -> Dialog | RetryLater | None:
        """What it asks now; `RetryLater` where nobody can tell."""
        handle: Handle = self._locations.handle(session.id, run)
        screen = self._locations.runtime.screens([handle]).get(handle)
        if screen is None:
            return RetryLater("its terminal cannot be read")
        program = self._locations.programs[session.agent_type]
        workspace = self._locations.workspace(session.project, session.id, session.branch)
        files = self._locations.files(session.id, run, session.branch, workspace.path)
        try:
            return program.dialog(files, screen)
        except OSError as failure:
            return RetryLater(str(failure))

    def _given(self, session: Session, tell: Tell) -> str:
        """The dialog this answer was given to; empty: it was given to none yet."""
        key, _, name = read_text(self._record(session, tell)).rpartition(" ")
        return name if key == str(tell.key) else ""

    def _record(self, session: Session, tell: Tell) -> Path:
        """Where the last answer of a run is written down before it is given.

        Who forges it has an answer pass for given that was not, to what it asked itself: it gains
        no more by that than by not heeding the answer.
        """
        return self._locations.paths.run(session.id, tell.run) / "answered"


def take(runtime: Runtime, handle: Handle, way: AnswerStep, key: str, pause: float) -> None:
    """Take one step of an answer, once for each key.

    `pause` is what the program needs before a paste and before Enter, in seconds. Raises `Gone`,
    and `OSError` where its port does not take it.
    """
    if way.request is not None:
        way.request()
    if way.keys:
        runtime.press(handle, Press(keys=way.keys, key=f"{key}:keys"))
    if way.text:
        time.sleep(pause if way.keys else 0)
        runtime.send(handle, Send(text=way.text, key=key, submit_seconds=pause))


def _text(tell: Tell) -> str:
    return tell.prompt.values["text"].strip()


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
