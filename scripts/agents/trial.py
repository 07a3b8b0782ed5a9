"""The steps of a trial: one function a step, each building on the steps before."""

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
from scripts.agents.stage import Stage, TrialFailed

#: A long message with characters that terminals and shells interpret.
_AWKWARD = "\n".join(
    (
        '- "quoted" `ticked` $(not run) \\n 100% #{not} a;',
        "Grüße, 世界 💚",
        *(f"line {number} of many;" for number in range(1, 31)),
    )
)

#: The background process that `background` in scripts/agents.toml starts.
_BACKGROUND = "tail -f /dev/null"


class Trial:
    """One agent and its session."""

    def __init__(
        self, name: str, release: Release, program: Path, stage: Stage, isolation: str = ""
    ) -> None:
        """`isolation` is that of the agent in the demo; empty: the strongest that works here."""
        self.name = name
        self.isolation = isolation
        self.release = release
        self.program = program
        self.stage = stage
        self.native = ""  #: The ID of its conversation; empty before the first run.

    def begin(self, permission_mode: str, prompt: str, *, alone: bool = False) -> None:
        """Start a run, which resumes the conversation unless it is the first.

        `alone` disables subagents.
        """
        kind = AgentType(
            program=self.name,
            command=(str(self.program),),
            model=MODELS[self.name],
            permission_mode=permission_mode,
            subagents=not alone,
            env={"IS_SANDBOX": "1"},
        )
        self.stage.start(kind, prompt, self.native)

    def wait_for_summary(self, words: str) -> Agent:
        """Return the agent's state once its turn is over and its summary ends with these words."""

        def found() -> Agent | None:
            agent = self.stage.look()
            over = agent.activity is Activity.READY and agent.summary.strip().endswith(words)
            return agent if over else None

        return self.stage.wait(found, f'its turn did not end with "{words}"')

    def check_file(self, file: str, text: str) -> None:
        """Raise `TrialFailed` unless a file in the workspace has this text."""
        path = self.stage.workspace / file
        found = path.read_text() if path.exists() else None
        if found != text:
            raise TrialFailed(f"{file} contains {found!r}, not {text!r}\n{self.stage.screen()}")

    def check_subagent_tools(self, *tools: str) -> None:
        """Raise `TrialFailed` unless the last request offered exactly these tools for subagents."""
        asked = [recorded.asked for recorded in self.stage.model.requests if recorded.asked]
        offered = next((one.tools for one in reversed(asked) if not one.aside), frozenset[str]())
        if (found := offered & {*self.release.subagent_tools}) != {*tools}:
            raise TrialFailed(f"its last request offered the wrong subagent tools: {[*found]}")

    def wait_for_request(self, words: str) -> None:
        """Wait until a request to the model contains these words."""
        self.stage.wait(lambda: words in self.stage.prompts(), f'no request contained "{words}"')


def start(trial: Trial) -> None:
    """The first prompt arrives, its turn ends, and the conversation has an id."""
    trial.begin("auto", "[mw-start]\n#do: write hello.txt Hello there\n#do: say It began.")
    trial.native = trial.wait_for_summary("It began.").native_id
    trial.check_subagent_tools(*trial.release.subagent_tools)


def write(trial: Trial) -> None:
    """The agent has written the file `hello.txt`, as the first prompt asked."""
    trial.check_file("hello.txt", "Hello there\n")


def ask(trial: Trial) -> None:
    """With limited permissions, the agent asks for one, and its activity is "waiting input"."""
    trial.stage.stop()
    script = f"[mw-ask]\n#do: {trial.release.permission}\n#do: say It was allowed."
    trial.begin("confirm", script, alone=bool(trial.release.subagent_tools))
    agent = trial.stage.until(Activity.WAITING_INPUT)
    trial.check_subagent_tools()
    if "asked.txt" not in agent.question:
        raise TrialFailed(f"its question does not name the file: {agent.question!r}")


def answer(trial: Trial) -> None:
    """A person's `yes` grants the permission."""
    trial.stage.answer("yes")
    trial.wait_for_summary("It was allowed.")
    trial.check_file("asked.txt", "asked\n")


