"""Command lines of prepared programs."""

import subprocess
from collections.abc import Sequence

from runtimes.agents.base import LaunchSpec


def command_line(launch: LaunchSpec) -> Sequence[str]:
    """Return the command line with which the agent's program itself is executed.

    If `launch` starts a shell that reads the prompt from a file and then executes the program, the
    program's command line is returned with the text of the prompt in it.
    """
    if launch.argv[:2] != ("/bin/sh", "-c") or not launch.argv[2].startswith("prompt="):
        return launch.argv
    script = launch.argv[2].replace("exec", r"printf '%s\0'")
    command = ("/bin/sh", "-c", script, *launch.argv[3:])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(done.stdout.split("\0")[:-1])
