"""Finding the last hook call of a run."""

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.hooks import HookCall, HookPayload, last_call


def test_the_last_call_of_an_event_is_found_for_its_own_run(files: RunFiles) -> None:
    def spooled(*lines: tuple[int, str, str]) -> HookCall | None:
        line_format = '{"run":%d,"at":1,"hook":{"hook_event_name":"%s","tool_name":"%s"}}\n'
        files.spool.write_text("".join(line_format % line for line in lines))
        return last_call(files, "Asks")

    run = files.run
    assert spooled() is None
    assert spooled((run, "Ends", "a")) is None
    found = spooled((run, "Asks", "a"), (run, "Asks", "b"), (run, "Ends", "c"))
    assert found is not None
    assert found.hook.tool_name == "b"
    assert spooled((run, "Asks", "a"), (run - 1, "Asks", "late")) is None


def test_the_arguments_of_a_call_are_empty_unless_they_are_an_object() -> None:
    assert HookPayload("BeforeTool", tool_input={"command": "ls"}).arguments == {"command": "ls"}
    assert HookPayload("BeforeTool", tool_input="ls").arguments == {}
