"""Runs git on a bare repository, as GitHub does when people push, merge and compare."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

#: As on GitHub, clients may fetch any commit by its id and make partial clones.
_SERVED = {
    "http.receivepack": "true",
    "uploadpack.allowReachableSHA1InWant": "true",
    "uploadpack.allowTipSHA1InWant": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
    "receive.hideRefs": "refs/pull",
    "gc.auto": "0",
    "core.quotePath": "false",
}
#: Refuses pushes to the branches listed in the file `protected` of the repository's folder.
_UPDATE_HOOK = """#!/bin/sh
grep -qxF "$1" "$GIT_DIR/protected" 2>/dev/null || exit 0
echo "error: GH006: Protected branch update failed for $1." >&2
exit 1
"""
#: The commands whose output depends on the commit ids in their arguments alone.
_SETTLED = {"diff", "log", "merge-base", "merge-tree", "rev-list"}
_COMMITS = re.compile(r"[0-9a-f]{40}(\.{2,3}[0-9a-f]{40})?")


class GitFailure(Exception):
    """A git command failed; the message says why."""


class Conflict(GitFailure):
    """Two commits cannot be merged by git alone."""


class Signature(Struct, frozen=True):
    """The author or committer of a commit."""

    name: str
    email: str


class CommitInfo(Struct, frozen=True, kw_only=True):
    """One commit; dates are ISO 8601."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    authored: str
    committer: Signature
    committed: str
    message: str


