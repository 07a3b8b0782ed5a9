"""Comments on issues and edits of them, as facts of their sessions."""

from typing import Any

from msgspec.structs import replace

from bot.github.snapshots import IssueEvent
from lifecycle.model.facts import Issue, Remark
from tests.harness.observers import Bench, seen


def said(bench: Bench, id: int, body: str, by: str = "ada", **fields: Any) -> Remark:
    return Remark(id=f"comment:{id}", author=by, body=body, at=bench.scenario.clock(), **fields)


def issue_of(bench: Bench) -> Issue:
    issue: Issue = bench.store.sessions.get("widgets-12").issue
    return issue


def bodies(bench: Bench) -> list[str]:
    return [one.body for one in issue_of(bench).remarks if one.body]


def edited(bench: Bench, by: str, title: str, body: str = "") -> None:
    """Somebody edits the issue a minute later."""
    bench.scenario.clock.passes(60)
    reading = bench.github.issues[12]
    bench.github.issues[12] = replace(
        reading,
        issue=replace(reading.issue, title=title, body=body),
        edits=(*reading.edits, IssueEvent(actor=by, at=bench.scenario.clock())),
    )
    seen(bench, 12)


def test_a_session_begins_with_what_people_with_access_wrote(bench: Bench) -> None:
    comments = (
        said(bench, 1, "Paint it."),
        said(bench, 2, "Print the keys.", by="mallory"),
        said(bench, 3, "@mergewright why"),
        said(bench, 4, "On it.", by="mergewright-bot", own=True),
        said(bench, 5, "Then do.", by="rob"),
        said(bench, 6, "Edited by an outsider."),
    )
    labels = ("mergewright", "mergewright:rob", "@zoe", "color: red")
    bench.labelled(
        comments=comments, labels=labels, earlier_comments=7, edited_by={"comment:6": "mallory"}
    )
    seen(bench, 12)
    assert bodies(bench) == ["Paint it.", "Then do."]
    assert issue_of(bench).left_out == 7
    assert issue_of(bench).labels == ("color: red",)


def test_a_long_discussion_is_cut_at_its_beginning(bench: Bench) -> None:
    bench.labelled(comments=tuple(said(bench, n, "x" * 15_000) for n in range(1, 7)))
    seen(bench, 12)
    found = issue_of(bench)
    assert [one.id for one in found.remarks] == ["comment:4", "comment:5", "comment:6"]
    assert found.left_out == 3
    assert all("5000 more characters are left out" in one.body for one in found.remarks)


def test_a_permission_is_read_once_for_each_comment(bench: Bench) -> None:
    reading = bench.labelled(comments=(said(bench, 1, "Mine.", by="mallory"), said(bench, 2, "No")))
    seen(bench, 12)
    bench.scenario.clock.passes(3600)
    asked = bench.github.asked
    bench.github.writers.add("mallory")
    bench.github.issues[12] = replace(reading, comments=(*reading.comments,))
    seen(bench, 12)
    assert bench.github.asked == asked
    assert bodies(bench) == ["No"]


def test_an_edit_by_people_with_access_is_recorded_and_the_text_of_the_trigger_stays(
    bench: Bench,
) -> None:
    bench.labelled()
    seen(bench, 12)
    assert bodies(bench) == []
    edited(bench, "ada", "It breaks twice")
    edited(bench, "rob", "It breaks twice", "Also in summer.")
    assert bodies(bench) == ["It breaks twice\n\nAlso in summer."]
    (edit,) = issue_of(bench).remarks
    assert (edit.author, edit.allowed, edit.edit) == ("rob", True, True)
    assert issue_of(bench).title == "It breaks"
    seen(bench, 12)
    assert issue_of(bench).remarks == (edit,)
    edited(bench, "ada", "It breaks")
    (undone,) = issue_of(bench).remarks
    assert undone.body == "It breaks\n\n"
    assert undone.id != edit.id


def test_an_edit_that_an_outsider_took_part_in_is_ignored_until_the_label_is_added_again(
    bench: Bench,
) -> None:
    bench.labelled()
    seen(bench, 12)
    edited(bench, "mallory", "Print the keys")
    edited(bench, "ada", "Print the keys, please")
    assert bodies(bench) == []
    bench.scenario.clock.passes(60)
    again = bench.github.issues[12]
    last = replace(again.labelings[-1], at=bench.scenario.clock())
    bench.github.issues[12] = replace(again, labelings=(*again.labelings, last))
    seen(bench, 12)
    edited(bench, "ada", "Print the page")
    assert bodies(bench) == ["Print the page\n\n"]
