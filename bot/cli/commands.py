"""The commands that change sessions: the same ones people can give in comments on GitHub.

Anyone who can write the database file may give them. The running bot applies them within a second.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.options import CliError, Config, Json, NoWait, SessionId

app = typer.Typer()

#: Commands without arguments besides the session.
PLAIN: Mapping[str, str] = {
    "stop": "End a session. Its commits are kept and its pull request stays open.",
    "pause": "Stop a session's agent and keep its conversation.",
    "resume": "Resume a paused session.",
    "restart": "Stop a session's agent and start it again.",
    "restore": "Reopen an ended session with a new run on the same branch.",
    "retry": "Retry the actions that failed for good.",
    "update": "Merge the base branch into the pull request's branch.",
    "cancel": "Cancel a requested merge.",
}
Text = Annotated[list[str], typer.Argument(metavar="TEXT", help="The message.")]
Project = Annotated[
    str, typer.Option("--project", metavar="NAME", help="All sessions of a project.")
]
Everything = Annotated[bool, typer.Option("--all", help="All sessions.")]
MaybeSession = Annotated[
    str | None, typer.Argument(metavar="SESSION", help="Session ID, such as widgets-12.")
]


def _plain(kind: str) -> Callable[..., None]:
    def submit(
        session_id: SessionId, config: Config = None, no_wait: NoWait = False, as_json: Json = False
    ) -> None:
        _submit(config, session_id, kind, no_wait=no_wait, as_json=as_json)

    return submit


@app.command()
def start(
    session_id: SessionId,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Agent or agent type.")] = "",
    config: Config = None,
    resume: Annotated[
        str, typer.Option(metavar="ID", help="Resume your own conversation with this ID.")
    ] = "",
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Start an agent on an issue: widgets-12 is issue 12 of widgets."""
    _submit(config, session_id, "start", agent, resume=resume, no_wait=no_wait, as_json=as_json)


for _kind, _help in PLAIN.items():
    app.command(_kind, help=_help)(_plain(_kind))


@app.command()
def tell(
    session_id: SessionId,
    text: Text,
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Send a message to the agent, at the end of its turn."""
    _submit(config, session_id, "tell", " ".join(text), no_wait=no_wait, as_json=as_json)


@app.command()
def answer(
    session_id: SessionId,
    text: Text,
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Answer the agent's question."""
    _submit(config, session_id, "answer", " ".join(text), no_wait=no_wait, as_json=as_json)


@app.command()
def merge(
    session_id: SessionId,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="merge, squash or rebase.")] = "",
    config: Config = None,
    pull: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="Pull request, if several are open."),
    ] = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Merge the current head once nothing blocks it."""
    _submit(config, session_id, "merge", method, pull=pull, no_wait=no_wait, as_json=as_json)


@app.command()
def allow(
    session_id: SessionId,
    commit: Annotated[str, typer.Argument(metavar="COMMIT", help="The held commit.")],
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Allow the push of a commit that changes protected paths."""
    _submit(config, session_id, "allow", commit, no_wait=no_wait, as_json=as_json)


@app.command()
def agent(
    session_id: SessionId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Agent or agent type.")],
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Hand a session to another agent, in a new run."""
    _submit(config, session_id, "agent", name, no_wait=no_wait, as_json=as_json)


@app.command()
def review(
    session_id: SessionId,
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="Reviewer; it takes over the session.")
    ] = "",
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Have an agent review the pull request."""
    _submit(config, session_id, "review", agent, no_wait=no_wait, as_json=as_json)


@app.command()
def budget(
    session_id: SessionId,
    amount: Annotated[str, typer.Argument(metavar="+USD", help="Dollars to add.")],
    config: Config = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Raise a session's budget."""
    _submit(config, session_id, "budget", amount, no_wait=no_wait, as_json=as_json)


@app.command()
def freeze(
    session_id: MaybeSession = None,
    config: Config = None,
    project: Project = "",
    everything: Everything = False,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Stop all actions of a session, a project or the bot."""
    _set_frozen(config, session_id, project, everything, "freeze", no_wait=no_wait, as_json=as_json)


@app.command()
def unfreeze(
    session_id: MaybeSession = None,
    config: Config = None,
    project: Project = "",
    everything: Everything = False,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Undo a freeze of the same scope."""
    _set_frozen(
        config, session_id, project, everything, "unfreeze", no_wait=no_wait, as_json=as_json
    )


@app.command()
def meta(
    session_id: SessionId,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Set a value; KEY= removes it."),
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Show or change a session's metadata."""
    from bot.cli import submit

    submit.set_metadata(config, session_id, values or [], as_json=as_json)


def _submit(
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
    from bot.cli import submit

    submit.submit(
        *(config, session_id, kind, text),
        pull=pull,
        resume=resume,
        wait=not no_wait,
        as_json=as_json,
    )


def _set_frozen(
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
        _submit(config, session_id, kind, no_wait=no_wait, as_json=as_json)
        return
    from bot.cli import submit

    submit.set_frozen(config, project, frozen=kind == "freeze", as_json=as_json)