def environment() -> dict[str, str]:
    """Return the environment of every git command, which hides the user's configuration."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


class Git:
    """One bare repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._settled: dict[tuple[str, ...], subprocess.CompletedProcess[bytes]] = {}

    def init(self, default_branch: str) -> None:
        self.path.mkdir(parents=True)
        self.run("init", "--quiet", "--bare", f"--initial-branch={default_branch}", ".")
        self._configure()

    def init_from(self, source: Path) -> None:
        """Make this a full copy of another bare repository, for a fork."""
        self.path.mkdir(parents=True)
        self.run("clone", "--quiet", "--bare", str(source), ".")
        self._configure()

    def _configure(self) -> None:
        with (self.path / "config").open("a") as config:
            for key, value in _SERVED.items():
                section, name = key.split(".")
                config.write(f"[{section}]\n\t{name} = {value}\n")
        hook = self.path / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_UPDATE_HOOK)
        hook.chmod(0o755)

    def run(self, *args: str, stdin: bytes | None = None, env: Mapping[str, str] = {}) -> str:
        done = self._call(args, stdin, env)
        if done.returncode:
            raise GitFailure(f"git {' '.join(args)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace")

    def _call(
        self, args: tuple[str, ...], stdin: bytes | None = None, env: Mapping[str, str] = {}
    ) -> subprocess.CompletedProcess[bytes]:
        if args in self._settled:
            return self._settled[args]
        done = self._done(args, stdin, env)
        named = all(arg.startswith("-") or _COMMITS.fullmatch(arg) for arg in args[1:])
        if args[0] in _SETTLED and named and done.returncode in (0, 1):
            self._settled[args] = done
        return done

    def _done(
        self, args: tuple[str, ...], stdin: bytes | None, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", *args],
            check=False,
            cwd=self.path,
            env={**environment(), **env},
            input=b"" if stdin is None else stdin,
            capture_output=True,
            process_group=0,  # Ctrl-C in the demo's terminal lets git finish.
        )

    # -- refs

    def heads(self) -> dict[str, str]:
        """Return each branch with its commit."""
        lines = self.run("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
        pairs = (line.split(" ", 1) for line in lines.splitlines())
        return {name.removeprefix("refs/heads/"): sha for name, sha in pairs}

    def set_ref(self, ref: str, sha: str) -> None:
        self.run("update-ref", ref, sha)

    def delete_ref(self, ref: str) -> None:
        self.run("update-ref", "-d", ref)

    def fetch(self, source: Path, ref: str, into: str) -> None:
        self.run("fetch", "--quiet", str(source), f"+{ref}:{into}")

    def refuse_pushes(self, branches: list[str]) -> None:
        """Refuse pushes to these branches, as GitHub does for protected ones."""
        (self.path / "protected").write_text("".join(f"refs/heads/{b}\n" for b in branches))

    # -- reading

    def resolve(self, revision: str) -> str | None:
        """Return the id of the commit that a branch, tag or commit name refers to, or None."""
        found = self._call(
            ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        )
        return found.stdout.decode().strip() or None

    def commit(self, sha: str) -> CommitInfo:
        return next(self.log(sha, "--no-walk"))

    def log(self, *revisions: str) -> Iterator[CommitInfo]:
        """Yield commits in the order of `git log`, whose arguments it takes."""
        form = "%x1e%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%cn%x1f%ce%x1f%cI%x1f%B"
        for record in self.run("log", f"--format={form}", *revisions).split("\x1e")[1:]:
            sha, tree, parents, an, ae, at, cn, ce, ct, message = record.split("\x1f", 9)
            yield CommitInfo(
                sha=sha,
                tree=tree,
                parents=tuple(parents.split()),
                author=Signature(an, ae),
                authored=at,
                committer=Signature(cn, ce),
                committed=ct,
                message=message.strip("\n"),
            )

    def contains(self, descendant: str, ancestor: str) -> bool:
        return self._call(("merge-base", "--is-ancestor", ancestor, descendant)).returncode == 0

    def count(self, base: str, head: str) -> int:
        """Count the commits of `head` that `base` lacks."""
        return int(self.run("rev-list", "--count", f"{base}..{head}"))

    def changed(self, old: str, new: str) -> dict[str, str]:
        """Return the paths that differ between two commits, each with git's status, such as M."""
        lines = self.run("diff", "--name-status", "--no-renames", old, new).splitlines()
        return {path: letter for letter, path in (line.split("\t", 1) for line in lines)}

    def diffstat(self, base: str, head: str) -> tuple[int, int, int]:
        """Return the numbers of added lines, removed lines and changed files of a pull request."""
        lines = self.run("diff", "--numstat", f"{base}...{head}").splitlines()
        counts = [line.split("\t")[:2] for line in lines]
        added, removed = (sum(int(c[i]) for c in counts if c[i] != "-") for i in (0, 1))
        return added, removed, len(lines)

    def hunk(self, base: str, head: str, path: str, line: int) -> str:
        """Return the hunk of a file's diff that contains `line`, cut off after this line.

        `line` is a line number in the new file. Returns an empty text if no hunk contains the line.
        """
        diff = self.run("diff", f"{base}...{head}", "--", path)
        kept: list[str] = []
        at = 0
        for text in diff.splitlines():
            if text.startswith("@@"):
                kept = [text]
                at = int(text.split("+")[1].split(" ")[0].split(",")[0]) - 1
            elif kept:
                kept.append(text)
                in_new = not text.startswith(("-", "\\"))  # A backslash begins git's own remark.
                at += in_new
                if at == line and in_new:
                    return "\n".join(kept)
        return ""

    # -- writing

    def commit_files(
        self,
        branch: str,
        files: Mapping[str, str | None],
        message: str,
        by: Signature,
        parent: str | None,
    ) -> str:
        """Commit changes of files to a branch, and return the new commit.

        `files` has the new contents by path; None removes a file. The commit becomes the branch's
        head. `parent` is None for a commit without a parent.
        """
        stream = [
            f"commit refs/heads/{branch}",
            "mark :1",
            f"committer {by.name} <{by.email}> now",
            *_data(message),
            *([f"from {parent}"] if parent else []),
        ]
        for path, content in files.items():
            if content is None:
                stream.append(f"D {path}")
                continue
            mode = "100755" if content.startswith("#!") else "100644"
            stream += [f"M {mode} inline {path}", *_data(content)]
        given = "\n".join([*stream, "get-mark :1", ""]).encode()
        return self.run("fast-import", "--quiet", "--date-format=now", stdin=given).strip()

    def merge_tree(self, ours: str, theirs: str) -> str:
        """Merge two commits without committing, and return the tree's id. Raises `Conflict`."""
        done = self._call(("merge-tree", "--write-tree", ours, theirs))
        if done.returncode == 1:
            raise Conflict(f"{ours} and {theirs} conflict")
        if done.returncode:
            raise GitFailure(done.stderr.decode(errors="replace"))
        return done.stdout.decode().splitlines()[0]

    def commit_tree(
        self, tree: str, parents: tuple[str, ...], message: str, author: Signature, by: Signature
    ) -> str:
        flags = [flag for parent in parents for flag in ("-p", parent)]
        names = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_COMMITTER_NAME": by.name,
            "GIT_COMMITTER_EMAIL": by.email,
        }
        return self.run("commit-tree", tree, *flags, stdin=message.encode(), env=names).strip()

    def replay(self, onto: str, base: str, head: str, by: Signature) -> str:
        """Rebase `base..head` onto a commit, and return the new head. Raises `Conflict`."""
        for commit in self.log("--reverse", "--no-merges", f"{base}..{head}"):
            # A stand-in with the new parent's tree and the commit's own parent makes merge-tree
            # take that parent as the merge base, which only git 2.40 and newer takes as an option.
            stand_in = self.commit_tree(f"{onto}^{{tree}}", commit.parents[:1], "onto", by, by)
            tree = self.merge_tree(stand_in, commit.sha)
            onto = self.commit_tree(tree, (onto,), commit.message, commit.author, by)
        return onto


def _data(text: str) -> list[str]:
    return [f"data {len(text.encode())}", text]
