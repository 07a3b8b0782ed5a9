"""Carries out each kind of action: on GitHub, on agents' programs and on workspaces.

Every action is safe to repeat, because a crash before its result is recorded repeats it.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from msgspec.structs import replace

from bot.act.merging import Merger
from bot.act.message_sender import MessageSender
from bot.act.publishing import Publishing, refresh
from bot.act.results import ActionResult, Completed, FinalCheck, Rejected, RetryLater
from bot.act.runs import AgentRuns
from bot.act.workspace_files import LfsUnavailable, fetch_lfs
from bot.github.client import GitHub
from bot.github.errors import Conflicted, GitHubFailure, NotInstalled, Refused, TryLater
from bot.github.merging import QUEUED
from bot.store import DueAction, Observation, RefreshesTable, Session, SessionsTable
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.text import messages
from lifecycle.model import actions, keys
from lifecycle.model.status import Merge, PullState, Reason, Status
from lifecycle.read.session_view import CLASH
from runtimes.base import RuntimeFailure
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import PushRefused

#: Actions that need no session.
_Post = actions.Comment | actions.React | actions.ReportConfiguration


@dataclass(frozen=True)
class ActionDispatcher:
    """Carries out actions, and translates the exceptions of libraries into results."""

    sessions: SessionsTable
    refreshes: RefreshesTable
    github: GitHub
    locations: Locations
    agents: AgentRuns
    sender: MessageSender
    publishing: Publishing
    merger: Merger
    clock: Clock
    public_url: str  #: The address of the bot's pages, with a slash at its end.
    #: The App's slug, by which people may also mention the bot; empty if there is no App.
    app_slug: str = ""

    def do(self, due: DueAction, check: FinalCheck) -> ActionResult:
        """Carry out one action and return its result.

        Failures of GitHub, git, runtimes and the file system are results as well. `check` is called
        right before the effect of an action that takes long to prepare. If it returns a result, the
        action stops and returns that result.
        """
        try:
            if not due.session:
                if isinstance(due.action, _Post):
                    return self._post(due, due.action)
                return Rejected(f"{type(due.action).__name__} needs a session")
            session = self.sessions.get(due.session)
            if session is None:
                return Rejected(f"there is no session {due.session}")
            if not self._has_project(session, due.action):
                return RetryLater(f"{session.project} is no longer a project", outage=True)
            if missing := self._missing(session, due.action):
                return Rejected(f"{missing} is no longer configured: put it back")
            if session.issue.commented:  # By an earlier session, perhaps with the same keys.
                due = replace(due, first=False)
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
        """Return the retry of an action for which a git command failed.

        GitHub answers git with the same 403 if the App is suspended, if the App is not installed,
        and if the repository is gone. A request to GitHub's API tells these cases apart.
        """
        try:
            self.github.read.repository(repository)
        except NotInstalled as waits:
            return RetryLater(str(waits), waits.at, outage=True)
        except GitHubFailure:
            pass  # Git's own message says as much.
        return RetryLater(str(failure), outage=failure.outage)

    def was_done(self, due: DueAction) -> Completed | None:
        """Return the result of a withdrawn action if the session's facts show its effect, or None.

        An earlier attempt may have taken effect without a recorded result. The next decision then
        no longer orders the action. Recognises pushes, new pull requests, updates of branches,
        merges and entries in the merge queue. Returns None for actions of other kinds, which can be
        repeated without harm.
        """
        session = self.sessions.get(due.session)
        pulls = session.pulls if session else ()
        match due.action:
            case actions.Publish(head=head) if head in {pull.head for pull in pulls}:
                return Completed(result=head)
            case actions.OpenPull() if pulls:
                return Completed(result=str(pulls[0].number))
            case actions.MergePull(sha=sha):
                merged = {pull.head for pull in pulls if pull.state is PullState.MERGED}
                return Completed(result="merged") if sha in merged else None
            case actions.UpdateBranch(head=head):
                # Approved heads remain valid through an update, which is how it is recognised.
                updated = any(head in pull.carried for pull in pulls)
                return Completed() if updated else None
            case actions.Enqueue(sha=sha):
                queued = {pull.head for pull in pulls if pull.merge is Merge.QUEUED}
                return Completed(result=QUEUED) if sha in queued else None
            case _:
                return None

    def _has_project(self, session: Session, action: actions.Action) -> bool:
        """Whether the session's project is configured. True for a stop, which needs no project."""
        return isinstance(action, actions.Stop) or session.project in self.locations.projects

    def _missing(self, session: Session, action: actions.Action) -> str:
        """Name the missing table of an agent or agent type that the action needs, or return ""."""
        if isinstance(action, actions.Start) and action.agent:
            return "" if action.agent in self.agents.agents.names else f"[agents.{action.agent}]"
        runs = isinstance(action, actions.Start | actions.SendMessage)
        if runs and session.agent_type not in self.locations.adapters:
            return f"[agent-types.{session.agent_type}]"
        return ""

    def _do(self, session: Session, due: DueAction, check: FinalCheck) -> ActionResult:
        repository = session.repository
        match due.action:
            case actions.Comment() | actions.React() | actions.ReportConfiguration() as post:
                return self._post(due, post)
            case actions.Start() as start:
                return self.agents.start(session, start, check)
            case actions.SendMessage() as message:
                return self.sender.send(session, due, message, check)
            case actions.PressKeys() as typed:
                return self.sender.type(session, due.seq, typed, check)
            case actions.Stop(run=run):
                return self.agents.stop(session, run)
            case actions.Release(run=run):
                return self.agents.release(session, run)
            case actions.Publish() as publish:
                return self.publishing.publish(session, publish, check)
            case actions.AdoptCommits(head=head, onto=onto):
                return self._adopt(session, head, onto, check)
            case actions.MergeRemote(head=head, into=into):
                return self._merge_remote(session, head, into, check)
            case actions.UpdateBranch(number=number, head=head):
                refreshes = (refresh(session, f"pull:{number}"),)
                try:
                    self.github.write.update_branch(repository, number, head)
                except Conflicted:
                    # Perhaps by an attempt whose response was lost: `was_done` looks at the result.
                    self.refreshes.request(refreshes, self.clock())
                    raise
                return Completed(refreshes=refreshes)
            case actions.Rerun(number=number, runs=runs):
                self.github.write.rerun(repository, runs)
                return Completed(refreshes=(refresh(session, f"pull:{number}"),))
            case actions.OpenPull(head=head, draft=draft):
                return self.publishing.open_pull(session, head, draft, check, first=due.first)
            case actions.MakeReady(number=number):
                self.github.write.make_ready(repository, number)
                return Completed(refreshes=(refresh(session, f"pull:{number}"),))
            case actions.RequestReview(number=number, reviewers=reviewers):
                self.github.write.request_review(repository, number, reviewers)
                return Completed(refreshes=(refresh(session, f"pull:{number}"),))
            case actions.MergePull() as merge:
                return self.merger.merge(session, merge, check)
            case actions.Enqueue() as enqueue:
                return self.merger.enqueue(session, enqueue, check)
            case actions.Dequeue(number=number):
                self.github.merges.dequeue(repository, number)
                return Completed(refreshes=(refresh(session, f"pull:{number}"),))
            case actions.Reply(number=number, threads=threads) as reply:
                body, key = messages.comment_body(reply.topic, reply.values), marker_of(due)
                reply_to = self.github.reviews.reply
                reply_to(repository, number, threads, body, key, first=due.first)
                if reply.resolve:
                    self.github.reviews.resolve(repository, threads)
                return Completed(refreshes=(refresh(session, f"pull:{number}"),))
            case actions.Report(number=number, comment=comment, summary=summary):
                body = messages.report(summary, self._page(session), self.app_slug)
                key = keys.marker(session.id, keys.report(number))
                write = self.github.reports.set_comment
                found = write(repository, number, body, key, comment, first=due.first)
                return Completed(result=str(found))
            case actions.ReportCheck() as report:
                return self._report_check(session, report, due.first)
            case actions.ShowStatus(number=number, status=status):
                self.github.write.set_status_label(repository, number, status)
                return Completed()
            case actions.Label(number=number, name=name, on=on):
                change = self.github.write.label if on else self.github.write.unlabel
                change(repository, number, name)
                return Completed()
            case actions.CloseIssue(number=number):
                self.github.write.close_issue(repository, number)
                return Completed()
            case actions.DeleteBranch(branch=branch, sha=sha, base=base):
                home = self.locations.projects[session.project].home
                onto = base if home == repository else ""
                kept = self.github.write.delete_branch(home, branch, sha, onto)
                return Completed(result=kept and f"kept: {kept}")
            case _ as never:
                assert_never(never)

    def _post(self, due: DueAction, post: _Post) -> Completed:
        """Post a comment, a reaction or a configuration report, for which no session is needed."""
        match post:
            case actions.Comment(number=0):
                pass  # The command line and the page show the reply from its record.
            case actions.Comment(number=number, topic=topic, values=values):
                body = messages.comment_body(topic, values)
                place = due.repository, number
                written = self.github.write.comment(*place, body, marker_of(due), first=due.first)
                return Completed(result=f"comment {written}")
            case actions.React(comment=0, issue=number, content=content):
                self.github.write.react_to_issue(due.repository, number, content)
            case actions.React(comment=comment, content=content):
                self.github.write.react(due.repository, comment, content)
            case actions.ReportConfiguration(head=head, path=path, problems=problems):
                name = messages.CONFIGURATION_CHECK
                self.github.reports.report_problems(due.repository, head, name, path, problems)
        return Completed()

    def _adopt(self, session: Session, head: str, onto: str, check: FinalCheck) -> ActionResult:
        """Set the session's branch, now at the commit `onto`, to `head`, the checked-out commit.

        If the agent has checked out another commit meanwhile, the action is retried later.
        """
        workspace = self.locations.workspace_of(session)
        if stopped := check():
            return stopped
        if not workspace.adopt(onto, head):
            return RetryLater("the agent has checked out another commit or moved the branch")
        work = replace(session.work, head=head, off_branch=None)
        return Completed(
            result=head, observed=Observation(session=session.id, run=session.run, work=work)
        )

    def _merge_remote(
        self, session: Session, head: str, into: str, check: FinalCheck
    ) -> ActionResult:
        """Merge `head`, which contains commits of others, into the workspace's branch.

        `into` is the commit that the branch must be at. The result is `CLASH` if `Mirror.join`
        returns None, mostly because of a conflict; the agent is then asked to merge the commits.
        """
        mirror = self.locations.mirror(session.project)
        workspace = self.locations.workspace_of(session)
        if not workspace.made:
            return Completed(result="there is no workspace; the next one starts with these commits")
        mirror.refresh()
        if mirror.take(workspace) != into:
            return RetryLater("the agent has committed since")
        if not mirror.contains(head):
            self.refreshes.request([refresh(session, f"branch:{session.branch}")], self.clock())
            return RetryLater(f"{head} is no longer on GitHub")
        joined = mirror.join(session.id, session.branch, into, head)
        if joined is None:
            return Completed(result=CLASH)
        if stopped := check():
            return stopped
        workspace.move(into, joined)
        with suppress(LfsUnavailable):  # The next start says so.
            fetch_lfs(self.locations, session, workspace)
        work = replace(session.work, head=joined, dirty=False)
        seen = Observation(session=session.id, run=session.run, work=work)
        return Completed(result=joined, observed=seen)

    def _report_check(
        self, session: Session, report: actions.ReportCheck, first: bool
    ) -> Completed:
        """Write the session's status into a check run; do nothing if the bot is not a GitHub App.

        `first` says that no earlier attempt can have created the check run, so GitHub is not
        searched for it. See https://docs.github.com/en/rest/checks/runs#create-a-check-run.
        """
        if not self.github.reports.can_create_check_runs:
            return Completed(result="only a GitHub App can create check runs")
        summary, page = report.summary, self._page(session)
        run = self.github.reports.set_check_run(
            session.repository,
            report.head,
            report.check,
            good=summary.status in (Status.MERGEABLE, Status.MERGED),
            title=messages.report_title(summary),
            summary=messages.report(summary, page, self.app_slug),
            url=page,
            first=first,
        )
        return Completed(result=str(run))

    def _page(self, session: Session) -> str:
        return f"{self.public_url}sessions/{session.id}"


def marker_of(due: DueAction) -> str:
    """Return the hidden key in an action's comment, by which a repetition finds the comment."""
    return keys.marker(due.session, due.action.key) if due.session else str(due.action.key)
