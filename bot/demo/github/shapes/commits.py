"""Commits, branches and refs; check suites, check runs and statuses on them."""

from datetime import datetime

from bot.demo.github.checks import CheckRun, CheckSuite, CommitStatus
from bot.demo.github.git import CommitInfo, Signature
from bot.demo.github.hosting import Move, RepositoryBase
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.shapes import base
from bot.demo.github.shapes.base import Json, time
from bot.demo.github.world import User, World

_NOTHING = "0" * 40


def author(signature: Signature, world: World) -> User | None:
    """Return the account that has a commit's email address; None if no account has it."""
    for known in world.users.values():
        if known.signature.email == signature.email:
            return known
    return None


def git_commit(commit: CommitInfo, repo: Repository) -> Json:
    """Return a commit's git data, which names people by email address and not by account."""
    here = base.api_of(repo)
    return {
        "url": f"{here}/git/commits/{commit.sha}",
        "author": _person(commit.author, commit.authored),
        "committer": _person(commit.committer, commit.committed),
        "message": commit.message,
        "tree": {"sha": commit.tree, "url": f"{here}/git/trees/{commit.tree}"},
        "comment_count": 0,
        "verification": {
            "verified": False,
            "reason": "unsigned",
            "signature": None,
            "payload": None,
            "verified_at": None,
        },
    }


def commit(known: CommitInfo, repo: Repository) -> Json:
    here = f"{base.api_of(repo)}/commits/{known.sha}"
    return {
        "sha": known.sha,
        "node_id": f"C_{known.sha}",
        "url": here,
        "html_url": f"{repo.url}/commit/{known.sha}",
        "comments_url": f"{here}/comments",
        "commit": git_commit(known, repo),
        "author": base.optional_user(author(known.author, repo.world), repo.world),
        "committer": base.optional_user(author(known.committer, repo.world), repo.world),
        "parents": [
            {
                "sha": sha,
                "url": f"{base.api_of(repo)}/commits/{sha}",
                "html_url": f"{repo.url}/commit/{sha}",
            }
            for sha in known.parents
        ],
    }


def full_commit(known: CommitInfo, repo: Repository) -> Json:
    """Return a single commit with the files it changed."""
    files = repo.git.changed(known.parents[0], known.sha) if known.parents else {}
    words = {"A": "added", "D": "removed", "M": "modified"}
    return {
        **commit(known, repo),
        "stats": {"total": 0, "additions": 0, "deletions": 0},
        "files": [
            {
                "sha": None,
                "filename": path,
                "status": words.get(letter, "changed"),
                **dict.fromkeys(("additions", "deletions", "changes"), 0),
                "blob_url": f"{repo.url}/blob/{known.sha}/{path}",
                "raw_url": f"{repo.url}/raw/{known.sha}/{path}",
                "contents_url": f"{base.api_of(repo)}/contents/{path}?ref={known.sha}",
            }
            for path, letter in files.items()
        ],
    }


def branch(name: str, sha: str, repo: Repository) -> Json:
    here = f"{base.api_of(repo)}/branches/{name}"
    rules = repo.protections.get(name)
    checks = rules.required_checks if rules else []
    return {
        "name": name,
        "commit": commit(repo.git.commit(sha), repo),
        "_links": {"self": here, "html": f"{repo.url}/tree/{name}"},
        "protected": rules is not None,
        "protection": {
            "enabled": rules is not None,
            "required_status_checks": {
                "enforcement_level": "everyone" if checks else "off",
                "contexts": checks,
                "checks": [{"context": name, "app_id": None} for name in checks],
            },
        },
        "protection_url": f"{here}/protection",
    }


def ref(name: str, sha: str, repo: Repository) -> Json:
    here = base.api_of(repo)
    return {
        "ref": f"refs/{name}",
        "node_id": f"REF_{name}",
        "url": f"{here}/git/refs/{name}",
        "object": {"sha": sha, "type": "commit", "url": f"{here}/git/commits/{sha}"},
    }


