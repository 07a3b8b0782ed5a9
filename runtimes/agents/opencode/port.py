"""The HTTP API of a running OpenCode, which shows what the program waits for and takes answers.

https://opencode.ai/docs/server. Each run has a port of its own on loopback, behind a password.
"""

import http.client
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode.files import Millis
from runtimes.agents.shared.dialogs import AnswerStep, Dialog
from runtimes.agents.shared.files import decode_json
from runtimes.agents.shared.question_forms import parse_answers, parse_questions
from runtimes.files import read_text
from runtimes.sockets import loopback_connection

_TIMEOUT_SECONDS = 1.0  #: A running OpenCode responds in milliseconds.
#: The limit for all requests on one connection: an agent may listen at the port and respond byte by
#: byte.
_DEADLINE_SECONDS = 3.0
_RESPONSE_BYTES = 1024 * 1024
#: The choices of a permission, each with the API's word for it.
PERMISSION_CHOICES = {"Allow once": "once", "Allow always": "always", "Reject": "reject"}


class OpenCodeServer(Struct, frozen=True):
    """Port and password of a run, written before the program starts."""

    port: Annotated[int, Meta(ge=1, le=65535)]
    password: str


class OpenCodePermission(Struct, frozen=True):
    """A pending permission request; `metadata` depends on the tool."""

    id: str = ""
    permission: str = ""
    patterns: tuple[str, ...] = ()
    metadata: dict[str, object] = {}


class OpenCodeQuestion(Struct, frozen=True):
    """A pending call of the question tool; see `parse_questions` for `questions`."""

    id: str = ""
    questions: object = None


class OpenCodeStatus(Struct, frozen=True):
    """The status of a conversation.

    Its type is `busy`, or `retry` after an error, or empty if the program reports no status.
    """

    type: str = ""
    attempt: int = 0
    message: str = ""
    next: Millis = 0.0  #: When it retries.


#: The API's paths that list requests waiting for a person, with the types of their responses.
PENDING = {"/permission": list[OpenCodePermission], "/question": list[OpenCodeQuestion]}


def server_file(files: RunFiles) -> Path:
    """Return the file with the run's `OpenCodeServer`."""
    return files.inputs / "opencode-server.json"


def get(files: RunFiles, kinds: Mapping[str, type[Any]]) -> Sequence[Any] | None:
    """Request each path with `GET`, and return the decoded responses.

    `kinds` has the type of each path's response. Returns None if a request fails, or if a response
    has another type.
    """
    try:
        with _connection(files) as request:
            return [
                msgspec.json.decode(request("GET", path), type=kind) for path, kind in kinds.items()
            ]
    except (OSError, msgspec.DecodeError):
        return None


@contextmanager
def _connection(files: RunFiles) -> Iterator[Callable[..., bytes]]:
    """Yield a function that takes method, path and body and returns the response.

    The block raises `OSError` if connecting or a request fails, or if a response is not 200 OK.
    """
    server = decode_json(read_text(server_file(files)), OpenCodeServer)
    if server is None:
        raise OSError(f"{server_file(files)} does not say where the program answers")
    credentials = b64encode(f"opencode:{server.password}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
    connection = loopback_connection(server.port, files.port_socket, _TIMEOUT_SECONDS)

    def request(method: str, path: str, body: bytes | None = None) -> bytes:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read(_RESPONSE_BYTES)
        if response.status != http.HTTPStatus.OK:
            raise OSError(f"its port answered {response.status} to {method} {path}")
        return content

    with closing(connection):
        try:
            connection.connect()
            with _cut_off(connection.sock, _DEADLINE_SECONDS):
                yield request
        except http.client.HTTPException as error:
            raise OSError(f"its port does not answer: {error!r}") from error


@contextmanager
def _cut_off(sock: socket.socket, seconds: float) -> Iterator[None]:
    """Shut a connection down after this many seconds, so that its reads return nothing more."""

    def cut() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def dialog(files: RunFiles, screen: str) -> Dialog:
    """Return the first pending permission or question, or an empty dialog. Raises `OSError`.

    The program's port knows what is pending, so `screen` is not used.
    """
    pending = get(files, PENDING)
    if pending is None:
        raise OSError("its port does not answer")
    permissions, questions = pending
    if permissions:
        path = f"/permission/{permissions[0].id}/reply"
        choices = tuple(
            (label, _reply(files, path, {"reply": word}))
            for label, word in PERMISSION_CHOICES.items()
        )
        return Dialog(id=permissions[0].id, choices=choices)
    return _question_dialog(files, questions[0]) if questions else Dialog()


def _question_dialog(files: RunFiles, question: OpenCodeQuestion) -> Dialog:
    def step(text: str) -> AnswerStep | None:
        answers = parse_answers(parse_questions({"questions": question.questions}), text)
        path = f"/question/{question.id}/reply"
        return _reply(files, path, {"answers": answers}) if answers is not None else None

    return Dialog(id=question.id, free_text=step)


def _reply(files: RunFiles, path: str, body: Mapping[str, object]) -> AnswerStep:
    def post() -> None:
        with _connection(files) as request:
            request("POST", path, msgspec.json.encode(body))

    return AnswerStep(request=post)
