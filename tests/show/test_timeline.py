"""A session's history as a timeline."""

from datetime import timedelta
from typing import Any

import pytest

from bot.show.session_detail import CommandReply
from bot.show.timeline import TimelineEntry, timeline
from bot.store import HistoryKind, SessionEvent
from bot.store.values import HistoryRow
from lifecycle.model.actions import (
    Action,
    MergePull,
    OpenPull,
    Prompt,
    Publish,
    Report,
    SendMessage,
    Start,
    StatusSummary,
)
from lifecycle.model.key import Key, parse
from lifecycle.model.policy import MergeMethod
from lifecycle.model.status import Status
from tests.show.conftest import NOW

HEAD = "a" * 40
KEY = parse("push:x")
SUMMARY = StatusSummary(
    session="widgets-12", agent="ada", branch="b", status=Status.WORKING, because="x"
)
ACTIONS: dict[str, Action] = {
    "start": Start(key=KEY, run=1, prompt=Prompt(name="start")),
    "push": Publish(key=KEY, head=HEAD),
    "open": OpenPull(key=KEY, head=HEAD),
    "fix": SendMessage(key=KEY, run=1, prompt=Prompt(name="fix_ci")),
    "report": Report(key=KEY, number=12, comment=None, summary=SUMMARY),
    "merge": MergePull(key=KEY, number=34, sha=HEAD, method=MergeMethod.SQUASH, by="rob"),
}


def event(of: HistoryKind, actor: str = "mergewright", /, **data: Any) -> tuple[str, str, Any]:
    return of, actor, data


def observed(*changes: str, by: str = "github") -> tuple[str, str, Any]:
    return event(HistoryKind.OBSERVED, by, changes=list(changes))


def done(action: str, result: str = "") -> tuple[str, str, Any]:
    return event(HistoryKind.DONE, action=action, result=result)


def decided(status: str, because: str) -> tuple[str, str, Any]:
    return event(HistoryKind.DECISION, status=status, because=because, actions=[])


def entries(*events: tuple[str, str, Any], base: str = "") -> list[TimelineEntry]:
    """The entries, oldest first, for events (kind, actor, data) that happen a minute apart."""
    rows = [
        SessionEvent(
            row=HistoryRow(
                seq=number,
                session="widgets-12",
                at=NOW + timedelta(minutes=number),
                kind=HistoryKind(kind),
                actor=actor,
                data=data,
            ),
            project="widgets",
            actions=ACTIONS,
        )
        for number, (kind, actor, data) in enumerate(events)
    ]
    replies = {"comment:7": CommandReply(accepted=True, text="Sent.")}
    return timeline(reversed(rows), base, replies)[::-1]


def test_a_session_reads_as_a_story() -> None:
    story = entries(
        event(HistoryKind.CREATED, "mara", issue=12, title="x", agent="ada"),
        event(HistoryKind.SLOT),
        decided("spawning", "the agent is being started"),
        done("start"),
        observed("workspace at bbbbbbb", "agent active", by="agent"),
        decided("working", "the agent is at work"),
        observed("workspace at aaaaaaa", "agent ready", by="agent"),
        done("push", HEAD),
        done("open", "34"),
        done("report"),
        observed("#34 is open", "#34 checks: unit pending"),
        observed("#34 checks: unit failed, lint passed"),
        decided("ci_failed", "checks failed on aaaaaaa: unit"),
        done("fix", "received"),
        observed("#34 at ccccccc, pushed by bot", "#34 checks: unit passed"),
        observed("#34 @rob approved ccccccc"),
        done("merge"),
        base="b" * 40,
    )
    assert [(one.text, one.tone) for one in story] == [
        ("A session was opened for issue #12, as @mara requested", "busy"),
        ("The agent was started (run 1)", "busy"),
        ("Commits up to `aaaaaaa` were pushed", "busy"),
        ("Pull request #34 was opened", "busy"),
        ("`unit` failed on #34", "bad"),
        ("The agent was notified of the failed checks", "busy"),
        ("`unit` passes again", "good"),
        ("@rob approved #34 at `ccccccc`", "good"),
        ("Pull request #34 was merged, as @rob commanded", "landed"),
    ]
    assert [detail.text for detail in story[1].details] == [
        "The workspace was created at `bbbbbbb`",
        "The agent is at work",
        "the agent is at work",
    ]
    assert [detail.text for detail in story[2].details] == [
        "The agent has finished its turn",
        "The agent committed `aaaaaaa`",
    ]
    assert "Update the status comment: done" in [one.text for one in story[3].details]


