"""Backs up the bot's database and archive into one file while the bot runs, and restores them.

The file is a tar archive with the database and the archive of the agents' files. It lacks commits
that were not pushed yet, and what the bot can make again: mirrors and workspaces, which it gets
from GitHub, and the run folders (with sandboxes, sockets and run tokens) and the runtime's folder,
which are made when the bot or an agent starts.
"""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePosixPath

from bot.store import Store
from bot.system.locations import Paths


class NotRestored(Exception):
    """A backup cannot be restored; the message says why and what to do."""


def back_up(store: Store, paths: Paths, file: Path) -> None:
    """Write a backup (mode 0600), and replace `file` once it is complete.

    The database is copied as it is at one moment, and the archive after it. What running agents
    wrote since their files were last archived may be missing. A restored bot archives these files
    if they still exist. Raises `StoreFailure` and `OSError`.
    """
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.absolute().parent) as folder:
        copy, new = Path(folder) / paths.database.name, Path(folder) / "new"
        store.copy_to(copy)
        new.touch(mode=0o600)
        with tarfile.open(new, "w") as tar:
            tar.add(copy, paths.database.name)
            for path in sorted(paths.archive.rglob("*")):
                with suppress(FileNotFoundError):  # Deleted or compressed meanwhile.
                    name = path.relative_to(paths.archive.parent).as_posix()
                    _add(tar, path, name, Path(folder))
        with new.open("rb") as written:
            os.fsync(written.fileno())
        new.replace(file)


def _add(tar: tarfile.TarFile, path: Path, name: str, folder: Path) -> None:
    """Add a file through a copy in `folder`: the bot may extend or truncate it meanwhile."""
    if path.suffix == ".new" or not path.is_file():
        return
    with path.open("rb") as source, tempfile.TemporaryFile(dir=folder) as copy:
        shutil.copyfileobj(source, copy)
        entry = tar.gettarinfo(arcname=name, fileobj=source)
        entry.type, entry.linkname = tarfile.REGTYPE, ""  # Even if it has other names, too.
        entry.size = copy.tell()
        copy.seek(0)
        tar.addfile(entry, copy)


def restore(file: Path, paths: Paths) -> None:
    """Restore a backup into a data folder that has no database yet.

    The database gets its final name last, so that an interrupted restore can be repeated. The
    lease of the bot that wrote the backup is removed; that bot must not run any more.

    Raises `NotRestored`, `StoreFailure` for a database that is damaged or of a newer version, and
    `OSError`.
    """
    if paths.database.exists():
        raise NotRestored(
            f"{paths.database} exists: stop the bot and move this file and those named"
            f" {paths.database.name}-... away, or name another folder as server.data"
        )
    paths.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = paths.database.with_name(f"{paths.database.name}.restored")
    with _opened(file) as tar:
        if paths.database.name not in tar.getnames():
            raise NotRestored(
                f"{file} is not a Mergewright backup: it has no {paths.database.name}"
            )
        for member in tar:
            if member.name == paths.database.name:
                _extract(tar, member, new)
            elif member.isfile() and _is_archived(member.name, paths):
                _extract(tar, member, paths.data / member.name)
    with closing(Store(new)) as store:
        store.lease.take_away()
    new.replace(paths.database)
    for left in paths.data.glob(f"{new.name}?*"):
        left.unlink()


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file) as tar:
            yield tar
    except tarfile.TarError as error:
        raise NotRestored(f"{file} is not a Mergewright backup, or is damaged: {error}") from error


def _is_archived(name: str, paths: Paths) -> bool:
    parts = PurePosixPath(name).parts
    return parts[0] == paths.archive.name and ".." not in parts


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise NotRestored(f"{member.name} is not a file in the backup")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    with source, target.open("wb") as out:
        shutil.copyfileobj(source, out)
