"""The first response to every kind of write is lost, and nothing is done twice or given up."""

import re
from collections import Counter

from tests.world.waiting import eventually
from tests.world.world import ALICE, BOT, ROB, World

#: What the bot writes in the life of a pull request.
_WRITES = {
    "POST /issues/*/comments",
    "PATCH /issues/comments/*",
    "POST /issues/comments/*/reactions",
    "POST /issues/*/labels",
    "DELETE /issues/*/labels/*",
    "POST .git/git-receive-pack",
    "POST /pulls",
    "POST /pulls/*/requested_reviewers",
    "PUT /pulls/*/update-branch",
    "PUT /pulls/*/merge-async",
    "PUT /pulls/*/merge",
    "DELETE /git/refs/heads/*",
    "markPullRequestReadyForReview",
    "addPullRequestReviewThreadReply",
    "resolveReviewThread",
}


def test_a_life_in_which_the_first_response_to_every_write_is_lost(world: World) -> None:
    world.github.lose_first_responses()
    world.bot_starts(
        {
            "draft": True,
            "reviewers": [ROB],
            "resolve_threads": True,
            "state_labels": True,
            "report_seconds": 0.5,
        }
    )
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    pull = issue.pull
    first = pull.pull.head
    pull.ci_fails("unit", log="the widget must be xyzzy")
    issue.agent.receives("xyzzy")
    issue.agent.commits({"widgets.txt": "xyzzy\n"}, "Make it xyzzy").ends_its_turn()
    second = pull.moves_from(first)
    pull.ci_passes()
    eventually(lambda: not pull.pull.draft, "it is ready for review")
    pull.reviewer_asks_for("plugh, please")
    issue.agent.receives("plugh, please")
    issue.agent.commits({"widgets.txt": "plugh\n"}, "Say plugh").ends_its_turn()
    third = pull.moves_from(second)
    pull.ci_passes()
    eventually(lambda: all(thread.resolved for thread in pull.pull.threads), "it is resolved")
    world.repo.push("main", {"other.txt": "1\n"}, by=ALICE)
    issue.issue.comment("/mergewright update", by=ALICE)
    pull.moves_from(third)
    pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    branch = pull.pull.head_branch
    eventually(lambda: branch not in world.repo.heads, "the branch is gone")
    eventually(lambda: not world.store.facts.get(issue.id).pending, "nothing is left to do")

    assert world.github.lost == _WRITES
    assert world.store.facts.get(issue.id).failures == {}
    assert len(world.repo.pulls) == 1
    moves = [move for move in world.repo.moves if move.branch == branch]
    assert len(moves) == 5, "three pushes, an update, the deletion"
    merges = [m for m in world.repo.moves if m.branch == "main" and m.user == BOT]
    assert len(merges) == 1
    posted = "".join([*issue.comments_by(), *pull.comments_by()])
    assert max(Counter(re.findall(r"mergewright:key=(\S+)", posted)).values()) == 1
    assert [entry["kind"] for entry in issue.agent.received] == ["prompt", "message", "message"]
