"""Checks after the demo: everything happened exactly once, and nothing is left behind."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bot.demo.bot_process import BotProcess
from bot.demo.github.issues import Issue
from bot.demo.model import ModelServer
from bot.demo.model.script import steps
from bot.demo.scene import BOT, Scene
from bot.system.locations import Paths


def problems(scene: Scene, issue: Issue) -> Iterator[str]:
    """Return a sentence for each effect that happened more or less than once."""
    pulls = scene.repo.pulls
    if len(pulls) != 1:
        yield f"{len(pulls)} pull requests were opened, not 1"
        return
    (pull,) = pulls
    if not pull.merged:
        yield "the pull request was not merged"
    if issue.state != "closed":
        yield "the issue was not closed"
    said = [(c.body, "the issue") for c in issue.comments if c.user.login == BOT]
    said += [(c.body, "the pull request") for c in pull.comments if c.user.login == BOT]
    said += [(c.body, "a thread") for t in pull.threads for c in t.comments if c.user.login == BOT]
    for (_, place), times in Counter(said).items():
        if times > 1:
            yield f"a comment stands {times} times on {place}"
    if len(said) != 3:
        yield f"the bot commented {len(said)} times, not 3 (two reports, and in the thread)"
    heads = [m.after for m in scene.repo.moves if m.branch == pull.head_branch and m.after]
    if len(heads) != 3 or len(set(heads)) != 3:
        yield f"{len(heads)} commits were pushed, not 3"
    merges = [m for m in scene.repo.moves if m.branch == pull.base_branch and m.user == BOT]
    if len(merges) != 1:
        yield f"the base branch was moved {len(merges)} times by the bot, not once"
    if pull.head_branch in scene.repo.heads:
        yield "the session's branch is still on GitHub"


def messages(scene: Scene, agent_log: Path) -> Iterator[str]:
    """Return a sentence for each message the scripted agent logged more or less than once."""
    notes = [json.loads(line) for line in agent_log.read_text().splitlines()]
    starts = [note for note in notes if note["kind"] == "prompt"]
    if len(starts) != 1:
        yield f"the agent was started {len(starts)} times, not once"
    recorded = [note for note in notes if note["kind"] == "message"]
    for word in (scene.check_word, scene.review_word):
        times = sum(word in note["words"] for note in recorded)
        if times != 1:
            yield f"the agent was told of {word} {times} times, not once"
    if len(recorded) != 2:
        yield f"the agent got {len(recorded)} messages, not 2"


def prompts(model: ModelServer) -> Iterator[str]:
    """Return a sentence for each message the scripted model received more or less than once."""
    asked = [
        recorded.asked for recorded in model.requests if recorded.asked and not recorded.asked.aside
    ]
    turns = asked[-1].turns if asked else ()
    told = [turn.text for turn in turns if turn.who == "user" and steps(turn.text)]
    if len(told) != 3 or len(set(told)) != 3:
        yield f"the agent was told {len(told)} times what to do, not 3 times"


def left_over(bot: BotProcess, session: str) -> Iterator[str]:
    """Return a sentence for each thing the demo left on this machine."""
    paths = Paths(bot.folder / "data")
    if (paths.host / "workspaces" / session).exists():
        yield f"the worktree of {session} is still there"
    for pid, command in processes_of(bot.folder):
        yield f"process {pid} still runs: {command}"


def processes_of(folder: Path) -> Iterator[tuple[int, str]]:
    """Return the processes that use this folder.

    It is in their command line or environment, is their working directory, or holds a file they
    have open.
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
    """Return the working directory and the open files of a process."""
    yield process / "cwd"
    yield from (process / "fd").iterdir()
