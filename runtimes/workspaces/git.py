"""Runs git with an environment of its own, a time-out, and errors with a remedy.

Git ignores the settings of the machine and of the user here, but it reads those of the repository
that it runs in. So git runs only in repositories that no agent writes to, or in a sandbox
(`runtimes.workspaces.session_git`). GitPython is not used, because it passes the server's whole
environment, secrets included, to git.
"""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import KW_ONLY, dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from runtimes.base import RuntimeFailure
from runtimes.workspaces.git_login import GitLogin, offered

LOCAL_SECONDS = 120.0  #: The time-out of commands without the network.
NETWORK_SECONDS = 900.0  #: The first clone of a large repository takes minutes.
_TEXT_BYTES = 64 * 1024**2  #: The most of git's output that is kept in memory.
_ERROR_BYTES = 64 * 1024
_CHUNK = 256 * 1024

#: Puts a command line into a sandbox, as `Isolation.command` does.
Wrapper = Callable[[Sequence[str]], AbstractContextManager[tuple[Sequence[str], Sequence[int]]]]

#: The variables of the server's environment that are passed to git; in a sandbox only PATH is.
_INHERITED = (
    *("PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY"),
)
#: The email of the bot's commits and of those that agents make with their repository's settings.
EMAIL = "mergewright@localhost"
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Mergewright",
    "GIT_AUTHOR_EMAIL": EMAIL,
    "GIT_COMMITTER_NAME": "Mergewright",
    "GIT_COMMITTER_EMAIL": EMAIL,
}
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.sshCommand": "ssh -o BatchMode=yes",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "credential.helper": "",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "advice.detachedHead": "false",
}
#: Errors of a network or server that does not answer, after which a retry may succeed.
_OUTAGE = (
    r"Could not resolve host|Failed to connect|timed out|Connection (refused|reset)"
    r"|returned error: 5\d\d|early EOF|hung up unexpectedly|unexpected disconnect"
)
_TOO_LARGE = r"File too large|signal 25\b"
_FULL = rf"No space left|unable to write file|Disk quota|{_TOO_LARGE}"
#: Errors of git with their remedies; the first match counts.
_REMEDIES = (
    (
        _FULL,
        "free disk space there, then try again",
    ),
    (
        r"Authentication failed|could not read Username|error: 40[13]|denied \(publickey",
        "check the token, and that it may read and write the repository's contents",
    ),
    (_OUTAGE, "check the network and the proxy, then try again"),
    (
        r"[Rr]epository .*not found|does not appear to be a git repository|does not exist",
        "check the repository's address, and that the token may read it",
    ),
    (
        r"(?:GET|PUT|POST) returned error: [34]\d\d|the answer is (?:too large|malformed)"
        r"|an address without HTTPS",
        "check the repository's Git LFS server and its quota",
    ),
    (r"\.lock': File exists", "if no git runs there, remove the lock file that the message names"),
    (
        r"[Pp]ermission denied",
        "give the user that runs Mergewright access to the path that the message names",
    ),
)


@dataclass(eq=False, repr=False)
class GitFailure(Exception):
    """A git command failed; the message names the command, the repository and the remedy."""

    command: str  #: Such as `fetch`.
    place: str  #: The path of the repository or the checkout, a session's name, or a URL.
    words: str  #: Why it failed: mostly what git printed.
    remedy: str = ""  #: If empty, the one that fits `words`.
    _: KW_ONLY
    code: int | None = None  #: Git's exit code; if None, it was not run to its end.
    out: str = ""  #: Its standard output.

    def __post_init__(self) -> None:
        matching = (remedy for pattern, remedy in _REMEDIES if re.search(pattern, self.words))
        self.remedy = self.remedy or next(matching, "run the command by hand there to see more")
        #: Whether a limit in bytes was exceeded. A full disk is no such limit.
        self.too_much = re.search(_TOO_LARGE, self.words) is not None
        #: Whether the network or the remote server failed.
        self.outage = re.search(_OUTAGE, self.words) is not None

    def __str__(self) -> str:
        words = " ".join(self.words.split())[:1000]
        return f"git {self.command} failed in {self.place}: {words}; {self.remedy}"


