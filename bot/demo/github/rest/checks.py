"""Check runs and suites, commit statuses, and the logs of Actions jobs."""

from datetime import datetime

from bot.demo.github.checks import CheckRun, CheckSuite
from bot.demo.github.http import Answer, Problem, Request, Route, invalid, not_found
from bot.demo.github.repository import Repository
from bot.demo.github.shapes import base, commits
from bot.demo.github.world import World

_CONCLUSIONS = (
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "skipped",
    "stale",
    "success",
    "timed_out",
)
_STATES = ("error", "failure", "pending", "success")


def _runs(request: Request) -> Answer:
    """Return a commit's check runs: the newest of each suite and name; all with `filter=all`."""
    repo, query = request.repo, request.query
    sha = _sha(repo, request.params["ref"])
    found = [
        run
        for run in repo.checks.runs_of(sha, latest=query.get("filter") != "all")
        if query.get("check_name") in (None, run.name)
        and query.get("status") in (None, run.status)
        and query.get("app_id") in (None, str(run.suite.app.id))
    ]
    return request.page(found, commits.check_run, under="check_runs")


def _run(request: Request) -> Answer:
    return Answer(body=commits.check_run(_find(request.repo, int(request.params["id"]))))


def _create_run(request: Request) -> Answer:
    repo = request.repo_for("write")
    app = request.token and request.token.app
    if not app:
        raise Problem(403, "You must authenticate via a GitHub App.")
    given = request.json
    run = repo.checks.run(
        app,
        _sha(repo, request.text("head_sha", "CheckRun")),
        request.text("name", "CheckRun"),
        external_id=given.get("external_id", ""),
        details_url=given.get("details_url"),
    )
    return Answer(status=201, body=_updated(run, request))


def _update_run(request: Request) -> Answer:
    run = _find(request.repo_for("write"), int(request.params["id"]))
    if not request.token or request.token.app is not run.suite.app:
        raise Problem(403, "Invalid app_id for the check run.")
    return Answer(body=_updated(run, request))


def _updated(run: CheckRun, request: Request) -> dict[str, object]:
    given = request.json
    output = given.get("output") or {}
    notes = [*run.output.get("annotations", []), *output.get("annotations", [])]
    run.output = {**run.output, **output, "annotations": notes}
    conclusion = given.get("conclusion")
    if conclusion not in (None, *_CONCLUSIONS):
        raise invalid("CheckRun", "conclusion")
    status = "completed" if conclusion else given.get("status", run.status)
    if status == "completed" and not conclusion and not run.conclusion:
        raise invalid("CheckRun", "conclusion", "missing_field")
    run.update(status=status, conclusion=conclusion or run.conclusion)
    return commits.check_run(run)


def _annotations(request: Request) -> Answer:
    run = _find(request.repo, int(request.params["id"]))
    optional = ("start_column", "end_column", "title", "raw_details")
    page = f"{run.suite.repo.url}/blob/{run.suite.head_sha}"
    return request.page(
        run.output.get("annotations", []),
        lambda note: {**dict.fromkeys(optional), **note, "blob_href": f"{page}/{note['path']}"},
    )


def _suites(request: Request) -> Answer:
    repo = request.repo
    found = repo.checks.suites_of(_sha(repo, request.params["ref"]))
    return request.page(found, commits.check_suite, under="check_suites")


def _suite(request: Request) -> Answer:
    return Answer(body=commits.check_suite(_find_suite(request)))


def _suite_runs(request: Request) -> Answer:
    return request.page(_find_suite(request).latest, commits.check_run, under="check_runs")


def _find_suite(request: Request) -> CheckSuite:
    for suite in request.repo.checks.suites:
        if suite.id == int(request.params["id"]):
            return suite
    raise not_found()


def _find(repo: Repository, run_id: int) -> CheckRun:
    for suite in repo.checks.suites:
        for run in suite.runs:
            if run.id == run_id:
                return run
    raise not_found()


# -- once more


def _rerequest(request: Request) -> Answer:
    repo = request.repo_for("write")
    repo.checks.rerun(_find(repo, int(request.params["id"])))
    return Answer(status=201, body={})


def _job(request: Request) -> Answer:
    run = _find(request.repo, int(request.params["id"]))
    if not run.is_job:
        raise not_found()
    return Answer(body=commits.job(run))


