"""An agent in a real terminal that carries out the orders of a test.

It carries out the lines of the file `orders` in its folder, one JSON object each, and writes every
prompt and message it gets to the file `received`. All runs of a session share both files, so a new
run continues after the last order that was carried out.
"""

import json
import os
import re
import select
import subprocess
import sys
import termios
from pathlib import Path

FOLDER = Path(os.environ["SCRIPTED_AGENT"]) / os.environ["MERGEWRIGHT_SESSION"]
_MARK = re.compile(r"\[(mw-[0-9a-f]+)\]")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    attributes = termios.tcgetattr(sys.stdin)
    attributes[0] &= ~termios.ICRNL
    attributes[3] &= ~(termios.ICANON | termios.ECHO)
    attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 0, 0
    termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)
    say("\x1b[?2004h")
    record("prompt", Path(os.environ["MERGEWRIGHT_PROMPT_FILE"]).read_text())
    typed, known = b"", 0
    while True:
        typed = listen(typed + os.read(sys.stdin.fileno(), 65536))
        known = carry_out(known)
        select.select([sys.stdin], [], [], 0.02)


def listen(typed: bytes) -> bytes:
    """Split complete messages off the typed text; return the rest."""
    while b"\x1b[201~\r" in typed:
        message, _, typed = typed.partition(b"\x1b[201~\r")
        text = message.replace(b"\x1b[200~", b"").replace(b"\r", b"\n").decode(errors="replace")
        mark = _MARK.search(text)
        say(f"mergewright: received {mark[1] if mark else '?'}\r\n")
        record("message", text)
    return typed


def record(kind: str, text: str) -> None:
    mark = _MARK.search(text)
    entry = {
        "kind": kind,
        "run": int(os.environ["MERGEWRIGHT_RUN"]),
        "mark": mark[1] if mark else "",
        "text": text,
    }
    with (FOLDER / "received").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def carry_out(known: int) -> int:
    """Carry out new orders if the size of `orders` is not `known`; return the size in bytes.

    Otherwise it reads only the size, because it is called fifty times a second.
    """
    orders, done = FOLDER / "orders", FOLDER / "done"
    try:
        size = os.stat(orders).st_size  # noqa: PTH116 - half the time
    except FileNotFoundError:
        return 0
    if size == known:
        return known
    count = len(done.read_text()) if done.exists() else 0
    for line in orders.read_text().splitlines()[count:]:
        with done.open("a") as file:
            file.write(".")
        order = json.loads(line)
        for path, text in order.get("write", {}).items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text)
        for command in order.get("run", []):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if "say" in order:
            say(f"mergewright: {order['say']}\r\n")
        if "exit" in order:
            raise SystemExit(order["exit"])
    return size


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
