"""Branches with their rules, and commits with their checks, in the form of GraphQL."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bot.demo.github.checks import CheckedRepository, CheckRun, CheckSuite, CommitStatus
from bot.demo.github.graphql.connections import Json, connection
from bot.demo.github.graphql.conversations import lazy, pages, thing
from bot.demo.github.hosting import Protection, RepositoryBase
from bot.demo.github.http import Request
from bot.demo.github.pulls import Pull
from bot.demo.github.shapes.base import time


@dataclass(frozen=True)
class Branch:
    repo: CheckedRepository
    name: str


@dataclass(frozen=True)
class Commit:
    repo: CheckedRepository
    sha: str


def branch_of(repo: CheckedRepository, name: str) -> Branch | None:
    return Branch(repo, name) if name in repo.heads else None


def branch(known: Branch, asking: Request) -> Json:
    repo = known.repo
    rules = repo.protections.get(known.name)
    # Only administrators see the rule itself; everybody sees what it requires.
    shown = rules and repo.allows(asking.login, "admin")
    return {
        "__typename": "Ref",
        "id": f"REF_{repo.id}_{known.name}",
        "name": known.name,
        "prefix": "refs/heads/",
        "target": Commit(repo, repo.heads[known.name]),
        "branchProtectionRule": _protection(known, rules) if rules and shown else None,
        "refUpdateRule": _update_rule(known.name, rules, asking.login) if rules else None,
        "rules": pages(lambda: _rules(known.name, rules) if rules else []),
    }


def _protection(known: Branch, rules: Protection) -> Json:
    allowed = [known.repo.world.account(login) for login in rules.pushers or ()]
    return {
        "id": f"BPR_{known.name}",
        "pattern": known.name,
        "lockBranch": False,
        "restrictsPushes": rules.pushers is not None,
        "pushAllowances": pages(lambda: [{"id": f"PA_{one.id}", "actor": one} for one in allowed]),
        "requiredApprovingReviewCount": rules.required_reviews or None,
        "requiredStatusCheckContexts": rules.required_checks,
        "requiresApprovingReviews": bool(rules.required_reviews),
        "requiresStatusChecks": bool(rules.required_checks),
        "requiresStrictStatusChecks": rules.strict,
    }


def _update_rule(pattern: str, rules: Protection, login: str) -> Json:
    # Nobody pushes to it directly where a review is required.
    pushes = not rules.required_reviews and (rules.pushers is None or login in rules.pushers)
    signed = rules.signatures
    return {"pattern": pattern, "requiresSignatures": signed, "viewerCanPush": pushes}


def _rules(name: str, rules: Protection) -> list[Json]:
    reviews = {
        "__typename": "PullRequestParameters",
        "requiredApprovingReviewCount": rules.required_reviews,
    }
    checks = {
        "__typename": "RequiredStatusChecksParameters",
        "requiredStatusChecks": [{"context": check} for check in rules.required_checks],
        "strictRequiredStatusChecksPolicy": rules.strict,
    }
    found: list[Json] = []
    if rules.required_reviews:
        found.append({"id": f"RRU_{name}_1", "type": "PULL_REQUEST", "parameters": reviews})
    if rules.required_checks:
        found.append(
            {"id": f"RRU_{name}_2", "type": "REQUIRED_STATUS_CHECKS", "parameters": checks}
        )
    if rules.signatures:
        found.append({"id": f"RRU_{name}_3", "type": "REQUIRED_SIGNATURES", "parameters": None})
    if rules.bypass:
        ruleset = {"id": "RRS_4", "databaseId": 4, "name": "releases"}
        found.append(
            {
                "id": f"RRU_{name}_4",
                "type": "UPDATE",
                "parameters": None,
                "repositoryRuleset": ruleset,
            }
        )
    return found


def commit(known: Commit, asking: Request) -> Json:
    repo, sha = known.repo, known.sha
    return {
        "__typename": "Commit",
        "id": f"C_{sha}",
        "oid": sha,
        "message": lazy(lambda: repo.git.commit(sha).message),
        "messageHeadline": lazy(lambda: repo.git.commit(sha).message.split("\n", 1)[0]),
        "committedDate": lazy(lambda: repo.git.commit(sha).committed),
        "url": f"{repo.url}/commit/{sha}",
        "status": lazy(lambda: _status(repo, sha)),
        "statusCheckRollup": lazy(lambda: rollup(repo, sha)),
        "history": pages(lambda: [Commit(repo, made.sha) for made in repo.git.log(sha)]),
        "checkSuites": pages(lambda: repo.checks.suites_of(sha)),
    }


def rollup(repo: CheckedRepository, sha: str) -> Json | None:
    """Return the combined state of all checks and statuses of a commit; None if it has none."""
    return (
        {
            "id": f"SCR_{sha}",
            "state": worst,
            "contexts": lambda info, **given: _contexts(repo, sha, given),
        }
        if (worst := _worst(set(repo.checks.outcomes(sha).values())))
        else None
    )


def _contexts(repo: CheckedRepository, sha: str, given: Json) -> Json:
    """Return a page of a commit's checks and statuses, and their numbers by state."""
    runs, statuses = repo.checks.runs_of(sha), repo.checks.statuses_of(sha)
    return {
        **connection([*runs, *statuses], given),
        "checkRunCount": len(runs),
        "checkRunCountsByState": _counts(run.conclusion or run.status for run in runs),
        "statusContextCount": len(statuses),
        "statusContextCountsByState": _counts(status.state for status in statuses),
    }


