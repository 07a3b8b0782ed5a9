"""GitHub's rate limits and outages delay effects; none is lost and none is done twice."""

import re
from datetime import timedelta

from tests.world.waiting import eventually
from tests.world.world import BOT, World


def test_sessions_that_meet_every_limit_and_outage_merge_and_nothing_is_done_twice(
    world: World,
) -> None:
    github, traffic = world.github, world.github.traffic
    issues = [world.issue("First"), world.issue("Second")]
    world.bot_starts()

    traffic.leave(BOT, "graphql", 0, seconds=60)
    for issue in issues:
        issue.is_labelled()
    eventually(lambda: are_put_off(world, 2), "both wait to be read")
    is_obeyed(world)
    assert not world.store.sessions.all()
    github.fail_next("POST", r"/issues/\d+/comments$", 502, after=True)
    ends(world, minutes=1)

    github.limit_next("POST", r"/pulls$", seconds=60)
    for issue in issues:
        issue.agent.commits({f"{issue.id}.txt": "one\n"}, "Add a widget").ends_its_turn()
    is_obeyed(world)
    eventually(lambda: len(world.repo.heads) == 3, "both have pushed")
    github.fail_next("POST", r"/pulls$", 502, after=True)
    ends(world, minutes=1)
    pulls = [issue.pull for issue in issues]

    github.limit_next("POST", "graphql", seconds=30, status=429)
    for pull in pulls:
        pull.ci_passes()
    is_obeyed(world)
    ends(world, seconds=30)
    for issue in issues:
        issue.becomes("review_pending")

    github.fail_next("POST", "graphql", 502, times=3)
    for pull in pulls:
        pull.reviewer_approves()
    traffic.leave(BOT, "core", 0, seconds=600)
    for left in (2, 1, 0):
        eventually(lambda left=left: traffic.planned <= left, "it is read again")  # type: ignore[misc]
        world.time_passes(minutes=1)
    is_obeyed(world)
    assert not any(pull.pull.merged for pull in pulls)
    github.fail_next("PUT", r"/merge$", 502, after=True)
    ends(world, minutes=10)

    for issue in issues:
        issue.becomes("merged")
    merges = [move for move in world.repo.moves if move.branch == "main" and move.user == BOT]
    assert (len(world.repo.pulls), len(merges), traffic.planned) == (2, 2, 0)
    for issue in issues:
        keys = re.findall(
            r"mergewright:key=(\S+)", "".join([*issue.comments_by(), *issue.pull.comments_by()])
        )
        assert len(keys) == len(set(keys))
        assert [entry["kind"] for entry in issue.agent.received] == ["prompt"]
        assert world.store.facts.get(issue.id).failures == {}


def are_put_off(world: World, many: int) -> bool:
    """Whether exactly `many` refreshes of issues become due within an hour, and none is due now."""
    now, issues = world.clock(), ("issue:",)
    later = world.store.refreshes.due(now + timedelta(hours=1), issues)
    return len(later) == many and not world.store.refreshes.due(now, issues)


def is_obeyed(world: World) -> None:
    """Check that no request is sent during a limit."""
    traffic, app = world.github.traffic, world.app
    assert app is not None
    eventually(lambda: not traffic.planned, "the limit is met")

    def asks_nothing() -> bool:
        before = traffic.refused
        app.wiring.access_observer.read_all()
        app.wiring.repository_config.read()
        return traffic.refused == before

    # A worker's request may be on its way when the limit begins; each of these would send another.
    eventually(lambda: all(asks_nothing() for _ in range(5)), "nobody asks during the limit")


def ends(world: World, **much: float) -> None:
    """Remove GitHub's rate limits, and move the clock forward: `minutes=1`."""
    world.github.traffic.lift()
    world.time_passes(**much)
