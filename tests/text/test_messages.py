"""Posted messages: their text, their limits, and neutralized text of others."""

import re
import time
from typing import Any

import pytest

from bot.demo.audit import SUMMARY_START
from bot.store import HistoryKind
from bot.text import messages
from bot.text.history import describe_event
from bot.text.markdown import addresses
from bot.text.neutralize import neutralize
from lifecycle.model.actions import StatusSummary
from lifecycle.model.status import Blocker, Status

ZERO_WIDTH = "\u200b"


@pytest.mark.parametrize(
    "text",
    [
        "Fixes #12",
        "closes: #12",
        "RESOLVED acme/widgets#12",
        "fix GH-12",
        "close https://github.com/acme/widgets/issues/12",
        "resolves **#12**",
        "__fixes__ #12",
        "Fixes [the bug](https://github.com/acme/widgets/issues/12)",
        "fixes:#12",
        "fixes &#35;12",
        f"fixes{' ' * 30}#12",
        "fixes <b>#12</b>",
        "fixes <!-- the hidden words --> #12",
    ],
)
def test_every_closing_keyword_is_neutralized(text: str) -> None:
    said = neutralize(text)
    keyword = said.lower().index(ZERO_WIDTH)
    assert said[:keyword].lower().rstrip(":").endswith(("e", "s", "d", "x"))
    assert said.replace(ZERO_WIDTH, "") == text


def test_a_push_without_permission_has_a_remedy() -> None:
    refusal = "refusing to allow a GitHub App to create or update workflow `a.yml` without"
    said = messages.push_refused(f"b: {refusal} `workflows` permission")
    assert said.startswith(f"b: {refusal}")
    assert (
        "if the bot is a GitHub App, grant `workflows: write` and accept it for the installation"
        in said
    )
    assert messages.push_refused("b: protected branch") == "b: protected branch"


def test_a_push_after_that_of_somebody_else_names_the_remedy() -> None:
    said = messages.push_refused("b: [rejected] (stale info)")
    assert said.endswith("or pushed to it what the agent lacks")


def test_people_who_merge_by_hand_learn_why() -> None:
    assert messages.ready_by_hand("c" * 40).endswith("blocks it. Merge it on GitHub.")
    assert messages.ready_by_hand("c" * 40, "the lock of main does not let the bot push").endswith(
        "Merge it on GitHub: the lock of main does not let the bot push. Once an administrator"
        " lifts this rule for the bot, the comment `/mergewright merge` works too."
    )
    assert messages.ready_behind_by_hand("c" * 40).endswith("Then merge it on GitHub.")


@pytest.mark.parametrize(
    "message",
    [
        messages.ready,
        messages.ready_by_hand,
        messages.ready_behind,
        messages.ready_behind_by_hand,
    ],
)
def test_a_ready_pull_request_may_have_run_no_checks_and_have_no_review(message: Any) -> None:
    said = message("c" * 40)
    assert said.startswith("Ready to merge")
    assert "passed" not in said
    assert "reviewed" not in said


def test_the_refusal_of_too_many_lfs_files_names_what_sparse_lists() -> None:
    """`sparse` lists the only folders in a checkout, not those to leave out."""
    said = messages.too_many_lfs_files(900, 500)
    needed = "list in `sparse` only the folders that the checkout needs"
    assert said.endswith(f"{needed}; then run `mergewright reload`")


def test_plain_text_is_unchanged() -> None:
    text = "This fixes the crash, closes the file and resolves 3 of 4 names; see #12."
    assert neutralize(text) == text


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("ask @alice", "@alice"),
        ("ask @acme/owners", "@acme"),
        ("ask &#64;alice", "&#64;"),
        ("/mergewright merge", "/mergewright"),
        ("> /lgtm", "/lgtm"),
        ("\xa0/lgtm", "/lgtm"),
        ("\u3000/lgtm", "/lgtm"),
        ("@mergewright stop", "@mergewright"),
        ("Tidy [skip ci]", "[skip ci]"),
        ("Tidy [CI skip]", "[CI skip]"),
        ("skip-checks: true", "skip-checks"),
    ],
)
def test_mentions_commands_and_skip_instructions_are_neutralized(text: str, broken: str) -> None:
    said = neutralize(text)
    assert broken not in said
    assert said.replace(ZERO_WIDTH, "") == text


def test_control_characters_are_removed() -> None:
    assert (
        messages.pull_title("{title}", "12", "Add \x1b[31mred\x1b[0m\nwidgets\u202e", [])
        == "Add red widgets"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("fix" + "-" * 60_000, "\n" * 60_000, "fix " + "a." * 30_000, "fix" + " " * 60_000),
        *("<fix>" * 13_000, f"fix<{'a' * 999}>" * 60, "\xa0" * 60_000),
    ],
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    began = time.process_time()
    neutralize(text)
    assert time.process_time() - began < 2


