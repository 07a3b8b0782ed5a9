"""Permission modes that people give sessions."""

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Facts
from tests.lifecycle.decisions import AT_WORK, ordered
from tests.lifecycle.life import Life
from tests.lifecycle.test_commands import answers, decision
from tests.lifecycle.universe import ago, command, facts

CONFIRM = "permission-mode=confirm"


def modes(life: Life) -> list[str]:
    """The permission modes of the runs."""
    return [action.permission_mode for _, action in life.out if isinstance(action, do.Start)]


def knowing(**allowed: tuple[str, ...]) -> Facts:
    """A session at work, in a project that allows these modes."""
    return facts(agent=AT_WORK, agents=tuple(allowed), allowed_modes=allowed)


def test_a_session_starts_in_the_permission_mode_it_was_created_with() -> None:
    (start,) = ordered(replace(facts(run=0, agent=Agent(), permission_mode="confirm"), done={}))
    assert isinstance(start, do.Start)
    assert start.permission_mode == "confirm"


def test_a_mode_given_at_a_restart_holds_for_all_later_runs() -> None:
    life = Life().agent_works().person_commands("restart", CONFIRM).agent_works()
    life.agent_exits(1).waits(60).agent_works().agent_rests()
    life.agent_exits(0).person_commands("tell", "permission-mode=auto")
    assert modes(life) == ["", *["confirm"] * (len(modes(life)) - 1)]
    assert len(modes(life)) == 4


def test_the_last_mode_replaces_those_before_it() -> None:
    life = Life().agent_works().person_commands("agent", f"codex {CONFIRM}").agent_works()
    life.person_commands("restart", "permission-mode=reject").agent_works()
    life.person_commands("restart")
    assert modes(life) == ["", "confirm", "reject", "reject"]
    named = [one.agent for _, one in life.out if isinstance(one, do.Start)]
    assert named == ["", "codex", "", ""]


def test_a_mode_without_an_agent_hands_nothing_over() -> None:
    life = Life()
    life.facts = replace(life.facts, agent_name="ada")
    life.agent_works().person_commands("stop").person_commands("start", CONFIRM)
    start = [action for _, action in life.out if isinstance(action, do.Start)][-1]
    assert (start.agent, start.prompt.name, start.permission_mode) == ("", "resume", "confirm")


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("restart", "permission-mode=auto", "`shell` may not run with `permission-mode=auto` here"),
        ("agent", "codex permission-mode=auto", "`codex` may not run with `permission-mode=auto`"),
        (
            "agent",
            f"cat {CONFIRM}",
            f"`cat` has no permission modes, so it cannot run with `{CONFIRM}`",
        ),
    ],
)
def test_a_mode_that_is_not_allowed_is_refused(kind: str, text: str, why: str) -> None:
    stricter = ("confirm", "reject")
    session = knowing(shell=stricter, codex=stricter, cat=())
    found = decision(replace(session, commands=(command(kind, text=text),)))
    assert answers(found)[f"command_refused:comment-{kind}"].startswith(why)
    assert not [one for one in found.actions if isinstance(one, do.Start)]


def test_a_session_with_a_mode_is_not_handed_to_an_agent_without_modes() -> None:
    session = knowing(shell=("confirm",), cat=())
    first, then = command("restart", text=CONFIRM, at=ago(30)), command("agent", text="cat")
    found = decision(replace(session, commands=(first, then)))
    says = f"`cat` has no permission modes, so it cannot run with `{CONFIRM}`."
    assert answers(found)["command_refused:comment-agent"] == says
    found = decision(replace(session, commands=(then,)))
    assert [one.agent for one in found.actions if isinstance(one, do.Start)] == ["cat"]
