"""A commit that changes protected paths is not pushed until a person allows this very commit."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Facts, Failure
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import Reason, Status
from tests.lifecycle.decisions import COMMIT, decision, keys, ordered
from tests.lifecycle.test_commands import answers
from tests.lifecycle.universe import HEAD, NEXT, ago, command, done, published

HELD = Failure(at=ago(60), reason=Reason.PROTECTED_PATHS, detail=".github/ci.yml, CODEOWNERS")

CHECKED = do.Publish(
    key=parse(f"push:{NEXT}"),
    head=NEXT,
    protected=Policy().protected_paths,
    checked=True,
    max_file_mb=25,
)


def held(*commands: Any, **failed: Any) -> Facts:
    failure = replace(HELD, **failed)
    return published(work=COMMIT, failures={f"push:{NEXT}": failure}, commands=commands)


def pushes(session: Facts) -> list[do.Publish]:
    return [action for action in ordered(session) if isinstance(action, do.Publish)]


def test_a_push_names_its_protected_paths() -> None:
    (push,) = pushes(published(work=COMMIT))
    assert push == CHECKED
    for path in (".github/**", "CODEOWNERS", "AGENTS.md", ".gitmodules", ".npmrc"):
        assert path in push.protected


def test_a_held_push_is_reported_with_its_paths_and_the_command() -> None:
    found = decision(held())
    assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.PROTECTED_PATHS)
    assert [key for key in keys(held()) if key.startswith("notice:")] == [
        f"notice:protected_paths:{NEXT}"
    ]
    assert ".github/ci.yml, CODEOWNERS" in found.because
    assert f"`/mergewright allow {NEXT[:7]}`" in found.because
    assert pushes(held()) == []


def test_a_commit_held_for_another_reason_can_be_allowed_too() -> None:
    other = {"reason": Reason.COMMITS_HELD, "detail": "a.bin has 40 MB"}
    found = decision(held(**other))
    assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.COMMITS_HELD)
    assert f"{NEXT[:7]} was not pushed: a.bin has 40 MB" in found.because
    assert pushes(held(command("allow", at=ago(30), text=NEXT[:7]), **other))


def test_an_allowed_commit_is_pushed_with_all_its_changes() -> None:
    allowed = held(command("allow", at=ago(30), text=NEXT[:7]))
    assert pushes(allowed) == [do.Publish(key=parse(f"push:{NEXT}"), head=NEXT)]
    reply = answers(decision(allowed))
    assert reply == {
        "command_applied:comment-allow": (
            "Once the agent's turn is over and nothing pauses the session, the commit is pushed "
            "unchanged."
        )
    }


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("e" * 7, f"The commit that waits for permission is `{NEXT[:7]}`."),
        ("c" * 7, f"The commit that waits for permission is `{NEXT[:7]}`."),
    ],
)
def test_allowing_another_commit_is_refused(text: str, answer: str) -> None:
    other = held(command("allow", at=ago(30), text=text))
    assert pushes(other) == []
    assert answers(decision(other)) == {"command_refused:comment-allow": answer}


def test_a_held_commit_can_be_allowed_while_the_session_is_paused() -> None:
    pause, allow = command("pause", at=ago(40)), command("allow", at=ago(30), text=NEXT[:7])
    found = decision(held(pause, allow))
    assert found.status is Status.PAUSED
    assert "command_applied:comment-allow" in answers(found)


def test_the_next_commit_after_an_allowed_one_is_held() -> None:
    earlier = command("allow", at=ago(90), text=HEAD[:7])
    applied = done("command_applied:comment-allow")
    session = replace(held(earlier), done={**held().done, **applied})
    assert pushes(session) == []
    (push,) = pushes(replace(session, failures={}))
    assert push == CHECKED


@pytest.mark.parametrize("pushed", [True, False])
def test_a_commit_with_the_same_prefix_as_an_allowed_one_stays_held(pushed: bool) -> None:
    looked_at = f"push:{NEXT[:7]}{'0' * 33}"
    earlier = command("allow", at=ago(90), text=NEXT[:7])
    session = replace(held(earlier), done={**held().done, **done("command_applied:comment-allow")})
    if pushed:
        session = replace(session, done={**session.done, **done(looked_at)})
    else:
        session = replace(session, failures={**session.failures, parse(looked_at): HELD})
    assert pushes(session) == []
    again = replace(session, commands=(replace(earlier, key="comment-again"),))
    assert pushes(again) == []
    reply = (
        f"Another commit has the same prefix; the one that waits is `{NEXT}`. Repeat the command "
        "with this full hash."
    )
    assert answers(decision(again)) == {"command_refused:comment-again": reply}
    full = replace(session, commands=(command("allow", at=ago(30), text=NEXT),))
    assert [push.protected for push in pushes(full)] == [()]


def test_a_retry_does_not_release_a_commit_with_the_same_prefix() -> None:
    """A person allowed a commit by a prefix of its hash, and another commit has the same prefix.

    The bot may know one of these two commits only from the record that its push was refused. After
    a retry has cleared the record, the prefix seems to be unique, but releases neither commit.
    """
    looked_at = parse(f"push:{NEXT[:7]}{'0' * 33}")
    allow, retry = command("allow", at=ago(90), text=NEXT[:7]), command("retry", at=ago(10))
    session = held(allow, retry)
    applied = done("command_applied:comment-allow")
    failures = {**session.failures, looked_at: HELD}
    session = replace(session, done={**session.done, **applied}, failures=failures)
    assert pushes(session) == [CHECKED]
    ordered = replace(
        session, failures={parse(f"push:{NEXT}"): HELD}, pending=frozenset({looked_at})
    )
    assert [push for push in pushes(ordered) if not push.checked] == []
    alone = replace(session, failures={parse(f"push:{NEXT}"): HELD})
    assert [push.protected for push in pushes(alone)] == [()]


def test_an_abbreviation_names_only_the_commit_for_which_it_was_granted() -> None:
    """This also holds after the bot has forgotten that it refused to push that commit."""
    crafted = f"{NEXT[:7]}{'0' * 33}"
    for head, released in ((NEXT, True), ("", True), (HEAD, True), (crafted, False)):
        earlier = command("allow", at=ago(90), text=NEXT[:7], head=head)
        retry = command("retry", at=ago(10))
        session = held(earlier, retry)
        applied = done("command_applied:comment-allow")
        session = replace(session, done={**session.done, **applied})
        assert [push.checked for push in pushes(session)] == [not released], head
    full = held(command("allow", at=ago(30), text=NEXT, head=crafted))
    assert [push.protected for push in pushes(full)] == [()]


def test_an_allow_without_a_held_commit_is_refused() -> None:
    reply = answers(decision(published(commands=(command("allow", text=NEXT[:7]),))))
    assert reply == {"command_refused:comment-allow": "No commit waits for permission."}


def test_an_allow_does_not_retry_a_push_that_github_refused() -> None:
    refused = held(command("allow", at=ago(90), text=NEXT[:7]), reason=Reason.PUSH_REFUSED)
    assert pushes(refused) == []
