"""The commands by which a person steers: each asks for what a comment on GitHub can ask for.

Who may write the database's file may ask. The running bot sees it within a second.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.options import Config, Json, NoWait, SessionId
from bot.cli.refused import CliError

app = typer.Typer()

#: Those that take nothing but a session, each with what it does.
PLAIN: Mapping[str, str] = {
    "stop": "End a session; its work is kept, its pull request stays open.",
    "pause": "End a session's program, keeping its conversation.",
    "resume": "Let a paused session go on where it was.",
    "restart": "End a session's program and start it anew at once.",
    "restore": "Bring an ended session back: a new run on the same branch.",
    "retry": "Try again what was given up.",
    "update": "Bring the base branch into the pull request's branch.",
    "cancel": "Take back a merge that was asked for and has not happened.",
}
Text = Annotated[list[str], typer.Argument(metavar="TEXT", help="What to say.")]
Project = Annotated[str, typer.Option("--project", metavar="NAME", help="All of one project.")]
Everything = Annotated[bool, typer.Option("--all", help="Everything.")]
MaybeSession = Annotated[str | None, typer.Argument(metavar="SESSION", help="Such as widgets-12.")]


def _plain(kind: str) -> Callable[..., None]:
    def ask(
        session_id: SessionId, config: Config = None, no_wait: NoWait = False, as_json: Json = False
    ) -> None:
        _ask(config, session_id, kind, no_wait=no_wait, as_json=as_json)

    return ask


@app.command()
def start(
    session_id: SessionId,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Which agent.")] = "",
    config: Config = None,
    resume: Annotated[
        str, typer.Option(metavar="ID", help="Go on with a conversation of your own.")
    ] = "",
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Have an agent work on an issue: widgets-12 is 12 of widgets."""
    _ask(config, session_id, "start", agent, resume=resume, no_wait=no_wait, as_json=as_json)


for _kind, _says in PLAIN.items():
    app.command(_kind, help=_says)(_plain(_kind))


@app.command()
def tell(
    session_id: SessionId,
    text: Text,
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Tell a session's agent something, at the end of its turn."""
    _ask(config, session_id, "tell", " ".join(text), no_wait=no_wait, as_json=as_json)


@app.command()
def answer(
    session_id: SessionId,
    text: Text,
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Answer what a session's agent asks."""
    _ask(config, session_id, "answer", " ".join(text), no_wait=no_wait, as_json=as_json)


@app.command()
def merge(
    session_id: SessionId,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="merge, squash or rebase.")] = "",
    config: Config = None,
    pull: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Which, where several are open.")
    ] = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Merge it as it stands now, once nothing stands in the way."""
    _ask(config, session_id, "merge", method, pull=pull, no_wait=no_wait, as_json=as_json)


@app.command()
def allow(
    session_id: SessionId,
    commit: Annotated[str, typer.Argument(metavar="COMMIT", help="The commit that is held.")],
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Push a commit although it changes protected paths."""
    _ask(config, session_id, "allow", commit, no_wait=no_wait, as_json=as_json)


@app.command()
def agent(
    session_id: SessionId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="An agent or an agent type.")],
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Have another agent take a session over, in a new run."""
    _ask(config, session_id, "agent", name, no_wait=no_wait, as_json=as_json)


@app.command()
def review(
    session_id: SessionId,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Who takes over for it.")] = "",
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Have its agent, or another one, read the pull request over."""
    _ask(config, session_id, "review", agent, no_wait=no_wait, as_json=as_json)


@app.command()
def budget(
    session_id: SessionId,
    amount: Annotated[str, typer.Argument(metavar="+USD", help="How much more it may cost.")],
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Let a session cost more."""
    _ask(config, session_id, "budget", amount, no_wait=no_wait, as_json=as_json)


@app.command()
def freeze(
    session_id: MaybeSession = None,
    config: Config = None,
    project: Project = "",
    everything: Everything = False,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Stop every effect of a session, a project or everything."""
    _hold(config, session_id, project, everything, "freeze", no_wait=no_wait, as_json=as_json)


@app.command()
def unfreeze(
    session_id: MaybeSession = None,
    config: Config = None,
    project: Project = "",
    everything: Everything = False,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Let effects out again, of what was frozen in the same words."""
    _hold(config, session_id, project, everything, "unfreeze", no_wait=no_wait, as_json=as_json)


@app.command()
def meta(
    session_id: SessionId,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="To remember; KEY= forgets."),
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show what is remembered about a session, or remember more."""
    from bot.cli import asking

    asking.remember(config, session_id, values or [], as_json=as_json)


def _ask(
    config: Path | None,
    session_id: str,
    kind: str,
    text: str = "",
    *,
    pull: int | None = None,
    resume: str = "",
    no_wait: bool,
    as_json: bool,
) -> None:
    from bot.cli import asking

    asking.ask(
        *(config, session_id, kind, text),
        pull=pull,
        resume=resume,
        wait=not no_wait,
        as_json=as_json,
    )


def _hold(
    config: Path | None,
    session_id: str | None,
    project: str,
    everything: bool,
    kind: str,
    *,
    no_wait: bool,
    as_json: bool,
) -> None:
    if sum(map(bool, (session_id, project, everything))) != 1:
        raise CliError(f"name what to {kind}: a SESSION, --project NAME or --all")
    if session_id:
        _ask(config, session_id, kind, no_wait=no_wait, as_json=as_json)
        return
    from bot.cli import asking

    asking.hold(config, project, frozen=kind == "freeze", as_json=as_json)
