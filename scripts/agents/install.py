"""Installs the agents' programs into the cache, each version once."""

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
    """The trials cannot be made here; the message says why, and what to do about it."""


class Release(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program of `scripts/agents.toml`, where its fields are explained."""

    version: str
    npm: str = ""
    python: str = ""
    agents: tuple[str, ...] = ()
    asks: str = "bash echo asked > asked.txt"
    #: A terminal that is closed at once would end it before it has got away.
    leaves: str = "#do: bash trap '' HUP; setsid env -i tail -f /dev/null >/dev/null 2>&1 &"
    interrupt: str = "Escape"
    estimates: bool = False


def releases() -> dict[str, Release]:
    """Every program to be tried, by its name."""
    return msgspec.convert(tomllib.loads(_LISTED.read_text()), dict[str, Release])


def install(program: str, release: Release) -> Path:
    """The program at this version, fetched unless it was before. Raises `CannotRun`."""
    folder = cached(program, release.version)
    whole = folder / "whole"  # Says so: a virtual environment cannot be moved once it is.
    if not whole.exists():
        sys.stderr.write(f"installing {program} {release.version} ...\n")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for command in _commands(folder, release):
            _run(command)
        whole.touch()
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
        raise CannotRun(f"{command[0]} cannot be run ({error.strerror}): install it") from None
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".strip()
        raise CannotRun(f"`{' '.join(command)}` failed; is there a network?\n{said}")
