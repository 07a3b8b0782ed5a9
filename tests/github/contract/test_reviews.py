"""Replies in review threads."""

import pytest

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from bot.github.errors import Refused, TryLater
from tests.world.faulty_github import FaultyGitHub

REPLY = "addPullRequestReviewThreadReply"


@pytest.fixture
def asked(pull: Pull) -> Pull:
    """The bot's pull request, with two open threads."""
    pull.review("ann", "COMMENTED", threads=[("retry.py", 2, "Why 2?"), ("retry.py", 1, "Ok.")])
    return pull


def answers(github: GitHub, pull: Pull, *threads: str, key: str = "reply:1") -> int:
    return github.reviews.reply(pull.repo.full_name, pull.number, threads, "Done in abc.", key)


def bot_comments(pull: Pull) -> list[list[str]]:
    """The first lines of the bot's comments, by thread."""
    every = [[c.body for c in one.comments if c.user.login == "wright"] for one in pull.threads]
    return [[body.partition("\n")[0] for body in bodies] for bodies in every]


def test_a_thread_gets_one_reply(github: GitHub, server: FaultyGitHub, asked: Pull) -> None:
    (first, _) = [thread.node_id for thread in asked.threads]
    server.fail_next("POST", "graphql", 502, after=True, operation=REPLY)
    with pytest.raises(TryLater):
        answers(github, asked, first)
    assert answers(github, asked, first) == 0
    assert bot_comments(asked) == [["Done in abc."], []]
    assert answers(github, asked, first, key="reply:2") == 1
    assert bot_comments(asked) == [["Done in abc."] * 2, []]


def test_replies_in_several_threads_are_one_review(github: GitHub, asked: Pull) -> None:
    threads = [thread.node_id for thread in asked.threads]
    assert answers(github, asked, *threads) == 2
    assert answers(github, asked, *threads) == 0
    assert bot_comments(asked) == [["Done in abc."], ["Done in abc."]]
    (mine,) = [review for review in asked.reviews if review.user.login == "wright"]
    assert mine.state == "COMMENTED"
    assert len(mine.comments) == 2
    assert asked.pending == {}


@pytest.mark.parametrize("operation", ["addPullRequestReview", REPLY, "submitPullRequestReview"])
def test_a_crash_does_not_repeat_replies(
    github: GitHub, server: FaultyGitHub, asked: Pull, operation: str
) -> None:
    threads = [thread.node_id for thread in asked.threads]
    server.fail_next("POST", "graphql", 502, after=True, operation=operation)
    with pytest.raises(TryLater):
        answers(github, asked, *threads)
    answers(github, asked, *threads)
    assert bot_comments(asked) == [["Done in abc."], ["Done in abc."]]
    assert len([review for review in asked.reviews if review.user.login == "wright"]) == 1
    assert asked.pending == {}


def test_a_pending_review_is_continued_after_a_crash(
    github: GitHub, server: FaultyGitHub, asked: Pull
) -> None:
    threads = [thread.node_id for thread in asked.threads]
    server.fail_next("POST", "graphql", 502, operation="submitPullRequestReview")
    with pytest.raises(TryLater):
        answers(github, asked, *threads)
    said_before = server.count("POST", "graphql", REPLY)
    assert answers(github, asked, *threads) == 2
    assert bot_comments(asked) == [["Done in abc."], ["Done in abc."]]
    assert server.count("POST", "graphql", REPLY) == said_before


def test_a_stale_pending_review_is_deleted(
    github: GitHub, server: FaultyGitHub, asked: Pull
) -> None:
    threads = [thread.node_id for thread in asked.threads]
    server.fail_next("POST", "graphql", 502, operation="submitPullRequestReview")
    with pytest.raises(TryLater):
        answers(github, asked, *threads, key="reply:0")
    assert answers(github, asked, *threads) == 2
    assert bot_comments(asked) == [["Done in abc."], ["Done in abc."]]


def test_a_review_that_a_person_has_begun_is_kept(github: GitHub, asked: Pull) -> None:
    threads = [thread.node_id for thread in asked.threads]
    theirs = asked.begin_review("wright")
    theirs.replies.append((asked.threads[0], "I am still thinking."))
    with pytest.raises(TryLater, match=r"began a review of .* with the bot's") as waits:
        answers(github, asked, *threads)
    assert waits.value.at is not None
    assert asked.pending["wright"] is theirs
    theirs.submit()
    assert answers(github, asked, *threads) == 2
    assert bot_comments(asked) == [["I am still thinking.", "Done in abc."], ["Done in abc."]]


def test_a_copied_key_does_not_count_as_a_reply(github: GitHub, asked: Pull) -> None:
    thread = asked.threads[0]
    thread.reply("eve", f"Ha.\n\n<!-- mergewright:key=reply:1/{thread.node_id} -->")
    assert answers(github, asked, thread.node_id) == 1
    assert bot_comments(asked)[0] == ["Done in abc."]


def test_a_reply_in_a_deleted_thread_is_refused(github: GitHub, asked: Pull) -> None:
    with pytest.raises(Refused) as refusal:
        answers(github, asked, "PRRT_gone")
    assert refusal.value.status == 404


def test_a_deleted_thread_does_not_stop_the_other_replies(github: GitHub, asked: Pull) -> None:
    (first, second) = [thread.node_id for thread in asked.threads]
    answers(github, asked, first, "PRRT_gone", second)
    assert bot_comments(asked) == [["Done in abc."], ["Done in abc."]]
    with pytest.raises(Refused):
        answers(github, asked, "PRRT_gone", "PRRT_too")
    assert asked.pending == {}


def test_pending_reviews_of_other_pull_requests_are_left_alone(
    github: GitHub, asked: Pull, repo: Repository
) -> None:
    repo.push("other", {"retry.py": "one\n3\nthree\n"}, by="wright")
    other = repo.open_pull("other", title="Other", by="wright")
    other.review("ann", "COMMENTED", threads=[("retry.py", 2, "Why 3?"), ("retry.py", 1, "Hm.")])
    answers(github, other, *[thread.node_id for thread in other.threads])
    assert bot_comments(asked) == [[], []]
    assert bot_comments(other) == [["Done in abc."], ["Done in abc."]]


def test_threads_are_resolved_once(github: GitHub, asked: Pull) -> None:
    for _ in range(2):
        github.reviews.resolve(asked.repo.full_name, [asked.threads[0].node_id])
    assert [thread.resolved for thread in asked.threads] == [True, False]
