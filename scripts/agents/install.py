"""Installs the agents' programs into a cache, each version once."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from bot.demo.programs import cached

_LISTED = Path(__file__).parent.parent / "agents.toml"


class CannotRun(Exception):
    """The trials cannot run on this machine; the message has the reason and a remedy."""


class Release(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of `scripts/agents.toml`, which explains the fields."""

    version: str
    npm: str = ""
    python: str = ""
    subagent_tools: tuple[str, ...] = ()
    permission: str = "bash echo asked > asked.txt"
    #: It ignores SIGHUP, which it may get before `setsid` has run.
    background: str = "#do: bash trap '' HUP; setsid env -i tail -f /dev/null >/dev/null 2>&1 &"
    interrupt: str = "Escape"
    estimates: bool = False


def releases() -> dict[str, Release]:
    """Return the programs of `scripts/agents.toml` by name."""
    return msgspec.convert(tomllib.loads(_LISTED.read_text()), dict[str, Release])


def install(program: str, release: Release) -> Path:
    """Return the program at this version, installed if needed. Raises `CannotRun`."""
    folder = cached(program, release.version)
    complete = folder / "complete"  # A virtual environment cannot be moved into place.
    if not complete.exists():
        sys.stderr.write(f"installing {program} {release.version} ...\n")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for command in _commands(folder, release):
            _run(command)
        complete.touch()
    return folder / "bin" / program


def _commands(folder: Path, release: Release) -> list[list[str]]:
    if release.npm:
        package = f"{release.npm}@{release.version}"
        npm = ["npm", "install", "--global", "--no-audit", "--no-fund", "--loglevel=error"]
        return [[*npm, "--prefix", str(folder), package]]
    package = f"{release.python}=={release.version}"
    if shutil.which("uv"):
        install = ["uv", "pip", "install", "--quiet", "--python", str(folder), package]
        return [["uv", "venv", "--quiet", "--allow-existing", str(folder)], install]
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", package]
    return [[sys.executable, "-m", "venv", str(folder)], pip]


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        raise CannotRun(f"{command[0]} cannot run ({error.strerror}): install it") from None
    if done.returncode:
        output = f"{done.stdout}{done.stderr}".strip()
        raise CannotRun(f"`{' '.join(command)}` failed; is there a network?\n{output}")
