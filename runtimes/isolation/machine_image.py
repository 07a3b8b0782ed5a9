"""The image for containers that use the programs of this machine: empty folders and links.

The machine's folders of programs, such as /usr, are mounted read-only. So no registry is needed,
and an operator installs and updates programs only once.
"""

import hashlib
import io
import tarfile
from functools import cache
from pathlib import Path

_EMPTY = ("dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "usr", "var", "var/tmp")
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64")


def folders() -> list[Path]:
    """Return the folders of this machine that hold programs, which containers mount."""
    apart = [Path("/", name) for name in _LINKS]
    return [Path("/usr"), *(one for one in apart if one.is_dir() and not one.is_symlink())]


def name() -> str:
    """Return the image's name, which has a hash of its content in place of a tag.

    Podman imports no image under a name with a tag.
    """
    return f"localhost/mergewright-machine-{hashlib.sha256(content()).hexdigest()[:12]}"


@cache
def content() -> bytes:
    """Return the image's files, as a tar archive that engines import."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in _EMPTY:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for link in _LINKS:
            place = Path("/", link)
            entry = tarfile.TarInfo(link)
            entry.mode = 0o755
            if place.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, str(place.readlink())
                archive.addfile(entry)
            elif place.is_dir():
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
    return packed.getvalue()
