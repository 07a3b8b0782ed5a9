"""Implements `mergewright logs` and `mergewright transcript`, by files or a server's API."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec import Struct

from bot.cli import context, output
from bot.cli.options import PROBLEM, CliError
from bot.cli.remote import RemoteServer
from bot.cli.remote_reader import RemoteLog, RemoteTranscript, step_lines
from bot.show.transcripts import NoTranscript, Transcripts
from bot.system.locations import Paths, programs
from runtimes.host import WorkspaceStep, output_of
from runtimes.local_records import LocalRecords


class WantedLog(Struct, frozen=True, kw_only=True):
    """Which output to print, and how much of it."""

    session: str
    run: int  #: If 0, the last run. Not used with `step`.
    step: str  #: `setup` or `teardown`, for the output of these commands. If empty, the agent's.
    lines: int  #: How many of the last lines to print.
    follow: bool
    ansi: bool  #: Whether to keep colours.


def show(config: Path | None, server: str, wanted: WantedLog, *, as_json: bool) -> None:
    """Print the output of a session's agent, or of its project's own commands.

    Raises `CliError`.
    """
    if server:
        with closing(RemoteServer(server)) as remote:
            new = _remote_lines(remote, wanted)
            output.log(new, wanted.lines, follow=wanted.follow, as_json=as_json)
    else:
        new = _local_lines(config, wanted)
        output.log(new, wanted.lines, follow=wanted.follow, as_json=as_json)


def transcript(
    config: Path | None,
    server: str,
    id: str,
    run: int,
    span: tuple[int, int | None],
    *,
    follow: bool,
    as_json: bool,
) -> None:
    """Print the conversation of a run; run 0 is the last one. Raises `CliError`.

    `span` has the number of the first message, counted from 0, and the greatest number of messages
    to print, or None to print all.
    """
    if server:
        with closing(RemoteServer(server)) as remote:
            messages = RemoteTranscript(remote, id, run)
            output.transcript(messages, *span, follow=follow, as_json=as_json)
        return
    settings, redact = context.redacting(config)
    paths, adapters = Paths(settings.data), programs(settings)
    with context.store(settings) as store:
        session = context.session(store, id)
        records = LocalRecords(adapters, paths.host)
        transcripts = Transcripts(store, records, adapters, paths.archive, redact)
        try:
            with transcripts.of(session, run or session.run) as found:
                output.transcript(found, *span, follow=follow, as_json=as_json)
        except NoTranscript as nothing:
            raise CliError(str(nothing), PROBLEM) from None


def _local_lines(config: Path | None, wanted: WantedLog) -> output.NewLines:
    settings, redact = context.redacting(config)
    with context.store(settings) as store:
        session = context.session(store, wanted.session)
    number = wanted.run or session.run
    records, name = LocalRecords({}, Paths(settings.data).host), output_of(session.id, number)
    missing = f"{session.id}: run {number} has not begun, or its output has expired"
    if not number:
        missing = (
            f"the agent of {session.id} has not started; `mergewright why {session.id}` says why"
        )
    if wanted.step:
        attempts = records.attempts(session.id, WorkspaceStep(wanted.step))
        missing = f"no {wanted.step} commands have run in {session.id} yet"
        name = attempts[-1].output if attempts else f"{session.id}_{wanted.step}0/output.log"
    try:
        records.size(session.id, name)
    except FileNotFoundError:
        raise CliError(missing, PROBLEM) from None
    return output.lines_of(partial(records.read, session.id, name), redact, ansi=wanted.ansi)


def _remote_lines(remote: RemoteServer, wanted: WantedLog) -> output.NewLines:
    if wanted.ansi:
        raise CliError("--ansi works on the server's own machine only: the API sends plain text")
    if wanted.step and wanted.follow:
        raise CliError("--step with --follow works on the server's own machine only")
    if wanted.step:
        printed = iter(step_lines(remote, wanted.session, wanted.step))
        return lambda: printed
    log = RemoteLog(remote, wanted.session, wanted.run, wanted.lines)

    def new() -> Iterator[output.Line]:
        return log.new()

    return new
