"""Checks after the demo that each effect happened exactly once and that nothing is left behind."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bot.demo.bot_process import BotProcess
from bot.demo.model import ModelServer
from bot.demo.model.script import steps
from bot.demo.scene import Scene, Task
from bot.system.locations import Paths
from lifecycle.model.text import counted

#: The beginning of the comment that the bot writes when a project has nothing left to do.
SUMMARY_START = "All sessions of project "


def problems(scene: Scene, task: Task) -> Iterator[str]:
    """Yield a sentence for each effect of a task that did not happen exactly once."""
    number = task.issue.number
    pulls = [pull for pull in scene.repo.pulls if scene.task_of(pull) is task]
    if len(pulls) != 1:
        yield f"#{number}: {len(pulls)} pull requests were opened, not 1"
        return
    (pull,) = pulls
    if not pull.merged:
        yield f"#{number}: the pull request was not merged"
    if task.issue.state != "closed":
        yield f"#{number}: the issue was not closed"
    posted = [(c.body, "the issue") for c in task.issue.comments if c.user.login == scene.bot]
    posted += [(c.body, "the pull request") for c in pull.comments if c.user.login == scene.bot]
    in_threads = [comment for thread in pull.threads for comment in thread.comments]
    posted += [(c.body, "a thread") for c in in_threads if c.user.login == scene.bot]
    for (_, place), times in Counter(posted).items():
        if times > 1:
            yield f"#{number}: the same comment was posted {times} times on {place}"
    posted = [(body, place) for body, place in posted if not body.startswith(SUMMARY_START)]
    if len(posted) != 3:
        lines = "; ".join(f"{body.strip().splitlines()[0]!r} on {place}" for body, place in posted)
        yield f"#{number}: {counted(len(posted), 'comment')}, not two reports and a reply: {lines}"
    moves = [move for move in scene.repo.moves if move.branch == pull.head_branch]
    heads = [move.after for move in moves if move.after]
    if len(heads) != 3 or len(set(heads)) != 3:
        pushes, different = counted(len(heads), "commit"), len(set(heads))
        yield f"#{number}: {pushes} pushed, {different} of them different; it should be 3 and 3"
    if pull.head_branch in scene.repo.heads:
        yield f"#{number}: the session's branch is still on GitHub"


def merges(scene: Scene) -> Iterator[str]:
    """Yield a sentence if the number of merges differs from the number of tasks."""
    base = scene.repo.default_branch
    moves = [move for move in scene.repo.moves if move.branch == base and move.user == scene.bot]
    if len(moves) != len(scene.tasks):
        yield f"the bot made {counted(len(moves), 'merge')}, not {len(scene.tasks)}"


def notes(logs: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the entries that scripted agents logged in these files. Missing files are skipped."""
    lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def messages(task: Task, logs: Iterable[Path]) -> Iterator[str]:
    """Yield a sentence for each message that the scripted agent did not log exactly once."""
    own = [note for note in notes(logs) if note["session"] == task.session]
    starts = [note for note in own if note["kind"] == "prompt"]
    if len(starts) != 1:
        yield f"{task.session}: the agent was started {len(starts)} times, not once"
    received = [note for note in own if note["kind"] == "message"]
    for word in (task.check_word, task.review_word):
        times = sum(word in note["words"] for note in received)
        if times != 1:
            yield f"{task.session}: the agent received {word} {times} times, not once"
    if len(received) != 2:
        yield f"{task.session}: the agent got {counted(len(received), 'message')}, not 2"


def prompts(model: ModelServer) -> Iterator[str]:
    """Yield a sentence if the scripted model did not receive each message exactly once."""
    asked = [
        recorded.asked for recorded in model.requests if recorded.asked and not recorded.asked.aside
    ]
    turns = asked[-1].turns if asked else ()
    requests = [turn.text for turn in turns if turn.who == "user" and steps(turn.text)]
    if len(requests) != 3 or len(set(requests)) != 3:
        yield f"the agent got {counted(len(requests), 'request')}, not 3 different ones"


def left_over(bot: BotProcess, session: str) -> Iterator[str]:
    """Yield a sentence for each worktree, process or control group that the demo left behind."""
    paths = Paths(bot.folder / "data")
    if (paths.host / "workspaces" / session).exists():
        yield f"the worktree of {session} is still there"
    for pid, command in processes_of(bot.folder):
        yield f"process {pid} still runs: {command}"
    for group in control_groups_of(paths.host):
        yield f"the control group {group} is left"


def control_groups_of(host: Path) -> Iterator[str]:
    """Yield the control groups that still exist, of runs whose files are in the folder `host`."""
    for file in host.glob("sessions/*/groups.json"):
        yield from (group for group in json.loads(file.read_bytes()) if Path(group).exists())


def processes_of(folder: Path) -> Iterator[tuple[int, str]]:
    """Yield the ID and command line of every process that uses this folder, except this process.

    A process uses the folder if its command line or environment contains the path, if it works in
    the folder, or if it has a file there open.
    """
    mark = str(folder).encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            known = mark in command or mark in (entry / "environ").read_bytes()
            known = known or any(link.readlink().is_relative_to(folder) for link in _links(entry))
        except OSError:
            continue
        if known and command:
            yield int(entry.name), command.replace(b"\0", b" ").decode(errors="replace").strip()


def _links(process: Path) -> Iterator[Path]:
    """Yield the working directory and the open files of a process."""
    yield process / "cwd"
    yield from (process / "fd").iterdir()
