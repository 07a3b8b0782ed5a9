"""Changes requests to OpenAI's APIs so that their usage is reported and counted.

A stream of chat completions reports its usage only if the request asks for it. A background
response is refused, because the proxy does not forward the later requests that fetch it.
https://platform.openai.com/docs/api-reference/chat/create#chat-create-stream_options
"""

import re
from collections import Counter
from http import HTTPStatus

import msgspec

from bot.model_proxy.endpoints import ModelUnavailable

_MAX_HELD, _MAX_HELD_PER_RUN = 512 * 1024 * 1024, 64 * 1024 * 1024
_COMPLETIONS = re.compile(r"/v1/(?:chat/)?completions")
_OF_OPENAI = re.compile(rf"{_COMPLETIONS.pattern}|/v1/responses(?:/compact)?")
_Fields = dict[str, msgspec.Raw]
_DECODER = msgspec.json.Decoder(_Fields)
_OPTIONS = msgspec.json.Decoder(_Fields | None)
_NO = (b"false", b"null")


class BodyMemory:
    """Limits the memory for buffered request bodies, for each run and for all runs together."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()  #: Bytes by run token.

    def hold(self, token: str, size: int) -> None:
        """Count bytes of a buffered body. Raises `ModelUnavailable` if a limit is exceeded."""
        if self._held[token] + size > _MAX_HELD_PER_RUN or self._held.total() + size > _MAX_HELD:
            why = "too many large requests at once"
            raise ModelUnavailable(why, HTTPStatus.SERVICE_UNAVAILABLE)
        self._held[token] += size

    def release(self, token: str, size: int) -> None:
        """Subtract bytes of a body that is no longer buffered."""
        self._held -= Counter({token: size})


def is_changed(path: str) -> bool:
    """Whether the body of a request to this path has to be checked and changed by `countable`."""
    return _OF_OPENAI.fullmatch(path) is not None


def countable(path: str, body: bytes) -> tuple[bytes, str]:
    """Return a pair: the body to send, and the model's name, which is empty if `body` has none.

    To make a stream report its usage, `stream_options` is changed; nothing else is. Of a duplicate
    field, the last value is kept. Raises `ModelUnavailable` for a body that is not a JSON object as
    expected, and for a background response.
    """
    try:
        fields = _DECODER.decode(body)
        options = _OPTIONS.decode(fields.get("stream_options", b"null")) or {}
    except (msgspec.DecodeError, RecursionError):
        why = "the request body is not a JSON object as the API expects it"
        raise ModelUnavailable(why, HTTPStatus.BAD_REQUEST) from None
    if _is_set(fields, "background"):
        why = "background responses are not supported: use a stream"
        raise ModelUnavailable(why, HTTPStatus.BAD_REQUEST)
    if _COMPLETIONS.fullmatch(path) and _is_set(fields, "stream"):
        asked = {**options, "include_usage": msgspec.Raw(b"true")}
        fields["stream_options"] = msgspec.Raw(msgspec.json.encode(asked))
    model = bytes(fields.get("model", b"")).strip().strip(b'"').decode(errors="replace")
    return msgspec.json.encode(fields), model


def _is_set(fields: _Fields, name: str) -> bool:
    return bytes(fields.get(name, b"null")).strip() not in _NO
