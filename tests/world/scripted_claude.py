"""A stand-in for Claude Code that asks recorded questions and expects a certain key for each.

It shows recorded screens of the real program, each until the key arrives that `STEPS` names for the
screen; any other key ends the stand-in with an error. After the last screen, it commits the first
line of its conversation as `widgets.txt`.
"""

import json
import os
import subprocess
import sys
import termios
import time
from pathlib import Path

SCREENS = Path(os.environ["SCREENS"])
STEPS = {"screen": "2", "second": "1", "salt": "3", "ticked": "\t", "third": "2", "review": "1"}
ARGUMENTS = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
NATIVE = ARGUMENTS.get("--resume") or ARGUMENTS["--session-id"]
FOLDER = Path(os.environ["CLAUDE_CONFIG_DIR"])


def main() -> None:
    attributes = termios.tcgetattr(sys.stdin)
    attributes[0] &= ~termios.ICRNL
    attributes[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)
    hook("UserPromptSubmit", prompt=sys.argv[-1])
    given = json.loads((SCREENS / "run/spool/hooks.jsonl").read_text().splitlines()[-1])["hook"]
    hook("PermissionRequest", tool_name=given["tool_name"], tool_input=given["tool_input"])
    status("waiting", "input needed")
    for screen, key in STEPS.items():
        shows((SCREENS / f"{screen}.txt").read_text())
        if os.read(sys.stdin.fileno(), 100).decode() != key:
            raise SystemExit(f"that is no {key!r}")
    status("busy")
    shows("")
    (conversation,) = FOLDER.glob(f"projects/*/{NATIVE}.jsonl")
    Path("widgets.txt").write_text(conversation.read_text().splitlines(keepends=True)[0])
    for words in (["add", "."], ["commit", "-q", "-m", "Add widgets"]):
        subprocess.run(["git", *words], check=True)
    hook("Stop", last_assistant_message="Done.")
    status("idle")
    while os.read(sys.stdin.fileno(), 100):
        pass


def shows(screen: str) -> None:
    sys.stdout.write("\x1b[2J\x1b[H" + screen.strip("\n").replace("\n", "\r\n"))
    sys.stdout.flush()


def hook(event: str, **given: object) -> None:
    settings = json.loads(Path(ARGUMENTS["--settings"]).read_text())
    command = settings["hooks"][event][0]["hooks"][0]["command"]
    said = {"session_id": NATIVE, "hook_event_name": event, **given}
    subprocess.run(["sh", "-c", command], input=json.dumps(said), text=True, check=True)


def status(word: str, waiting_for: str = "") -> None:
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    said = {
        "pid": os.getpid(),
        "sessionId": NATIVE,
        "procStart": start,
        "status": word,
        "waitingFor": waiting_for,
        "statusUpdatedAt": time.time() * 1000,
    }
    place = FOLDER / "sessions" / f"{os.getpid()}.json"
    place.parent.mkdir(exist_ok=True)
    place.with_suffix(".new").write_text(json.dumps(said))
    place.with_suffix(".new").rename(place)


if __name__ == "__main__":
    main()
