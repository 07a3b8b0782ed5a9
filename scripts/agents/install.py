"""Installs the agents' programs into a cache, each version once."""

import base64
import hashlib
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
    integrity: str = ""
    python: str = ""
    subagent_tools: tuple[str, ...] = ()
    permission: str = "bash echo asked > asked.txt"
    #: The shell ignores SIGHUP, which it may receive before `setsid` has run.
    background: str = "#do: bash trap '' HUP; setsid env -i tail -f /dev/null >/dev/null 2>&1 &"
    interrupt: str = "Escape"
    estimates: bool = False


def releases() -> dict[str, Release]:
    """Return the programs of `scripts/agents.toml` by name."""
    return msgspec.convert(tomllib.loads(_LISTED.read_text()), dict[str, Release])


def install(program: str, release: Release) -> Path:
    """Return the path of the program in this version, installed if needed. Raises `CannotRun`."""
    folder = cached(program, release.version)
    complete = folder / "complete"  # A virtual environment cannot be moved into place.
    if not complete.exists():
        sys.stderr.write(f"installing {program} {release.version} ...\n")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if release.npm:
            _install_from_npm(folder, release)
        else:
            _install_from_pypi(folder, release)
        complete.touch()
    return folder / "bin" / program


def _install_from_npm(folder: Path, release: Release) -> None:
    """Install a package whose hash is the listed one. Raises `CannotRun`.

    npm checks the package's dependencies against the hashes of the registry only.
    """
    package = f"{release.npm}@{release.version}"
    _run(["npm", "pack", "--silent", "--pack-destination", str(folder), package])
    (archive,) = folder.glob("*.tgz")
    _check(archive, package, release)
    npm = ["npm", "install", "--global", "--no-audit", "--no-fund", "--loglevel=error"]
    _run([*npm, "--prefix", str(folder), str(archive)])


def _install_from_pypi(folder: Path, release: Release) -> None:
    """Install a wheel whose hash is the listed one. Raises `CannotRun`.

    The hashes of the packages that it depends on are not listed.
    """
    package = f"{release.python}=={release.version}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    _run([*pip, "--dest", str(folder), package])
    (wheel,) = folder.glob("*.whl")
    _check(wheel, package, release)
    if shutil.which("uv"):
        _run(["uv", "venv", "--quiet", "--allow-existing", str(folder)])
        _run(["uv", "pip", "install", "--quiet", "--python", str(folder), str(wheel)])
        return
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)])


def _check(archive: Path, package: str, release: Release) -> None:
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if release.integrity != f"sha512-{digest}":
        raise CannotRun(
            f"{package} has another hash than `integrity` in {_LISTED.name}: sha512-{digest}"
        )


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        raise CannotRun(f"{command[0]} cannot run ({error.strerror}): install it") from None
    if done.returncode:
        output = f"{done.stdout}{done.stderr}".strip()
        raise CannotRun(f"`{' '.join(command)}` failed; is there a network?\n{output}")
