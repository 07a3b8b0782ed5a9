"""Implements `mergewright backup` and `mergewright restore`."""

from pathlib import Path

from bot.archive import backup
from bot.cli import context, screens
from bot.cli.cleanup import size
from bot.cli.options import PROBLEM, CliError
from bot.cli.progress import progress
from bot.store import StoreFailure
from bot.system.locations import Paths


def back_up(config: Path | None, file: Path, *, as_json: bool) -> None:
    """Write a backup to `file`, replacing it if it exists. Raises `CliError`, `OSError`."""
    settings = context.settings(config)
    with context.store(settings) as store, progress(f"Writing {file} ..."):
        backup.back_up(store, Paths(settings.data), file)
    count = file.stat().st_size
    says = f"{file}: {size(count)}. Restore it with `mergewright restore {file}`."
    value = {"file": str(file), "bytes": count}
    screens.say(value, says, as_json=as_json)


def restore(config: Path | None, file: Path, *, as_json: bool) -> None:
    """Restore a backup. Raises `CliError`, `OSError`."""
    paths = Paths(context.settings(config).data)
    if not file.exists():
        named = len(file.parts) == 1 and not file.suffix
        session = f"; an ended session is restored by `mergewright start {file}`" if named else ""
        raise CliError(f"{file}: no such file{session}")
    try:
        with progress(f"Restoring {file} ..."):
            backup.restore(file, paths)
    except (backup.NotRestored, StoreFailure) as failure:
        raise CliError(str(failure), PROBLEM) from None
    says = (
        f"Restored to {paths.data}. Make sure that the bot that wrote the backup has stopped, then"
        " run `mergewright serve`."
    )
    value = {"file": str(file), "data": str(paths.data)}
    screens.say(value, says, as_json=as_json)