def push(move: Move, repo: Repository) -> Json:
    """Return the members of a push event. It lists at most the 20 newest commits, oldest first."""
    commits = []
    if move.after:
        known = [f"^{move.before}"] if move.before else []
        newest = repo.git.log("--max-count=20", move.after, *known)
        commits = [_pushed(made, repo) for made in reversed(list(newest))]
    head = _pushed(repo.git.commit(move.after), repo) if move.after else None
    pusher = repo.world.account(move.user)
    return {
        "ref": f"refs/heads/{move.branch}",
        "before": move.before or _NOTHING,
        "after": move.after or _NOTHING,
        "base_ref": None,
        "created": move.before is None,
        "deleted": move.after is None,
        "forced": bool(
            move.before and move.after and not repo.git.contains(move.after, move.before)
        ),
        "compare": f"{repo.url}/compare/{move.before}...{move.after}",
        "commits": commits,
        "head_commit": head,
        "pusher": {"name": pusher.login, "email": pusher.signature.email},
    }


def _pushed(made: CommitInfo, repo: Repository) -> Json:
    changed = repo.git.changed(made.parents[0], made.sha) if made.parents else {}
    words = {"added": "A", "removed": "D", "modified": "M"}
    return {
        "id": made.sha,
        "tree_id": made.tree,
        "distinct": True,
        "message": made.message,
        "timestamp": made.committed,
        "url": f"{repo.url}/commit/{made.sha}",
        "author": _pusher(made.author, repo.world),
        "committer": _pusher(made.committer, repo.world),
        **{
            word: [p for p, change in changed.items() if change == letter]
            for word, letter in words.items()
        },
    }


def check_run(run: CheckRun) -> Json:
    suite, repo, world = run.suite, run.suite.repo, run.world
    here = f"{base.api_of(repo)}/check-runs/{run.id}"
    page = f"{repo.url}/runs/{run.id}"
    return {
        "id": run.id,
        "node_id": run.node_id,
        "name": run.name,
        "head_sha": suite.head_sha,
        "external_id": run.external_id,
        "url": here,
        "html_url": page,
        "details_url": run.details_url or page,
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": time(run.created_at),
        "completed_at": time(run.completed_at),
        "output": {
            "title": run.output.get("title"),
            "summary": run.output.get("summary"),
            "text": run.output.get("text"),
            "annotations_count": len(run.output.get("annotations", ())),
            "annotations_url": f"{here}/annotations",
        },
        "check_suite": {"id": suite.id},
        "app": base.app(suite.app, world),
        "pull_requests": _pulls_of(suite),
    }


def job(run: CheckRun) -> Json:
    """Return a GitHub Actions check run as a job. The suite stands for the workflow run."""
    suite, here = run.suite, base.api_of(run.suite.repo)
    page = f"{suite.repo.url}/runs/{run.id}"
    return {
        "id": run.id,
        "node_id": run.node_id,
        "name": run.name,
        "workflow_name": suite.workflow,
        "run_id": suite.id,
        "run_attempt": run.attempt,
        "run_url": f"{here}/actions/runs/{suite.id}",
        "url": f"{here}/actions/jobs/{run.id}",
        "html_url": page,
        "check_run_url": f"{here}/check-runs/{run.id}",
        "head_sha": suite.head_sha,
        "head_branch": suite.head_branch,
        "status": run.status,
        "conclusion": run.conclusion,
        "created_at": time(run.created_at),
        "started_at": time(run.created_at),
        "completed_at": time(run.completed_at),
        "steps": [
            _step(1, "Set up job", "success", run.created_at, run.created_at),
            _step(2, f"Run {run.name}", run.conclusion, run.created_at, run.completed_at),
            _step(3, "Complete job", "success", run.cleaned_at, run.cleaned_at),
        ],
        "labels": [],
        **dict.fromkeys(("runner_id", "runner_name", "runner_group_id", "runner_group_name")),
    }


def _step(
    number: int, name: str, conclusion: str | None, begun: datetime, over: datetime | None
) -> Json:
    return {
        "number": number,
        "name": name,
        "status": "completed" if over else "in_progress",
        "conclusion": conclusion,
        "started_at": time(begun),
        "completed_at": time(over),
    }


