"""Runs git on what a session's agent writes, in a sandbox of that session.

Git runs in the bot's own repository of the session, `bot.git`, which borrows the objects of the
session's repository and of the mirror. So git reads no configuration that an agent wrote: hooks,
filters, fsmonitor and URLs in such a configuration can run code (measured). But an agent's nested
repositories, and alternates or links among its objects, still lead git to other folders. So git
runs in a sandbox with four folders: it may write to `bot.git` and the checkout, and read the
session's repository and the project's mirror. `SessionGit.fill` adds a fifth folder, which git may
only read: the bot's repository of a submodule. The files in `bot.git` are as untrusted as those in
the checkout. Git's output is limited in size, and each command in time.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from runtimes.files import is_about_file, make_folder, open_regular, replacing
from runtimes.isolation.base import Isolation, Limits, Sandbox
from runtimes.workspaces import preservable, sparse
from runtimes.workspaces.git import LOCAL_SECONDS, NETWORK_SECONDS, GitFailure, git, init, pathspecs
from runtimes.workspaces.repositories import exclude, use_lfs

#: Git needs more memory than other programs, to pack or compare files of a gigabyte.
_LIMITS = Limits(memory_mb=4096, processes=64)
INDEX_BYTES = 512 * 1024**2  #: The largest index that is read. A million files have 100 MB.


@dataclass(frozen=True, kw_only=True)
class SessionGit:
    """Runs git for one session. Calling it runs a command and returns its output."""

    view: Path  #: The bot's repository of the session.
    checkout: Path
    repository: Path  #: The agent's repository.
    origin: Path  #: The project's mirror.
    #: Returns the isolation of the session's runs. Raises `RuntimeFailure` if it does not work.
    isolation: Callable[[], Isolation]
    excluded: Sequence[str] = ()  #: Files of the operator's in the checkout, which git ignores.

    def __call__(self, *args: str, **more: Any) -> str:
        """Run a git command in the repository `view`, in a sandbox, and return its output.

        `more` are keyword arguments of the function `runtimes.workspaces.git.git`.
        """
        return self._run(args, (self.repository / "objects",), **more)

    def _run(self, args: Sequence[str], read: Sequence[Path], **more: Any) -> str:
        preservable.check_pipes(*read)
        return git(self.view, *args, wrap=self._wrapped, **more)

    def _wrapped(
        self, argv: Sequence[str], further: Sequence[Path] = ()
    ) -> AbstractContextManager[tuple[Sequence[str], Sequence[int]]]:
        sandbox = Sandbox(
            writable=tuple(filter(_is_folder, (self.view, self.checkout))),
            readable=tuple(filter(_is_folder, (self.repository, self.origin, *further))),
            limits=_LIMITS,
        )
        return self.isolation().command(argv, self.view, sandbox)

    def on_files(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        literal: bool = False,
    ) -> str:
        """Run a command on the checkout's files and return its output. Raises `GitFailure`.

        With `literal`, the command's pathspecs are names of files, not patterns.
        """
        # A link in its place would make other files look like the agent's work.
        if self.checkout.is_symlink() or not self.checkout.is_dir():
            words = "the checkout was removed or replaced"
            remedy = "look at the session's workspace by hand"
            raise GitFailure(args[0], str(self.checkout), words, remedy)
        if self.excluded:
            exclude(self.view, self.excluded)
        env = {"GIT_WORK_TREE": str(self.checkout), **(env or {})}
        if literal:
            env["GIT_LITERAL_PATHSPECS"] = "1"
        names = "surrogateescape"  # The agent's files may have any.
        # A look at the files must not wait as long as work on them.
        seconds = LOCAL_SECONDS if args[0] == "status" else NETWORK_SECONDS
        read = (self.checkout, self.repository / "objects")
        return self._run(args, read, env=env, seconds=seconds, stdin=stdin, errors=names)

    def fill(self, folder: str, repository: Path, commit: str, steering: Sequence[str]) -> bool:
        """Write the files of a submodule, as they are in its `commit`, into its `folder`.

        `repository` is the bot's repository of the submodule, outside of the checkout; `folder`
        gets files only, no `.git`. If it has files already, tracked ones are restored, and
        untracked ones that match the patterns `steering` are removed. Returns False if the path is
        taken by something else, such as a file, a link or a repository. Does nothing and returns
        True if a sparse checkout leaves the folder out.
        """
        place = self.checkout / folder
        if sparse.left_out(self.view, [folder]):
            return True
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        index = self.view / "submodules" / name
        try:
            if os.path.lexists(place / ".git"):
                return False
            make_folder(place)
            make_folder(index.parent)
        except OSError as error:
            if not is_about_file(error):
                raise
            return False
        env = {"GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(index)}
        wrap = partial(self._wrapped, further=(repository,))
        preservable.check_pipes(place)
        files = partial(git, repository, env=env, wrap=wrap, seconds=NETWORK_SECONDS)
        files("read-tree", "--reset", "-u", commit)
        if steering:
            files("clean", "--quiet", "-ffdx", "--", *pathspecs(steering))
        return True

    def index(self) -> tuple[bytes, int]:
        """Return the index file of the bot's repository (`view`), and its modification time.

        The time is in nanoseconds. At most `INDEX_BYTES` of the index are read. Raises `OSError`.
        """
        with open_regular(self.view / "index") as file:
            return file.read(INDEX_BYTES), os.fstat(file.fileno()).st_mtime_ns

    def copied_index(self, name: str) -> Path:
        """Copy the index file of the bot's repository to a file `name` beside it.

        Returns the path of the copy. Raises `OSError`.
        """
        data, modified = self.index()
        with replacing(self.view / name) as copy:
            copy.write(data)
            copy.flush()
            # With its time: git reads files again that are not older than the index.
            os.utime(copy.fileno(), ns=(modified, modified))
        return self.view / name

    def leave_out(self, env: Mapping[str, str] | None = None) -> None:
        """Set marks in a git index, so that no file outside the sparse checkout counts as deleted.

        Call this method after `git read-tree`, which sets these marks only with the option `-u`.
        A marked file that exists still counts as part of the checkout (measured with git 2.39). The
        index is that of the repository `view`, unless `env` sets `GIT_INDEX_FILE`.
        """
        if sparse.is_sparse(self.view):
            names = filter(None, self.on_files("ls-files", "-z", env=env).split("\0"))
            outside = "".join(f"{name}\0" for name in sparse.left_out(self.view, names))
            command = ("update-index", "--skip-worktree", "-z", "--stdin")
            self.on_files(*command, env=env, stdin=outside)

    def shown(self, names: Iterable[str]) -> list[str]:
        """Return the given files, without those that a sparse checkout leaves out."""
        outside = set(sparse.left_out(self.view, names))
        return [name for name in names if name not in outside]

    def make(self, folders: Sequence[str] = (), *, lfs: bool = False) -> None:
        """Make the repository `view`, which borrows the objects of `repository` and `origin`.

        If `folders` are given, git treats the checkout as a sparse checkout of these folders; else
        it expects all files in the checkout. With `lfs`, git recognises files of Git LFS.
        """
        init(self.view, borrow=(self.repository, self.origin))
        sparse.restrict(self.view, self.view, folders)
        if lfs:
            use_lfs(self.view, "--skip")


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
