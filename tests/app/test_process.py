"""How the process ends when its threads do not."""

import logging
import os
from types import SimpleNamespace
from typing import Any

import pytest

from bot.app import process


class Exited(BaseException):
    """Raised by the test's replacement of `os._exit`, which would end the test run."""


@pytest.mark.parametrize(
    ("reloads", "lost", "code"), [(False, False, 0), (False, True, 1), (True, False, 1)]
)
def test_a_bot_that_cannot_stop_in_time_is_started_again_only_by_a_reload_or_a_lost_lease(
    monkeypatch: pytest.MonkeyPatch, reloads: bool, lost: bool, code: int
) -> None:
    lease = SimpleNamespace(lost=lost)
    app: Any = SimpleNamespace(stop=lambda: False, wiring=SimpleNamespace(leader_lease=lease))

    def ends(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", ends)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    with pytest.raises(Exited) as exited:
        process._stop(app, reloads=reloads)
    assert exited.value.args == (code,)
