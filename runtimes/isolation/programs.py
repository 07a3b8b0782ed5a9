"""Finds the interpreters and environments that a program needs outside the system's folders.

Only links and files that an operator or installer wrote are followed. If a program's installation
folder contains the home directory, or contains or is in the bot's data, sandboxes show only
the program's file and not the folder.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

#: Folders of the system that every sandbox has, /etc only in part.
SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")))
_HEAD_BYTES = 256  #: How much of a script's first line Linux reads: execve(2).
_MOST = 100  #: The most links and interpreters followed for one program.


def program_files(command: Sequence[str], path: str, hidden: Iterable[Path]) -> list[Path]:
    """Return folders and files that a command needs, without those below `SYSTEM`.

    `command` is from the configuration, `path` the value of PATH. A command needs its program, the
    files whose absolute paths are among its arguments, the targets of links, and the interpreters
    of scripts. If such a file belongs to an installation of Python or Node.js, the whole folder of
    the installation is returned in its place. But the file alone is returned if that folder
    contains the home directory, or contains or is in a folder of `hidden`, such as the bot's data.
    """
    hidden = [Path(os.path.realpath(folder)) for folder in hidden]
    words = (shutil.which(command[0], path=path) or "", *command[1:]) if command else ()
    # The configuration may name a file anywhere, also in a folder of `hidden`.
    open_ends = [Path(word) for word in words if word.startswith("/") and Path(word).is_file()]
    found: dict[Path, None] = {}
    seen: set[Path] = set()
    while open_ends and len(seen) < _MOST:
        file = open_ends.pop()
        if file in seen or _is_below(file, SYSTEM):
            continue
        seen.add(file)
        found |= dict.fromkeys(_around(file, hidden))
        open_ends += _next(file, path)
    return list(found)


def python_files(hidden: Iterable[Path]) -> list[Path]:
    """Return the folder of the Python that runs this process; empty if it is below `SYSTEM`.

    Returns only the interpreter's file if the folder must not be shown; see `program_files` for
    `hidden`.
    """
    base = Path(sys.base_prefix)
    return [] if _is_below(base, SYSTEM) else _around(base / "bin" / "python3", list(hidden))


def python() -> str:
    """Return the path of the Python that runs this process, outside its virtual environment."""
    executable: str = getattr(sys, "_base_executable", "") or sys.executable
    return os.path.realpath(executable)


def _around(file: Path, hidden: Sequence[Path]) -> list[Path]:
    """Return the folder that a program was installed into, or its file; see `program_files`."""
    parts = file.parts
    if "node_modules" in parts:
        folder = Path(*parts[: parts.index("node_modules") + 1])
    elif file.parent.name == "bin" and _is_prefix(file.parent.parent):
        folder = file.parent.parent
    else:
        return [file]
    real = Path(os.path.realpath(folder))
    wide = any(place.is_relative_to(real) for place in (*hidden, Path.home()))
    return [file] if wide or _is_below(real, hidden) else [folder]


def _is_prefix(folder: Path) -> bool:
    """Whether a folder is an installation or environment of Python or Node.js."""
    if (folder / "pyvenv.cfg").is_file():
        return True
    return (folder / "lib" / "node_modules").is_dir() or any(folder.glob("lib/python3*/os.py"))


def _next(file: Path, path: str) -> list[Path]:
    """Return where a link leads; for other files, the real path and a script's interpreter."""
    real = Path(os.path.realpath(file))
    if file.is_symlink():
        # Without "..", which npm writes: engines refuse a path that is given in two spellings.
        target = Path(os.path.normpath(file.parent / file.readlink()))
        return [target, real] if target.exists() else [real]
    found = [] if real == file else [real]
    try:
        with file.open("rb") as script:
            line = script.read(_HEAD_BYTES).partition(b"\n")[0]
    except OSError:
        return found
    if line.startswith(b"#!") and (words := line[2:].decode(errors="replace").split()):
        found.append(Path(words[0]))
        if Path(words[0]).name == "env" and (by_name := shutil.which(words[-1], path=path)):
            found.append(Path(by_name))
    return found


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
