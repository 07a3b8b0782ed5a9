"""The text of action keys, and the history read from the keys of done actions."""

from datetime import datetime

import pytest

from lifecycle.model import keys
from lifecycle.model.facts import Done
from lifecycle.model.key import Key, KeyKind, StartCause, parse
from lifecycle.read.action_history import ActionHistory, MessageSent
from tests.lifecycle.universe import ago

CAUSE = "address_review:abc"
CI = frozenset({KeyKind.FIX_CI})


def history(*happened: tuple[str, float]) -> ActionHistory:
    """Keys with how many seconds ago they were done."""
    return ActionHistory({parse(key): Done(at=ago(seconds)) for key, seconds in happened})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (
            keys.fix_ci("abc", ["ci/unit"]).of_run(1),
            f"fix_ci:abc:{keys.fingerprint(['ci/unit'])}#1",
        ),
        (keys.start(StartCause.CRASH, 12), "start:crash#12"),
        (keys.stop(2), "stop#2"),
        (keys.close_issue(), "close_issue"),
        (keys.delete_branch("fix:r5#1/%3A"), "delete_branch:fix%3Ar5%231/%253A"),
        (keys.forward("api:widgets-12:r5"), "forward:api%3Awidgets-12%3Ar5"),
        (keys.forward("#5").of_run(1), "forward:%235#1"),
        (keys.forward(""), "forward:"),
    ],
)
def test_a_key_is_parsed_from_its_text_exactly(key: Key, text: str) -> None:
    assert str(key) == text
    assert parse(text) == key


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "nonsense:1", "stop#", "stop#0", "stop#01", "stop#x", "push:%3", "push:%41"],
)
def test_an_invalid_key_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_a_fingerprint_ignores_order() -> None:
    assert keys.fingerprint(["a", "b"]) == keys.fingerprint(["b", "a"])
    assert keys.fingerprint(["a", "b"]) != keys.fingerprint(["a", "c"])
    assert keys.fingerprint(["ab"]) != keys.fingerprint(["a", "b"])


def test_keys_are_stable() -> None:
    """The text of a key must never change, because databases and comments on GitHub contain it.

    If the text changed, the bot would not find a message that it has sent, and would repeat it.
    """
    assert keys.fingerprint(["ci/unit", "ci/lint"]) == "23ceae50ea44"
    assert keys.visible("widgets-12", keys.commit_work(0).of_run(1)) == "mw-fbd4a7b06d"


def test_a_visible_mark_is_unique_per_message_and_session() -> None:
    marks = {
        keys.visible(session, keys.push(head)) for session in ("a-1", "a-2") for head in ("x", "y")
    }
    assert len(marks) == 4
    assert all(mark.startswith("mw-") for mark in marks)


@pytest.mark.parametrize(
    ("happened", "at"),
    [
        ([], None),
        ([("start:first#1", 100)], None),
        ([("start:message#2", 50), ("start:first#1", 100)], 50),
        ([("start:crash#2", 50), ("fix_ci:a:b#2", 20), ("fix_ci:a:c#2", 30)], 20),
        ([("start:crash#2", 50), ("remark:c#2", 20), ("push:x", 10)], 50),
        ([("start:crash#2", 50), ("fix_ci:a:b#12", 20)], 50),
    ],
)
def test_instructed_at_is_the_time_of_the_last_instruction_of_a_run(
    happened: list[tuple[str, float]], at: float | None
) -> None:
    assert history(*happened).instructed_at(2) == (None if at is None else ago(at))


SENT: dict[str, tuple[list[tuple[str, float]], MessageSent | None]] = {
    "never sent": ([("address_review:other#1", 90)], None),
    "sent": ([(f"{CAUSE}#1", 90)], MessageSent(1, ago(90))),
    "sent to a run that exited": (
        [(f"{CAUSE}#1", 90), ("start:message#2", 60)],
        MessageSent(1, ago(90)),
    ),
    "sent to a run that crashed": ([(f"{CAUSE}#1", 90), ("start:crash#2", 60)], None),
    "another run crashed": (
        [("start:crash#2", 95), (f"{CAUSE}#2", 90)],
        MessageSent(2, ago(90)),
    ),
    "the run before crashed": (
        [(f"{CAUSE}#2", 90), ("start:crash#4", 60)],
        MessageSent(2, ago(90)),
    ),
    "pushed, then crashed": (
        [(f"{CAUSE}#1", 90), ("push:a", 70), ("start:crash#2", 60)],
        MessageSent(1, ago(90)),
    ),
    "pushed before it was sent": (
        [("push:a", 95), (f"{CAUSE}#1", 90), ("start:crash#2", 60)],
        None,
    ),
    "pushed by the next run": (
        [(f"{CAUSE}#1", 90), ("start:crash#2", 60), ("push:a", 50)],
        None,
    ),
    "sent again": (
        [(f"{CAUSE}#1", 90), ("start:crash#2", 60), (f"{CAUSE}#2", 40)],
        MessageSent(2, ago(40)),
    ),
    "sent twice": ([(f"{CAUSE}#3", 40), (f"{CAUSE}#1", 90)], MessageSent(3, ago(40))),
    "covered by a start": (
        [("start:message#2", 60), (f"{CAUSE}#2", 60)],
        MessageSent(2, ago(60)),
    ),
}


@pytest.mark.parametrize(("happened", "sent"), SENT.values(), ids=SENT.keys())
def test_last_sent_ignores_messages_lost_with_their_run(
    happened: list[tuple[str, float]], sent: MessageSent | None
) -> None:
    assert history(*happened).last_sent(parse(CAUSE)) == sent


def test_a_repeated_message_counts_from_its_first_delivery() -> None:
    first = history(
        ("fix_ci:a:x#1", 90),
        ("fix_ci:a:x#2", 30),
        ("fix_ci:b:x#2", 20),
        ("address_review:c#2", 10),
    ).first_sent
    assert first(CI) == {parse("fix_ci:a:x"): ago(90), parse("fix_ci:b:x"): ago(20)}
    assert first(CI, ago(40)) == {parse("fix_ci:b:x"): ago(20)}
    assert first(CI, ago(20)) == {}


@pytest.mark.parametrize(("at", "expected"), [(51, True), (50, False), (49, False)])
def test_pushed_since_counts_only_later_pushes(at: float, expected: bool) -> None:
    since: datetime = ago(at)
    assert history(("push:a", 80), ("push:b", 50)).pushed_since(since) is expected
    assert not history(("notice:push:a", 10)).pushed_since(since)


def test_stop_and_release_are_read_from_their_keys() -> None:
    assert history(("stop#1", 9)).has(KeyKind.STOP)
    assert not history(("stop#1", 9)).has(KeyKind.RELEASE)
    assert history(("release#1", 9)).has(KeyKind.RELEASE)
    assert not history(("release#1", 9)).has(KeyKind.STOP)
