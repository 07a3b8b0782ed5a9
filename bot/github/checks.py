"""Converts check runs and commit statuses to checks, and compares them with the base branch."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct

from bot.github.check_logs import tail
from bot.github.shapes import BaseRef, CheckContext, CheckedCommit, HeadCheck, PullRequest
from lifecycle.model.facts import Check
from lifecycle.model.status import CheckState

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

# An unknown value of GitHub's enums never means success.
#: The check state for each `CheckConclusionState`, which is the conclusion of a check run.
_CONCLUSIONS = {
    "SUCCESS": CheckState.PASSED,
    "FAILURE": CheckState.FAILED,
    "TIMED_OUT": CheckState.FAILED,
    "STARTUP_FAILURE": CheckState.FAILED,
    "ACTION_REQUIRED": CheckState.ACTION_REQUIRED,
    "CANCELLED": CheckState.CANCELLED,
    "SKIPPED": CheckState.SKIPPED,
    "NEUTRAL": CheckState.SKIPPED,
    "STALE": CheckState.STALE,
}

#: The check state for each `StatusState`, which is the state of a commit status.
_STATUSES = {
    "SUCCESS": CheckState.PASSED,
    "FAILURE": CheckState.FAILED,
    "ERROR": CheckState.FAILED,
    "PENDING": CheckState.PENDING,
    "EXPECTED": CheckState.PENDING,
}


class CheckIdentity(NamedTuple):
    """Identifies a check across its runs. A name alone may be shared by two workflows."""

    app: str
    workflow: str
    event: str
    name: str

    @property
    def without_event(self) -> tuple[str, str, str]:
        """Return the identity without its event, which differs between base branch and head."""
        return self.app, self.workflow, self.name


class BaseChecks(Struct, frozen=True, kw_only=True):
    """Checks that failed on a base branch, and checks that ran for pull requests merged into it."""

    #: Names of the checks that ran for the merged pull requests, and so probably for others.
    expected: tuple[str, ...] = ()
    #: The identities, without event, of the checks whose last completed run failed.
    failed: frozenset[tuple[str, str, str]] = frozenset()
    #: Whether the result may be cached: no check of the last commits is pending or yet to begin.
    settled: bool = False


def checks_of(
    pages: Iterable[PullRequest], required: frozenset[str] | None, me: str, base: BaseChecks
) -> tuple[Check, ...]:
    """Return the newest run of each check, and each required check without a run as pending.

    `pages` are the pages of one pull request, `required` the names of its required checks, and `me`
    is the bot's login: the bot's own check runs and statuses are left out.
    """
    rollups = (page.rollup for page in pages if page.rollup)
    contexts = [each for rollup in rollups for each in rollup.contexts.nodes if each]
    newest: dict[CheckIdentity, HeadCheck] = {}
    for context in contexts:
        identity = check_identity(context)
        if not _is_own(context, me) and (
            identity not in newest or _age(newest[identity]) < _age(context)
        ):
            newest[identity] = context
    checks = [
        _check(identity, context, base, required or frozenset())
        for identity, context in newest.items()
    ]
    wanted, names = required or frozenset(), {check_identity(each).name for each in contexts}
    missing = sorted(
        wanted - names - {prefix for prefix in wanted if _is_reported(prefix, contexts)}
    )
    return (
        *sorted(checks, key=lambda check: check.id),
        *(
            Check(
                id=f"required / {name}",
                name=name,
                state=CheckState.PENDING,
                required=True,
                reported=False,
            )
            for name in missing
        ),
    )


def _is_reported(required: str, contexts: Iterable[HeadCheck]) -> bool:
    """Whether a commit status reports the required check under a longer name.

    Such a name begins with the required check's name and a slash.
    GitHub accepts `continuous-integration/travis-ci/pr` for `continuous-integration/travis-ci`.
    """
    return any(_is_below(required, context) for context in contexts)


def _is_below(required: str, context: HeadCheck) -> bool:
    return bool(context.context) and context.context.startswith(f"{required}/")


def needs_base_checks(checks: Sequence[Check]) -> bool:
    """Whether to read the base branch's checks, given a pull request's checks.

    True if a check of the pull request failed, if all its checks were skipped, or if it has none.
    """
    states = {check.state for check in checks}
    return CheckState.FAILED in states or states <= {CheckState.SKIPPED}


def base_checks(
    commits: Iterable[CheckedCommit], merged: Iterable[CheckedCommit], me: str
) -> BaseChecks:
    """Summarise the checks of the base branch.

    `commits` are its last commits, newest first; `merged` are the heads of recent pull requests
    that were merged into the branch.
    """
    states: dict[tuple[str, str, str], CheckState] = {}
    ended: list[bool] = []  # For each commit with checks, whether all completed.
    last = list(commits)
    for commit in last:
        found = {each: check_state(each) for each in commit.checks if not _is_own(each, me)}
        ended += [CheckState.PENDING not in found.values()] if found else []
        for context, state in found.items():
            if state is not CheckState.PENDING:
                states.setdefault(check_identity(context).without_event, state)
    failed = frozenset(what for what, state in states.items() if state is CheckState.FAILED)
    ran = {
        check_identity(context).name
        for head in merged
        for context in head.checks
        if not _is_own(context, me) and _ran_for_pull(context)
    }
    # The checks of a commit pushed a moment ago may not have begun.
    begun = not ended or bool(last[0].checks)
    return BaseChecks(expected=tuple(sorted(ran)), failed=failed, settled=begun and all(ended))


def _ran_for_pull(context: CheckContext) -> bool:
    """Whether a check of a pull request's head was triggered by the pull request, and ran.

    The bot expects such checks on later pull requests. It does not expect checks that a push,
    deployment or schedule triggered. A skipped or pending check did not run. A check outside GitHub
    Actions has no event, so it counts as triggered by the pull request.
    """
    event = check_identity(context).event
    ran = check_state(context) not in (CheckState.SKIPPED, CheckState.PENDING)
    return ran and event in ("", "pull_request", "pull_request_target")


def failed_queue_checks(commit: CheckedCommit, me: str) -> tuple[Check, ...]:
    """Return the failed checks of a merge queue's commit. All of them count as required."""
    return tuple(
        Check(
            id=" / ".join(filter(None, ("merge queue", *check_identity(each)))),
            name=check_identity(each).name,
            state=CheckState.FAILED,
            required=True,
            url=each.details_url or each.target_url or "",
            run_id=each.database_id or None,
        )
        for each in commit.checks
        if not _is_own(each, me) and check_state(each) is CheckState.FAILED
    )


