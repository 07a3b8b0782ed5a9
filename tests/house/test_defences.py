"""Each defence that `scripts/test-faults` removes is still where its table says."""

import pytest

from scripts.faults.defences import DEFENCES, ROOT, Defence, without
from scripts.faults.faults import FAULTS


@pytest.mark.parametrize("defence", DEFENCES, ids=[one.fault for one in DEFENCES])
def test_a_defence_is_removed_by_replacing_texts_that_occur_once(defence: Defence) -> None:
    for file, text, replacement in defence.removals:
        compile(without((ROOT / file).read_text(), text, replacement), file, "exec")


def test_every_fault_has_a_defence() -> None:
    assert {one.fault for one in DEFENCES} == {fault.name for fault in FAULTS}
