"""What every agent has to do in a trial: one function a step, each building on those before."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bot.demo.model.talk import USED
from bot.demo.programs import MODELS
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import AgentType
from scripts.agents.install import Release
from scripts.agents.stage import Failed, Stage

#: What people write: long, and not made for terminals.
_AWKWARD = "\n".join(
    (
        '- "quoted" `ticked` $(not run) \\n 100% #{not} a;',
        "Grüße, 世界 💚",
        *(f"line {number} of many;" for number in range(1, 31)),
    )
)

#: What it leaves running in the background, as `leaves` in scripts/agents.toml has it.
_BACKGROUND = "tail -f /dev/null"


class Trial:
    """One agent on trial."""

    def __init__(self, name: str, release: Release, program: Path, stage: Stage) -> None:
        self.name = name
        self.release = release
        self.program = program
        self.stage = stage
        self.native = ""  #: The name of its conversation.

    def begin(self, permission_mode: str, prompt: str, *, alone: bool = False) -> None:
        """Start a run; one that is not the first goes on with the conversation.

        `alone`: it is to have no agents of its own.
        """
        kind = AgentType(
            program=self.name,
            command=(str(self.program),),
            model=MODELS[self.name],
            permission_mode=permission_mode,
            intra_parallel=not alone,
            env={"IS_SANDBOX": "1"},
        )
        self.stage.start(kind, prompt, self.native)

    def says(self, words: str) -> Agent:
        """Wait until its turn is over, with these last words."""

        def found() -> Agent | None:
            agent = self.stage.look()
            over = agent.activity is Activity.READY and agent.summary.strip().endswith(words)
            return agent if over else None

        return self.stage.wait(found, f'it never said "{words}" and was ready')

    def holds(self, file: str, text: str) -> None:
        """A file in its workspace has this text, and it did not fall silent with it."""
        path = self.stage.workspace / file
        found = path.read_text() if path.exists() else None
        if found != text:
            raise Failed(f"{file} holds {found!r}, not {text!r}\n{self.stage.screen()}")

    def offers(self, *tools: str) -> None:
        """The model was offered these tools last, of those for agents of its own."""
        asked = [recorded.asked for recorded in self.stage.model.requests if recorded.asked]
        offered = next((one.tools for one in reversed(asked) if not one.aside), frozenset[str]())
        if (found := offered & {*self.release.agents}) != {*tools}:
            raise Failed(f"of its tools for agents of its own its model is offered {[*found]}")

    def hears(self, words: str) -> None:
        """Wait until the model is told this."""
        self.stage.wait(lambda: words in self.stage.told(), f'the model never heard "{words}"')


def start(trial: Trial) -> None:
    """Its first prompt arrives, and its turn ends; the conversation has a name from then on."""
    trial.begin("auto", "[mw-start]\n#do: write hello.txt Hello there\n#do: say It began.")
    trial.native = trial.says("It began.").native_id
    trial.offers(*trial.release.agents)


def write(trial: Trial) -> None:
    """What it was to write is there."""
    trial.holds("hello.txt", "Hello there\n")


def ask(trial: Trial) -> None:
    """Where it may not do everything, it asks, and is seen to wait."""
    trial.stage.stop()
    script = f"[mw-ask]\n#do: {trial.release.asks}\n#do: say It was allowed."
    trial.begin("confirm", script, alone=bool(trial.release.agents))
    agent = trial.stage.until(Activity.WAITING_INPUT)
    trial.offers()
    if "asked.txt" not in agent.question:
        raise Failed(f"it does not say what it asks for: {agent.question!r}")


def answer(trial: Trial) -> None:
    """Allowed by a person who says so in a comment, it goes on."""
    trial.stage.answer("yes")
    trial.says("It was allowed.")
    trial.holds("asked.txt", "asked\n")


def message(trial: Trial) -> None:
    """A later message arrives exactly as it was written."""
    text = f"[mw-message]\n{_AWKWARD}\n#do: say It heard."
    trial.stage.tell(text, "mw-message")
    trial.says("It heard.")
    if text not in trial.stage.told():
        raise Failed(f"the message did not arrive as it was: {trial.stage.told()!r}")


def limit(trial: Trial) -> None:
    """Told to slow down by its model, it tries again, and goes on as if nothing had been."""
    trial.stage.tell("[mw-limit]\n#do: error 429 2\n#do: say It recovered.", "mw-limit")
    trial.says("It recovered.")


def interrupt(trial: Trial) -> None:
    """Interrupted at the terminal, it is ready."""
    trial.stage.tell("[mw-break]\n#do: stall 600\n#do: say This takes far too long.", "mw-break")
    trial.hears("mw-break")
    trial.stage.until(Activity.ACTIVE)
    trial.stage.press(trial.release.interrupt, lambda agent: agent.activity is Activity.READY)


def resume(trial: Trial) -> None:
    """Killed in the middle of a turn, it goes on with the same conversation in a new run."""
    trial.stage.tell("[mw-kill]\n#do: stall 600\n#do: say This takes far too long.", "mw-kill")
    trial.hears("mw-kill")
    trial.stage.kill()
    ended = trial.stage.until(Activity.EXITED)
    if ended.exit is None or ended.exit.signal != signal.SIGKILL:
        raise Failed(f"it was killed, and that is not seen: {ended}")
    trial.stage.stop()
    trial.begin("auto", "[mw-resume]\n#do: write again.txt again\n#do: say It resumed.")
    trial.says("It resumed.")
    trial.holds("again.txt", "again\n")
    told = trial.stage.told()
    if forgotten := [key for key in ("[mw-start]", "[mw-message]") if key not in told]:
        raise Failed(f"it has forgotten {forgotten}; its model is told: {told!r}")


def usage(trial: Trial) -> None:
    """What it says it used is what its model says, of this run alone."""
    used = trial.stage.look().usage
    read = (used.input, used.cache_read, used.output + used.reasoning)
    # One answer called the tool, one ended the turn.
    right = (2 * USED.input, 2 * USED.cache_read, 2 * (USED.output + USED.reasoning))
    guessed = trial.release.estimates and used.input > 0 and used.output > 0
    if read != right and not guessed:
        raise Failed(f"it used {right} (input, from cache, output), and is read as {used}")


def end(trial: Trial) -> None:
    """Stopped, it leaves nothing behind that runs, of what it began in the background too."""
    if trial.release.leaves:
        trial.stage.tell(f"[mw-leave]\n{trial.release.leaves}\n#do: say It runs on.", "mw-leave")
        trial.says("It runs on.")
    began = trial.stage.running()
    hidden = [words for words in began.values() if words == _BACKGROUND]
    if len(hidden) != trial.release.leaves.count(_BACKGROUND):
        raise Failed(f"it was to leave {trial.release.leaves!r} running, and runs {began}")
    trial.stage.stop()
    if alive := {path: words for path, words in began.items() if path.exists()}:
        raise Failed(f"these still run: {alive}")
    trial.stage.wait(lambda: not trial.stage.left(), f"these still run: {trial.stage.left()}")


def merge(trial: Trial) -> None:
    """The demo takes an issue to a merged pull request with it."""
    command = [sys.executable, "-m", "bot.demo", "--agent", trial.name, "--model", "scripted"]
    path = f"{trial.program.parent}{os.pathsep}{os.environ['PATH']}"
    played = subprocess.run(
        [*command, "--json"],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if played.returncode or not json.loads(played.stdout.splitlines()[-1])["merged"]:
        raise Failed(f"{played.stdout}\n{played.stderr}")


#: Every step by its name, in their order.
STEPS: Mapping[str, Callable[[Trial], None]] = {
    "start": start,
    "write": write,
    "permission": ask,
    "answer": answer,
    "message": message,
    "limit": limit,
    "interrupt": interrupt,
    "resume": resume,
    "usage": usage,
    "exit": end,
    "demo": merge,
}
