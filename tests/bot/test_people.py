"""Who may steer: asked of GitHub, kept for a minute, and asked anew where it matters most."""

from typing import Any

import pytest

from bot.store import NewWish
from tests.bot.reading import REPOSITORY, Bench


@pytest.fixture
def rightless(bench: Bench) -> Bench:
    """Ada was just known to be a writer, and is none any more."""
    assert bench.people.may_write(REPOSITORY, "ada")
    bench.github.writers.clear()
    return bench


def wished(bench: Bench, kind: str, **given: Any) -> list[str]:
    """What was granted to the session after a wish of this kind."""
    at = bench.room.clock()
    bench.store.add_wish(
        NewWish(key="k", repository=REPOSITORY, number=12, kind=kind, actor="ada", at=at, **given)
    )
    bench.wishes.settle()
    return [wish.kind for wish in bench.store.session("widgets-12").wishes]


def test_an_answer_is_kept_for_a_minute_whatever_the_case_of_the_name(rightless: Bench) -> None:
    assert rightless.people.may_write(REPOSITORY, "Ada")
    assert not rightless.people.may_write("acme/gears", "ada")
    rightless.room.clock.passes(60)
    assert not rightless.people.may_write(REPOSITORY, "ada")


def test_nobody_may_nothing_without_being_asked_about(bench: Bench) -> None:
    assert not bench.people.may_write(REPOSITORY, "")
    assert bench.github.asked == 0


def test_permission_is_read_uncached_when_a_label_starts_a_session(rightless: Bench) -> None:
    rightless.labelled(by="ada")
    rightless.touches("issue:12")
    rightless.issues.read_touched()
    assert rightless.store.session("widgets-12") is None


def test_permission_is_read_uncached_when_a_word_starts_a_session(rightless: Bench) -> None:
    rightless.labelled(labels=(), labelings=())
    at = rightless.room.clock()
    rightless.store.add_wish(
        NewWish(key="k", repository=REPOSITORY, number=12, kind="start", actor="ada", at=at)
    )
    rightless.wishes.settle()
    assert rightless.store.session("widgets-12") is None


@pytest.mark.parametrize(("kind", "granted"), [("merge", []), ("start", []), ("stop", ["stop"])])
def test_permission_is_read_uncached_for_a_merge_and_a_start_alone(
    rightless: Bench, kind: str, granted: list[str]
) -> None:
    rightless.room.session()
    assert wished(rightless, kind) == granted