def webhook_check_run(run: CheckRun) -> Json:
    """Return a check run in a webhook, with its suite."""
    suite = check_suite(run.suite)
    kept = ("repository", "head_commit", "latest_check_runs_count", "check_runs_url")
    return {**check_run(run), "check_suite": {k: v for k, v in suite.items() if k not in kept}}


def check_suite(suite: CheckSuite) -> Json:
    repo = suite.repo
    here = f"{base.api_of(repo)}/check-suites/{suite.id}"
    return {
        "id": suite.id,
        "node_id": suite.node_id,
        "head_branch": suite.head_branch,
        "head_sha": suite.head_sha,
        "status": suite.status,
        "conclusion": suite.conclusion,
        "url": here,
        "before": suite.before,
        "after": suite.head_sha,
        "pull_requests": _pulls_of(suite),
        "app": base.app(suite.app, repo.world),
        "repository": base.minimal_repository(repo),
        "created_at": time(suite.created_at),
        "updated_at": time(suite.updated_at),
        "head_commit": _simple_commit(repo.git.commit(suite.head_sha)),
        "latest_check_runs_count": len(suite.latest),
        "check_runs_url": f"{here}/check-runs",
    }


def status(known: CommitStatus, repo: Repository) -> Json:
    return {
        "url": f"{base.api_of(repo)}/statuses/{known.sha}",
        "avatar_url": f"{repo.world.url}avatars/u/{known.creator.id}",
        "id": known.id,
        "node_id": known.node_id,
        "state": known.state,
        "description": known.description,
        "target_url": known.target_url,
        "context": known.context,
        "created_at": time(known.created_at),
        "updated_at": time(known.updated_at),
        "creator": base.user(known.creator, repo.world),
    }


def webhook_status(known: CommitStatus, repo: Repository) -> Json:
    """Return the members of a status event."""
    shape = status(known, repo)
    kept = ("id", "avatar_url", "state", "description", "target_url", "context")
    here = [name for name, head in repo.heads.items() if head == known.sha]
    return {
        **{name: shape[name] for name in (*kept, "created_at", "updated_at")},
        "sha": known.sha,
        "name": repo.full_name,
        "commit": commit(repo.git.commit(known.sha), repo),
        "branches": [
            {
                "name": name,
                "commit": {"sha": known.sha, "url": f"{base.api_of(repo)}/commits/{known.sha}"},
                "protected": name in repo.protections,
            }
            for name in here
        ],
    }


def _pulls_of(suite: CheckSuite) -> list[Json]:
    """Return the open pull requests whose head is the suite's commit, without those of forks."""
    return [
        {
            "id": pull.id,
            "number": pull.number,
            "url": f"{base.api_of(suite.repo)}/pulls/{pull.number}",
            "head": _pull_end(pull.source, pull.head_branch, pull.head),
            "base": _pull_end(pull.repo, pull.base_branch, pull.base),
        }
        for pull in suite.repo.world.nodes.values()
        if isinstance(pull, Pull) and pull.repo is suite.repo
        if pull.state == "open" and pull.head == suite.head_sha and not pull.from_fork
    ]


def _pull_end(repo: RepositoryBase, name: str, sha: str) -> Json:
    here = {"id": repo.id, "url": base.api_of(repo), "name": repo.name}
    return {"ref": name, "sha": sha, "repo": here}


def _simple_commit(made: CommitInfo) -> Json:
    return {
        "id": made.sha,
        "tree_id": made.tree,
        "message": made.message,
        "timestamp": made.committed,
        "author": {"name": made.author.name, "email": made.author.email},
        "committer": {"name": made.committer.name, "email": made.committer.email},
    }


def _person(signature: Signature, date: str) -> Json:
    return {"name": signature.name, "email": signature.email, "date": date}


def _pusher(signature: Signature, world: World) -> Json:
    known = author(signature, world)
    username = {"username": known.login} if known else {}
    return {"name": signature.name, "email": signature.email, **username}
