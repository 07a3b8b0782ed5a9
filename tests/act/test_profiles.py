"""Starts of runs with profiles."""

import msgspec
import pytest

from bot.act.results import Rejected
from config.settings import ProfileSettings, Settings
from lifecycle.model.status import Reason
from tests.harness.site import RecordingShell, Site


@pytest.fixture
def careful(site: Site) -> Site:
    """A site whose project has a profile, which restricts its agents' permissions and hooks."""
    settings: Settings = site.agents.settings
    project = msgspec.structs.replace(settings.projects["widgets"], profile="careful")
    changed = msgspec.structs.replace(
        settings,
        projects={"widgets": project},
        profiles={"careful": ProfileSettings(permission_mode="reject", hooks=False)},
    )
    object.__setattr__(site.agents, "settings", changed)
    return site


def test_an_agent_that_cannot_be_limited_so_is_not_started(careful: Site) -> None:
    refusal = careful.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.reason is Reason.SPAWN_FAILED
    assert "shell cannot enforce permission-mode, hooks" in refusal.why
    assert careful.runtime.look() == {}


def test_a_program_gets_the_limits_of_its_projects_profile(
    careful: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordingShell, "permission_modes", True)
    monkeypatch.setattr(RecordingShell, "limits_hooks", True)
    careful.starts()
    limits = careful.program.run_limits
    assert (limits.permission_mode, limits.hooks) == ("reject", False)


def test_a_program_gets_the_permission_mode_of_its_session(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordingShell, "permission_modes", True)
    site.starts(permission_mode="confirm")
    assert site.program.run_limits.permission_mode == "confirm"
