"""Starts OpenCode with a conversation to resume, and posts the first message to its port.

`opencode --session ID --prompt TEXT` does not submit the prompt (measured with 1.18.33). This is a
script of its own, which needs the standard library alone:

    first_message.py SERVER_FILE CONVERSATION PROMPT_FILE -- COMMAND...
"""

import http.client
import json
import os
import sys
import time
from base64 import b64encode
from contextlib import closing, suppress
from pathlib import Path

_UP_SECONDS = 600.0  #: OpenCode may download things first, and wait for a missing network.
#: How long a posted message may take to appear in the conversation before it is posted again:
#: while the program starts up, it accepts messages and loses them.
_LOST_SECONDS = 20.0
#: A request during the start may never be answered.
_TIMEOUT_SECONDS = 10.0
_PAUSE_SECONDS = 0.2


def post_until_received(program: int, server: Path, conversation: str, prompt: str) -> None:
    """Post the message every 20 seconds until the conversation contains one more copy of it.

    Gives up when the program has ended, or after ten minutes. `program` is a pid, `server` the file
    with port and password.
    """
    where = json.loads(server.read_text())
    credentials = b64encode(f"opencode:{where['password']}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}

    def request(method: str, path: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection(
            "127.0.0.1", where["port"], timeout=_TIMEOUT_SECONDS
        )
        with closing(connection):
            connection.request(method, f"/session/{conversation}/{path}", body, headers)
            return connection.getresponse().read()

    def occurrences() -> int:
        parts = (part for each in json.loads(request("GET", "message")) for part in each["parts"])
        return sum(part.get("text") == prompt for part in parts)

    before: int | None = None
    post_at = 0.0
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until and Path(f"/proc/{program}").exists():
        with suppress(OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
            known = occurrences()
            before = known if before is None else before
            if known > before:
                return
            if time.monotonic() >= post_at:
                post_at = time.monotonic() + _LOST_SECONDS
                part = {"type": "text", "text": prompt}
                request("POST", "prompt_async", json.dumps({"parts": [part]}))
        time.sleep(_PAUSE_SECONDS)


def main(server: str, conversation: str, prompt: str, *command: str) -> None:
    """Start a detached process that posts the message, then replace this one by the command.

    The parameters are the script's arguments; `command` begins with `--`.
    """
    program = os.getpid()
    first = os.fork()
    if not first:
        if not os.fork():
            post_until_received(program, Path(server), conversation, Path(prompt).read_text())
        os._exit(0)
    os.waitpid(first, 0)
    os.execvp(command[1], command[1:])


if __name__ == "__main__":
    main(*sys.argv[1:])
