"""Defines the commands that change sessions, most of which also work in comments on GitHub.

Without `--server`, anyone who can write the database file may give them. The running bot usually
applies them within a second.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli import completion
from bot.cli.options import CliError, Config, Json, NoWait, SessionId
from bot.cli.server_option import Server
from lifecycle.model.names import MAKES_PULL

app = typer.Typer()

#: Commands whose only argument is the session.
PLAIN: Mapping[str, str] = {
    "stop": "End a session. Its commits are kept and its pull request stays open.",
    "pause": "Stop a session's agent and keep its conversation.",
    "resume": "Resume a paused session.",
    MAKES_PULL: "Turn the work of a chat into a pull request.",
    "retry": "Retry the actions that the bot has given up on.",
    "update": "Merge the base branch into the pull request's branch.",
    "cancel": "Cancel a requested merge.",
}
_MODE = "permission-mode=MODE"
_MODES = "MODE: auto grants what agents ask for, confirm asks a person, reject refuses it"
_AGENT = f"A name in [agents] or [agent-types]; TYPE is one of the `types` of that agent. {_MODES}."
#: Commands with an argument of one or more words; `...` marks a required one.
_WITH_ARGUMENT: Mapping[str, tuple[str, Any]] = {
    "tell": (
        "Send a message to the agent, at the end of its turn.",
        typer.Argument(..., metavar="TEXT", help="The message."),
    ),
    "answer": (
        "Answer the agent's question.",
        typer.Argument(..., metavar="TEXT", help="The answer."),
    ),
    "allow": (
        "Allow the push of a commit that is held, e.g. for protected paths.",
        typer.Argument(..., metavar="COMMIT", help="Commit whose push is held back."),
    ),
    "agent": (
        "Hand a session to another agent, in a new run.",
        typer.Argument(
            ...,
            metavar=f"NAME [TYPE] [{_MODE}]",
            help=_AGENT,
            autocompletion=completion.agents,
        ),
    ),
    "restart": (
        "Stop a session's agent and start it again.",
        typer.Argument([], metavar=_MODE, help=f"{_MODES}."),
    ),
    "review": (
        "Have an agent review the pull request.",
        typer.Argument(
            [],
            metavar="AGENT [TYPE]",
            help="Agent that takes over the session and reviews [default: the current one].",
            autocompletion=completion.agents,
        ),
    ),
    "budget": (
        "Raise a session's budget.",
        typer.Argument(..., metavar="+USD", help="Dollars to add."),
    ),
}
_Budget = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="USD",
        show_default=False,
        help="Budget in dollars [default: the project's].",
    ),
]
_FREEZES: Mapping[str, str] = {
    "freeze": "Hold back all actions of the bot, for a session, a project or everywhere. Agents at "
    "work finish their turn. Undo with `unfreeze`.",
    "unfreeze": "Undo a freeze; name the same SESSION, project or --all.",
}


@app.command()
def start(
    session_id: Annotated[
        str,
        typer.Argument(
            metavar="SESSION",
            help="PROJECT-NUMBER, such as widgets-12 for issue 12 of project widgets.",
            autocompletion=completion.session_ids,
        ),
    ],
    agent: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=f"AGENT [TYPE] [{_MODE}]", help=_AGENT, autocompletion=completion.agents
        ),
    ] = None,
    config: Config = None,
    server: Server = "",
    resume: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="ID of your own conversation with the agent's program on the server's own machine;"
            " the new session continues a copy of it.",
        ),
    ] = "",
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Start an agent on an issue, or bring its ended session back."""
    text = " ".join(agent or ())
    _submit(config, server, session_id, "start", text, no_wait, as_json, resume=resume)