def required_checks(base: BaseRef | None) -> frozenset[str] | None:
    """Return the names of the required checks; None if there are none or they are hidden."""
    if base is None:
        return None
    found: list[frozenset[str]] = []
    protection = base.branch_protection_rule
    if protection and protection.requires_status_checks:
        found.append(frozenset(filter(None, protection.required_status_check_contexts or ())))
    for rule in base.rules.nodes if base.rules else ():
        if rule.type == "REQUIRED_STATUS_CHECKS" and rule.parameters:
            found.append(frozenset(c.context for c in rule.parameters.required_status_checks))
    return frozenset().union(*found) if found else None


def check_state(context: CheckContext) -> CheckState:
    """Return the state of a check run or commit status; an unknown state counts as pending."""
    if context.typename == "StatusContext":
        return _STATUSES.get(context.state or "", CheckState.PENDING)
    if context.status != "COMPLETED":
        return CheckState.PENDING
    return _CONCLUSIONS.get(context.conclusion or "", CheckState.PENDING)


def check_identity(context: CheckContext) -> CheckIdentity:
    """Return the identity of the check that a run or status belongs to."""
    if context.typename == "StatusContext":
        return CheckIdentity("status", "", "", context.context)
    suite = context.check_suite
    run = suite.workflow_run if suite else None
    app = suite.app.slug if suite and suite.app else ""
    return CheckIdentity(
        app, run.workflow.name if run else "", run.event if run else "", context.name
    )


def _is_own(context: CheckContext, me: str) -> bool:
    suite = context.check_suite
    if suite and suite.app and f"{suite.app.slug}[bot]" == me:
        return True
    return context.creator is not None and me in (
        context.creator.login,
        f"{context.creator.login}[bot]",
    )


def _age(context: HeadCheck) -> tuple[datetime, int]:
    return (context.created_at or BEGINNING, context.database_id)


def _check(
    identity: CheckIdentity, context: HeadCheck, base: BaseChecks, required: frozenset[str]
) -> Check:
    state = check_state(context)
    return Check(
        id=" / ".join(filter(None, identity)),
        name=identity.name,
        state=state,
        required=context.is_required or any(_is_below(name, context) for name in required),
        url=context.details_url or context.target_url or "",
        log=tail(context.description or "") if state is CheckState.FAILED else "",
        run_id=context.database_id or None,
        red_on_base=state is CheckState.FAILED and identity.without_event in base.failed,
    )
