"""Every REST response matches GitHub's documentation: githubkit's models decode it."""

from collections.abc import Callable
from typing import Any

import jwt
import pytest
from githubkit import GitHub, TokenAuthStrategy

from bot.demo.github.checks import CheckSuite
from bot.demo.github.http import pattern_of
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.rest import (
    apps,
    checks,
    commits,
    issues,
    manifests,
    merges,
    pulls,
    repositories,
)
from tests.demo.outside import HookServer, kit_for
from tests.world.app_key import PRIVATE, PUBLIC
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import eventually

TABLES = (apps, manifests, repositories, issues, pulls, merges, checks, commits)
Kit = GitHub[Any]


class Scene:
    """A repository with one of everything, and a githubkit client for each account."""

    def __init__(self, github: FaultyGitHub, repo: Repository) -> None:
        self.github, self.repo = github, repo
        repo.async_merges = True
        self.at = {"owner": repo.owner.login, "repo": repo.name}
        self.app = github.app("ci-app", PUBLIC)
        now = int(github.world.now().timestamp())
        claims = {"iss": str(self.app.id), "iat": now - 30, "exp": now + 500}
        signed = jwt.encode(claims, PRIVATE, "RS256")
        self.kit = kit_for(github, "wrights")
        self.admin = kit_for(github, "alices")
        self.as_app = kit_for(github, TokenAuthStrategy(signed))
        token = self.as_app.rest.apps.create_installation_access_token(
            self.app.installation_of(repo.owner)
        )
        self.installed = kit_for(github, token.parsed_data.token)
        self.issue = repo.open_issue("Broken", "It is.", by="rob")
        self.issue.label("bug", by="rob")
        self.issue.edit(title="Much broken", by="rob")
        self.comment = self.issue.comment("Hm.", by="rob")
        self.comment.react("eyes", "wright")
        self.pull = self.open("feat", "README.md", "one\ntwo\n3\n")
        self.pull.request_review("alice", "wright")
        self.pull.review("rob", "CHANGES_REQUESTED", "No.", [("README.md", 3, "Why?")])
        self.note = self.pull.threads[0].comments[0]
        self.note.react("+1", "wright")
        self.job = self.pull.check("unit", conclusion="failure", log="Expected 2.")
        output = {"title": "t", "summary": "s", "annotations": [_NOTE]}
        self.run: Any = self.installed.rest.checks.create(
            **self.at, name="lint", head_sha=self.pull.head, status="in_progress", output=output
        ).parsed_data
        self.suite: CheckSuite = self.job.suite
        self.pull.status("deploy", "pending", "https://deploy.example")

    def open(self, branch: str, path: str, content: str) -> Pull:
        self.repo.push(branch, {path: content}, by="wright")
        return self.repo.open_pull(branch, title="Mend", body="Fixes #1", by="wright")


_NOTE = {
    "path": "README.md",
    "start_line": 1,
    "end_line": 1,
    "annotation_level": "failure",
    "message": "Wrong.",
}


@pytest.fixture(scope="module")
def scene(github: FaultyGitHub) -> Scene:
    repo = github.repository("acme/shapes", {"README.md": "one\ntwo\nthree\n"})
    repo.permission("alice", "admin")
    repo.permission("rob", "write")
    repo.permission("wright", "write")
    return Scene(github, repo)


