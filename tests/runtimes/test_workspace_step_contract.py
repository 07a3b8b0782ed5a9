"""The contract of set-up and teardown on every host, over real processes."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from runtimes.host import StepRecord, StepSpec, StepState, WorkspaceStep
from runtimes.workspaces.mirror import Mirror
from tests.runtimes.hosts import HOSTS, SESSION, OneSession
from tests.world.waiting import eventually

SETUP = WorkspaceStep.SETUP


@pytest.fixture(params=HOSTS)
def session(request: pytest.FixtureRequest, mirror: Mirror) -> Iterator[OneSession]:
    """A session on every host in turn, with its workspace prepared."""
    with HOSTS[request.param](mirror) as stage:
        one = OneSession(stage)
        one.prepares()
        yield one


def advance(session: OneSession, *lines: str, seconds: float = 60.0) -> StepRecord:
    spec = StepSpec(lines=lines, isolation=session.isolation, seconds=seconds)
    return session.host.steps.advance(session.run, SETUP, spec, datetime.now(UTC))


def ended(session: OneSession, *lines: str) -> StepRecord:
    """Run the set-up to its end."""

    def over() -> StepRecord | None:
        record = advance(session, *lines)
        return record if record.state is not StepState.RUNNING else None

    return eventually(over, "the set-up has ended")


def output(session: OneSession, record: StepRecord) -> str:
    return session.host.records.read(SESSION, record.output, 0, 10_000).decode()


def test_a_setup_works_in_the_workspace_and_its_output_is_kept(session: OneSession) -> None:
    record = ended(session, "word=made", "echo $word >file.txt", "git status --porcelain")
    assert (record.state, record.code) == (StepState.DONE, 0)
    assert "?? file.txt" in output(session, record)
    assert session.stage.as_agent("cat file.txt") == "made"


def test_a_setup_ends_at_the_first_line_that_fails(session: OneSession) -> None:
    record = ended(session, "echo begun", "(exit 3)", "echo never")
    assert (record.state, record.code) == (StepState.FAILED, 3)
    assert "begun" in output(session, record)
    assert "never" not in output(session, record)


def test_a_setup_that_asks_a_question_does_not_wait(session: OneSession) -> None:
    assert ended(session, "read -r answer").state is StepState.FAILED


def test_a_setup_outlives_the_bot(session: OneSession) -> None:
    assert advance(session, "until test -e go; do sleep 0.1; done").state is StepState.RUNNING
    session.stage.restarts_the_bot()
    session.stage.as_agent("touch go")
    assert ended(session, "false").attempt == 1
    assert advance(session, "false").state is StepState.DONE


def test_a_cancelled_setup_ends_with_all_its_processes(session: OneSession) -> None:
    record = advance(session, "setsid sleep 600 & touch began", "sleep 600")
    eventually(lambda: "began" in session.stage.as_agent("ls"), "the set-up runs")
    assert session.host.steps.cancel(SESSION, SETUP)
    assert record.name not in session.host.runtime.look()
    assert not session.host.steps.cancel(SESSION, SETUP)
    assert ended(session, "true").attempt == 2


def test_a_session_keeps_its_ports_after_a_restart_of_the_bot(session: OneSession) -> None:
    before = session.host.ports.allot(SESSION, 2, 28_300, 28_399)
    session.stage.restarts_the_bot()
    assert session.host.ports.allot(SESSION, 2, 28_300, 28_399) == before
