"""Requests to spawn sessions: validity, the sessions' ids, and how the sessions are opened."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.snapshots import IssueEvent
from bot.intake.commands import InvalidArgument
from bot.intake.local_commands import KeyReused
from bot.intake.spawning import SessionExists, SpawnRequest, request_session, session_of
from bot.store import NewCommand, SessionDecision, Store
from bot.system.redaction import Redaction
from lifecycle.decide import decide
from lifecycle.model.facts import Ended
from lifecycle.model.policy import Policy
from lifecycle.model.status import Origin, Reason, Status
from tests.harness.fixtures import Clock
from tests.harness.observers import REPOSITORY, Bench, seen

PROMPT = SpawnRequest(project="widgets", repository=REPOSITORY, prompt="Add a flag\n\nCalled -v.")
ISSUE = SpawnRequest(project="widgets", repository=REPOSITORY, issue=12)


def requests(
    bench: Bench,
    wanted: SpawnRequest = PROMPT,
    key: str = "cli:1",
    actor: str = "cli:ann",
    **changes: Any,
) -> NewCommand:
    """Record a request."""
    taken, _ = request_session(
        bench.store,
        replace(wanted, **changes),
        actor=actor,
        key=key,
        at=bench.scenario.clock(),
    )
    return taken


def opens(bench: Bench, wanted: SpawnRequest = PROMPT, key: str = "cli:1", **changes: Any) -> Any:
    """Record a request, have the bot settle it, and return the session; None: it was refused."""
    taken = requests(bench, wanted, key, **changes)
    for _ in range(2):
        bench.commands.settle()
        bench.issues.read_requested()
    return bench.store.sessions.get(session_of(taken))


def test_a_prompt_opens_a_session_without_an_issue(bench: Bench) -> None:
    session = opens(bench, agent="claude", permission_mode="confirm", budget_usd=2.5)
    assert (session.id, session.origin) == ("widgets-p1", Origin.PROMPT)
    assert session.branch == "mergewright/p1-add-a-flag"
    assert (session.issue.number, session.issue.title) == (0, "Add a flag")
    assert session.issue.body == "Called -v."
    assert (session.requester, session.agent_type) == ("cli:ann", "claude")
    facts = bench.store.facts.get(session.id)
    assert (facts.permission_mode, facts.budget_usd) == ("confirm", 2.5)
    assert bench.store.commands.new() == []
    assert bench.waiting() == [], "nothing is read for it"


CHAT = SpawnRequest(project="widgets", repository=REPOSITORY, chat=True)


def test_a_chat_is_opened_with_or_without_a_first_message(bench: Bench) -> None:
    bench.opening.modes_of = lambda _: {"claude": ("auto", "confirm"), "scripted": ()}
    session = opens(bench, CHAT, agent="claude")
    assert (session.id, session.origin) == ("widgets-c1", Origin.CHAT)
    assert session.branch == "mergewright/c1-chat"
    assert (session.issue.title, session.issue.body) == ("Chat", "")
    assert bench.store.facts.get(session.id).permission_mode == "confirm"
    said = "Why is it slow?\n\nLook at the parser."
    session = opens(bench, CHAT, key="cli:2", prompt=said, agent="claude")
    assert session.id == "widgets-c2"
    assert (session.issue.title, session.issue.body) == ("Why is it slow?", said)
    assert opens(bench, key="cli:3").id == "widgets-p1"


@pytest.mark.parametrize(
    ("modes", "given", "mode"),
    [
        (("auto", "confirm", "reject"), "", "confirm"),
        (("auto", "confirm", "reject"), "auto", "auto"),
        (("reject",), "", ""),
        ((), "", ""),
    ],
)
def test_a_chat_asks_before_it_uses_tools_unless_the_agent_cannot(
    bench: Bench, modes: tuple[str, ...], given: str, mode: str
) -> None:
    bench.opening.modes_of = lambda _: {"claude": modes}
    session = opens(bench, CHAT, agent="claude", permission_mode=given)
    assert bench.store.facts.get(session.id).permission_mode == mode


def test_the_permission_of_a_person_who_is_signed_in_is_checked(bench: Bench) -> None:
    assert opens(bench, actor="rob").requester == "rob"
    assert opens(bench, key="api:2", actor="mallory") is None
    assert bench.store.commands.not_opened("widgets-p2") == "@mallory has no write access"


def test_a_long_first_line_is_a_title_and_part_of_the_body(bench: Bench) -> None:
    prompt = "word " * 60
    session = opens(bench, prompt=prompt)
    assert session.issue.title.endswith("word…")
    assert len(session.issue.title) <= 101
    assert session.issue.body == prompt.strip()


def test_a_session_has_the_branch_and_the_metadata_of_its_request(bench: Bench) -> None:
    session = opens(bench, branch="ann/flags", metadata={"team": "core", "empty": ""})
    assert (session.branch, session.metadata) == ("ann/flags", {"team": "core"})


def test_prompts_are_numbered_and_no_number_is_used_twice(bench: Bench) -> None:
    assert [session_of(requests(bench, key=f"cli:{n}")) for n in range(10)] == [
        f"widgets-p{n}" for n in range(1, 11)
    ]
    bench.commands.settle()
    bench.store.db.write(
        lambda connection: connection.execute(
            "INSERT INTO ledger VALUES ('widgets-p20', 'ada', '2030-01-01', 'acme/widgets', 0, '',"
            " 1, 1, 1, 1, 1, 0, 0, 0, 0)"
        )
    )
    assert session_of(requests(bench, key="cli:later")) == "widgets-p21"


def test_a_repeated_request_is_the_same_one(bench: Bench) -> None:
    first = requests(bench)
    bench.commands.settle()
    again, new = request_session(
        bench.store, PROMPT, actor="cli:ann", key="cli:1", at=bench.scenario.clock()
    )
    assert (session_of(again), new) == (session_of(first), False)
    assert len(bench.store.sessions.all()) == 1
    with pytest.raises(KeyReused):
        requests(bench, prompt="Something else")


def test_a_request_with_a_secret_can_be_repeated(tmp_path: Path, clock: Clock) -> None:
    with closing(Store(tmp_path / "secret.db", redact=Redaction(["hunter2hunter2"]))) as store:
        given: dict[str, Any] = {"actor": "cli:ann", "key": "cli:1", "at": clock()}
        wanted = replace(PROMPT, prompt="Log in with hunter2hunter2")
        first, _ = request_session(store, wanted, **given)
        again, new = request_session(store, wanted, **given)
        assert (again, new) == (first, False)
        assert first.spawn is not None
        assert "hunter2" not in first.spawn.prompt


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"prompt": " \n"}, "either an issue or a prompt"),
        ({"issue": 12}, "either an issue or a prompt"),
        ({"issue": 12, "chat": True}, "a chat has no issue"),
        ({"prompt": "x" * 20_001}, "at most 20,000 characters"),
        ({"branch": "-d"}, "not a branch name"),
        ({"branch": "a/../b"}, "not a branch name"),
        ({"branch": "a b"}, "not a branch name"),
        ({"branch": "a.lock"}, "not a branch name"),
        ({"branch": "a/"}, "not a branch name"),
        ({"budget_usd": -1.0}, "a budget may have at most"),
        ({"budget_usd": float("nan")}, "a budget may have at most"),
        ({"metadata": {"two words": "x"}}, "not a key of metadata"),
        ({"permission_mode": "yolo"}, "takes one of `permission-mode=auto`"),
    ],
)
def test_an_invalid_request_is_refused_at_once(
    bench: Bench, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InvalidArgument, match=expected):
        requests(bench, **changes)
    assert bench.store.commands.new() == []


def test_a_request_that_cannot_be_carried_out_says_why(bench: Bench) -> None:
    bench.opening.modes_of = lambda _: {"claude": ("confirm",), "shell": ()}
    assert opens(bench, agent="shell", permission_mode="auto") is None
    why = "`shell` has no permission modes, so it cannot run with `permission-mode=auto`"
    assert bench.store.commands.not_opened("widgets-p1") == why
    assert opens(bench, agent="nobody", key="cli:2") is None
    assert "there is no agent `nobody`" in bench.store.commands.not_opened("widgets-p2")


def test_the_branch_of_another_session_is_refused(bench: Bench) -> None:
    bench.scenario.session()
    branch = bench.store.sessions.get("widgets-12").branch
    with pytest.raises(InvalidArgument, match="is that of widgets-12"):
        requests(bench, branch=branch)


def test_two_requests_for_one_branch_open_one_session(bench: Bench) -> None:
    requests(bench, key="cli:1", branch="flags")
    requests(bench, key="cli:2", branch="flags")
    bench.commands.settle()
    assert [one.id for one in bench.store.sessions.all()] == ["widgets-p1"]
    why = "another session already has the ID or the branch of widgets-p2"
    assert bench.store.commands.not_opened("widgets-p2") == why


# -- several sessions of an issue ------------------------------------------------------------------


def test_an_issue_gets_another_session_only_on_request(bench: Bench) -> None:
    bench.labelled()
    seen(bench, 12)
    with pytest.raises(SessionExists, match="issue #12 already has the session widgets-12"):
        requests(bench, ISSUE)
    session = opens(bench, ISSUE, another=True)
    assert (session.id, session.branch) == ("widgets-12b", "mergewright/12b-it-breaks")
    assert session.issue.title == "It breaks"
    assert session_of(requests(bench, ISSUE, "cli:2", another=True)) == "widgets-12c"


def test_the_first_session_of_an_issue_can_be_requested_too(bench: Bench) -> None:
    bench.labelled(labels=(), labelings=())
    assert opens(bench, ISSUE).id == "widgets-12"


def test_removing_the_label_ends_only_sessions_that_it_opened(bench: Bench) -> None:
    bench.labelled()
    seen(bench, 12)
    opens(bench, ISSUE, another=True)
    bench.labelled(labels=(), labelings=())
    seen(bench, 12)
    assert [statuses(bench)[name] for name in ("widgets-12", "widgets-12b")] == [
        Status.TERMINATED,
        Status.QUEUED,
    ]


def test_closing_the_issue_ends_all_its_sessions(bench: Bench) -> None:
    bench.labelled()
    seen(bench, 12)
    opens(bench, ISSUE, another=True)
    reading = bench.github.issues[12]
    bench.labelled(issue=replace(reading.issue, open=False, state_reason="not_planned"))
    seen(bench, 12)
    assert set(statuses(bench).values()) == {Status.TERMINATED}


def test_the_label_of_before_is_no_command_to_the_second_session(bench: Bench) -> None:
    bench.labelled()
    seen(bench, 12)
    bench.scenario.clock.passes(60)
    opens(bench, ISSUE, another=True)
    seen(bench, 12)
    assert bench.store.facts.get("widgets-12b").commands == ()
    bench.scenario.clock.passes(60)
    bench.labelled()
    seen(bench, 12)
    commands = {name: bench.store.facts.get(name).commands for name in statuses(bench)}
    assert [one.kind for one in commands["widgets-12b"]] == ["start"]
    assert commands["widgets-12"] == ()


def test_a_reopened_issue_brings_only_the_newest_session_back(bench: Bench) -> None:
    bench.labelled()
    seen(bench, 12)
    opens(bench, ISSUE, another=True)
    issue = bench.github.issues[12].issue
    closed = replace(issue, open=False, state_reason="not_planned")
    bench.labelled(issue=closed)
    seen(bench, 12)
    now = bench.scenario.clock()
    over = Ended(status=Status.TERMINATED, reason=Reason.ISSUE_CLOSED, because="x", at=now)
    for loaded in bench.store.facts.load(["widgets-12", "widgets-12b"]):
        ended = SessionDecision(status="terminated", reason="x", because="x", run=1, ended=over)
        bench.store.decisions.record([(loaded, ended)], now)[0].result()
    bench.scenario.clock.passes(60)
    at = bench.scenario.clock()
    bench.labelled(reopened=IssueEvent(actor="ada", at=at), labelings=())
    seen(bench, 12)
    commands = {name: bench.store.facts.get(name).commands for name in statuses(bench)}
    assert [one.kind for one in commands["widgets-12b"]] == ["start"]
    assert commands["widgets-12"] == ()


def statuses(bench: Bench) -> dict[str, Status]:
    now = bench.scenario.clock()
    return {
        one.id: decide(bench.store.facts.get(one.id), Policy(), now).status
        for one in bench.store.sessions.all()
    }
