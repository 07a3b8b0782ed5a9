"""Replaces commits by signed ones, before they are pushed.

A commit's id covers its signature, so the signed commit has another id. It keeps the tree, author,
dates and message of the original; only committer, signature and ids of parents differ. It does not
depend on the time of signing, so a repetition after a crash makes the same commits again.
"""

import tempfile
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

from runtimes.workspaces.git import GitFailure, git
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.refs import check_session

_MOST_COMMITS = 10_000  #: The most commits that are signed.
_MOST_BYTES = 256 * 1024**2  #: Of all commits together, without their files.
_SIGNATURES = (b"gpgsig ", b"gpgsig-sha256 ")


class CommitSigner(NamedTuple):
    """Who signs commits, and how."""

    name: str  #: Of the committer.
    email: str  #: GitHub must have verified it for the account that has the key.
    sign: Callable[[bytes], str]  #: Returns the signature for a commit that has none yet.


def sign_commits(mirror: Mirror, session: str, head: str, signer: CommitSigner) -> str:
    """Return `head`, rewritten so that `signer` has signed every commit that is not pushed yet.

    Commits on a branch of GitHub, commits that the bot has pushed, and commits that this signer has
    signed are kept. The new commit is recorded as the session's. Idempotent. Raises `GitFailure`,
    also for more than 10,000 commits.
    """
    pushed = ("--branches", "--glob=refs/mergewright/pushed")
    most = f"--max-count={_MOST_COMMITS + 1}"
    listed = git(mirror.path, "rev-list", "--topo-order", "--reverse", most, head, "--not", *pushed)
    shas = listed.split()
    if len(shas) > _MOST_COMMITS:
        words = f"there are more than {_MOST_COMMITS} commits to sign"
        raise GitFailure("commit-tree", session, words, "have the agent squash them")
    signed: dict[bytes, bytes] = {}  # By the id of the original.
    with tempfile.TemporaryDirectory(dir=mirror.path, prefix="tmp_") as name:
        folder, made = Path(name), list[Path]()
        for sha, commit in _read(mirror, shas, folder).items():
            data = _signed(commit, signed, signer)
            new = sha1(b"commit %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
            signed[sha.encode()] = new.encode()
            if new != sha:
                made.append(folder / new)
                made[-1].write_bytes(data)
        if made:
            paths = "".join(f"{path}\n" for path in made)
            git(mirror.path, "hash-object", "-t", "commit", "-w", "--stdin-paths", stdin=paths)
    result = signed.get(head.encode(), head.encode()).decode()
    # Nothing else refers to the new commits until the branch in the workspace does.
    ref = f"refs/mergewright/sessions/{check_session(session)}"
    git(mirror.path, "update-ref", ref, result)
    return result


def _read(mirror: Mirror, shas: list[str], folder: Path) -> dict[str, bytes]:
    """Return commits as git stores them, by id, in the order of `shas`."""
    file, found = folder / "commits", dict[str, bytes]()
    names = "".join(f"{sha}\n" for sha in shas)
    git(mirror.path, "cat-file", "--batch", stdin=names, into=file, most=_MOST_BYTES)
    with file.open("rb") as commits:
        for sha in shas:
            size = int(commits.readline().split()[2])
            found[sha] = commits.read(size)
            commits.read(1)
    return found


def _signed(commit: bytes, parents: dict[bytes, bytes], signer: CommitSigner) -> bytes:
    """Return a commit with the signer's name and signature, and with new parents.

    `parents` has the new ids of parents by their old ids; other parents are kept.
    """
    top, _, message = commit.partition(b"\n\n")
    lines, in_signature = list[bytes](), False
    for line in top.rstrip(b"\n").split(b"\n"):
        in_signature = line.startswith(_SIGNATURES) or (in_signature and line.startswith(b" "))
        if in_signature:
            continue
        name, _, value = line.partition(b" ")
        if name == b"parent":
            value = parents.get(value, value)
        elif name == b"committer":
            when = value.rpartition(b">")[2]
            value = f"{signer.name} <{signer.email}>".encode() + when
        lines.append(line if not value else name + b" " + value)
    headers = b"\n".join(lines)
    signature = signer.sign(headers + b"\n\n" + message).replace("\n", "\n ").encode()
    return headers + b"\ngpgsig " + signature + b"\n\n" + message
