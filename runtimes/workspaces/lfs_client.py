"""Moves Git LFS objects between a folder of the bot and the server of a repository.

The address is always that of the repository itself. An agent may have written `.lfsconfig`, so this
file is not read: it could redirect the bot and its password. If the server refers to another host
for an object, that host gets only the headers that the server names for it.
https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
"""

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

import httpx

from runtimes.workspaces.git import NETWORK_SECONDS, GitFailure, readable, redact

_TYPE = "application/vnd.git-lfs+json"
_BATCH = 100  #: Objects of one request.
_ANSWER_BYTES = 16 * 1024**2
_CHUNK = 1024 * 1024
_TIMEOUT = httpx.Timeout(60.0, connect=15.0)


class LfsObject(NamedTuple):
    """A file whose content is not in the repository, as the repository refers to it."""

    oid: str  #: The SHA-256 of its content, as 64 hex digits.
    size: int  #: In bytes.
    path: str  #: Of one file with this content; if empty, unknown.


class LfsClient:
    """The LFS server of one repository."""

    def __init__(self, url: str, password: str) -> None:
        """Use the URL and the password, which may be empty, that git uses for the repository.

        The client can be used for `NETWORK_SECONDS`. Raises `GitFailure` if `url` is no HTTP URL.
        """
        if urlsplit(url).scheme not in ("http", "https"):
            words = "only servers with HTTPS have LFS files"
            raise GitFailure("lfs", redact(url), words, "use a URL of HTTPS for git")
        self._url = f"{url.removesuffix('.git')}.git/info/lfs/objects/batch"
        self._password = password
        self._deadline = time.monotonic() + NETWORK_SECONDS

    def download(self, objects: Sequence[LfsObject], store: Path) -> list[LfsObject]:
        """Download objects into `store`; return those that the server does not have.

        Raises `GitFailure`.
        """
        missing = []
        for one, actions in self._batch("download", objects):
            if time.monotonic() > self._deadline:
                raise self._failure("timed out")
            if action := actions.get("download"):
                with self._response("GET", action) as response:
                    save(one, store, response.iter_bytes(_CHUNK), self._url)
            else:
                missing.append(one)
        return missing

    def upload(self, objects: Sequence[LfsObject], store: Path) -> list[LfsObject]:
        """Upload the objects that the server asks for; return those of them that `store` lacks.

        Raises `GitFailure`.
        """
        missing = []
        for one, actions in self._batch("upload", objects):
            if not (action := actions.get("upload")):
                continue
            if not (file := place_of(one, store)).is_file():
                missing.append(one)
                continue
            kind = {"Content-Type": "application/octet-stream", "Content-Length": str(one.size)}
            with (
                file.open("rb") as content,
                self._response("PUT", action, kind, self._pieces(content)),
            ):
                pass
            if verify := actions.get("verify"):
                about = json.dumps({"oid": one.oid, "size": one.size}).encode()
                with self._response("POST", verify, {"Content-Type": _TYPE}, about):
                    pass
        return missing

    def _batch(
        self, operation: str, objects: Sequence[LfsObject]
    ) -> Iterator[tuple[LfsObject, Mapping[str, Any]]]:
        """Yield each object with the server's actions for it."""
        for start in range(0, len(objects), _BATCH):
            part = {one.oid: one for one in objects[start : start + _BATCH]}
            listed = [{"oid": one.oid, "size": one.size} for one in part.values()]
            asked = {"operation": operation, "transfers": ["basic"], "objects": listed}
            auth = httpx.BasicAuth("x-access-token", self._password) if self._password else None
            kinds = {"Accept": _TYPE, "Content-Type": _TYPE}
            action = {"href": self._url, "header": kinds}
            text = b""
            with self._response("POST", action, {}, json.dumps(asked).encode(), auth) as response:
                for piece in response.iter_bytes(_CHUNK):
                    text += piece
                    if len(text) > _ANSWER_BYTES:
                        raise self._failure("the answer is too large")
            try:
                answers = {str(each["oid"]): each for each in json.loads(text)["objects"]}
                for oid, one in part.items():
                    answer = answers.get(oid, {})
                    if operation == "upload" and (error := answer.get("error")):
                        raise self._failure(f"{one.path} is refused: {error['message']}")
                    yield one, dict(answer.get("actions") or {})
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise self._failure(f"the answer is malformed: {error!r}") from None

    @contextmanager
    def _response(
        self,
        method: str,
        action: Mapping[str, Any],
        headers: Mapping[str, str] = {},
        content: bytes | Iterator[bytes] = b"",
        auth: httpx.Auth | None = None,
    ) -> Iterator[httpx.Response]:
        """Send a request to the URL in `action`; yield the response.

        `action` has the form of an action in the LFS batch API: `href` is the URL, and `header`
        maps names of headers to values. The request has these headers and those in `headers`.
        Raises `GitFailure` if the request fails, if the response is an error or a redirect, or if
        the URL does not use HTTPS although the repository's URL does.
        """
        url = str(action.get("href"))
        named = {str(name): str(value) for name, value in (action.get("header") or {}).items()}
        if urlsplit(url).scheme not in ("https", urlsplit(self._url).scheme):
            raise self._failure("the server refers to an address without HTTPS")
        try:
            with (
                httpx.Client(timeout=_TIMEOUT, trust_env=True, follow_redirects=False) as client,
                client.stream(
                    method,
                    url,
                    headers={**headers, **named},
                    content=content or None,
                    auth=auth or _no_login,
                ) as response,
            ):
                if response.status_code >= 300:
                    raise self._failure(f"{method} returned error: {response.status_code}")
                yield response
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self._failure(f"Failed to connect: {error!r}") from None

    def _pieces(self, content: BinaryIO) -> Iterator[bytes]:
        while piece := content.read(_CHUNK):
            if time.monotonic() > self._deadline:
                raise self._failure("timed out")
            yield piece

    def _failure(self, words: str) -> GitFailure:
        return GitFailure("lfs", redact(self._url), words)


def _no_login(request: httpx.Request) -> httpx.Request:
    """Return the request unchanged, so that httpx adds no login from `.netrc`."""
    return request


def shown(objects: Sequence[LfsObject]) -> str:
    """Return the files of some objects as a text for people: at most 5 names, and "and N more"."""
    named = [readable(one.path) or one.oid[:12] for one in objects]
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    return ", ".join(named[:5]) + more


def place_of(one: LfsObject, store: Path) -> Path:
    """Return an object's file in `store`, laid out as by git-lfs."""
    return store / one.oid[:2] / one.oid[2:4] / one.oid


def save(one: LfsObject, store: Path, pieces: Iterator[bytes], source: str) -> None:
    """Write an object into `store`. Raises `GitFailure` if `pieces` are not its content.

    `source`, such as a URL, says in the failure's message where the pieces come from.
    """
    file, digest, size = place_of(one, store), hashlib.sha256(), 0
    file.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + NETWORK_SECONDS
    with tempfile.TemporaryDirectory(dir=store, prefix="tmp_") as folder:
        with Path(folder, "new").open("wb") as new:
            for piece in pieces:
                size += len(piece)
                if size > one.size or time.monotonic() > deadline:
                    break
                digest.update(piece)
                new.write(piece)
        if size != one.size or digest.hexdigest() != one.oid:
            words = f"the content of {one.path or one.oid} is not what the repository refers to"
            raise GitFailure("lfs", redact(source), words, "commit the file again")
        Path(folder, "new").replace(file)
