"""Giving a person's answer to an agent that asks in a dialog, once, and to that dialog alone."""

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from bot.act.outbox import Check, Impossible, Later, Moot, Outcome
from bot.observe.agents import AgentObserver
from bot.store import Session
from bot.system.clock import Clock
from bot.system.locations import Sites
from lifecycle.model.actions import Tell
from lifecycle.model.status import Activity
from lifecycle.react.messages import ANSWER, REFUSED
from runtimes.agents.shared.files import read_text, write_private
from runtimes.agents.shared.questions import AnswerStep, Dialog
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
        sites: Sites,
        session: Callable[[str], Session | None],
        watch: AgentObserver,
        clock: Clock,
    ) -> None:
        self._sites = sites
        self._session = session
        self._watch = watch
        self._clock = clock

    def give(self, session: Session, tell: Tell, tried: int, check: Check) -> Outcome | None:
        """Answer the dialog that is open now; None: the agent takes answers as messages.

        An answer from before the question, or that is none of its choices, is refused. It is given
        again only to the very dialog it was given to before.
        """
        self._watch.look(session.id)
        dialog = self._dialog(session, tell.run)
        if dialog is None:
            return None
        check()
        known = self._session(session.id)
        agent = (known or session).agent
        if agent.activity is not Activity.WAITING_INPUT:
            raise Moot("it asks nothing any more")
        if not dialog.asks:
            raise Later("what it asks is in no dialog that is understood: answer at its terminal")
        given = self._given(session, tell)
        if given and given != _name(dialog.asks):
            return Outcome(result="it was given")
        before = agent.since and agent.since > datetime.fromisoformat(tell.prompt.values["at"])
        if before or (not given and dialog.way(_text(tell)) is None):
            return Outcome(result=REFUSED)
        write_private(self._record(session, tell), f"{tell.key} {_name(dialog.asks)}\n")
        if not self._take_all(session, tell, dialog, min(tried, _TRIES - 1)):
            why = "it was answered, and asks the same still"
            raise Later(why) if tried + 1 < _TRIES else Impossible(f"{why}, {_TRIES} times over")
        return Outcome(result="it was given")

    def was_given(self, session: Session, tell: Tell) -> bool:
        """Whether an answer was given, and what it was given to is open no more."""
        given = self._given(session, tell) if tell.prompt.name == ANSWER else ""
        with suppress(Later):
            dialog = self._dialog(session, tell.run) if given else None
            return dialog is not None and _name(dialog.asks) != given
        return False

    def _take_all(self, session: Session, tell: Tell, dialog: Dialog, tried: int) -> bool:
        """Take every step of an answer, each read off what the last one led to.

        False: one of them changed nothing.
        """
        for _ in range(_STEPS):
            way = dialog.way(_text(tell))
            if way is None:
                raise Impossible("it takes the rest of that answer only at its terminal")
            self._take(session, tell, way, f"{tell.key}#{tried}:{_name(dialog.shows)}")
            after = self._after(session, tell.run, dialog)
            if after.asks != dialog.asks or after.shows == dialog.shows:
                return after.asks != dialog.asks
            dialog = after
        return False

    def _take(self, session: Session, tell: Tell, way: AnswerStep, key: str) -> None:
        handle = self._sites.handle(session.id, tell.run)
        pause = self._sites.programs[session.agent_type].submit_seconds
        try:
            take(self._sites.runtime, handle, way, key, pause)
        except (Gone, OSError) as gone:
            self._watch.look(session.id)
            raise Later(str(gone)) from gone

    def _after(self, session: Session, run: int, dialog: Dialog) -> Dialog:
        """What it asks after a step; the same dialog where that changed nothing in time.

        Two looks in a row must say so: one may find a screen that is being drawn.
        """
        until = self._clock() + timedelta(seconds=_GONE_SECONDS)
        last = before = (dialog.asks, dialog.shows)
        while self._clock() <= until:
            time.sleep(_PAUSE)
            with suppress(Later):
                now = self._dialog(session, run) or Dialog()
                seen, last = last, (now.asks, now.shows)
                if last != before and last == seen:
                    return now
        return dialog

    def _dialog(self, session: Session, run: int) -> Dialog | None:
        """What it asks now. Raises `Later` where nobody can tell."""
        handle: Handle = self._sites.handle(session.id, run)
        screen = self._sites.runtime.screens([handle]).get(handle)
        if screen is None:
            raise Later("its terminal cannot be read")
        program = self._sites.programs[session.agent_type]
        workspace = self._sites.workspace(session.project, session.id, session.branch)
        files = self._sites.files(session.id, run, session.branch, workspace.path)
        try:
            return program.dialog(files, screen)
        except OSError as failure:
            raise Later(str(failure)) from failure

    def _given(self, session: Session, tell: Tell) -> str:
        """The dialog this answer was given to; empty: it was given to none yet."""
        key, _, name = read_text(self._record(session, tell)).rpartition(" ")
        return name if key == tell.key else ""

    def _record(self, session: Session, tell: Tell) -> Path:
        """Where the last answer of a run is written down before it is given.

        Who forges it has an answer pass for given that was not, to what it asked itself: it gains
        no more by that than by not heeding the answer.
        """
        return self._sites.paths.run(session.id, tell.run) / "answered"


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