def init(repository: Path, *, borrow: Sequence[Path] = ()) -> None:
    """Make a bare repository without hooks that borrows the objects of the repositories `borrow`.

    See `objects/info/alternates` in gitrepository-layout(5).

    Raises:
        FileExistsError: `repository` exists.
        OSError: a folder or file cannot be made for another reason.
        GitFailure: git failed.
    """
    repository.mkdir(mode=0o700)
    git(repository, "init", "--quiet", "--bare", "--template=")
    if borrow:
        alternates = repository / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text("".join(f"{lender / 'objects'}\n" for lender in borrow))


def git(
    repository: Path,
    *args: str,
    settings: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    protocol: str = "",
    seconds: float = LOCAL_SECONDS,
    stdin: str | Path = "",
    into: Path | None = None,
    most: int = 0,
    login: GitLogin | None = None,
    errors: str = "replace",
    memory: int = 0,
    wrap: Wrapper | None = None,
) -> str:
    """Run one git command in a repository of the bot's own and return its output.

    `settings` is configuration for this call, without secrets, because it is passed in the
    environment, as are the variables `env`. `login` is the password for a remote. `protocol` is the
    only transport allowed; if empty, no transport is. `seconds` is the time-out. `stdin` is text,
    or a file. With `into` the output goes to that file, and "" is returned. `most` limits the
    output in bytes; 0 means 64 MiB, or no limit with `into`. `errors` is the handler for bytes that
    are not UTF-8, as in names of files: "surrogateescape" keeps them. `memory` is the most git may
    use, in bytes; 0 means no limit. `wrap` runs git in a sandbox. Raises `GitFailure`, with
    `too_much` if the output exceeds its limit.
    """
    login = login or GitLogin("", "")
    command, place = args[0], str(repository)
    inherited = _INHERITED if wrap is None else ("PATH",)
    environment = {name: os.environ[name] for name in inherited if name in os.environ}
    environment |= {**_ENVIRONMENT, "GIT_DIR": place, "GIT_ALLOW_PROTOCOL": protocol}
    environment |= env or {}
    try:
        with ExitStack() as files:
            for_login, descriptors = files.enter_context(offered(login))
            environment |= _configuration({**_SETTINGS, **(settings or {}), **for_login})
            argv: Sequence[str] = ("git", *args)
            if memory:
                argv = ("prlimit", f"--data={memory}", "--", *argv)
            if wrap is not None:
                argv, more = files.enter_context(wrap(argv))
                descriptors = (*descriptors, *more)
            source = files.enter_context(_source(stdin, errors))
            target: IO[bytes] = files.enter_context(into.open("wb") if into else BytesIO())
            process = subprocess.Popen(
                argv,
                cwd=repository,
                env=environment,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=descriptors,
            )
            most = most or (0 if into else _TEXT_BYTES)
            code, err = _finished(process, target, most, seconds)
            out = _text(target.getvalue(), errors) if isinstance(target, BytesIO) else ""
    except _TooMuch:
        words = f"File too large: it printed more than {most} bytes"
        raise GitFailure(command, place, words, "look for huge files there") from None
    except RuntimeFailure as failure:  # There is no sandbox.
        raise GitFailure(
            command,
            place,
            str(failure),
            "`mergewright doctor` says what is wrong with the isolation",
        ) from None
    except subprocess.TimeoutExpired:
        words = f"it did not end within {seconds:g} seconds"
        remedy = "look for a slow disk or network, then try again"
        raise GitFailure(command, place, words, remedy) from None
    except FileNotFoundError:
        if not repository.is_dir():
            raise GitFailure(command, place, "there is no such folder", "restore it") from None
        raise GitFailure(command, place, "git is missing", "install git") from None
    except OSError as error:
        raise GitFailure(command, place, str(error)) from None
    if code != 0:
        words = readable(redact(err.strip() or out.strip(), login.password))
        answered = (
            None if words.startswith(("bwrap: ", "mergewright: ")) else code
        )  # It did not come to git.
        raise GitFailure(command, place, words or _ending(code), code=answered, out=out)
    return out


