"""Runs a wrapped program once, to find out whether its isolation works."""

import os
import shlex
import subprocess
from collections.abc import Mapping

from runtimes.base import Launch
from runtimes.supervise import REPORT

_SECONDS = 60
_PLAIN: Mapping[str, str] = {"PATH": os.defpath}


def run_once(launch: Launch) -> str:
    """Run a wrapped program without a supervisor; return why it failed, or an empty string.

    Raises `OSError`, and `subprocess.TimeoutExpired` after a minute.
    """
    command = shlex.join(launch.argv)
    done = subprocess.run(
        ("/bin/sh", "-c", f"exec {command} {REPORT}>&1"),
        env=_PLAIN,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode == 0 and '"status": 0' in done.stdout:
        return ""
    says = " ".join((done.stderr or done.stdout).split())[:500]
    return says or f"it ended with {done.returncode} and printed nothing"