def _counts(states: Iterable[str]) -> list[Json]:
    counted = Counter(state.upper() for state in states)
    return [{"state": state, "count": count} for state, count in sorted(counted.items())]


def _status(repo: CheckedRepository, sha: str) -> Json | None:
    """Return the combined state of a commit's statuses, without checks; None if it has none."""
    found = repo.checks.statuses_of(sha)
    states = {"failure" if status.state == "error" else status.state for status in found}
    return {"id": f"S_{sha}", "state": _worst(states), "contexts": found} if found else None


def _worst(outcomes: set[str]) -> str | None:
    found = [word for word in ("failure", "pending", "success") if word in outcomes]
    return found[0].upper() if found else None


def check_run(known: CheckRun, asking: Request) -> Json:
    repo = known.suite.repo
    page = f"{repo.url}/runs/{known.id}"
    return {
        **thing("CheckRun", known),
        "name": known.name,
        "status": known.status.upper(),
        "conclusion": known.conclusion.upper() if known.conclusion else None,
        "detailsUrl": known.details_url or page,
        "permalink": page,
        "startedAt": time(known.created_at),
        "completedAt": time(known.completed_at),
        **{name: known.output.get(name) for name in ("title", "summary", "text")},
        "isRequired": lambda info, **given: _required(repo, known.name, given),
        "checkSuite": known.suite,
    }


def check_suite(known: CheckSuite, asking: Request) -> Json:
    app = known.app
    workflow = {"id": f"W_{known.workflow}", "name": known.workflow}
    run = {"id": f"WFR_{known.id}", "event": known.event, "workflow": workflow}
    return {
        **thing("CheckSuite", known),
        "status": known.status.upper(),
        "conclusion": known.conclusion.upper() if known.conclusion else None,
        "app": {**thing("App", app), "slug": app.slug, "name": app.name},
        "workflowRun": run if known.workflow else None,
        "checkRuns": pages(lambda: known.latest),
    }


def status_context(known: CommitStatus, asking: Request) -> Json:
    return {
        **thing("StatusContext", known),
        "context": known.context,
        "state": known.state.upper(),
        "description": known.description,
        "targetUrl": known.target_url,
        "creator": known.creator,
        "isRequired": lambda info, **given: _required(known.repo, known.context, given),
    }


def _required(repo: RepositoryBase, name: str, given: Json) -> bool:
    """Whether a check is required by the base branch of the pull request that `given` names."""
    number, node_id = given.get("pullRequestNumber"), given.get("pullRequestId")
    named = [
        pull
        for pull in repo.world.nodes.values()
        if isinstance(pull, Pull) and pull.repo is repo and pull.number == number
    ]
    asked = repo.world.nodes.get(node_id) if node_id else next(iter(named), None)
    rules = asked.protection if isinstance(asked, Pull) else None
    return bool(rules and name in rules.required_checks)
