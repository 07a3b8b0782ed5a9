"""Doing what concerns an agent's program: start a run, tell it, stop it, give everything back."""

import time
from collections.abc import Mapping
from datetime import timedelta

from msgspec.structs import replace

from bot import words
from bot.answers import Answers
from bot.archive import Archive
from bot.clock import Clock
from bot.github.client import GitHub
from bot.identities import Identities
from bot.models import Models, NoModel
from bot.outbox import Check, Impossible, Later, Moot, Outcome
from bot.prompts import BEGINNINGS, Prompts, one_line, plain
from bot.releases import end_programs, release
from bot.sites import Sites
from bot.store import Observed, Session, Store
from bot.watch_agents import WatchAgents
from lifecycle import actions as do
from lifecycle import keys
from lifecycle.actions import Prompt
from lifecycle.facts import Agent, Work
from lifecycle.messages import ANSWER
from lifecycle.status import Activity, Probe, Reason
from runtimes.agents.base import Program, Terms
from runtimes.base import Gone, Handle, Launch, Send
from runtimes.workspaces.worktree import Worktree

#: How long a message may take to show up where the agent reads it, before it is tried again.
_HEARD_SECONDS = 8.0
#: Between two looks for it.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
#: How soon an agent that has as much to do as it may is asked again to take a session over.
_NO_ROOM = timedelta(seconds=10)
_SCREEN_LINES = 8  #: So many of a screen are shown to people.
#: How often a message is pasted before it is given up.
_PASTES = 3


