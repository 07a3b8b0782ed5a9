"""Starts OpenCode with a conversation of its own, and gives it the first message there.

It takes a first message by argument only where it begins a conversation: to one that it goes on
with the message goes through its port, from a process beside it. A script of its own, for the
standard library alone: `opencode_say.py SERVER CONVERSATION PROMPT -- COMMAND...`, of which SERVER
and PROMPT are files.
"""

import http.client
import json
import os
import sys
import time
from base64 import b64encode
from contextlib import closing, suppress
from pathlib import Path

_UP_SECONDS = 600.0  #: It may fetch things first, and wait for a network that is not there.
#: So long it may take until what was posted stands in the conversation. While it starts up it takes
#: messages and loses them.
_LOST_SECONDS = 20.0
#: What it is asked while it starts up may never be answered.
_ANSWER_SECONDS = 10.0
_PAUSE_SECONDS = 0.2


def say(program: int, server: Path, conversation: str, prompt: str) -> None:
    """Give it the message until it stands in the conversation once more, or the program is over."""
    where = json.loads(server.read_text())
    word = b64encode(f"opencode:{where['password']}".encode()).decode()
    headers = {"Authorization": f"Basic {word}", "Content-Type": "application/json"}

    def ask(method: str, path: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", where["port"], timeout=_ANSWER_SECONDS)
        with closing(connection):
            connection.request(method, f"/session/{conversation}/{path}", body, headers)
            return connection.getresponse().read()

    def said() -> int:
        parts = (part for each in json.loads(ask("GET", "message")) for part in each["parts"])
        return sum(part.get("text") == prompt for part in parts)

    before: int | None = None
    post_at = 0.0
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until and Path(f"/proc/{program}").exists():
        with suppress(OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
            known = said()
            before = known if before is None else before
            if known > before:
                return
            if time.monotonic() >= post_at:
                post_at = time.monotonic() + _LOST_SECONDS
                part = {"type": "text", "text": prompt}
                ask("POST", "prompt_async", json.dumps({"parts": [part]}))
        time.sleep(_PAUSE_SECONDS)


def main(server: str, conversation: str, prompt: str, *command: str) -> None:
    """Become the command, with a process beside it that is nobody's child."""
    program = os.getpid()
    first = os.fork()
    if not first:
        if not os.fork():
            say(program, Path(server), conversation, Path(prompt).read_text())
        os._exit(0)
    os.waitpid(first, 0)
    os.execvp(command[1], command[1:])


if __name__ == "__main__":
    main(*sys.argv[1:])
