"""A process that is killed between any two statements."""

import json
import subprocess
import sys
from pathlib import Path


def test_a_process_killed_at_any_statement_leaves_only_complete_steps(tmp_path: Path) -> None:
    program = Path(__file__).with_name("crashing.py")
    run = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["wrong"] == []
    assert result["kills"] > 3 * result["steps"], "every statement of every step was a place to die"
