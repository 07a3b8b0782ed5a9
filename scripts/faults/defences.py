"""The bot's defence against each fault, and how to remove it from a copy of the repository."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Removal(NamedTuple):
    """A text that occurs once in a file, and its replacement."""

    file: str
    text: str
    replacement: str


class Defence(NamedTuple):
    """The code that keeps a fault from doing harm."""

    fault: str  #: The name of a `Fault`.
    about: str  #: What the code ensures, as a clause.
    removals: tuple[Removal, ...]


DEFENCES: Sequence[Defence] = (
    Defence(
        "freezes",
        "a bot that lost the lease writes nothing, does nothing and ends; late effects are removed",
        (
            Removal("bot/store/database.py", "        if held:\n", "        if True:\n"),
            Removal(
                "bot/app/leader_lease.py",
                "return led and not self.stopping.is_set()",
                "return self._epoch is not None",
            ),
            Removal(
                "bot/app/leader_lease.py",
                "            self.lost = True\n            self.stopping.set()\n",
                "",
            ),
            Removal("bot/app/application.py", "wiring.late_effects.remove()", "pass"),
        ),
    ),
    Defence(
        "kills",
        "what was done before a crash is found by its key and not done twice",
        (
            Removal("bot/github/comment_markers.py", "has_marker(written.body, key)):", "False):"),
            Removal("runtimes/tmux.py", 'f"#{{||:#{{pane_dead}},#{{{mark}}}}}"', '"#{pane_dead}"'),
        ),
    ),
    Defence(
        "terminals",
        "a message that was lost with its run is sent to the next one",
        (
            Removal(
                "lifecycle/read/action_history.py",
                "return ended_early is not None and",
                "return False and",
            ),
        ),
    ),
    Defence(
        "clock",
        "the bot's clock follows the time that has passed",
        (Removal("bot/app/process.py", "clock=SteadyClock()", "clock=utc_now"),),
    ),
    Defence(
        "app-clock",
        "an App signs by GitHub's time",
        (Removal("bot/github/transport.py", "self._clock() + self._ahead", "self._clock()"),),
    ),
    Defence(
        "disk",
        "a full disk costs no try",
        (
            Removal(
                "bot/act/outbox.py",
                "self.outages.retry_at(later.why, of_github=later.outage)",
                "None",
            ),
        ),
    ),
    Defence(
        "damage",
        "the database is checked at the start, and the first damage met ends the bot",
        (
            Removal("bot/store/opening.py", "        check_whole(path)\n", "        pass\n"),
            Removal("bot/store/database.py", "if not self.damage:\n", "if False:\n"),
        ),
    ),
    Defence(
        "supervisors",
        "what outlived a killed supervisor is found and ended",
        (
            Removal("runtimes/tmux.py", "        self._end_orphans(looked)\n", ""),
            Removal("runtimes/supervised.py", "list(_marked(folder))", "[]"),
        ),
    ),
    Defence(
        "engines",
        "a run waits for its engine",
        (
            Removal(
                "runtimes/containers/client.py",
                "if not (passes or (is_own and error.status == _CONFLICT)):",
                "if True:",
            ),
            Removal("bot/act/run_isolation.py", "    if missing.waits_for:\n", "    if False:\n"),
        ),
    ),
    Defence(
        "connections",
        "what took effect although its answer was lost is found and not done twice",
        (
            Removal("runtimes/workspaces/mirror.py", "[0]) != sha:", "[0]) is not None:"),
            Removal("bot/act/publishing.py", "if not refused.moved or not contained:", "if True:"),
            Removal("bot/github/comment_markers.py", "has_marker(written.body, key)):", "False):"),
        ),
    ),
    Defence(
        "flood",
        "what a payload proves to be no concern costs no read",
        (
            Removal(
                "bot/intake/relevance.py", 'if known or kind not in ("issue", "pull"):', "if True:"
            ),
        ),
    ),
    Defence(
        "descriptors",
        "connections are bounded below the limit of open files",
        (
            Removal(
                "bot/system/http_server.py", "if len(self.connections) > self.most:", "if False:"
            ),
        ),
    ),
)


def copy_without(defence: Defence, folder: Path) -> None:
    """Copy the files that git tracks into a folder, without a defence. Raises `ValueError`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for file, text, replacement in defence.removals:
        path = folder / file
        path.write_text(without(path.read_text(), text, replacement))


def without(source: str, text: str, replacement: str) -> str:
    """Replace a text that occurs once. Raises `ValueError` if it does not."""
    if source.count(text) != 1:
        raise ValueError(f"{text!r} occurs {source.count(text)} times, not once")
    return source.replace(text, replacement)
