"""`mergewright logs`."""

import time

import pytest

from lifecycle.model.text import plain
from tests.cli.conftest import CommandLine, Deployment


def test_the_last_lines_are_printed(mergewright: CommandLine, deployment: Deployment) -> None:
    session = deployment.has_session()
    deployment.printed(session, "".join(f"line {number}\n" for number in range(1, 11)))
    assert mergewright("logs", session, "-n", "2").out == "line 9\nline 10\n"


def test_secrets_are_redacted_with_and_without_escape_sequences(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", "hunter2-of-the-page")
    session = deployment.has_session()
    deployment.printed(session, "it is hunter2-of-\x1b[31mthe-page, or hunter2-of-the-page\n")
    assert mergewright("logs", session).out == "it is [secret], or [secret]\n"
    assert mergewright("logs", session, "--ansi").out.endswith("or [secret]\x1b[0m\n")


def test_the_log_of_an_earlier_run_can_be_printed(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    deployment.printed(session, "second\n", run=2)
    assert mergewright("logs", session, "--run", "2").out == "second\n"
    result = mergewright("logs", session)
    assert result.code == 1
    assert result.err == "mergewright: widgets-12: run 1 has not begun, or its output has expired\n"


def test_escape_sequences_are_removed_by_default(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    deployment.printed(session, "\x1b[31mred\x1b[0m\r\n\x1b]52;c;c3RvbGVu\x07end\n")
    assert mergewright("logs", session).out == "red\nend\n"
    assert mergewright("logs", session, "--ansi").out == "\x1b[31mred\x1b[0m\x1b[0m\nend\n"


def test_only_colours_reach_the_terminal_of_a_reader(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    """An agent could set the clipboard, the title or the text of an earlier line."""
    session = deployment.has_session()
    hostile = "\x1b]52;c;c3RvbGVu\x07", "\x1b]0;title\x1b\\", "\x1bP1$r\x1b\\", "\x1b[2J", "\x9b5A"
    deployment.printed(session, f"{'a'.join(hostile)}\u202e\x1b[1;32mgreen\n")
    assert mergewright("logs", session, "--ansi").out == "aaaa\x1b[1;32mgreen\x1b[0m\n"


def test_an_overwritten_line_is_printed_in_its_last_state(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    deployment.printed(session, "10%\r50%\r100%\r\x1b[0m\r\nnext\n")
    assert mergewright("logs", session).out == "100%\nnext\n"


def test_an_endless_line_is_printed_in_parts(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    deployment.printed(session, "x" * 5_000_000)
    parts = mergewright("logs", session).out.splitlines()
    assert sum(map(len, parts)) == 5_000_000
    assert max(map(len, parts)) < 2_200_000


def test_binary_output_is_printed(mergewright: CommandLine, deployment: Deployment) -> None:
    session = deployment.has_session()
    deployment.printed(session, "").write_bytes(b"\xff\xfe ok\n")
    assert mergewright("logs", session).out == "\ufffd\ufffd ok\n"


def test_following_prints_whole_lines_as_they_come_until_interrupted(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = deployment.has_session()
    path = deployment.printed(session, "first\n")
    to_come = ["half a ", "line\n", "and more\n"]

    def meanwhile(_: float) -> None:
        if not to_come:
            raise KeyboardInterrupt
        with path.open("a") as file:
            file.write(to_come.pop(0))

    monkeypatch.setattr(time, "sleep", meanwhile)
    result = mergewright("logs", session, "--follow")
    assert (result.code, result.out) == (0, "first\nhalf a line\nand more\n")


def test_only_newlines_and_tabs_are_kept_of_control_characters() -> None:
    assert plain("a\tb\n\x1b[1;31mc\x1b[0m\x00\x7f\x9b2Jd") == "a\tb\ncd"
    assert plain("\x1b]0;title\x07a\x1b]8;;x\x1b\\b\x1bPq\x1b\\c") == "abc"
    assert plain("\x1b]0;never ends\nnext") == "\nnext"
    assert plain("\x1b(Bplain \u202eesrever") == "plain esrever"
    assert plain("\ufeffone\u2028 line\u2029") == "one line"