def ask(repository: Path, *args: str) -> str | None:
    """Run a git command that exits with 1 for "no"; return its output, or None for "no"."""
    try:
        return git(repository, *args)
    except GitFailure as failure:
        if failure.code == 1:
            return None
        raise


def readable(text: str) -> str:
    """Replace surrogate escapes, which hold bytes of file names that are not UTF-8, by U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def redact(text: str, *secrets: str) -> str:
    """Replace credentials in a text by `***`: those in URLs and headers, and the given secrets."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    text = re.sub(r"://[^/@\s]+@", "://***@", text)
    return re.sub(r"(?i)(authorization:\s*\w+\s+)\S+", r"\1***", text)


def pathspecs(paths: Iterable[str], *magic: str) -> list[str]:
    """Turn paths of the configuration into pathspecs (gitglossary(7)).

    `magic` are extra magic words such as `exclude`.

    A name without a slash matches in every folder; case is ignored. `*` and `**` are as in git.
    `folder/**` matches the folder's own name too, because a link may replace the folder.
    """
    signs = ",".join((*magic, "glob", "icase"))
    found = []
    for path in paths:
        where = path.removeprefix("/") if "/" in path else f"**/{path}"
        found.append(f":({signs}){where}")
        if where.endswith("/**"):
            found.append(f":({signs}){where.removesuffix('/**')}")
    return found


def nested_repositories(status: Iterable[str]) -> list[str]:
    """Return the paths of the untracked repositories nested in a checkout.

    `status` has the entries of `git status --porcelain --untracked-files=all`, which list no other
    untracked folders.
    """
    untracked = (entry[3:] for entry in status if entry.startswith("?? "))
    return [path.removesuffix("/") for path in untracked if path.endswith("/")]


def _configuration(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that pass configuration to git."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


class _TooMuch(Exception):
    """A command prints more than it may."""


def _source(stdin: str | Path, errors: str) -> IO[bytes]:
    """Open a command's input as a file, because a pipe could block the bot and the command."""
    if isinstance(stdin, Path):
        return stdin.open("rb")
    file = os.fdopen(os.memfd_create("stdin"), "w+b")
    file.write(stdin.encode("utf-8", errors))
    file.seek(0)
    return file


def _text(output: bytes, errors: str) -> str:
    text = output.decode("utf-8", errors)
    # Names of files are kept as they are.
    return text if errors != "replace" else text.replace("\r\n", "\n")


def _finished(
    process: subprocess.Popen[bytes], target: IO[bytes], most: int, seconds: float
) -> tuple[int, str]:
    """Copy a process's output until its end; return its exit code and its first errors.

    The whole process group is killed after `seconds`, or once the process has printed more than
    `most` bytes. If `most` is 0, the output has no limit.
    """
    with process:
        try:
            err = _copied(process, target, most, time.monotonic() + seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, err


def _copied(process: subprocess.Popen[bytes], target: IO[bytes], most: int, deadline: float) -> str:
    out, err, copied = process.stdout, bytearray(), 0
    with selectors.DefaultSelector() as waiting:
        for stream in filter(None, (out, process.stderr)):
            waiting.register(stream, selectors.EVENT_READ)
        while waiting.get_map():
            left = deadline - time.monotonic()
            ready = waiting.select(left) if left > 0 else []
            if not ready:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                if not data:
                    waiting.unregister(key.fileobj)
                elif key.fileobj is out:
                    copied += len(data)
                    if most and copied > most:
                        target.write(data[: most - copied])
                        raise _TooMuch
                    target.write(data)
                else:
                    err += data[: _ERROR_BYTES - len(err)]
    process.wait(max(0.0, deadline - time.monotonic()))
    return err.decode(errors="replace")


def _ending(code: int) -> str:
    return f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
