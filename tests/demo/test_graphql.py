"""GraphQL: the bot's own documents, pages by cursor, limits, prices, errors and mutations."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from graphql import GraphQLSchema, build_schema, parse, validate

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from scripts.github_schema import documents
from tests.demo.outside import Client
from tests.world.faulty_github import FaultyGitHub

Ask = Callable[..., Client]
QUERIES = documents()
_PULL = """
query ($name: String!, $number: Int!) {
  repository(owner: "acme", name: $name) { pullRequest(number: $number) { %s } }
}
"""
_MUTATION = "mutation ($id: ID!) { %s }"


@pytest.fixture
def pull(repo: Repository) -> Pull:
    repo.push("feat", {"README.md": "one\ntwo\n3\n"}, by="wright")
    return repo.open_pull("feat", title="Mend", body="Fixes #1", by="wright")


@pytest.fixture
def read(ask: Ask, pull: Pull) -> Callable[[str], Any]:
    """Fields of the pull request, as the bot sees them."""

    def fields(wanted: str) -> Any:
        answer = ask().graphql(_PULL % wanted, name=pull.repo.name, number=pull.number)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]["repository"]["pullRequest"]

    return fields


@pytest.fixture(scope="module")
def schema() -> GraphQLSchema:
    return build_schema(files("bot.demo.github.graphql").joinpath("schema.graphql").read_text())


@pytest.mark.parametrize("name", QUERIES)
def test_the_bots_documents_match_the_schema(name: str, schema: GraphQLSchema) -> None:
    assert validate(schema, parse(QUERIES[name])) == []


def test_a_check_shows_its_app_its_workflow_and_whether_it_is_required(
    pull: Pull, read: Callable[[str], Any]
) -> None:
    assert read("statusCheckRollup { state }")["statusCheckRollup"] is None
    pull.check("unit", conclusion="failure", required=True, suite="ci")
    pull.check("unit", conclusion="success", suite="ci")
    pull.check("lint", status="in_progress", app="linter")
    pull.status("deploy", "error")
    rollup = read(
        """commits(last: 1) { nodes { commit { oid statusCheckRollup { state contexts(first: 9) {
        nodes { __typename
          ... on CheckRun { name conclusion isRequired(pullRequestNumber: $number)
            checkSuite { app { slug name } workflowRun { event workflow { name } } } }
          ... on StatusContext { context state isRequired(pullRequestNumber: $number) }
        } } } } } }"""
    )["commits"]["nodes"][0]["commit"]["statusCheckRollup"]
    actions = {"slug": "github-actions", "name": "Github Actions"}
    run = {"event": "pull_request", "workflow": {"name": "ci"}}
    linter = {"app": {"slug": "linter", "name": "Linter"}, "workflowRun": None}
    assert rollup["state"] == "FAILURE"
    assert rollup["contexts"]["nodes"] == [
        {
            "__typename": "CheckRun",
            "name": "unit",
            "conclusion": "SUCCESS",
            "isRequired": True,
            "checkSuite": {"app": actions, "workflowRun": run},
        },
        {
            "__typename": "CheckRun",
            "name": "lint",
            "conclusion": None,
            "isRequired": False,
            "checkSuite": linter,
        },
        {"__typename": "StatusContext", "context": "deploy", "state": "ERROR", "isRequired": False},
    ]


def test_reviews_threads_and_review_requests_are_shown(
    pull: Pull, read: Callable[[str], Any]
) -> None:
    pull.request_review("alice", "wright")
    pull.review("mallory", "APPROVED")
    pull.review("rob", "APPROVED")
    pull.review("rob", "CHANGES_REQUESTED", "No.", [("README.md", 3, "Why?")])
    pull.review("rob", "COMMENTED", "Still.")
    pull.threads[0].reply("wright", "Because.")
    seen = read(
        """reviewDecision
        latestOpinionatedReviews(first: 9) { nodes { author { login } state } }
        writers: latestOpinionatedReviews(first: 9, writersOnly: true) { nodes { state } }
        reviewRequests(first: 9) { nodes { requestedReviewer { ... on User { login } } } }
        reviewThreads(first: 9) { nodes { isResolved isOutdated path line
          comments(first: 9) { totalCount nodes { author { __typename login } body diffHunk } } } }
        """
    )
    assert seen["reviewDecision"] is None
    opinions = [
        (r["author"]["login"], r["state"]) for r in seen["latestOpinionatedReviews"]["nodes"]
    ]
    assert sorted(opinions) == [("mallory", "APPROVED"), ("rob", "CHANGES_REQUESTED")]
    assert seen["writers"]["nodes"] == [{"state": "CHANGES_REQUESTED"}]
    assert seen["reviewRequests"]["nodes"] == [{"requestedReviewer": {"login": "alice"}}]
    (thread,) = seen["reviewThreads"]["nodes"]
    assert (thread["isResolved"], thread["path"], thread["line"]) == (False, "README.md", 3)
    texts = [(c["author"]["login"], c["body"]) for c in thread["comments"]["nodes"]]
    assert texts == [("rob", "Why?"), ("wright", "Because.")]
    assert thread["comments"]["nodes"][0]["diffHunk"].endswith("+3")


def test_an_apps_login_has_no_bot_suffix_in_graphql(pull: Pull, read: Callable[[str], Any]) -> None:
    pull.comment("Hello.", by="renovate[bot]")
    (comment,) = read("comments(first: 1) { nodes { author { __typename login } } }")["comments"][
        "nodes"
    ]
    assert comment["author"] == {"__typename": "Bot", "login": "renovate"}


def test_a_list_is_read_page_by_page(pull: Pull, read: Callable[[str], Any]) -> None:
    for number in range(5):
        pull.comment(f"{number}", by="rob")
    wanted = "comments(%s) { totalCount pageInfo { hasNextPage endCursor } nodes { body } }"
    found, after = [], ""
    while True:
        page = read(wanted % f"first: 2 {after}")["comments"]
        assert page["totalCount"] == 5
        found.append([node["body"] for node in page["nodes"]])
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = f'after: "{page["pageInfo"]["endCursor"]}"'
    assert found == [["0", "1"], ["2", "3"], ["4"]]
    last = read(wanted % "last: 2")["comments"]["nodes"]
    assert [node["body"] for node in last] == ["3", "4"]


def test_a_connection_without_bounds_or_above_a_hundred_is_refused(ask: Ask, pull: Pull) -> None:
    def refusal(fields: str) -> tuple[str, str]:
        (error,) = ask().graphql(_PULL % fields, name=pull.repo.name, number=pull.number)["errors"]
        return error["type"], error["message"]

    assert refusal("comments { nodes { body } }") == (
        "MISSING_PAGINATION_BOUNDARIES",
        "You must provide a `first` or `last` value to properly paginate the `comments` "
        "connection.",
    )
    assert refusal("comments(first: 101) { nodes { body } }") == (
        "EXCESSIVE_PAGINATION",
        "Requesting 101 records on the `comments` connection exceeds the `first` limit of 100 "
        "records.",
    )
    deep = "reviewThreads(first: 100) { nodes { pullRequest { comments(first: 100) "
    deep += "{ nodes { reactions(first: 100) { nodes { id } } } } } } }"
    assert refusal(deep)[0] == "MAX_NODE_LIMIT_EXCEEDED"


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ("title", 1),
        ("comments(first: 100) { nodes { body } }", 1),
        # GitHub's own sum: 1 request for the threads, 100 for their comments, 5,000 below those.
        (
            "reviewThreads(first: 100) { nodes { comments(first: 50) { nodes { "
            "pullRequestReview { comments(first: 60) { nodes { id } } } } } } }",
            51,
        ),
    ],
)
def test_a_query_costs_points_by_githubs_formula(
    ask: Ask, pull: Pull, fields: str, cost: int
) -> None:
    query = _PULL % fields
    query = query.rstrip().removesuffix("}") + "rateLimit { cost limit remaining used resetAt } }"
    given = {"name": pull.repo.name, "number": pull.number}
    before = ask().graphql(query, **given)["data"]["rateLimit"]
    after = ask().graphql(query, **given)["data"]["rateLimit"]
    assert (before["cost"], before["limit"]) == (cost, 5000)
    assert before["remaining"] - after["remaining"] == cost


def test_a_missing_object_is_an_error_with_type_and_path(ask: Ask, repo: Repository) -> None:
    def error(query: str) -> Any:
        (found,) = ask().graphql(query)["errors"]
        return found["type"], found["path"], found["message"]

    inside = f'{{ repository(owner: "acme", name: "{repo.name}") {{ %s }} }}'
    assert error('{ repository(owner: "acme", name: "none") { id } }') == (
        "NOT_FOUND",
        ["repository"],
        "Could not resolve to a Repository with the name 'acme/none'.",
    )
    assert error(inside % "pullRequest(number: 9) { id }") == (
        "NOT_FOUND",
        ["repository", "pullRequest"],
        "Could not resolve to a PullRequest with the number of 9.",
    )
    assert error('{ node(id: "X") { id } }')[0] == "NOT_FOUND"


def test_an_unknown_field_is_an_error_and_anonymous_requests_are_refused(
    ask: Ask, repo: Repository
) -> None:
    answer = ask().graphql("{ viewer { nonsense } }")
    assert "nonsense" in answer["errors"][0]["message"]
    assert "data" not in answer
    assert ask("")("POST", "../graphql", json={"query": "{ viewer { login } }"}).status_code == 401
    bad = ask("forged")("POST", "../graphql", json={"query": "{ viewer { login } }"})
    assert (bad.status_code, bad.json()["message"]) == (401, "Bad credentials")


def test_administrators_see_a_branch_rule_and_everybody_its_requirements(
    ask: Ask, repo: Repository
) -> None:
    repo.protect("main", required_checks=["unit"], required_reviews=1)
    query = f"""{{ repository(owner: "acme", name: "{repo.name}") {{ defaultBranchRef {{
      branchProtectionRule {{ requiredStatusCheckContexts }}
      rules(first: 9) {{ nodes {{ type parameters {{
        ... on RequiredStatusChecksParameters {{ requiredStatusChecks {{ context }} }} }} }} }}
    }} }} }}"""
    seen = ask("alices").graphql(query)["data"]["repository"]["defaultBranchRef"]
    assert seen["branchProtectionRule"] == {"requiredStatusCheckContexts": ["unit"]}
    seen = ask("robs").graphql(query)["data"]["repository"]["defaultBranchRef"]
    assert seen["branchProtectionRule"] is None
    checks = {"requiredStatusChecks": [{"context": "unit"}]}
    assert seen["rules"]["nodes"] == [
        {"type": "PULL_REQUEST", "parameters": {}},
        {"type": "REQUIRED_STATUS_CHECKS", "parameters": checks},
    ]


def test_mutations_change_the_shared_state(
    github: FaultyGitHub, ask: Ask, repo: Repository, pull: Pull
) -> None:
    issue = repo.open_issue("Broken", by="rob")
    pull.review("rob", "COMMENTED", threads=[("README.md", 3, "Why?")])
    (thread,) = pull.threads

    def change(mutation: str, node: str) -> None:
        answer = ask().graphql(_MUTATION % mutation, id=node)
        assert "errors" not in answer, answer

    change('addComment(input: {subjectId: $id, body: "Hm."}) { subject { id } }', issue.node_id)
    assert [(c.user.login, c.body) for c in issue.comments] == [("wright", "Hm.")]
    comment = issue.comments[0]
    change(
        "addReaction(input: {subjectId: $id, content: EYES}) { reaction { id } }", comment.node_id
    )
    assert [r.content for r in comment.reactions] == ["eyes"]
    reply = "addPullRequestReviewThreadReply"
    given = '(input: {pullRequestReviewThreadId: $id, body: "So."}) { comment { id } }'
    change(reply + given, thread.node_id)
    assert [c.body for c in thread.comments] == ["Why?", "So."]
    change("resolveReviewThread(input: {threadId: $id}) { thread { id } }", thread.node_id)
    settled = [thread.resolved]
    change("unresolveReviewThread(input: {threadId: $id}) { thread { id } }", thread.node_id)
    assert [*settled, thread.resolved] == [True, False]
    draft = "convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { id } }"
    change(draft, pull.node_id)
    assert pull.draft
    ready = "markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { id } }"
    change(ready, pull.node_id)
    merge = "mergePullRequest(input: {pullRequestId: $id, mergeMethod: SQUASH"
    change(
        f'{merge}, expectedHeadOid: "{pull.head}"}}) {{ pullRequest {{ merged }} }}', pull.node_id
    )
    assert pull.merged
    assert github.count("POST", "graphql", f"mutation {reply}") == 1


def test_a_refused_mutation_says_why(ask: Ask, pull: Pull) -> None:
    merge = "mergePullRequest(input: {pullRequestId: $id%s}) { pullRequest { merged } }"

    def error(who: str, more: str) -> tuple[str, str]:
        answer = ask(who).graphql(_MUTATION % (merge % more), id=pull.node_id)
        assert answer["data"] == {"mergePullRequest": None}
        return answer["errors"][0]["type"], answer["errors"][0]["message"]

    assert error("mallorys", "") == (
        "FORBIDDEN",
        "mallory does not have the correct permissions to execute `MergePullRequest`",
    )
    moved = "Head branch was modified. Review and try the merge again."
    assert error("wrights", f', expectedHeadOid: "{"0" * 40}"') == ("UNPROCESSABLE", moved)
    pull.mark_draft("wright")
    assert error("wrights", "") == ("UNPROCESSABLE", "Pull Request is still a draft")
