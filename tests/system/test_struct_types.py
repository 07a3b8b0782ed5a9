"""msgspec has read the fields of all struct types before threads use them."""

import signal
import subprocess
import sys

import pytest

# While one thread has msgspec read the fields of Outer, another decodes an Outer.
_TWO_THREADS = """
import sys, threading
import msgspec
from bot.system.struct_types import prepare_struct_types

reading, done = threading.Event(), threading.Event()

class Slow:
    def __getattr__(self, name):
        reading.set()
        done.wait(2)
        return int

slow = Slow()

class Inner(msgspec.Struct):
    number: "slow.number"

class Outer(msgspec.Struct):
    inner: Inner

def decode():
    msgspec.json.decode(b'{"inner": {"number": 1}}', type=Outer)

if sys.argv[1:]:
    done.set()
    prepare_struct_types()
    done.clear()
first = threading.Thread(target=decode)
first.start()
assert reading.wait(20)
decode()
done.set()
first.join()
"""


@pytest.mark.parametrize(("prepared", "status"), [(("prepared",), 0), ((), -signal.SIGSEGV)])
def test_two_threads_may_use_a_prepared_struct_for_the_first_time(
    prepared: tuple[str, ...], status: int
) -> None:
    """Without preparation msgspec 0.22 crashes; once it does not, there is nothing to prepare."""
    command = [sys.executable, "-c", _TWO_THREADS, *prepared]
    assert subprocess.run(command, check=False, timeout=60).returncode == status
