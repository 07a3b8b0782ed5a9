"""Turns paths of the configuration into git's pathspecs (gitglossary(7), "pathspec")."""

from collections.abc import Iterable, Iterator


def pathspecs(paths: Iterable[str], *magic: str) -> list[str]:
    """Pathspecs of these paths, with extra magic words such as `exclude`.

    A name without a slash matches in every folder; case does not matter; `*` and `**` are git's.
    `folder/**` matches the folder's own name too, because a link may replace it.
    """
    signs = ",".join((*magic, "glob", "icase"))
    return [f":({signs}){where}" for path in paths for where in _places(path)]


def _places(path: str) -> Iterator[str]:
    where = path.removeprefix("/") if "/" in path else f"**/{path}"
    yield where
    if where.endswith("/**"):
        yield where.removesuffix("/**")
