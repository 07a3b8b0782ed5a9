"""Empty databases, copied from one: copying takes a tenth of the time of creating the tables."""

import functools
import tempfile
from pathlib import Path

from bot.store import Store


def empty_database(path: Path) -> Path:
    """Create an empty database at the path unless one exists; return the path."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(_empty())
    return path


@functools.cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        Store(path).close()
        return path.read_bytes()
