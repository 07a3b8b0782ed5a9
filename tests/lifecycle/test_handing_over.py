"""Commands that hand over, review or update."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Failure
from lifecycle.model.key import parse
from lifecycle.model.status import Merge, Reason, Status
from tests.lifecycle.decisions import AT_WORK, decision, ordered, with_pull
from tests.lifecycle.life import Life, until_reviewed
from tests.lifecycle.universe import BASE, HEAD, NEXT, ago, command, done, facts, pull

S = Status


def starts(life: Life) -> list[do.Start]:
    return [action for _, action in life.out if isinstance(action, do.Start)]


def test_another_agent_takes_over_at_once_without_the_conversation() -> None:
    life = Life().agent_works().person_commands("agent", "codex")
    assert starts(life)[-1] == do.Start(
        key=parse("start:agent:comment-1#2"),
        run=2,
        prompt=do.Prompt(name="take_over"),
        agent="codex",
    )
    life.agent_works().waits(60).agent_rests()
    assert life.received() == ["start", "take_over"]


def test_after_a_handover_the_new_agent_resumes_its_own_conversation() -> None:
    life = Life().agent_works().person_commands("agent", "codex").agent_works()
    life.agent_exits(1).waits(60)
    restart = starts(life)[-1]
    assert (str(restart.key), restart.agent, restart.resume) == ("start:crash#3", "", "talk")


def test_an_agent_named_before_the_first_run_gets_the_session() -> None:
    queued = replace(facts(run=0, agent=Agent()), done={})
    names = (
        command("agent", text="ada"),
        replace(command("start", text="codex"), key="comment-later"),
    )
    for session in (names[:1], names):
        start, *_ = ordered(replace(queued, commands=session))
        assert isinstance(start, do.Start)
        assert (start.agent, start.prompt.name) == ("ada", "start")


def test_an_agent_takes_over_with_another_of_its_types() -> None:
    known = replace(facts(), agent_name="ada", agents=("ada", "ada codex", "ada shell"))
    same, other = (
        ordered(replace(known, commands=(command("agent", text=text),)))
        for text in ("ada shell", "ada codex")
    )
    assert [one.agent for one in same if isinstance(one, do.Start)] == []
    assert [one.agent for one in other if isinstance(one, do.Start)] == ["ada codex"]


def test_an_ended_session_is_restored_with_the_named_agent() -> None:
    life = Life().agent_works().person_commands("stop").person_commands("start", "codex")
    start = starts(life)[-1]
    assert (start.run, start.agent, start.prompt.name) == (2, "codex", "take_over")


def test_a_paused_session_is_handed_over_when_it_resumes() -> None:
    life = Life().agent_works().person_commands("pause").person_commands("agent", "codex")
    life.reads(S.PAUSED)
    assert [start.agent for start in starts(life)] == [""]
    life.person_commands("resume")
    assert [start.agent for start in starts(life)] == ["", "codex"]


@pytest.mark.parametrize("word", ["", "shell"])
def test_the_sessions_agent_reviews_its_pull_request_and_posts_the_result(word: str) -> None:
    life = until_reviewed().person_commands("review", word)
    (tell,) = [action for _, action in life.out if isinstance(action, do.SendMessage)]
    assert (str(tell.key), tell.prompt.name) == ("forward:comment-1#1", "review")
    assert tell.prompt.values == {"pull": "34", "base": "main"}
    assert "reviewed" not in life.comments()
    life.agent_works().agent_is(life.facts.agent.activity, summary="I look.")
    assert "reviewed" not in life.comments()
    life.agent_says("All is well.")
    (result,) = [a for _, a in life.out if isinstance(a, do.Comment) and a.topic == "reviewed"]
    assert (str(result.key), result.number) == ("review_result:comment-1", 34)
    assert result.values == {"agent": "shell", "text": "All is well."}
    assert life.agent_works().agent_says("More.").comments().count("reviewed") == 1


def test_an_agent_named_for_a_review_takes_over_with_it_as_its_task() -> None:
    life = until_reviewed().person_commands("review", "codex")
    start = starts(life)[-1]
    assert (start.agent, start.prompt.name, start.resume) == ("codex", "review", "")
    assert start.prompt.values == {"pull": "34", "base": "main"}
    life.agent_works().agent_says("It lacks a test.")
    assert life.received() == ["start", "review"]
    assert life.comments().count("reviewed") == 1


def test_a_review_command_does_not_answer_a_question() -> None:
    life = until_reviewed().agent_asks().person_commands("review")
    assert life.received() == ["start"]
    life.agent_works().agent_rests()
    assert life.received() == ["start", "review"]


def test_an_update_command_updates_the_branch_once() -> None:
    asking = with_pull({"verdicts": ()}, commands=(command("update"),))
    key = f"update_on_command:comment-update:{HEAD}"
    update = do.UpdateBranch(key=parse(key), number=34, head=HEAD)
    assert update in ordered(asking)
    assert update not in ordered(replace(asking, commands=()))
    assert update not in ordered(replace(asking, agent=AT_WORK))
    assert update not in ordered(replace(asking, pulls=(pull(head=NEXT),)))
    moved = replace(asking.pulls[0], head=NEXT)
    work = replace(asking.work, head=NEXT)
    after = replace(
        asking, pulls=(moved,), work=work, done={**asking.done, **done(key, seconds_ago=5)}
    )
    assert not [one for one in ordered(after) if isinstance(one, do.UpdateBranch)]


def test_a_requested_update_of_a_branch_that_is_behind_happens_once() -> None:
    behind = with_pull({"merge": Merge.BEHIND}, commands=(command("update"),))
    (update,) = [one for one in ordered(behind) if isinstance(one, do.UpdateBranch)]
    assert str(update.key) == f"update_branch:{BASE}:{HEAD}"


UPDATE = f"update_on_command:comment-update:{HEAD}"


@pytest.mark.parametrize(
    ("key", "pulls", "called"),
    [
        (UPDATE, {}, True),
        (UPDATE, {"head": NEXT}, False),
        (UPDATE, {"merge": Merge.CONFLICT}, False),
        (f"update_branch:{BASE}:{HEAD}", {}, False),
    ],
    ids=["asked for", "of another head", "a conflict, which goes to the agent", "by itself"],
)
def test_a_refused_update_on_command_escalates(
    key: str, pulls: dict[str, Any], called: bool
) -> None:
    failure = Failure(at=ago(30), reason=Reason.ACTION_FAILED, detail="GitHub said no")
    found = decision(with_pull(pulls, commands=(command("update"),), failures={key: failure}))
    assert (
        found.because == "#34 could not be updated from its base branch: GitHub said no"
    ) is called
    assert (found.reason is Reason.ACTION_FAILED) is called
    comments = [str(one.key) for one in found.actions if isinstance(one, do.Comment)]
    assert (f"notice:action_failed:{key}" in comments) is called
