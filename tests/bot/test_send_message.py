"""Sending messages to an agent at its terminal."""

import pytest

from bot.act.results import RetryLater, Withdrawn
from lifecycle.model import keys
from lifecycle.model.actions import Prompt, Stop, Tell
from tests.bot.site import Site


def test_a_stop_does_not_wait_for_a_message_that_nobody_reads(site: Site) -> None:
    site.starts()
    tell = Tell(key=keys.commit_work(1).of_run(1), run=1, prompt=Prompt(name="uncommitted"))

    def meanwhile() -> None:
        site.room.orders(site.id, Stop(key=keys.stop(1), run=1))
        site.room.clock.passes(60)

    site.deaf.meanwhile = meanwhile
    result = site.agents.tell(site.session, tell, 0, lambda: None)
    assert isinstance(result, Withdrawn)
    assert "to be ended" in result.why
    assert site.deaf.looks == 1


def test_a_message_that_nobody_reads_is_tried_again(site: Site) -> None:
    site.starts()
    tell = Tell(key=keys.commit_work(1).of_run(1), run=1, prompt=Prompt(name="uncommitted"))
    site.deaf.meanwhile = lambda: site.room.clock.passes(5)
    result = site.agents.tell(site.session, tell, 0, lambda: None)
    assert isinstance(result, RetryLater)
    assert "did not show up" in result.why


def test_a_message_waits_for_words_that_somebody_types_and_people_see_the_screen(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.starts()
    site.deaf.meanwhile = lambda: site.room.clock.passes(5)
    handle = site.locations.handle(site.id, 1)
    site.runtime.prints(handle, "one\n\n  two  words\n")
    tell = Tell(key=keys.commit_work(1).of_run(1), run=1, prompt=Prompt(name="uncommitted"))
    monkeypatch.setattr(site.program, "typed", lambda screen: f"typed below {screen[:3]}")
    result = site.agents.tell(site.session, tell, 0, lambda: None)
    assert isinstance(result, RetryLater)
    assert "were not sent" in result.why
    assert result.why.endswith(": typed below one")
    assert site.runtime.received(handle) == []
    monkeypatch.setattr(site.program, "typed", lambda screen: "")
    result = site.agents.tell(site.session, tell, 0, lambda: None)
    assert isinstance(result, RetryLater)
    assert result.why.endswith("ends with: one | two words")
