"""The outcomes of a project's sessions are counted when the project's last open session ends."""

from lifecycle.model.facts import Ended
from lifecycle.model.status import Reason, Status
from tests.store.conftest import Scenario


def ends(scenario: Scenario, name: str, status: Status = Status.MERGED) -> None:
    scenario.clock.passes(1)
    over = Ended(status=status, reason=Reason.PR_MERGED, because="so", at=scenario.now)
    scenario.decides(name, status=status.value, ended=over)


def finished(scenario: Scenario, name: str) -> dict[str, int]:
    return dict(scenario.store.facts.get(name).finished)


def test_the_last_session_of_a_project_to_end_counts_all_outcomes(scenario: Scenario) -> None:
    one, two, three = (scenario.session(number) for number in (12, 13, 14))
    ends(scenario, one)
    ends(scenario, two, Status.KILLED)
    assert finished(scenario, one) == finished(scenario, two) == {}
    ends(scenario, three)
    assert finished(scenario, three) == {"merged": 2, "killed": 1}
    assert finished(scenario, one) == {}
    assert scenario.store.sessions.due(scenario.now) == [three]


def test_outcomes_that_were_counted_are_not_counted_again(scenario: Scenario) -> None:
    for number in (12, 13):
        ends(scenario, scenario.session(number))
    four, five = scenario.session(14), scenario.session(15)
    ends(scenario, four)
    ends(scenario, five, Status.DONE)
    assert finished(scenario, five) == {"merged": 1, "done": 1}


def test_a_restored_session_that_ends_while_others_are_open_has_no_outcomes(
    scenario: Scenario,
) -> None:
    one, two = scenario.session(12), scenario.session(13)
    ends(scenario, one)
    ends(scenario, two, Status.KILLED)
    scenario.decides(two, status="queued", ended=None)
    three = scenario.session(14)
    ends(scenario, two)
    assert finished(scenario, two) == {}
    ends(scenario, three)
    assert finished(scenario, three) == {"merged": 3}
