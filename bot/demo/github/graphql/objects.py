"""Git objects as GraphQL shows them: a commit by its id, a file or folder by its path."""

from bot.demo.github.graphql.commits import Commit
from bot.demo.github.graphql.connections import Json
from bot.demo.github.repository import Repository


def git_object(repo: Repository, oid: str = "", expression: str = "") -> Commit | Json | None:
    """Return what `oid` or an expression such as `HEAD:README.md` names; None if missing."""
    revision, _, path = expression.partition(":")
    if not path:
        named = oid or revision
        return Commit(repo, named) if repo.git.resolve(named) else None
    top = f"refs/heads/{repo.default_branch}" if revision == "HEAD" else revision
    return _at(repo, f"{top}:{path}")


def _at(repo: Repository, place: str) -> Json | None:
    found = repo.git.run("cat-file", "--batch-check", stdin=f"{place}\n".encode()).split()
    if found[-1] == "missing":
        return None
    oid, kind, _ = found
    shown = {"__typename": kind.title(), "id": f"{kind[0].upper()}_{oid}", "oid": oid}
    if kind == "blob":
        text = repo.git.run("cat-file", "blob", oid)
        return {**shown, "text": None if "\0" in text else text}  # Binary content has no text.
    names = repo.git.run("ls-tree", "-z", "--name-only", oid).split("\0")
    inside = [{"name": name, "object": _at(repo, f"{oid}:{name}")} for name in names if name]
    return {**shown, "entries": inside}
