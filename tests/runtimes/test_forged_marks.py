"""Tests with programs in sandboxes that claim to belong to other runs."""

from lifecycle.model.status import Probe
from runtimes.supervise import MARK
from tests.runtimes.stages import IsolatedStage
from tests.world.waiting import eventually

#: Always has processes that claim to be another run's, however often these are killed.
FORGES = """
for each in 1 2 3 4 5; do
    while :; do env {mark}={folder} sleep 0.2; done &
done
touch forges; wait
"""


def test_a_program_cannot_keep_another_run_from_being_stopped(
    bubblewrapped: IsolatedStage,
) -> None:
    victim = bubblewrapped.start("app-1_r1")
    script = FORGES.format(mark=MARK, folder=bubblewrapped.dir(victim))
    forger = bubblewrapped.shell("app-2_r1", script)
    eventually((bubblewrapped.work(forger) / "forges").exists, "the forged processes")
    bubblewrapped.runtime.stop(victim, grace_seconds=0.2)
    assert set(bubblewrapped.runtime.look()) == {forger}
    assert bubblewrapped.seen(forger).program is Probe.ALIVE
