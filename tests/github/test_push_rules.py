"""`PushRules` reports only rules that certainly keep the bot from pushing to a base branch."""

from datetime import timedelta
from typing import Any

import pytest
import respx
from httpx import Response

from bot.github.api_client import ApiClient
from bot.github.client import GitHub
from bot.github.push_rules import PushRules
from bot.github.shapes import (
    BaseRef,
    BranchProtection,
    NewestNodes,
    NodeList,
    PushActor,
    PushAllowance,
    Ruleset,
    RulesetRule,
    UpdateRule,
)
from tests.github.conftest import NOW, REPO

APP, USER = "wright[bot]", "wright"
TEAM, OTHER = PushActor(typename="Team"), PushActor(typename="User", login="ann")
US = PushActor(typename="App", slug="wright")
ME = PushActor(typename="User", login="wright")


def branch(
    *allowed: PushActor | None, pushes: bool = False, total: int = 0, **fields: Any
) -> BaseRef:
    """Return a base branch that restricts pushes to `allowed`; the bot may push if `pushes`."""
    nodes = tuple(PushAllowance(actor=actor) for actor in allowed)
    listed = NewestNodes(total_count=total or len(nodes), nodes=nodes)
    rule = {"restricts_pushes": True, "push_allowances": listed, **fields}
    return BaseRef(
        target=None,
        rules=None,
        ref_update_rule=UpdateRule(viewer_can_push=pushes),
        branch_protection_rule=BranchProtection(
            requires_status_checks=False, required_status_check_contexts=(), **rule
        ),
    )


HIDDEN = BaseRef(
    target=None,
    rules=None,
    branch_protection_rule=None,
    ref_update_rule=UpdateRule(viewer_can_push=False),
)
FREE = {"restricts_pushes": False}

#: A base branch, who the bot is, and the rule that is in its way.
BRANCHES: dict[str, tuple[BaseRef | None, str, str]] = {
    "only others may push": (branch(OTHER, TEAM), APP, "branch protection"),
    "nobody may push": (branch(), USER, "branch protection"),
    "only another user may push": (branch(OTHER), USER, "branch protection"),
    "it is locked": (branch(lock_branch=True, **FREE), APP, "lock"),
    "the App is listed": (branch(OTHER, US), APP, ""),
    "the user is listed": (branch(OTHER, ME), USER, ""),
    "a user may be in the team": (branch(OTHER, TEAM), USER, ""),
    "an actor is not visible": (branch(OTHER, None), APP, ""),
    "the list is longer": (branch(OTHER, total=101), APP, ""),
    "the list is not visible": (branch(push_allowances=None), APP, ""),
    "the bot may push all the same": (branch(OTHER, pushes=True), APP, ""),
    "locked, and the bot may push": (branch(lock_branch=True, pushes=True), APP, ""),
    "only a pull request is required": (branch(**FREE), APP, ""),
    "the rule is not visible": (HIDDEN, APP, ""),
    "no rule": (BaseRef(target=None, rules=None, branch_protection_rule=None), APP, ""),
    "the branch is gone": (None, APP, ""),
}


def api_of(github: GitHub) -> ApiClient:
    return github.read._api


@pytest.mark.parametrize(("base", "me", "rule"), BRANCHES.values(), ids=BRANCHES)
def test_only_a_rule_that_is_certain_to_exclude_the_bot_counts(
    github: GitHub, base: BaseRef | None, me: str, rule: str
) -> None:
    assert PushRules(api_of(github)).barring("acme/widgets", base, me) == rule


@pytest.mark.parametrize("type", ["UPDATE", "LOCK_BRANCH", "PULL_REQUEST", "NON_FAST_FORWARD"])
@pytest.mark.parametrize(
    ("answer", "barred"),
    [
        (Response(200, json={"current_user_can_bypass": "never"}), True),
        (Response(200, json={"current_user_can_bypass": "always"}), False),
        (Response(200, json={"current_user_can_bypass": "pull_requests_only"}), False),
        (Response(200, json={"current_user_can_bypass": "exempt"}), False),
        (Response(200, json={"id": 4}), False),
        (Response(403, json={"message": "Resource not accessible by integration"}), False),
        (Response(404, json={"message": "Not Found"}), False),
    ],
)
def test_a_ruleset_about_updates_counts_if_the_bot_may_never_bypass_it(
    github: GitHub, respx_mock: respx.MockRouter, answer: Response, barred: bool, type: str
) -> None:
    asked = respx_mock.get(f"{REPO}/rulesets/4").mock(answer)
    asked.side_effect = None
    rule = RulesetRule(
        type=type, parameters=None, repository_ruleset=Ruleset(database_id=4, name="releases")
    )
    base = BaseRef(target=None, branch_protection_rule=None, rules=NodeList(nodes=(rule, rule)))
    counts = type in ("UPDATE", "LOCK_BRANCH")
    api = api_of(github)
    rules = PushRules(api)
    for _ in range(3):
        found = rules.barring("acme/widgets", base, APP)
        assert found == ("ruleset `releases`" if barred and counts else "")
    assert asked.call_count == counts, "it is cached"
    api.clock = lambda: NOW + timedelta(minutes=11)
    rules.barring("acme/widgets", base, APP)
    assert asked.call_count == 2 * counts
