"""Giving a person's answer to an agent that asks in a dialog, once, and to that dialog alone."""

import hashlib
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from bot.clock import Clock
from bot.outbox import Check, Impossible, Later, Moot, Outcome
from bot.sites import Sites
from bot.store import Session
from bot.watch_agents import WatchAgents
from lifecycle.actions import Tell
from lifecycle.messages import ANSWER, REFUSED
from lifecycle.status import Activity
from runtimes.agents.files import read_text, write_private
from runtimes.agents.questions import Dialog, Way
from runtimes.base import Gone, Handle, Press, Send

#: How long a dialog may stay on after it was answered, before it is answered again.
_GONE_SECONDS = 8.0
_PAUSE = 0.1
#: How often the same answer is given.
_TRIES = 3


class Answers:
    """Answers of people, for agents that ask. Every method may be repeated after a crash."""

    def __init__(
        self,
        sites: Sites,
        session: Callable[[str], Session | None],
        watch: WatchAgents,
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
        dialog = self._dialog(session, tell.run)
        if dialog is None:
            return None
        self._watch.look(session.id)
        check()
        known = self._session(session.id)
        agent = (known or session).agent
        if agent.activity is not Activity.WAITING_INPUT:
            raise Moot("it asks nothing any more")
        dialog = self._dialog(session, tell.run) or Dialog()
        if not dialog.asks:
            raise Later("what it asks is in no dialog that is understood: answer at its terminal")
        given = self._given(session, tell)
        if given and given != _name(dialog):
            return Outcome(result="it was given")
        before = agent.since and agent.since > datetime.fromisoformat(tell.prompt.values["at"])
        way = None if before else dialog.way(tell.prompt.values["text"].strip())
        if way is None:
            return Outcome(result=REFUSED)
        write_private(self._record(session, tell), f"{tell.key} {_name(dialog)}\n")
        self._take(session, tell, way, f"{tell.key}#{min(tried, _TRIES - 1)}")
        if not self._is_gone(session, tell.run, dialog):
            why = "it was answered, and asks the same still"
            raise Later(why) if tried + 1 < _TRIES else Impossible(f"{why}, {_TRIES} times over")
        return Outcome(result="it was given")

    def was_given(self, session: Session, tell: Tell) -> bool:
        """Whether an answer was given, and what it was given to is open no more."""
        given = self._given(session, tell) if tell.prompt.name == ANSWER else ""
        dialog = self._dialog(session, tell.run) if given else None
        return dialog is not None and _name(dialog) != given

    def _take(self, session: Session, tell: Tell, way: Way, key: str) -> None:
        handle = self._sites.handle(session.id, tell.run)
        pause = self._sites.programs[session.agent_type].submit_seconds
        try:
            if way.request is not None:
                way.request()
            if way.keys:
                self._sites.runtime.press(handle, Press(keys=way.keys, key=f"{key}:keys"))
            if way.text:
                time.sleep(pause if way.keys else 0)
                send = Send(text=way.text, key=key, submit_seconds=pause)
                self._sites.runtime.send(handle, send)
        except (Gone, OSError) as gone:
            self._watch.look(session.id)
            raise Later(str(gone)) from gone

    def _is_gone(self, session: Session, run: int, dialog: Dialog) -> bool:
        until = self._clock() + timedelta(seconds=_GONE_SECONDS)
        while (self._dialog(session, run) or Dialog()).asks == dialog.asks:
            if self._clock() > until:
                return False
            time.sleep(_PAUSE)
        return True

    def _dialog(self, session: Session, run: int) -> Dialog | None:
        handle: Handle = self._sites.handle(session.id, run)
        screen = self._sites.runtime.screens([handle]).get(handle, "")
        program = self._sites.programs[session.agent_type]
        workspace = self._sites.workspace(session.project, session.id, session.branch)
        files = self._sites.files(session.id, run, session.branch, workspace.path)
        return program.dialog(files, screen)

    def _given(self, session: Session, tell: Tell) -> str:
        """The dialog this answer was given to; empty: it was given to none yet."""
        key, _, name = read_text(self._record(session, tell)).rpartition(" ")
        return name if key == tell.key else ""

    def _record(self, session: Session, tell: Tell) -> Path:
        """Where the last answer of a run is written down before it is given."""
        return self._sites.layout.run(session.id, tell.run) / "answered"


def _name(dialog: Dialog) -> str:
    return hashlib.sha256(dialog.asks.encode()).hexdigest()[:16]