def status_summary(**given: Any) -> StatusSummary:
    """A working session with these fields."""
    given = {"status": Status.WORKING, "because": "it reads the code", **given}
    return StatusSummary(session="widgets-12", agent="ada", branch="mergewright/12-x", **given)


def test_a_report_shows_status_blockers_and_commands() -> None:
    said = messages.report(
        status_summary(
            status=Status.NEEDS_INPUT,
            because="the agent asks",
            pull=34,
            blockers=(Blocker("review_required", "a review is required"),),
            question="Blue\nor green?",
            remedy="Answer it.",
            cost="1.50 USD",
            commands=("stop", "answer"),
        ),
        "https://bot/sessions/widgets-12",
    )
    assert said.split("\n\n") == [
        "**Mergewright: needs input.** The agent asks.",
        "> Blue\n> or green?",
        "Merge blocked by:",
        "- A review is required.",
        "Answer it.",
        "Agent `ada` · branch `mergewright/12-x` · pull request #34 · 1.50 USD"
        " · [session `widgets-12`](https://bot/sessions/widgets-12)",
        "<sub>Comment `/mergewright COMMAND`. Commands in this status: `stop`, `answer`,"
        " `help`.</sub>",
    ]


def test_a_report_omits_empty_parts() -> None:
    said = messages.report(status_summary(), "https://bot/")
    assert len(said.split("\n\n")) == 3
    assert "pull request" not in said


def test_a_report_names_the_app_slug() -> None:
    said = messages.report(status_summary(), "https://bot/", "acme-bot")
    assert "Comment `/mergewright COMMAND` or `@acme-bot COMMAND`. Commands in this status:" in said


def test_foreign_text_is_neutralized_in_a_report() -> None:
    said = messages.report(
        status_summary(
            because="fixes #1 by @alice",
            question="/mergewright merge\n```\n<!-- @bob",
            blockers=(Blocker("ci_failing", "failing checks: @carl\n\n/mergewright stop"),),
        ),
        "https://bot/",
    )
    assert not re.search(r"@(alice|bob|carl)|fixes #1", said)
    assert [one.line for one in addresses(said)] == []


@pytest.mark.parametrize(
    "text", ["<details>", "</details>", "<!--", "[ready](https://evil)", "![x](//evil)", "[x][y]"]
)
def test_foreign_text_has_no_working_markup_in_our_sentences(text: str) -> None:
    summary = status_summary(
        because=f"checks failed: {text}", blockers=(Blocker("ci_failing", f"{text}"),)
    )
    values = {"session": "widgets-12", "priority": "action", "because": text, "remedy": "Look."}
    for said in (
        messages.report(summary, "https://bot/"),
        messages.comment_body("attention", values),
    ):
        assert text not in said
        assert text in said.replace(ZERO_WIDTH, "")


def test_a_review_keeps_its_markup() -> None:
    text = "See [the parser](https://example.org/parser)."
    assert text in messages.comment_body("reviewed", {"agent": "ada", "text": text})


def test_unclosed_markup_of_the_agent_cannot_hide_our_lines() -> None:
    body = messages.pull_body(12, "claude", "alice", "Done. <!-- ```", [])
    assert body.index("Closes #12") < body.index("Written by") < body.index("<!--")
    assert "@alice" not in body


def test_a_title_follows_the_projects_template() -> None:
    assert (
        messages.pull_title("fix(#{number}): {title}", "12", "It breaks", [])
        == "fix(#12): It breaks"
    )
    assert messages.pull_title("{title}", "12", "It breaks", ["Mend {number}"]) == "Mend {number}"


def test_a_request_from_the_command_line_names_no_login() -> None:
    body = messages.pull_body(12, "claude", "cli:ann", "It retries.", [])
    assert "Written by the agent `claude` at the request of ann (on the server)." in body


def test_the_pull_request_template_is_added_unless_it_is_filled_in() -> None:
    form = "## What\n<!-- say it -->\n\n## Tests\n- [ ] unit\n"
    body = messages.pull_body(12, "claude", "", "It retries.", [], form)
    assert body.split("\n\n", 2)[2] == f"It retries.\n\n{form.strip()}"
    filled = "## What\nIt retries.\n## Tests\n- [x] unit"
    body = messages.pull_body(12, "claude", "", filled, [], form)
    assert body.endswith(filled)
    assert body.count("## What") == 1
    assert len(messages.pull_body(12, "claude", "", "x" * 99_999, [], "y" * 99_999)) < 65_536


