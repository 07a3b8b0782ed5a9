"""A person's keys reach the terminal at most once; messages wait until the person stops typing."""

from datetime import timedelta

import pytest

from bot.act.results import AwaitingReceipt, Completed, RetryLater, Withdrawn
from bot.store import HistoryKind
from lifecycle.model import keys
from lifecycle.model.actions import PressKeys
from runtimes.base import Unavailable
from tests.harness.site import Site
from tests.harness.terminal import Terminal


@pytest.fixture
def terminal(site: Site, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(site.locations.host.runs, "is_isolated", lambda _: True)
    return Terminal(site, monkeypatch)


def types(terminal: Terminal, *pressed: str, paste: str = "", request: str = "k") -> PressKeys:
    action = PressKeys(
        key=keys.press_keys(request, 1),
        run=1,
        by="ada",
        at=terminal.site.scenario.clock(),
        count=len(pressed) + len(paste),
        paste=paste,
        keys=pressed,
    )
    assert terminal.site.scenario.store.outbox.add_keys(terminal.site.id, action) is None
    return action


def dropped(terminal: Terminal) -> list[str]:
    history = terminal.site.scenario.store.history.of(terminal.site.id)
    return [one.data["dropped"] for one in history if "dropped" in one.data]


def stored(terminal: Terminal) -> str:
    rows = terminal.site.scenario.store.db.write(
        lambda connection: connection.execute("SELECT action FROM outbox").fetchall()
    )
    return "".join(row["action"] for row in rows)


def test_keys_are_typed_and_their_text_is_erased(terminal: Terminal) -> None:
    types(terminal, "Enter", paste="a password")
    assert terminal.is_carried_out() == Completed()
    assert terminal.typed == ["a passwordEnter"]
    assert "password" not in stored(terminal)
    assert dropped(terminal) == []
    store, clock = terminal.site.scenario.store, terminal.site.scenario.clock
    assert store.outbox.due(clock()) == []


def test_typed_text_is_in_no_backup_after_it_was_typed(terminal: Terminal) -> None:
    """Unless `secure_delete` is on, SQLite may leave erased text in the file that backups copy."""
    db = terminal.site.scenario.store.db
    for number, paste in enumerate(("a password " * 900, "a password")):
        types(terminal, paste=paste, request=f"k-{number}")
        waiting = db.write(lambda connection: connection.serialize())
        terminal.is_carried_out()
        erased = db.write(lambda connection: connection.serialize())
        assert (b"a password" in waiting, b"a password" in erased) == (True, False)


def test_keys_are_no_fact_of_a_session_and_no_entry_of_its_actions(terminal: Terminal) -> None:
    before = terminal.facts
    types(terminal, "y")
    assert terminal.facts == before
    terminal.is_carried_out()
    assert terminal.facts == before
    entries = terminal.site.scenario.store.outbox.of(terminal.site.id)
    assert not [one for one in entries if isinstance(one.action, PressKeys)]


def test_keys_that_a_crash_left_unrecorded_are_not_typed_again(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    types(terminal, "y")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal.site.runtime, "type", dies)
    with pytest.raises(KeyboardInterrupt):
        terminal.is_carried_out()
    store, clock = terminal.site.scenario.store, terminal.site.scenario.clock
    assert store.outbox.due(clock()) == []


def test_keys_are_not_tried_again_if_the_terminal_does_not_answer(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    types(terminal, "y")

    def fails(*_: object) -> None:
        raise Unavailable("tmux did not answer")

    monkeypatch.setattr(terminal.site.runtime, "type", fails)
    assert terminal.is_carried_out() == Completed()
    assert dropped(terminal) == ["tmux did not answer"]
    assert "Unavailable" not in stored(terminal)


def test_keys_of_long_ago_are_dropped(terminal: Terminal) -> None:
    types(terminal, "y")
    terminal.site.scenario.clock.passes(11)
    assert terminal.is_carried_out() == Completed()
    assert terminal.typed == []
    assert dropped(terminal) == ["the bot was busy or stopped for too long"]


def test_keys_for_a_run_without_a_sandbox_are_dropped(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal.site.locations.host.runs, "is_isolated", lambda _: False)
    types(terminal, "y")
    terminal.is_carried_out()
    assert terminal.typed == []
    assert dropped(terminal) == ["the agent does not run in a sandbox"]


def test_a_run_is_isolated_only_if_its_start_recorded_a_sandbox(site: Site) -> None:
    site.starts()
    runs, run = site.locations.host.runs, site.locations.run_of(site.session)
    assert not runs.is_isolated(run)
    (runs.files_of(run).dir / "contained").touch()
    assert runs.is_isolated(run)


def test_keys_that_are_not_wanted_now_stay_untyped(terminal: Terminal) -> None:
    types(terminal, "y")
    why = Withdrawn("its cause is gone")
    assert terminal.is_carried_out(lambda: why) == why
    assert terminal.typed == []


def test_a_message_waits_until_the_person_has_not_typed_for_a_while(terminal: Terminal) -> None:
    action = types(terminal, "y")
    terminal.is_carried_out()
    waits = terminal.is_sent()
    until = action.at + timedelta(seconds=10)
    assert waits == RetryLater("a person types into the agent's terminal", until)
    terminal.site.scenario.clock.passes(10)
    assert isinstance(terminal.is_sent(), AwaitingReceipt)
    assert len(terminal.typed) == 2


def test_messages_do_not_wait_for_keys_of_a_later_time(terminal: Terminal) -> None:
    """If the clock is set back by an hour, messages would otherwise wait for an hour."""
    types(terminal, "y")
    terminal.is_carried_out()
    terminal.site.scenario.clock.passes(-3600)
    assert isinstance(terminal.is_sent(), AwaitingReceipt)


def test_a_request_is_known_for_ten_minutes(terminal: Terminal) -> None:
    store, clock = terminal.site.scenario.store, terminal.site.scenario.clock
    action = types(terminal, "y")
    terminal.is_carried_out()
    known = store.outbox.add_keys(terminal.site.id, action)
    assert (known.by, known.count, known.keys) == ("ada", 1, ())
    clock.passes(601)
    types(terminal, "n", request="another")
    types(terminal, "y", request="k")
    history = store.history.of(terminal.site.id)
    counts = [(one.actor, one.data) for one in history if one.kind is HistoryKind.KEYS]
    assert counts == [("ada", {"count": 1})] * 3
