"""Sparse checkouts: which files of a commit are in a checkout.

Only git's cone mode is used: whole folders, and files directly in the folders above.
https://git-scm.com/docs/git-sparse-checkout#_internalscone_mode_handling
"""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from runtimes.files import read_text, write_private

_FILE = "info/sparse-checkout"
_SETTINGS = "[core]\nsparseCheckout = true\nsparseCheckoutCone = true\n"


def restrict(repository: Path, place: Path, folders: Sequence[str]) -> None:
    """Make git check out only `folders` of a repository; change nothing if there are none.

    `place` is the git directory of the checkout: `repository`, or one below its `worktrees`. Raises
    `OSError`.
    """
    if folders:
        with (repository / "config").open("a") as config:
            config.write(_SETTINGS)
        write_private(place / _FILE, "".join(f"{line}\n" for line in _patterns(folders)))


def left_out(place: Path, names: Iterable[str]) -> list[str]:
    """Return those of the given files that `restrict` keeps out of the checkout of `place`."""
    lines = read_text(place / _FILE).splitlines()
    if not lines:
        return []
    parents = {line[2:-3] for line in lines if line.startswith("!")} | {""}
    folders = {line.strip("/") for line in lines if not line.startswith("!")} - parents - {"*"}
    return [name for name in names if not _is_in(PurePosixPath(name).parent, parents, folders)]


def is_sparse(place: Path) -> bool:
    """Whether `restrict` has limited the checkout that `place` belongs to."""
    return (place / _FILE).is_file()


def _is_in(folder: PurePosixPath, parents: set[str], folders: set[str]) -> bool:
    here = "" if folder == PurePosixPath() else str(folder)
    return here in parents or any(str(above) in folders for above in (folder, *folder.parents))


def _patterns(folders: Sequence[str]) -> Iterable[str]:
    paths = [PurePosixPath(folder) for folder in folders]
    wanted = sorted(str(path) for path in paths if not set(path.parents) & set(paths))
    above = {parent for path in wanted for parent in PurePosixPath(path).parents}
    yield from ("/*", "!/*/")
    for parent in sorted(map(str, above - {PurePosixPath()})):
        yield from (f"/{parent}/", f"!/{parent}/*/")
    for path in wanted:
        yield f"/{path}/"
