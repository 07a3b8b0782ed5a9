"""Paths as people write them into the configuration, in git's words."""

from collections.abc import Iterable, Iterator


def pathspecs(paths: Iterable[str], *magic: str) -> list[str]:
    """A name alone is meant in every folder, and case does not matter; `*` and `**` are git's.

    What lies below a folder is meant with the folder's own name, which may become a link.
    """
    signs = ",".join((*magic, "glob", "icase"))
    return [f":({signs}){where}" for path in paths for where in _places(path)]


def _places(path: str) -> Iterator[str]:
    where = path.removeprefix("/") if "/" in path else f"**/{path}"
    yield where
    if where.endswith("/**"):
        yield where.removesuffix("/**")
