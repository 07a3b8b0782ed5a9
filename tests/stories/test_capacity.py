"""More sessions than slots: the queue is fair and every session gets its turn."""

from itertools import accumulate

from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def test_twenty_labelled_issues_run_three_at_a_time_and_all_merge(world: World) -> None:
    world.bot_starts({"nothing_to_show": "done"}, sessions=3)
    issues = [world.issue(f"Widget {number}") for number in range(20)]
    tally, gate = world.folder / "tally", world.folder / "gate"
    tally.touch()
    begin = f"echo 1 >> {tally}; until [ -e {gate} ]; do sleep 0.02; done"
    for issue in issues:
        issue.agent.runs(["sh", "-c", begin], ["sh", "-c", f"echo -1 >> {tally}"]).exits()
    for issue in issues:
        issue.is_labelled()
    limit = "limit: 3; slots reserved for sessions earlier in the queue are not free"
    reasons = [f"the server has no free session slot ({limit})"] * 17
    eventually(
        lambda: [one.waits for one in world.store.sessions.all() if one.waits] == reasons,
        "seventeen wait with their reason",
    )
    eventually(lambda: tally.read_text() == "1\n" * 3, "three are at work")
    gate.touch()
    eventually(
        lambda: [one.status for one in world.store.sessions.all()] == ["done"] * 20,
        "all twenty are done",
        seconds=120,
    )
    at_work = list(accumulate(int(line) for line in tally.read_text().split()))
    assert (len(at_work), max(at_work), at_work[-1]) == (40, 3, 0)
    assert all(len(issue.agent.received) == 1 for issue in issues)


def test_an_issue_closed_as_not_planned_while_queued_never_starts(world: World) -> None:
    world.bot_starts(sessions=1)
    first = world.issue("First").is_labelled()
    first.agent.starts()
    second, third = world.issue("Second").is_labelled(), world.issue("Third")
    third.is_labelled().becomes("queued")
    eventually(
        lambda: (
            second.becomes("queued").because == "the server has no free session slot"
            " (limit: 1; slots reserved for sessions earlier in the queue are not free)"
        ),
        "the second states why it waits",
    )
    second.issue.close(by=ALICE, reason="not_planned")
    session = second.becomes("terminated")
    assert session.because == "the issue was closed as not planned"
    first.issue.unlabel("mergewright", by=ALICE)
    third.agent.starts()
    session = second.becomes("terminated")
    assert (session.run, session.slot, second.agent.received) == (0, False, [])


def test_a_start_waits_for_memory_and_says_so(world: World) -> None:
    world.bot_starts(session_mb=1_000_000_000)
    issue = world.issue("First").is_labelled()
    eventually(lambda: issue.becomes("queued").reason == "no_memory", "it states why it waits")
    session = issue.becomes("queued")
    assert session.because == "the machine has too little free memory for another session"
    assert (session.run, session.slot) == (0, False)
    world.bot_stops()
    world.bot_starts()
    issue.agent.starts()
