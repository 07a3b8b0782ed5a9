"""Carries out each kind of action: the only writer to GitHub, runtimes and workspaces.

Every action is safe to repeat, because a crash before its result is recorded repeats it.
"""

from typing import assert_never

from msgspec.structs import replace

from bot.act.merging import Merger
from bot.act.publishing import Publishing, of_branch, of_pull
from bot.act.results import ActionResult, Completed, FinalCheck, Rejected, RetryLater
from bot.act.runs import AgentRuns
from bot.github.client import GitHub
from bot.github.errors import Conflicted, GitHubFailure, NotInstalled, Refused, TryLater
from bot.github.merging import QUEUED
from bot.github.write_access import WriteAccess
from bot.store import DueAction, Observation, Session, Store
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from bot.text import messages
from lifecycle.model import actions, keys
from lifecycle.model.status import Merge, PullState, Reason, Status
from lifecycle.read.session_view import CLASH
from runtimes.base import RuntimeFailure
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import PushRefused


class ActionDispatcher:
    """Carries out actions, and translates what libraries raise into results."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        locations: Locations,
        agents: AgentRuns,
        public_url: str,
        redact: Redaction,
        people: WriteAccess,
        clock: Clock,
        app_slug: str = "",
    ) -> None:
        """`public_url` is the address of the bot's pages and ends with a slash; `app_slug` is the
        name under which people may mention the bot, besides its own.
        """
        self._store = store
        self._github = github
        self._locations = locations
        self._agents = agents
        self._public_url = public_url
        self._app_slug = app_slug
        self._publishing = Publishing(store.facts, github, locations, redact)
        self._merger = Merger(store.refreshes, github, locations, people, clock)
        self._clock = clock

    def do(self, due: DueAction, check: FinalCheck) -> ActionResult:
        """Carry out one action."""
        try:
            if not due.session:
                return self._do_without_session(due)
            session = self._store.sessions.get(due.session)
            if session is None:
                return Rejected(f"there is no session {due.session}")
            if missing := self._missing(session, due.action):
                return Rejected(f"{missing} is not configured any more: put it back, then retry")
            return self._do(session, due, check)
        except Conflicted as moved:
            return RetryLater(str(moved))
        except Refused as refusal:
            return Rejected(str(refusal))
        except TryLater as later:
            return RetryLater(str(later), later.at, outage=True)
        except PushRefused as refusal:
            return Rejected(messages.push_refused(refusal.reason), Reason.PUSH_REFUSED)
        except GitFailure as failure:
            return self._git_failed(due.repository, failure)
        except (GitHubFailure, RuntimeFailure, OSError) as failure:
            return RetryLater(str(failure))

    def _git_failed(self, repository: str, failure: GitFailure) -> RetryLater:
        """When to have git try again.

        GitHub answers git with the same 403 for an App that is suspended or not installed and for
        a repository that is gone; its API tells them apart.
        """
        try:
            self._github.read.repository(repository)
        except NotInstalled as waits:
            return RetryLater(str(waits), waits.at, outage=True)
        except GitHubFailure:
            pass  # Git's own message says as much.
        return RetryLater(str(failure), outage=failure.outage)

    def was_done(self, due: DueAction) -> Completed | None:
        """The result of a push, pull request or merge that took effect before a crash.

        Their effect makes these unwanted. Every other action is repeated, without another effect.
        """
        session = self._store.sessions.get(due.session)
        match due.action:
            case actions.Publish(head=head) if session and any(
                pull.head == head for pull in session.pulls
            ):
                return Completed(result=head)
            case actions.OpenPull() if session and session.pulls:
                return Completed(result=str(session.pulls[0].number))
            case actions.MergePull(sha=sha) if session and any(
                pull.head == sha and pull.state is PullState.MERGED for pull in session.pulls
            ):
                return Completed(result="merged")
            case actions.Enqueue(sha=sha) if session and any(
                pull.head == sha and pull.merge is Merge.QUEUED for pull in session.pulls
            ):
                return Completed(result=QUEUED)
            case _:
                return None

    def _missing(self, session: Session, action: actions.Action) -> str:
        """The table this action needs and the configuration lacks; a stop needs none."""
        if not isinstance(action, actions.Stop) and session.project not in self._locations.projects:
            return f"[projects.{session.project}]"
        if isinstance(action, actions.Start) and action.agent:
            return "" if self._agents.knows(action.agent) else f"[agents.{action.agent}]"
        runs = isinstance(action, actions.Start | actions.SendMessage)
        if runs and session.agent_type not in self._locations.adapters:
            return f"[agent-types.{session.agent_type}]"
        return ""

    def _do(self, session: Session, due: DueAction, check: FinalCheck) -> ActionResult:
        key = keys.marker(session.id, due.action.key)
        match due.action:
            case actions.Start() as start:
                return self._agents.start(session, start, check)
            case actions.SendMessage() as message:
                return self._agents.send_message(session, due, message, check)
            case actions.Stop(run=run):
                return self._agents.stop(session, run)
            case actions.Release(run=run):
                return self._agents.release(session, run)
            case actions.Publish() as publish:
                return self._publishing.publish(session, publish, check)
            case actions.MergeRemote(head=head, into=into):
                return self._merge_remote(session, head, into, check)
            case actions.UpdateBranch(number=number, head=head):
                self._github.write.update_branch(session.repository, number, head)
                return Completed(refreshes=(of_pull(session, number),))
            case actions.Rerun(number=number, runs=runs):
                self._github.write.rerun(session.repository, runs)
                return Completed(refreshes=(of_pull(session, number),))
            case actions.OpenPull(head=head, draft=draft):
                return self._publishing.open_pull(session, head, draft, check)
            case actions.MakeReady(number=number):
                self._github.write.make_ready(session.repository, number)
                return Completed(refreshes=(of_pull(session, number),))
            case actions.RequestReview(number=number, reviewers=reviewers):
                self._github.write.request_review(session.repository, number, reviewers)
                return Completed(refreshes=(of_pull(session, number),))
            case actions.MergePull() as merge:
                return self._merger.merge(session, merge, check)
            case actions.Enqueue() as enqueue:
                return self._merger.enqueue(session, enqueue, check)
            case actions.Dequeue(number=number):
                self._github.merges.dequeue(session.repository, number)
                return Completed(refreshes=(of_pull(session, number),))
            case actions.Comment(number=number, topic=topic, values=values):
                body = messages.comment_body(topic, values)
                written = self._github.write.comment(session.repository, number, body, key)
                return Completed(result=f"comment {written}")
            case actions.Reply(number=number, threads=threads) as reply:
                body = messages.comment_body(reply.topic, reply.values)
                self._github.reviews.reply(session.repository, number, threads, body, key)
                if reply.resolve:
                    self._github.reviews.resolve(session.repository, threads)
                return Completed(refreshes=(of_pull(session, number),))
            case actions.Report(number=number, comment=comment, summary=summary):
                body = messages.report(summary, self._page(session), self._app_slug)
                place = keys.marker(session.id, keys.report(number))
                found = self._github.reports.set_comment(
                    session.repository, number, body, place, comment
                )
                return Completed(result=str(found))
            case actions.ReportCheck() as report:
                return self._report_check(session, report)
            case actions.ShowStatus(number=number, status=status):
                self._github.reports.set_status_label(session.repository, number, status)
                return Completed()
            case actions.Label(number=number, name=name, on=on):
                self._github.write.label(session.repository, number, name, on=on)
                return Completed()
            case actions.React(comment=comment, content=content):
                self._github.write.react(session.repository, comment, content)
                return Completed()
            case actions.ReportConfiguration():
                return Rejected("it concerns a repository and no session")
            case actions.CloseIssue(number=number):
                self._github.write.close_issue(session.repository, number)
                return Completed()
            case actions.DeleteBranch(branch=branch, sha=sha):
                home = self._locations.projects[session.project].home
                self._github.write.delete_branch(home, branch, sha)
                return Completed()
            case _ as never:
                assert_never(never)

    def _do_without_session(self, due: DueAction) -> ActionResult:
        """Answer people where no session exists, or report a repository's configuration."""
        write, repository = self._github.write, due.repository
        match due.action:
            case actions.Comment(key=key, number=number, topic=topic, values=values):
                body = messages.comment_body(topic, values)
                written = write.comment(repository, number, body, str(key))
                return Completed(result=f"comment {written}")
            case actions.React(comment=comment, content=content):
                write.react(repository, comment, content)
                return Completed()
            case actions.ReportConfiguration(head=head, path=path, problems=problems):
                name = messages.CONFIGURATION_CHECK
                self._github.reports.report_problems(repository, head, name, path, problems)
                return Completed()
            case _ as action:
                return Rejected(f"{type(action).__name__} needs a session")

    def _merge_remote(
        self, session: Session, head: str, into: str, check: FinalCheck
    ) -> ActionResult:
        """Merge commits that others pushed into the workspace; the agent resolves conflicts."""
        mirror = self._locations.mirror(session.project)
        workspace = self._locations.workspace_of(session)
        if not workspace.status().made:
            return Completed(result="there is no workspace; the next one begins with it")
        mirror.refresh()
        if mirror.take(workspace) != into:
            return RetryLater("the agent has moved its branch on")
        if not mirror.contains(head):
            self._store.refreshes.request([of_branch(session)], self._clock())
            return RetryLater(f"{head} is not on GitHub any more")
        joined = mirror.join(session.id, session.branch, into, head)
        if joined is None:
            return Completed(result=CLASH)
        if stopped := check():
            return stopped
        workspace.move(into, joined)
        work = replace(session.work, head=joined, dirty=False)
        seen = Observation(session=session.id, run=session.run, work=work)
        return Completed(result=joined, observed=seen)

    def _report_check(self, session: Session, report: actions.ReportCheck) -> Completed:
        """Write the session's status into a check run, which only an App may create.

        See https://docs.github.com/en/rest/checks/runs#create-a-check-run.
        """
        if not self._github.reports.can_create_check_runs:
            return Completed(result="only an App may make check runs")
        summary, page = report.summary, self._page(session)
        run = self._github.reports.set_check_run(
            session.repository,
            report.head,
            report.check,
            good=summary.status in (Status.MERGEABLE, Status.MERGED),
            title=messages.report_title(summary),
            summary=messages.report(summary, page, self._app_slug),
            url=page,
        )
        return Completed(result=str(run))

    def _page(self, session: Session) -> str:
        return f"{self._public_url}sessions/{session.id}"