class Agents:
    """Starts, tells and stops programs. Every method may be repeated after a crash."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        sites: Sites,
        prompts: Prompts,
        watch: WatchAgents,
        archive: Archive,
        identities: Identities,
        models: Models,
        steering: tuple[str, ...],
        clock: Clock,
    ) -> None:
        """`steering` are patterns of the files that are held as on the base branch."""
        self._store = store
        self._github = github
        self._sites = sites
        self._prompts = prompts
        self._watch = watch
        self._archive = archive
        self._identities = identities
        self._models = models
        self._steering = steering
        self._clock = clock
        self._answers = Answers(sites, store.session, watch, clock)

    def knows(self, word: str) -> bool:
        """Whether an agent, or a type of them, of this name is configured."""
        return word in self._identities.words

    def start(self, session: Session, start: do.Start, check: Check) -> Outcome:
        """Make the workspace whole, end what an earlier run left, start the program."""
        if start.agent:
            if full := self._identities.no_room(session, start.agent):
                raise Later(full, self._clock() + _NO_ROOM)
            # Before anything of the new one is there: what the old one wrote is read as its own.
            end_programs(self._sites, self._archive, session, start.run - 1)
            session = self._identities.hand_over(session, start.agent)
        project = self._sites.projects[session.project]
        mirror = self._sites.mirror(session.project)
        base_branch = project.base_branch or self._default_branch(session)
        for earlier in range(1, start.run):
            self._sites.runtime.stop(self._sites.handle(session.id, earlier))
        mirror.refresh()
        workspace = self._sites.workspace(session.project, session.id, session.branch)
        _refuse_lost_work(session, workspace)
        self._refuse_foreign_branch(session, workspace)
        base = workspace.make(base_branch, run=start.run - 1)
        held = workspace.hold(mirror.head_of(base_branch) or base, self._steering, start.run - 1)

        files = self._sites.files(session.id, start.run, session.branch, workspace.path)
        files.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        program = self._sites.programs[session.agent_type]
        values = {
            **self._values(session, base_branch),
            "summary": str(files.summary) if program.writes_outside else "",
            "template": mirror.pull_template(base),
        }
        text = self._prompts.render(start.prompt, values, keys.visible(session.id, start.key))
        if held:
            told = Prompt(name="held", values={"files": ", ".join(held)})
            text = f"{text}\n\n{self._prompts.render(told, {}, '')}"
        self._archive.put_back(session.id)
        terms = self._terms(session, start.run)
        command = program.prepare(files, text, start.resume, terms)
        if start.resume not in ("", command.native_id) and start.prompt.name not in BEGINNINGS:
            # It remembers nothing: a message alone would be about work it does not know.
            notes = self._prompts.render(Prompt(name="resume"), values, "")
            text = f"{notes}\n\n{text}"
            command = program.prepare(files, text, "", terms)
        launch = Launch(
            name=files.dir.name,
            argv=bootstrapped(project.bootstrap, command.argv),
            cwd=workspace.path,
            env=command.env,
            dir=files.dir,
        )
        check()  # Making a workspace may have taken minutes.
        self._sites.runtime.start(launch)
        now = self._clock()
        seen = Observed(
            session=session.id,
            run=start.run,
            agent=Agent(
                run=start.run,
                since=now,
                runtime=Probe.ALIVE,
                program=Probe.ALIVE,
                native_id=command.native_id or start.resume,
                evidence="its program was started",
            ),
            work=Work(
                path=str(workspace.path),
                branch=session.branch,
                base=base,
                head=workspace.head() or base,
            ),
        )
        return Outcome(result=f"run {start.run}", observed=seen)

    def tell(self, session: Session, tell: do.Tell, tried: int, check: Check) -> Outcome:
        """Send a message and see that it arrives.

        The same paste never goes out twice, because the runtime knows its key; one that does not
        show up is pasted under the next key, until it is given up.
        """
        if tell.prompt.name == ANSWER and (
            given := self._answers.give(session, tell, tried, check)
        ):
            return given
        mark = keys.visible(session.id, tell.key)
        paste = min(tried, _PASTES - 1)
        handle = self._sites.handle(session.id, tell.run)
        if "base" in tell.prompt.values:
            self._sites.mirror(session.project).refresh()
        self._watch.look(session.id)
        check()
        self._refuse_dialog(session, tell)
        program = self._sites.programs[session.agent_type]
        self._refuse_typed(handle, program)
        values = self._values(session, tell.prompt.values.get("base", ""))
        send = Send(
            text=self._prompts.render(tell.prompt, values, mark),
            key=f"{tell.key}#{paste}",
            submit_seconds=program.submit_seconds,
        )
        try:
            self._sites.runtime.send(handle, send)
        except Gone as gone:
            self._watch.look(session.id)
            raise Later(str(gone)) from gone
        wait_until = self._clock() + timedelta(seconds=_HEARD_SECONDS + program.submit_seconds)
        pause = _FIRST_PAUSE
        while not self._watch.received(session.id, mark):
            if self._store.to_be_ended(session.id):
                raise Moot("its program is to be ended, and must not wait for the message")
            if self._clock() > wait_until:
                raise Later(
                    f"the message {mark} did not show up in what the agent reads; its screen ends"
                    f" with: {self._last_lines(handle)}"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return Outcome(result=mark)

    def told(self, session: Session, tell: do.Tell) -> Outcome | None:
        """Whether a message has reached the agent of its run."""
        mark = keys.visible(session.id, tell.key)
        if self._answers.was_given(session, tell):
            return Outcome(result="it was given")
        if session.run == tell.run and self._watch.received(session.id, mark):
            return Outcome(result=f"{mark} was there already")
        return None

    def stop(self, session: Session, run: int) -> Outcome:
        """End the program and all it started; the workspace stays."""
        end_programs(self._sites, self._archive, session, run)
        return Outcome(observed=Observed(session=session.id, run=run, agent=_gone(session.agent)))

    def release(self, session: Session, run: int) -> Outcome:
        """End the program, keep what would be lost in the mirror, remove the workspace."""
        kept = release(self._sites, self._archive, session, run)
        work = replace(session.work, path="")
        seen = Observed(session=session.id, run=run, agent=_gone(session.agent), work=work)
        return Outcome(result=f"kept {kept}" if kept else "", observed=seen)

    def _terms(self, session: Session, run: int) -> Terms:
        """What the configuration holds this run to."""
        try:
            endpoint = self._models.endpoint(session, run)
        except NoModel as nowhere:
            raise Impossible(str(nowhere), Reason.SPAWN_FAILED) from nowhere
        return Terms(
            system=self._identities.system_prompt(session.agent_name),
            endpoint=endpoint,
            tools=self._identities.tools(session.agent_name),
        )

    def _refuse_dialog(self, session: Session, tell: do.Tell) -> None:
        """An agent that asks something by now would take a message for the answer."""
        now = self._store.session(session.id)
        asks = now is not None and now.agent.activity is Activity.WAITING_INPUT
        if asks and tell.prompt.name != ANSWER:
            raise Moot("it asks something, and would take the message for the answer")

    def _refuse_typed(self, handle: Handle, program: Program) -> None:
        """What somebody types at the terminal is not sent together with a message of ours."""
        if typed := program.typed(self._screen(handle)):
            raise Later(
                "words stand in the agent's input box that were not sent; send them or take them"
                f" away at its terminal: {one_line(plain(typed))}"
            )

    def _screen(self, handle: Handle) -> str:
        return self._sites.runtime.screens([handle]).get(handle, "")

    def _last_lines(self, handle: Handle) -> str:
        lines = (" ".join(line.split()) for line in plain(self._screen(handle)).splitlines())
        return " | ".join([line for line in lines if line][-_SCREEN_LINES:])

    def _refuse_foreign_branch(self, session: Session, workspace: Worktree) -> None:
        """What somebody else put on a branch of this name is not where the work begins."""
        branch, mirror = session.branch, workspace.mirror
        if workspace.place.exists() or mirror.head_of(branch) is None or mirror.pushed(branch):
            return
        if not any(key.startswith("push:") for key in self._store.facts(session.id).done):
            raise Impossible(words.foreign_branch(branch), Reason.SPAWN_FAILED)

    def _default_branch(self, session: Session) -> str:
        return self._github.read.repository(session.repository).default_branch

    def _values(self, session: Session, base_branch: str) -> Mapping[str, str]:
        return {
            "repository": session.repository,
            "branch": session.branch,
            "base_branch": base_branch,
            "number": str(session.issue.number),
            "title": session.issue.title,
            "body": session.issue.body,
        }


def bootstrapped(lines: tuple[str, ...], argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command, after the project's own lines that make a workspace ready."""
    if not lines:
        return argv
    return ("/bin/sh", "-ec", "\n".join((*lines, 'exec "$@"')), "bootstrap", *argv)


def _refuse_lost_work(session: Session, workspace: Worktree) -> None:
    """A session that had commits does not begin anew as if there had never been any."""
    had_commits = session.work.head not in ("", session.work.base)
    if had_commits and not workspace.place.exists() and not workspace.known:
        raise Impossible(
            f"the branch {session.branch} is gone from GitHub, the workspace"
            f" {workspace.place} is gone too, and the mirror {workspace.mirror.path} has"
            f" preserved no work of {session.id}",
            Reason.BRANCH_GONE,
        )


def _gone(agent: Agent) -> Agent:
    return replace(
        agent,
        activity=Activity.EXITED,
        runtime=Probe.DEAD,
        program=Probe.DEAD,
        stopped=True,
        evidence="stopped",
    )
