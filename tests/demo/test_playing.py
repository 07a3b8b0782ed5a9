"""The demo follows a session until it ends."""

from typing import Any

from bot.demo.__main__ import follow


class _Bot:
    def __init__(self, *statuses: str) -> None:
        self._statuses = list(statuses)

    def session(self, _: str) -> dict[str, Any]:
        return {"session": {"status": self._statuses.pop(0), "because": "so it is"}}


def test_a_session_that_ends_without_a_merge_is_not_waited_for() -> None:
    bot: Any = _Bot("working", "working", "errored")
    statuses = list(follow(bot, lambda: False))
    assert statuses == ["working: so it is", "errored: so it is"]