@app.command()
def spawn(
    project: Annotated[
        str,
        typer.Argument(
            metavar="PROJECT",
            help="A project's name.",
            autocompletion=completion.projects,
        ),
    ],
    issue: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Issue to work on.")
    ] = None,
    prompt: Annotated[
        str, typer.Option(metavar="TEXT", help="The task, for a session without an issue.")
    ] = "",
    prompt_file: Annotated[
        typer.FileText | None,
        typer.Option(encoding="utf-8", metavar="FILE", help="File with the task; - for stdin."),
    ] = None,
    another: Annotated[
        bool, typer.Option("--another", help="Open a session even if the issue has one.")
    ] = False,
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Agent [default: the project's].",
            autocompletion=completion.agents,
        ),
    ] = "",
    agent_type: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="A name in [agent-types], for any agent of this type; with --agent, one of that"
            " agent's types.",
            autocompletion=completion.agent_types,
        ),
    ] = "",
    permission_mode: Annotated[str, typer.Option(metavar="MODE", help=f"{_MODES}.")] = "",
    branch: Annotated[
        str, typer.Option(metavar="NAME", help="New branch [default: by the project's pattern].")
    ] = "",
    budget: _Budget = 0.0,
    meta: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A note on the session, not sent to its agent; may be repeated.",
        ),
    ] = None,
    config: Config = None,
    server: Server = "",
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Open a session for an issue or a prompt."""
    from bot.cli import spawn as spawning
    from bot.intake.spawning import SpawnRequest

    if sum(map(bool, (issue, prompt, prompt_file))) != 1:
        raise CliError("give exactly one of --issue, --prompt and --prompt-file")
    wanted = SpawnRequest(
        project=project,
        repository="",
        issue=issue or 0,
        prompt=prompt_file.read() if prompt_file else prompt,
        agent=f"{agent} {agent_type}".strip(),
        permission_mode=permission_mode,
        branch=branch,
        budget_usd=budget,
        another=another,
    )
    spawning.spawn(config, server, wanted, meta or (), wait=not no_wait, as_json=as_json)


@app.command()
def chat(
    target: Annotated[
        str,
        typer.Argument(
            metavar="PROJECT|SESSION", help="A project's name, or the ID of a chat to continue."
        ),
    ],
    agent: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT [TYPE]",
            help="A name in [agents] or [agent-types] [default: the project's].",
        ),
    ] = None,
    message: Annotated[
        str, typer.Option(metavar="TEXT", help="The first message [default: none].")
    ] = "",
    permission_mode: Annotated[
        str,
        typer.Option(metavar="MODE", help=f"{_MODES} [default: confirm, if the agent has it]."),
    ] = "",
    budget: _Budget = 0.0,
    config: Config = None,
    server: Server = "",
) -> None:
    """Talk to an agent in its terminal, in a sandboxed workspace. Only on the server's machine."""
    from bot.cli import chat as chats
    from bot.intake.spawning import SpawnRequest

    wanted = SpawnRequest(
        project=target,
        repository="",
        prompt=message,
        agent=" ".join(agent or ()),
        permission_mode=permission_mode,
        budget_usd=budget,
    )
    chats.chat(config, server, wanted)


@app.command()
def merge(
    session_id: SessionId,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="merge, squash or rebase.")] = "",
    config: Config = None,
    server: Server = "",
    pull: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Pull request, if several are open.")
    ] = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Merge a session's pull request at its current commit, once nothing blocks it."""
    _submit(config, server, session_id, "merge", method, no_wait, as_json, pull=pull)


def _plain(kind: str) -> Callable[..., None]:
    def submit(
        session_id: SessionId,
        config: Config = None,
        server: Server = "",
        no_wait: NoWait = False,
        as_json: Json = False,
    ) -> None:
        _submit(config, server, session_id, kind, "", no_wait, as_json)

    return submit


def _with_argument(kind: str, argument: Any) -> Callable[..., None]:
    def submit(
        session_id: SessionId,
        text: list[str] = argument,
        config: Config = None,
        server: Server = "",
        no_wait: NoWait = False,
        as_json: Json = False,
    ) -> None:
        _submit(config, server, session_id, kind, " ".join(text), no_wait, as_json)

    return submit


def _freezing(kind: str) -> Callable[..., None]:
    def submit(
        session_id: Annotated[
            str | None,
            typer.Argument(
                metavar="SESSION",
                help="Session ID, such as widgets-12. Give exactly one of SESSION, --project and "
                "--all.",
                autocompletion=completion.session_ids,
            ),
        ] = None,
        config: Config = None,
        server: Server = "",
        project: Annotated[
            str,
            typer.Option(
                "--project",
                metavar="NAME",
                help="The sessions of this project.",
                autocompletion=completion.projects,
            ),
        ] = "",
        everything: Annotated[bool, typer.Option("--all", help="The whole bot.")] = False,
        no_wait: NoWait = False,
        as_json: Json = False,
    ) -> None:
        if sum(map(bool, (session_id, project, everything))) != 1:
            raise CliError(f"name what to {kind}: a SESSION, --project NAME or --all")
        if session_id:
            _submit(config, server, session_id, kind, "", no_wait, as_json)
            return
        from bot.cli import submit

        frozen = kind == "freeze"
        submit.set_frozen(config, server, project, frozen=frozen, as_json=as_json)

    return submit


for _kind, _help in PLAIN.items():
    app.command(_kind, help=_help)(_plain(_kind))
for _kind, (_help, _argument) in _WITH_ARGUMENT.items():
    app.command(_kind, help=_help)(_with_argument(_kind, _argument))
for _kind, _help in _FREEZES.items():
    app.command(_kind, help=_help)(_freezing(_kind))


@app.command()
def meta(
    session_id: SessionId,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Set a value; KEY= removes it.")
    ] = None,
    config: Config = None,
    server: Server = "",
    as_json: Json = False,
) -> None:
    """Show or change the KEY=VALUE notes on a session."""
    from bot.cli import submit

    submit.set_metadata(config, server, session_id, values or [], as_json=as_json)


def _submit(
    config: Path | None,
    server: str,
    session_id: str,
    kind: str,
    text: str,
    no_wait: bool,
    as_json: bool,
    *,
    pull: int | None = None,
    resume: str = "",
) -> None:
    from bot.cli import submit

    wait = not no_wait
    submit.submit(
        *(config, session_id, kind, text, pull, resume), wait=wait, as_json=as_json, server=server
    )