MANIFEST = {
    "name": "Shape Wright",
    "default_permissions": {"contents": "write"},
    "hook_attributes": {"url": "https://bot.example/"},
}
Call = Callable[[Scene], Any]
#: One call per route; writes come last.
CALLS: dict[str, Call] = {
    "me": lambda s: s.kit.rest.users.get_authenticated(),
    "app": lambda s: s.as_app.rest.apps.get_authenticated(),
    "installation": lambda s: s.as_app.rest.apps.get_repo_installation(**s.at),
    "access token": lambda s: s.as_app.rest.apps.create_installation_access_token(
        s.app.installation_of(s.repo.owner)
    ),
    "installations": lambda s: s.as_app.rest.apps.list_installations(),
    "installed on": lambda s: s.installed.rest.apps.list_repos_accessible_to_installation(),
    "new app": lambda s: s.kit.rest.apps.create_from_manifest(
        manifests.register(s.github.world, MANIFEST, "alice")
    ),
    "meta": lambda s: s.kit.rest.meta.get(),
    "rate limit": lambda s: s.kit.rest.rate_limit.get(),
    "repository": lambda s: s.kit.rest.repos.get(**s.at),
    "ruleset": lambda s: (
        s.repo.protect("held", bypass="never")
        or s.kit.rest.repos.get_repo_ruleset(**s.at, ruleset_id=4)
    ),
    "activity": lambda s: s.kit.rest.repos.list_activities(**s.at),
    "permission": lambda s: s.kit.rest.repos.get_collaborator_permission_level(
        **s.at, username="rob"
    ),
    "collaborator": lambda s: s.kit.rest.repos.check_collaborator(**s.at, username="rob"),
    "issues": lambda s: s.kit.rest.issues.list_for_repo(**s.at, state="all"),
    "issue": lambda s: s.kit.rest.issues.get(**s.at, issue_number=1),
    "blocked by": lambda s: s.kit.rest.issues.list_dependencies_blocked_by(**s.at, issue_number=1),
    "pull as issue": lambda s: s.kit.rest.issues.get(**s.at, issue_number=2),
    "edit issue": lambda s: s.kit.rest.issues.update(**s.at, issue_number=1, title="Very broken"),
    "timeline": lambda s: s.kit.rest.issues.list_events_for_timeline(**s.at, issue_number=1),
    "pull timeline": lambda s: s.kit.rest.issues.list_events_for_timeline(**s.at, issue_number=2),
    "labels": lambda s: s.kit.rest.issues.list_labels_on_issue(**s.at, issue_number=1),
    "add labels": lambda s: s.kit.rest.issues.add_labels(**s.at, issue_number=1, labels=["a b"]),
    "create label": lambda s: s.kit.rest.issues.create_label(**s.at, name="new"),
    "remove label": lambda s: s.kit.rest.issues.remove_label(**s.at, issue_number=1, name="a b"),
    "comments": lambda s: s.kit.rest.issues.list_comments(**s.at, issue_number=1),
    "comments of all": lambda s: s.kit.rest.issues.list_comments_for_repo(**s.at, sort="updated"),
    "comment": lambda s: s.kit.rest.issues.get_comment(**s.at, comment_id=s.comment.id),
    "new comment": lambda s: s.kit.rest.issues.create_comment(**s.at, issue_number=1, body="So?"),
    "edit comment": lambda s: s.kit.rest.issues.update_comment(
        **s.at, comment_id=s.comment.id, body="Hm!"
    ),
    "reactions": lambda s: s.kit.rest.reactions.list_for_issue_comment(
        **s.at, comment_id=s.comment.id
    ),
    "react": lambda s: s.kit.rest.reactions.create_for_issue_comment(
        **s.at, comment_id=s.comment.id, content="+1"
    ),
    "issue reactions": lambda s: s.kit.rest.reactions.list_for_issue(**s.at, issue_number=1),
    "react to issue": lambda s: s.kit.rest.reactions.create_for_issue(
        **s.at, issue_number=1, content="rocket"
    ),
    "note": lambda s: s.kit.rest.pulls.get_review_comment(**s.at, comment_id=s.note.id),
    "note reactions": lambda s: s.kit.rest.reactions.list_for_pull_request_review_comment(
        **s.at, comment_id=s.note.id
    ),
    "react to note": lambda s: s.kit.rest.reactions.create_for_pull_request_review_comment(
        **s.at, comment_id=s.note.id, content="heart"
    ),
    "pulls": lambda s: s.kit.rest.pulls.list(**s.at, state="all", head="acme:feat"),
    "pull": lambda s: s.kit.rest.pulls.get(**s.at, pull_number=2),
    "edit pull": lambda s: s.kit.rest.pulls.update(**s.at, pull_number=2, body="Fixes #1."),
    "reviews": lambda s: s.kit.rest.pulls.list_reviews(**s.at, pull_number=2),
    "new review": lambda s: s.admin.rest.pulls.create_review(
        **s.at,
        pull_number=2,
        event="REQUEST_CHANGES",
        body="No!",
        comments=[{"path": "README.md", "line": 3, "body": "Because."}],
    ),
    "notes": lambda s: s.kit.rest.pulls.list_review_comments(**s.at, pull_number=2),
    "new note": lambda s: s.admin.rest.pulls.create_review_comment(
        **s.at, pull_number=2, body="?", commit_id=s.pull.head, path="README.md", line=3
    ),
    "reply": lambda s: s.kit.rest.pulls.create_reply_for_review_comment(
        **s.at, pull_number=2, comment_id=s.note.id, body="Because."
    ),
    "requested": lambda s: s.kit.rest.pulls.list_requested_reviewers(**s.at, pull_number=2),
    "request": lambda s: s.kit.rest.pulls.request_reviewers(
        **s.at, pull_number=2, reviewers=["rob"]
    ),
    "unrequest": lambda s: s.kit.rest.pulls.remove_requested_reviewers(
        **s.at, pull_number=2, reviewers=["rob"]
    ),
    "runs": lambda s: s.kit.rest.checks.list_for_ref(**s.at, ref="feat"),
    "run": lambda s: s.kit.rest.checks.get(**s.at, check_run_id=s.job.id),
    "update run": lambda s: s.installed.rest.checks.update(
        **s.at, check_run_id=s.run.id, conclusion="failure"
    ),
    "job": lambda s: s.kit.rest.actions.get_job_for_workflow_run(**s.at, job_id=s.job.id),
    "annotations": lambda s: s.kit.rest.checks.list_annotations(**s.at, check_run_id=s.run.id),
    "new run": lambda s: s.installed.rest.checks.create(
        **s.at, name="types", head_sha=s.pull.head, status="completed", conclusion="success"
    ),
    "suites": lambda s: s.kit.rest.checks.list_suites_for_ref(**s.at, ref=s.pull.head),
    "suite": lambda s: s.kit.rest.checks.get_suite(**s.at, check_suite_id=s.suite.id),
    "runs of suite": lambda s: s.kit.rest.checks.list_for_suite(**s.at, check_suite_id=s.suite.id),
    "statuses": lambda s: s.kit.rest.repos.list_commit_statuses_for_ref(**s.at, ref="feat"),
    "combined status": lambda s: s.kit.rest.repos.get_combined_status_for_ref(**s.at, ref="feat"),
    "new status": lambda s: s.kit.rest.repos.create_commit_status(
        **s.at, sha=s.pull.head, state="success", context="deploy"
    ),
    "rerequest": lambda s: s.kit.rest.checks.rerequest_run(**s.at, check_run_id=s.run.id),
    "rerun": lambda s: s.kit.rest.actions.re_run_workflow_failed_jobs(**s.at, run_id=s.suite.id),
    "branch": lambda s: s.kit.rest.repos.get_branch(**s.at, branch="main"),
    "ref": lambda s: s.kit.rest.git.get_ref(**s.at, ref="heads/feat"),
    "commits": lambda s: s.kit.rest.repos.list_commits(**s.at, sha="feat"),
    "commit": lambda s: s.kit.rest.repos.get_commit(**s.at, ref="feat"),
    "new pull": lambda s: (
        s.repo.push("next", {"next": "1\n"}, by="wright"),
        s.kit.rest.pulls.create(**s.at, title="Next", head="next", base="main", draft=True),
    )[1],
    "update branch": lambda s: (
        s.repo.push("main", {"other": "1\n"}, by="rob"),
        s.kit.rest.pulls.update_branch(**s.at, pull_number=2),
    )[1],
    "merge in the background": lambda s: s.kit.rest.pulls.merge_async(
        **s.at, pull_number=2, sha="0" * 40
    ),
    "what came of it": lambda s: s.kit.rest.pulls.get_merge_async_result(
        **s.at, pull_number=2, uuid=getattr(s.pull.accepted, "uuid", "")
    ),
    "merge": lambda s: s.kit.rest.pulls.merge(
        **s.at, pull_number=2, sha=s.pull.head, merge_method="squash"
    ),
    "is merged": lambda s: s.kit.rest.pulls.check_if_merged(**s.at, pull_number=2),
    "delete ref": lambda s: s.kit.rest.git.delete_ref(**s.at, ref="heads/feat"),
    "delete note": lambda s: s.kit.rest.pulls.delete_review_comment(**s.at, comment_id=s.note.id),
    "delete comment": lambda s: s.kit.rest.issues.delete_comment(**s.at, comment_id=s.comment.id),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_response_decodes_with_githubkits_model(scene: Scene, name: str) -> None:
    answer = CALLS[name](scene)
    if answer.status_code != 204:
        assert answer.parsed_data is not None


def test_a_jobs_log_is_on_another_host_without_credentials(scene: Scene) -> None:
    answer = scene.kit.rest.actions.download_job_logs_for_workflow_run(
        **scene.at, job_id=scene.job.id
    )
    assert "Z Expected 2.\n" in answer.text


def test_the_deliveries_of_a_hook_are_listed_and_redelivered(
    scene: Scene, hook_server: HookServer
) -> None:
    hook = scene.repo.webhook(hook_server.url, "secret")
    eventually(hook_server.events, "the ping")
    api = scene.admin.rest.repos
    (item,) = api.list_webhook_deliveries(**scene.at, hook_id=hook).parsed_data
    whole = api.get_webhook_delivery(**scene.at, hook_id=hook, delivery_id=item.id).parsed_data
    assert (item.event, whole.guid) == ("ping", item.guid)
    again = api.redeliver_webhook_delivery(**scene.at, hook_id=hook, delivery_id=item.id)
    assert again.status_code == 202
    eventually(lambda: len(hook_server.received) == 2, "the redelivery")
    assert {received.headers["X-GitHub-Delivery"] for received in hook_server.received} == {
        item.guid
    }


def test_every_route_is_covered(scene: Scene) -> None:
    asked = {(seen.method, seen.path) for seen in scene.github.requests if seen.status < 400}
    routes = [route for table in TABLES for route in table.ROUTES]
    for method, path, _ in routes:
        pattern = pattern_of(f"/api/v3{path}")
        hit = any(m == method and pattern.fullmatch(asked_for) for m, asked_for in asked)
        assert hit, f"{method} {path} has no call in CALLS"
