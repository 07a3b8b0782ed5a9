"""Runs git with an environment of its own, a time-out, and errors with a remedy.

Settings of the machine, the user or an agent do not reach these calls, except those of the
repository they run in; so they run only in repositories that no agent writes to.

GitPython is not used: it passes the server's whole environment to git, secrets included.
"""

import os
import re
import resource
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from runtimes.workspaces.git_login import GitLogin, offered

LOCAL_SECONDS = 120.0
NETWORK_SECONDS = 900.0  #: The first clone of a large repository takes minutes.

#: The variables of the server's environment that git gets: those for the network.
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
#: Errors of a network or server that does not answer: trying again helps.
_OUTAGE = (
    r"Could not resolve host|Failed to connect|timed out|Connection (refused|reset)"
    r"|returned error: 5\d\d|early EOF|hung up unexpectedly|unexpected disconnect"
)
_FULL = r"No space left|unable to write file|Disk quota|File too large|signal 25\b"
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
    (r"\.lock': File exists", "if no git runs there, remove the lock file it names"),
    (r"[Pp]ermission denied", "give the user Mergewright runs as access to it"),
)


@dataclass(eq=False, repr=False)
class GitFailure(Exception):
    """A git command failed; the message names the command, the repository and the remedy."""

    command: str
    place: str
    words: str
    remedy: str = ""  #: By default the one that fits the words.
    _: KW_ONLY
    code: int | None = None  #: Git's exit code; None: it was not run to its end.
    out: str = ""  #: Its standard output.

    def __post_init__(self) -> None:
        matching = (remedy for pattern, remedy in _REMEDIES if re.search(pattern, self.words))
        self.remedy = self.remedy or next(matching, "run the command by hand there to see more")
        #: Whether the output had more bytes than it may have, or there is no space for it.
        self.too_much = re.search(_FULL, self.words) is not None
        #: Whether the network or the remote server failed.
        self.outage = re.search(_OUTAGE, self.words) is not None

    def __str__(self) -> str:
        words = " ".join(self.words.split())[:1000]
        return f"git {self.command} failed in {self.place}: {words}; {self.remedy}"


def init(repository: Path, *, borrow: Sequence[Path] = ()) -> None:
    """Make a bare repository without hooks that borrows objects (gitrepository-layout(5))."""
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
) -> str:
    """Run one git command in a repository of the bot's own and return its output.

    `settings` is configuration for this call, without secrets: it is passed in the environment.
    `login` is the password for a remote. `protocol` is the only transport allowed; empty: none.
    `stdin` is text, or a file. With `into` the output goes to that file, with `most`
    at most so many bytes: `GitFailure.too_much` says that there were more. `errors` is about bytes
    that are no UTF-8, as names of files may be: "surrogateescape" keeps them. Raises `GitFailure`.
    """
    login = login or GitLogin("", "")
    command, place = args[0], str(repository)
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {**_ENVIRONMENT, "GIT_DIR": place, "GIT_ALLOW_PROTOCOL": protocol}
    environment |= env or {}
    try:
        with ExitStack() as files:
            for_login, descriptors = files.enter_context(offered(login))
            environment |= _configuration({**_SETTINGS, **(settings or {}), **for_login})
            source = files.enter_context(stdin.open("rb")) if isinstance(stdin, Path) else None
            target = files.enter_context(into.open("wb")) if into is not None else None
            process = subprocess.Popen(
                ["git", *args],
                cwd=repository,
                env=environment,
                stdin=source or subprocess.PIPE,
                stdout=target or subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors=errors,
                start_new_session=True,
                pass_fds=descriptors,
            )
            if most:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
            text = stdin if isinstance(stdin, str) else None
            code, out, err = _finished(process, text, seconds)
            if most and into and into.stat().st_size > most:  # It was faster than its limit.
                code = -signal.SIGXFSZ
    except subprocess.TimeoutExpired:
        words = f"it did not end within {seconds:g} seconds"
        remedy = "look for a slow disk or network, then try again"
        raise GitFailure(command, place, words, remedy) from None
    except FileNotFoundError:
        if not repository.is_dir():
            raise GitFailure(command, place, "there is no such folder", "make it again") from None
        raise GitFailure(command, place, "git is missing", "install git") from None
    except OSError as error:
        raise GitFailure(command, place, str(error)) from None
    if code != 0:
        words = readable(redact(err.strip() or out.strip(), login.password))
        raise GitFailure(command, place, words or _ending(code), code=code, out=out)
    return out


def ask(repository: Path, *args: str) -> str | None:
    """Run a git command that answers "no" with exit code 1; None: that was its answer."""
    try:
        return git(repository, *args)
    except GitFailure as failure:
        if failure.code == 1:
            return None
        raise


def readable(text: str) -> str:
    """A text that may hold bytes of names that are no UTF-8, without them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def redact(text: str, *secrets: str) -> str:
    """Remove credentials from a text: those in URLs and headers, and the given secrets."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    text = re.sub(r"://[^/@\s]+@", "://***@", text)
    return re.sub(r"(?i)(authorization:\s*\w+\s+)\S+", r"\1***", text)


def pathspecs(paths: Iterable[str], *magic: str) -> list[str]:
    """Turn paths of the configuration into pathspecs (gitglossary(7)).

    `magic` are extra magic words such as `exclude`.

    A name without a slash matches in every folder; case does not matter; `*` and `**` are git's.
    `folder/**` matches the folder's own name too, because a link may replace it.
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
    """Repositories inside a checkout: the untracked entries of its status that are folders."""
    untracked = (entry[3:] for entry in status if entry.startswith("?? "))
    return [path.removesuffix("/") for path in untracked if path.endswith("/")]


def _configuration(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables with configuration for git."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _finished(
    process: subprocess.Popen[str], stdin: str | None, seconds: float
) -> tuple[int, str, str]:
    """Wait for a process to end; at the time-out its whole process group is killed."""
    with process:
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out or "", err


def _ending(code: int) -> str:
    if code == -signal.SIGXFSZ:
        return "File too large"
    return f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
