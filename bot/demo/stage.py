"""The stage of the demo: the stand-ins, people who may sign in, and the real bot."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.demo.bot_process import BotProcess, configuration, free_port
from bot.demo.github import GitHubServer
from bot.demo.model import ModelServer
from bot.demo.programs import SCRIPTED, table
from bot.demo.scene import PERSON, REVIEWER, Scene
from bot.system.locations import Paths
from lifecycle.model.names import NAME
from runtimes import RUNTIMES
from runtimes.base import Options
from runtimes.isolation import strongest


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What runs while the demo is played."""

    github: GitHubServer
    scene: Scene
    model: ModelServer
    bot: BotProcess


@contextmanager
def staged(
    folder: Path,
    tell: Callable[..., None],
    *,
    agent: str = "scripted",
    model: str = "",
    port: int = 0,
    isolation: str = "",
) -> Iterator[Stage]:
    """Start the stand-ins and the bot, with their data in `folder`; stop everything at the end.

    That includes the terminals, which outlive the bot. `agent` and `model` are as on the demo's
    command line. `tell` gets each event, and where to look at it. Port 0 picks a free port for the
    bot. `isolation` is that of the agents, or empty for the strongest that works here.
    """
    with ExitStack() as stack:
        tell("starting a stand-in for GitHub, and the bot; this takes some seconds")
        github = stack.enter_context(GitHubServer(folder / "github"))
        scene = Scene(github, tell, spelled_out=model == SCRIPTED)
        asked = stack.enter_context(ModelServer())
        others = "" if agent == "scripted" else table(agent, model, asked.url)
        isolation = isolation or strongest()
        tell(
            "agents are not isolated, by choice or because no sandbox works here"
            if isolation == "none"
            else f"agents run in a sandbox by {isolation}"
        )
        port = port or free_port()
        app = github.sign_in_app("mergewright-sign-in", f"http://127.0.0.1:{port}/login/callback")
        config = configuration(
            *(folder, github.url),
            agent=agent,
            agent_types=others,
            isolation=isolation,
            client_id=app.client_id,
            port=port,
        )
        secret = {"MERGEWRIGHT_GITHUB_CLIENT_SECRET": app.client_secret}
        bot = BotProcess(folder, config, {**scene.secrets, **secret})
        stack.callback(_end_everything, bot)
        bot.start()
        bot.wait_until_ready()
        scene.repo.webhook(f"{bot.url}webhooks/github", scene.secret)
        github.show_pages(PERSON, REVIEWER, NAME, _sign_in(bot))
        github.world.browsing = PERSON
        yield Stage(github=github, scene=scene, model=asked, bot=bot)


def _sign_in(bot: BotProcess) -> str:
    """Return an HTML link to the bot's page, which signs the person in with GitHub."""
    return (
        f'<a href="{bot.url}login/github" target="mergewright">'
        f"Open Mergewright's page, signed in as {PERSON}</a>"
    )


def _end_everything(bot: BotProcess) -> None:
    """Stop the bot and the terminals, which outlive it by design."""
    bot.stop()
    runtime = RUNTIMES["tmux"](Options(data=Paths(bot.folder / "data").runtime))
    for name in runtime.look():
        runtime.stop(name)
