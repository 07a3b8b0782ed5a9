"""`start --resume`: a session to be is given a conversation of the person at the command line."""

import os

from bot.cli import agent_health
from bot.cli.refused import PROBLEM, CliError
from bot.system.locations import programs
from bot.system.paths import Paths
from config.settings import Settings
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.adoption import NotAdopted
from runtimes.workspaces.worktree import checkout, remove_tree


def adopt(settings: Settings, id: str, agent: str, native: str) -> None:
    """Copy a conversation of an agent, or of an agent type, into the session's home.

    Raises `CliError`.
    """
    paths = Paths(settings.data)
    if paths.database.stat().st_uid != os.geteuid():
        raise CliError("only the server's own user can give a session a conversation: ask as that")
    kind = agent_health.cases_of(settings, agent)[0].type
    home = paths.home(id)
    try:
        home.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        remedy = "`mergewright cleanup` removes it"
        raise CliError(f"{home} is there of an earlier try: {remedy}", PROBLEM) from None
    files = RunFiles(
        session=id,
        run=1,
        dir=paths.run(id, 1),
        workspace=checkout(paths.workspaces, id),
        branch="",
    )
    try:
        programs(settings)[kind].adopt(files, native)
    except (NotAdopted, OSError) as failure:
        give_up(settings, id)
        raise CliError(str(failure), PROBLEM) from None


def give_up(settings: Settings, id: str) -> None:
    """Remove what a session that did not come to be was given."""
    remove_tree(Paths(settings.data).home(id))