def test_no_text_exceeds_githubs_limits() -> None:
    long = "x" * 100_000
    assert len(messages.pull_title("{title}", "12", long, [])) <= 200
    assert len(messages.pull_title("x" * 100 + "{title}", "12", long, [])) == 256
    assert len(messages.pull_body(12, "claude", "alice", long, [])) < 65_536
    assert len(messages.pull_body(12, "claude", "alice", "", [long] * 250)) < 65_536
    comment = {"session": "s", "because": long, "remedy": "", "priority": "action"}
    assert len(messages.comment_body("attention", comment)) < 5_000
    blocked = status_summary(
        because=long, question=long, blockers=(Blocker("ci_failing", f"{long}"),)
    )
    assert len(messages.report(blocked, "https://bot/")) < 6_000
    assert len(messages.report_title(blocked)) <= 200


def test_braces_in_a_value_are_not_placeholders() -> None:
    assert messages.comment_body("answer", {"text": "{text} {0}"}) == "{text} {0}"


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (
            HistoryKind.CREATED,
            {"issue": 12, "agent": "ada", "title": "x"},
            "Issue #12 given to the agent ada: x",
        ),
        (HistoryKind.OBSERVED, {"changes": ["agent ready", "head abc"]}, "agent ready; head abc"),
        (HistoryKind.COMMAND, {"kind": "stop", "text": "", "key": "k"}, "stop"),
        (HistoryKind.DECISION, {"because": "the agent asks"}, "the agent asks"),
        (
            HistoryKind.SLOT,
            {},
            "The limits of concurrent sessions allow the agent to run now",
        ),
        (HistoryKind.DONE, {"action": "push:abc", "result": ""}, "Push commits"),
        (HistoryKind.DONE, {"action": "pull:b", "result": "34"}, "pull:b: 34"),
        (HistoryKind.FAILED, {"action": "push:abc", "error": "refused"}, "Push commits: refused"),
        (HistoryKind.WITHDRAWN, {"action": "push:abc"}, "Push commits: no longer needed"),
        (HistoryKind.FREEZE, {"scope": ""}, "Frozen: everything"),
        (HistoryKind.UNFREEZE, {"scope": "project:widgets"}, "Unfrozen: project widgets"),
        (HistoryKind.METADATA, {"keys": ["team", "ticket"]}, "Metadata set: team, ticket"),
        (HistoryKind.KEYS, {"count": 1}, "1 character typed into the terminal"),
        (
            HistoryKind.KEYS,
            {"count": 1200, "by": "ada", "dropped": "no terminal"},
            "What ada typed (1,200 characters) may not have reached the terminal: no terminal",
        ),
    ],
)
def test_a_history_row_reads_as_a_sentence(
    kind: HistoryKind, data: dict[str, object], text: str
) -> None:
    assert describe_event(kind, data, {"push:abc": "Push commits"}) == text


def test_a_question_of_several_lines_is_quoted() -> None:
    values = {"priority": "action", "session": "widgets-12", "remedy": "Write `answer`."}
    asks = "the agent asks: Which?\n\n## Merged by @alice\n/mergewright merge"
    said = messages.comment_body("attention", {**values, "because": asks})
    first, *others = said.split("\n\n")[0].splitlines()
    assert first.endswith(": the agent asks: Which?")
    assert [line[:2] for line in others] == ["> "] * 3
    assert "@alice" not in said
    assert "/mergewright" not in said


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status.KILLED, "**Warning:** session `widgets-12` has ended: stopped by X."),
        (Status.ERRORED, "**Warning:** session `widgets-12` has failed: stopped by X."),
    ],
)
def test_an_outcome_is_posted_without_the_name_of_its_status(status: Status, text: str) -> None:
    values = {"session": "widgets-12", "because": "stopped by X", "remedy": ""}
    said = messages.comment_body("ended", {**values, "priority": "warning", "status": status})
    assert said == text


def test_a_summary_names_outcomes_in_words() -> None:
    counts = "1 done, 1 errored, 1 killed, 3 merged, 2 terminated"
    said = messages.comment_body("summary", {"project": "killed-1", "counts": counts})
    assert said == (
        "All sessions of project `killed-1` have ended. Since the last summary: "
        "1 done without a merge, 1 failed, "
        "1 stopped, 3 merged, 2 closed or unlabelled."
    )


def test_the_audit_of_the_demo_recognises_the_summary() -> None:
    assert messages.summary("widgets", "1 merged").startswith(SUMMARY_START)
