"""What was done, read back from its keys."""

from datetime import datetime

import pytest

from lifecycle.model import keys
from lifecycle.model.facts import Done
from lifecycle.read.action_history import ActionHistory, Telling
from tests.lifecycle.universe import ago

CAUSE = "tell:review:abc"


def made(*happened: tuple[str, float]) -> ActionHistory:
    """Keys with how many seconds ago they were done."""
    return ActionHistory({key: Done(at=ago(seconds)) for key, seconds in happened})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("tell:ci:abc:def:r1", ("tell:ci:abc:def", 1)),
        ("start:crash:r12", ("start:crash", 12)),
        ("push:abc", ("push:abc", 0)),
        ("comment:reply:rob", ("comment:reply:rob", 0)),
        ("branch:fix:r", ("branch:fix:r", 0)),
        ("heard:thread-comment:7:r3", ("heard:thread-comment:7", 3)),
    ],
)
def test_a_key_is_taken_apart_where_it_was_put_together(
    key: str, expected: tuple[str, int]
) -> None:
    assert keys.split(key) == expected
    if expected[1]:
        assert keys.of_run(*expected) == key


def test_a_fingerprint_knows_a_set_and_not_its_order() -> None:
    assert keys.fingerprint(["a", "b"]) == keys.fingerprint(["b", "a"])
    assert keys.fingerprint(["a", "b"]) != keys.fingerprint(["a", "c"])
    assert keys.fingerprint(["ab"]) != keys.fingerprint(["a", "b"])


def test_keys_stay_what_they_are() -> None:
    """They are in databases and on GitHub: another key is the same message sent twice."""
    assert keys.fingerprint(["ci/unit", "ci/lint"]) == "23ceae50ea44"
    assert keys.visible("widgets-12", "tell:dirty:0:r1") == "mw-dde891aabf"


def test_a_mark_is_of_one_message_of_one_session() -> None:
    marks = {keys.visible(session, key) for session in ("a-1", "a-2") for key in ("x", "y")}
    assert len(marks) == 4
    assert all(mark.startswith("mw-") for mark in marks)


@pytest.mark.parametrize(
    ("happened", "at"),
    [
        ([], None),
        ([("start:first:r1", 100)], None),
        ([("start:message:r2", 50), ("start:first:r1", 100)], 50),
        ([("start:crash:r2", 50), ("tell:ci:a:b:r2", 20), ("tell:ci:a:c:r2", 30)], 20),
        ([("start:crash:r2", 50), ("heard:c:r2", 20), ("push:x", 10)], 50),
        ([("start:crash:r2", 50), ("tell:ci:a:b:r12", 20)], 50),
    ],
)
def test_when_a_run_was_last_given_something_to_do(
    happened: list[tuple[str, float]], at: float | None
) -> None:
    assert made(*happened).given(2) == (None if at is None else ago(at))


LOST: dict[str, tuple[list[tuple[str, float]], Telling | None]] = {
    "never told": ([("tell:review:other:r1", 90)], None),
    "told": ([(f"{CAUSE}:r1", 90)], Telling(1, ago(90))),
    "told to a run that ended well": (
        [(f"{CAUSE}:r1", 90), ("start:message:r2", 60)],
        Telling(1, ago(90)),
    ),
    "told to a run that broke off": ([(f"{CAUSE}:r1", 90), ("start:crash:r2", 60)], None),
    "another run broke off": (
        [("start:crash:r2", 95), (f"{CAUSE}:r2", 90)],
        Telling(2, ago(90)),
    ),
    "the run before broke off": (
        [(f"{CAUSE}:r2", 90), ("start:crash:r4", 60)],
        Telling(2, ago(90)),
    ),
    "pushed, then broke off": (
        [(f"{CAUSE}:r1", 90), ("push:a", 70), ("start:crash:r2", 60)],
        Telling(1, ago(90)),
    ),
    "pushed before it was told": (
        [("push:a", 95), (f"{CAUSE}:r1", 90), ("start:crash:r2", 60)],
        None,
    ),
    "pushed by the next run": (
        [(f"{CAUSE}:r1", 90), ("start:crash:r2", 60), ("push:a", 50)],
        None,
    ),
    "told again": (
        [(f"{CAUSE}:r1", 90), ("start:crash:r2", 60), (f"{CAUSE}:r2", 40)],
        Telling(2, ago(40)),
    ),
    "told twice": ([(f"{CAUSE}:r3", 40), (f"{CAUSE}:r1", 90)], Telling(3, ago(40))),
    "covered by a start": (
        [("start:message:r2", 60), (f"{CAUSE}:r2", 60)],
        Telling(2, ago(60)),
    ),
}


@pytest.mark.parametrize(("happened", "heard"), LOST.values(), ids=LOST.keys())
def test_what_the_agent_heard(happened: list[tuple[str, float]], heard: Telling | None) -> None:
    assert made(*happened).heard(CAUSE) == heard


def test_a_cause_counts_once_from_when_it_was_first_told() -> None:
    told = made(
        ("tell:ci:a:x:r1", 90),
        ("tell:ci:a:x:r2", 30),
        ("tell:ci:b:x:r2", 20),
        ("tell:review:c:r2", 10),
    ).told
    assert told("tell:ci:") == {"tell:ci:a:x": ago(90), "tell:ci:b:x": ago(20)}
    assert told("tell:ci:", ago(40)) == {"tell:ci:b:x": ago(20)}
    assert told("tell:ci:", ago(20)) == {}


@pytest.mark.parametrize(("at", "expected"), [(51, True), (50, False), (49, False)])
def test_whether_anything_was_pushed_since(at: float, expected: bool) -> None:
    since: datetime = ago(at)
    assert made(("push:a", 80), ("push:b", 50)).pushed_since(since) is expected
    assert not made(("comment:push:a", 10)).pushed_since(since)


def test_what_was_given_back() -> None:
    assert made(("stop:r1", 9)).stopped
    assert not made(("stop:r1", 9)).released
    assert made(("release:r1", 9)).released
    assert not made(("release:r1", 9)).stopped
