"""Claude Code in a sandbox, where it has another pid than outside."""

from msgspec.structs import replace

from runtimes.agents.claude import files as claude_files
from runtimes.agents.claude.files import ClaudeStatus
from tests.runtimes.stages import IsolatedStage
from tests.world.waiting import eventually


def test_a_program_in_a_sandbox_is_found_by_the_pid_that_it_has_there(
    bubblewrapped: IsolatedStage,
) -> None:
    bubblewrapped.shell("app-1_r1", "cat /proc/$$/stat >new; mv new stat; cat")
    stat = bubblewrapped.work("app-1_r1") / "stat"
    eventually(stat.exists, "what the program knows of itself")
    fields = stat.read_text().split()
    known = ClaudeStatus(pid=int(fields[0]), session_id="x", proc_start=fields[21])
    assert claude_files.is_alive(known)
    assert not claude_files.is_alive(replace(known, pid=known.pid + 1))
    bubblewrapped.runtime.stop("app-1_r1")
    assert not claude_files.is_alive(known)
