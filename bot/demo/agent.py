"""The demo's agent: a scripted program in a terminal that behaves like a coding agent.

It reads its prompt from a file, works in its worktree, commits, and takes messages that are pasted
into its terminal. Its commits contain words that occur only in the messages, so the demo notices a
lost message. It appends an entry for every prompt and message to a log, in which the demo counts
them. The environment variable DEMO_AGENT_LOG names the file of the log. If it is not set, the log
is in the run's spool, a folder to which a sandbox lets the agent write.
"""

import errno
import json
import os
import re
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LOG = "demo.jsonl"  #: The name of the agent's log in its run's spool.
WORK_SECONDS = 0.2  # Long enough to be observed as active.
_FILE = re.compile(r"add `(greeting[-\w]*\.txt)`")
_MARK = re.compile(r"\[(mw-[0-9a-f]+)\]")
_WORD = re.compile(r'the word "([a-z]+)"')
#: An issue with this text makes the agent ask. The example in the question must not match `_WORD`,
#: because a message with the answer may repeat the question.
ASKS = "Ask me which word to add"
_QUESTION = 'Which word shall I add? Answer like this: the word "..."'
#: The input tokens and the dollars that each commit is said to have cost.
_TOKENS, _DOLLARS = 18_000, 0.11
_PASTE, _PASTED = b"\x1b[200~", b"\x1b[201~"


def main() -> None:
    """Carry out the prompt, then every message, until the terminal is closed."""
    prepare_terminal()
    prompt = Path(os.environ["MERGEWRIGHT_PROMPT_FILE"]).read_text()
    note("prompt", prompt)
    # Leave a program in the background, as agents do: only the supervisor ends it.
    subprocess.Popen(["sleep", "86400"], start_new_session=True, stdin=subprocess.DEVNULL)
    asked = _FILE.search(prompt)
    greeting = Path(asked[1] if asked else "greeting.txt")
    commits = 0
    if not prompt.strip():
        say("ready Which greeting shall I add?")
    else:
        say("active reading the issue")
        if not greeting.exists():
            append(greeting, "Hello.\n", "Add the greeting")
        commits = 1
        spend(commits)
        if ASKS in prompt:
            say(f"waiting {_QUESTION}")
        else:
            say("ready I wrote a greeting and committed it.")
    proposed = False  # In a chat it asks before it writes, and leaves the commit to the person.
    for message in messages():
        note("message", message)
        mark = _MARK.search(message)
        say(f"received {mark[1] if mark else '?'}")
        if not prompt.strip() and (asked := _FILE.search(message)):
            greeting, proposed = Path(asked[1]), True
            say(f"waiting May I write {greeting}? (yes or no)")
            continue
        if proposed:
            proposed = False
            if "yes" in message.lower():
                greeting.write_text("Hello.\n")
                say(f"ready I wrote {greeting}.")
            else:
                say("ready I wrote nothing.")
            continue
        known = greeting.read_text() if greeting.exists() else ""
        words = [word for word in _WORD.findall(message) if word not in known]
        if words:
            append(greeting, "".join(f"{word}\n" for word in words), f"Say {words[0]}")
            commits += 1
            spend(commits)
            say(f"ready I added {', '.join(words)} to the greeting.")
        elif git("status", "--porcelain"):
            commit(greeting, "Commit what was left")
            say("ready I committed what a run before this one had left.")
        else:
            say("ready There was nothing left to do.")


def append(greeting: Path, text: str, subject: str) -> None:
    """Wait 0.2 seconds, append the text to the file in one write, and commit the file."""
    time.sleep(WORK_SECONDS)

    def write() -> None:
        with greeting.open("a") as file:
            file.write(text)

    persist(write)
    commit(greeting, subject)


def commit(greeting: Path, subject: str) -> None:
    """Commit the file in its current state, if the worktree has changes."""

    def write() -> None:
        if git("status", "--porcelain"):
            git("add", str(greeting))
            git("commit", "--quiet", "--message", subject)

    persist(write)


def persist(step: Callable[[], object]) -> None:
    """Repeat a step until it succeeds, because the disk may be full; raise after a minute."""
    deadline = time.monotonic() + 60.0
    while True:
        try:
            step()
        except (OSError, subprocess.CalledProcessError):
            if time.monotonic() > deadline:
                raise
            time.sleep(WORK_SECONDS)
        else:
            return


def git(*args: str) -> str:
    """Run git in the worktree and return its output."""
    return subprocess.run(["git", *args], check=True, capture_output=True, text=True).stdout


def say(line: str) -> None:
    """Print a status line to the terminal."""
    sys.stdout.write(f"mergewright: {line}\r\n")
    sys.stdout.flush()


def spend(commits: int) -> None:
    """Print an invented usage, in tokens and dollars, for a run with this number of commits."""
    used = {
        "model": "scripted",
        "input": commits * _TOKENS,
        "output": commits * _TOKENS // 20,
        "cost_usd": round(commits * _DOLLARS, 2),
    }
    say(f"usage {json.dumps(used)}")


def note(kind: str, text: str) -> None:
    """Append an entry about a prompt or message to the log; `kind` is `prompt` or `message`.

    The entry is written as a whole: while the disk is full, this is retried, for up to a minute.
    """
    mark = _MARK.search(text)
    entry = {
        "session": os.environ["MERGEWRIGHT_SESSION"],
        "run": int(os.environ["MERGEWRIGHT_RUN"]),
        "kind": kind,
        "mark": mark[1] if mark else "",
        "words": _WORD.findall(text),
    }
    file = os.environ.get("DEMO_AGENT_LOG") or f"{os.environ['MERGEWRIGHT_RUN_DIR']}/spool/{LOG}"
    line = f"{json.dumps(entry)}\n".encode()

    def write() -> None:
        with Path(file).open("ab", buffering=0) as log:
            before = log.tell()
            if log.write(line) != len(line):
                log.truncate(before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file)

    persist(write)


def prepare_terminal() -> None:
    """Turn off line buffering, echo and the translation of Enter; turn on bracketed paste."""
    attributes = termios.tcgetattr(sys.stdin)
    attributes[0] &= ~termios.ICRNL
    attributes[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)
    sys.stdout.write("\x1b[?2004h")
    sys.stdout.flush()


def messages() -> Iterator[str]:
    """Yield each submitted message: pasted or typed text followed by Enter."""
    typed = b""
    while chunk := os.read(sys.stdin.fileno(), 65536):
        typed += chunk
        while (end := _submitted(typed)) is not None:
            text, typed = typed[:end], typed[end + 1 :]
            text = text.replace(_PASTE, b"").replace(_PASTED, b"").replace(b"\r", b"\n")
            if text.strip():
                yield text.decode(errors="replace")


def _submitted(typed: bytes) -> int | None:
    """Return the position of the first Enter outside a paste, which submits the message.

    Returns None if there is none yet.
    """
    at = 0
    while True:
        enter, begin = typed.find(b"\r", at), typed.find(_PASTE, at)
        if begin == -1 or -1 < enter < begin:
            return None if enter == -1 else enter
        at = typed.find(_PASTED, begin)
        if at == -1:
            return None


if __name__ == "__main__":
    main()
