"""The set-up of a workspace as the command line shows it."""

import json

from tests.cli.conftest import CommandLine, Deployment


def test_a_failed_setup_is_shown_with_the_command_for_its_output(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    deployment.has_run_setup(session, 3, "no compiler\n")
    for command in ("show", "why"):
        shown = " ".join(mergewright(command, session).out.split())
        assert "setup The set-up of the workspace failed with exit code 3 after 12 s." in shown
        assert "output: mergewright logs widgets-12 --step setup" in shown
    assert json.loads(mergewright("show", session, "--json").out)["steps"][0]["code"] == 3
    assert mergewright("logs", session, "--step", "setup").out == "no compiler\n"


def test_there_is_no_output_of_commands_that_never_ran(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    result = mergewright("logs", deployment.has_session(), "--step", "teardown")
    assert result.code == 1
    assert result.err == "mergewright: no teardown commands have run in widgets-12 yet\n"