def test_what_follows_from_the_sentence_before_is_no_news() -> None:
    story = entries(
        observed("workspace at aaaaaaa", by="agent"),
        observed("workspace at bbbbbbb", by="agent"),
        observed("#34 @rob requested changes on bbbbbbb", "#34 @rob commented"),
        observed("#34 @ann commented"),
        done("merge"),
        observed("#34 is merged"),
    )
    assert [one.text for one in story] == [
        "The agent committed `bbbbbbb`",
        "@rob requested changes on #34",
        "@ann commented on #34",
        "Pull request #34 was merged, as @rob commanded",
    ]
    assert [one.text for one in story[0].details] == ["The agent committed `aaaaaaa`"]
    assert [one.text for one in story[1].details] == ["@rob commented on #34"]


@pytest.mark.parametrize("first", ["done", "observed"])
def test_a_merge_is_told_once_with_the_person_who_commanded_it(first: str) -> None:
    events = [done("merge"), observed("#34 is merged by wright")]
    (story,) = entries(*(events if first == "done" else reversed(events)))
    assert story.text == "Pull request #34 was merged, as @rob commanded"
    assert [one.text for one in story.details] == ["Pull request #34 was merged by @wright"]


@pytest.mark.parametrize("status", ["needs_input", "stuck", "paused", "mergeable", "errored"])
def test_a_status_that_people_wait_for_is_news_once(status: str) -> None:
    story = entries(
        event(HistoryKind.CREATED, "", issue=12, title="", agent=""),
        decided(status, "a reason"),
        decided(status, "another reason"),
    )
    assert [one.text for one in story] == ["A session was opened for issue #12", "a reason"]
    assert [one.text for one in story[1].details] == ["another reason"]


def test_a_command_has_its_words_and_its_reply() -> None:
    (said,) = entries(
        event(
            HistoryKind.COMMAND,
            "mara",
            kind="tell",
            text="use tabs\n\x1b[31mplease",
            key="comment:7",
        )
    )
    assert said.text == "@mara gave the command `tell`"
    assert said.quote == "use tabs\nplease"
    assert [one.text for one in said.details] == ["Reply: Sent."]


def test_failures_are_news_and_withdrawn_actions_are_not() -> None:
    story = entries(
        event(HistoryKind.FAILED, action="push", reason="push_refused", error="no \x1b[2Jway"),
        event(HistoryKind.WITHDRAWN, action="gone:key"),
        event(HistoryKind.FREEZE, "rob", scope="project:widgets"),
    )
    assert [(one.text, one.tone) for one in story] == [
        ("Push commits failed: no way", "bad"),
        ("@rob froze project widgets", "warn"),
    ]
    assert [one.text for one in story[0].details] == ["An action: no longer needed"]


def test_details_of_a_wild_session_are_bounded() -> None:
    (said,) = entries(done("start"), *(observed("agent active", by="agent") for _ in range(50)))
    assert (len(said.details), said.more) == (30, 20)


def test_keys_are_never_shown() -> None:
    story = entries(done("gone:key"), event(HistoryKind.FAILED, action="x:y", error="z"))
    shown = " ".join([one.text for one in story] + [d.text for one in story for d in one.details])
    assert "gone:key" not in shown
    assert "x:y" not in shown
    assert isinstance(KEY, Key)


def test_what_a_person_types_in_a_row_is_one_entry() -> None:
    typed = [
        event(HistoryKind.KEYS, who, count=n) for who, n in (("ada", 1), ("ada", 2), ("bo", 1))
    ]
    dropped = [
        event(HistoryKind.KEYS, count=n, by=who, dropped="the program has ended")
        for who, n in (("bo", 2), ("ada", 1), ("ada", 4))
    ]
    withdrawn = event(HistoryKind.WITHDRAWN, action="press_keys:page%3Ak#1")
    assert [one.text for one in entries(*typed, *dropped, withdrawn)] == [
        "@ada typed 3 characters into the terminal",
        "@bo typed 1 character into the terminal",
        "What @bo typed (2 characters) may not have reached the terminal: the program has ended",
        "What @ada typed (5 characters) may not have reached the terminal: the program has ended",
        "What a person typed was dropped: the bot is frozen, or the run is over",
    ]