def message(trial: Trial) -> None:
    """A later message arrives unchanged."""
    text = f"[mw-message]\n{_AWKWARD}\n#do: say Message received."
    trial.stage.send(text, "mw-message")
    trial.wait_for_summary("Message received.")
    if text not in trial.stage.prompts():
        raise TrialFailed(f"the message did not arrive unchanged: {trial.stage.prompts()!r}")


def limit(trial: Trial) -> None:
    """After two responses with HTTP status 429 the program retries successfully."""
    trial.stage.send("[mw-limit]\n#do: error 429 2\n#do: say It recovered.", "mw-limit")
    trial.wait_for_summary("It recovered.")


def interrupt(trial: Trial) -> None:
    """An interrupt at the terminal ends the turn."""
    trial.stage.send("[mw-break]\n#do: stall 600\n#do: say This takes far too long.", "mw-break")
    trial.wait_for_request("mw-break")
    trial.stage.until(Activity.ACTIVE)
    trial.stage.press(trial.release.interrupt, lambda agent: agent.activity is Activity.READY)


def resume(trial: Trial) -> None:
    """Killed within a turn, the program resumes the conversation in a new run."""
    trial.stage.send("[mw-kill]\n#do: stall 600\n#do: say This takes far too long.", "mw-kill")
    trial.wait_for_request("mw-kill")
    trial.stage.kill()
    ended = trial.stage.until(Activity.EXITED)
    if ended.exit is None or ended.exit.signal != signal.SIGKILL:
        raise TrialFailed(f"its exit by SIGKILL was not read: {ended}")
    trial.stage.stop()
    trial.begin("auto", "[mw-resume]\n#do: write again.txt again\n#do: say It resumed.")
    trial.wait_for_summary("It resumed.")
    trial.check_file("again.txt", "again\n")
    prompts = trial.stage.prompts()
    if missing := [key for key in ("[mw-start]", "[mw-message]") if key not in prompts]:
        raise TrialFailed(f"the resumed conversation lacks {missing}: {prompts!r}")


def usage(trial: Trial) -> None:
    """The usage that is read of this run equals the usage that the model reported."""
    used = trial.stage.look().usage
    read = (used.input, used.cache_read, used.output + used.reasoning)
    # Two responses: one called the tool, one ended the turn.
    right = (2 * USED.input, 2 * USED.cache_read, 2 * (USED.output + USED.reasoning))
    guessed = trial.release.estimates and used.input > 0 and used.output > 0
    if read != right and not guessed:
        raise TrialFailed(f"it used {right} (input, cached, output), but is read as {used}")


def end(trial: Trial) -> None:
    """Stopping the run ends all its processes, background ones included."""
    if trial.release.background:
        trial.stage.send(
            f"[mw-background]\n{trial.release.background}\n#do: say It is running.", "mw-background"
        )
        trial.wait_for_summary("It is running.")
    began = trial.stage.processes()
    hidden = [words for words in began.values() if words == _BACKGROUND]
    if len(hidden) != trial.release.background.count(_BACKGROUND):
        raise TrialFailed(f"it should run {trial.release.background!r}, and runs {began}")
    trial.stage.stop()
    # A process that has ended is listed until its parent has collected its status.
    trial.stage.wait(
        lambda: not any(path.exists() for path in began), f"these did not all end: {began}"
    )
    trial.stage.wait(lambda: not trial.stage.leftovers(), "some processes of the trial did not end")


def merge(trial: Trial) -> None:
    """The demo takes an issue to a merged pull request with this agent."""
    _play(trial, trial.isolation)


def merge_in_docker(trial: Trial) -> None:
    """The demo takes an issue to a merged pull request with this agent in Docker containers."""
    _play(trial, "docker")


def _play(trial: Trial, isolation: str) -> None:
    """Run the demo. Raises `TrialFailed` unless it ends with the merge and a clean machine."""
    command = [sys.executable, "-m", "bot.demo", "--agent", trial.name, "--model", "scripted"]
    command += ["--isolation", isolation] if isolation else []
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
        raise TrialFailed(f"{played.stdout}\n{played.stderr}")


#: The steps by name, in order.
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
    "docker": merge_in_docker,
}