def _rerun_failed(request: Request) -> Answer:
    """Rerun every failed job of a workflow run. Here, a workflow run has the id of its suite."""
    repo = request.repo_for("write")
    suite = _find_suite(request)
    if suite.status != "completed":
        raise Problem(403, "This workflow is already running")
    for run in suite.latest:
        if run.conclusion not in ("success", "neutral", "skipped"):
            repo.checks.rerun(run)
    return Answer(status=201, body={})


# -- logs


def _log_address(request: Request) -> Answer:
    """Redirect to a job's log, which is on another host and needs no credentials."""
    run = _find(request.repo_for("read"), int(request.params["id"]))
    if request.token is None:
        raise Problem(401, "Requires authentication")
    if not run.is_job or not run.log:
        raise not_found()
    store = request.world.url.replace("127.0.0.1", "localhost")
    return Answer(status=302, headers={"Location": f"{store}_logs/{run.id}?sig={run.node_id}"})


def job_log(world: World, run_id: int) -> str:
    """Return a job's log in the form of the log store: each line begins with its time."""
    for known in world.nodes.values():
        if isinstance(known, CheckRun) and known.id == run_id:
            own = "".join(_stamped(known.created_at, line) for line in known.log.splitlines())
            return own + _stamped(known.cleaned_at, "Cleaning up orphan processes")
    return ""


def _stamped(at: datetime, line: str) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.0000000Z {line}\n"


# -- commit statuses


def _statuses(request: Request) -> Answer:
    repo = request.repo
    sha = _sha(repo, request.params["ref"])
    found = [status for status in reversed(repo.checks.statuses) if status.sha == sha]
    return request.page(found, lambda status: commits.status(status, repo))


def _combined(request: Request) -> Answer:
    repo = request.repo
    sha = _sha(repo, request.params["ref"])
    found = repo.checks.statuses_of(sha)
    states = {status.state for status in found}
    worst = "failure" if states & {"failure", "error"} else "pending"
    answer = request.page(found, lambda status: commits.status(status, repo), under="statuses")
    here = f"{base.api_of(repo)}/commits/{sha}"
    answer.body |= {
        "state": "success" if states == {"success"} else worst,
        "sha": sha,
        "repository": base.minimal_repository(repo),
        "commit_url": here,
        "url": f"{here}/status",
    }
    return answer


def _create_status(request: Request) -> Answer:
    repo = request.repo_for("write")
    state = request.text("state", "Status")
    if state not in _STATES:
        raise invalid("Status", "state")
    given = request.json
    status = repo.checks.status(
        _sha(repo, request.params["ref"]),
        given.get("context", "default"),
        state,
        request.login,
        description=given.get("description"),
        target_url=given.get("target_url"),
    )
    return Answer(status=201, body=commits.status(status, repo))


def _sha(repo: Repository, ref: str) -> str:
    sha = repo.git.resolve(ref)
    if sha is None:
        raise Problem(422, f"No commit found for SHA: {ref}")
    return sha


_REPO = "/repos/{owner}/{repo}"
_RUN = f"{_REPO}/check-runs/{{id}}"
_SUITE = f"{_REPO}/check-suites/{{id}}"
_COMMIT = f"{_REPO}/commits/{{ref:path}}"
ROUTES: list[Route] = [
    ("POST", f"{_REPO}/check-runs", _create_run),
    ("GET", _RUN, _run),
    ("PATCH", _RUN, _update_run),
    ("GET", f"{_RUN}/annotations", _annotations),
    ("GET", _SUITE, _suite),
    ("GET", f"{_SUITE}/check-runs", _suite_runs),
    ("GET", f"{_COMMIT}/check-runs", _runs),
    ("GET", f"{_COMMIT}/check-suites", _suites),
    ("GET", f"{_COMMIT}/statuses", _statuses),
    ("GET", f"{_COMMIT}/status", _combined),
    ("POST", f"{_REPO}/statuses/{{ref}}", _create_status),
    ("POST", f"{_RUN}/rerequest", _rerequest),
    ("GET", f"{_REPO}/actions/jobs/{{id}}", _job),
    ("GET", f"{_REPO}/actions/jobs/{{id}}/logs", _log_address),
    ("POST", f"{_REPO}/actions/runs/{{id}}/rerun-failed-jobs", _rerun_failed),
]
