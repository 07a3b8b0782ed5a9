"""Finds the rule that keeps the bot from pushing to a base branch, and so from merging.

Only documented fields are read. A rule is ignored if the bot may not see it, or if it may let the
bot push. https://docs.github.com/en/graphql/reference/objects#branchprotectionrule
"""

from datetime import datetime, timedelta

from msgspec import Struct

from bot.github.api_client import ApiClient
from bot.github.errors import IgnoreRefused
from bot.github.shapes import BaseRef, BranchProtection

#: Types of rules that let only those push who may bypass their ruleset.
#: https://docs.github.com/en/graphql/reference/enums#repositoryruletype
_BARS = {"UPDATE", "LOCK_BRANCH"}
#: How long is cached whether the bot may bypass a ruleset.
_CACHED = timedelta(minutes=10)


class RulesetBypass(Struct, frozen=True):
    """https://docs.github.com/rest/repos/rules#get-a-repository-ruleset"""

    #: `always`, `pull_requests_only`, `exempt` or `never`; empty: not visible.
    current_user_can_bypass: str = ""


class PushRules:
    """Raises (every method) `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        #: Whether the bot is barred, by repository and ruleset, with the time until which it holds.
        self._known: dict[tuple[str, int], tuple[bool, datetime]] = {}

    def barring(self, repo: str, base: BaseRef | None, me: str) -> str:
        """The rule that keeps the bot from pushing to a base branch, in words; empty: none known.

        Sends a request for each ruleset of that kind, once in ten minutes.
        """
        if base is None:
            return ""
        update, protection = base.ref_update_rule, base.branch_protection_rule
        # Neither is enough: nobody may push where only a pull request is required, and
        # administrators may push where others may not.
        if update is not None and not update.viewer_can_push and protection is not None:
            if protection.lock_branch:
                return "lock"
            if _excludes(protection, me):
                return "branch protection"
        rules = base.rules.nodes if base.rules else ()
        for ruleset in [one.repository_ruleset for one in rules if one.type in _BARS]:
            if ruleset and ruleset.database_id and self._is_barred(repo, ruleset.database_id):
                return f"ruleset `{ruleset.name}`"
        return ""

    def _is_barred(self, repo: str, ruleset: int) -> bool:
        key, now = (repo, ruleset), self._api.clock()
        known, until = self._known.get(key, (False, now))
        if now < until:
            return known
        found = RulesetBypass()
        with IgnoreRefused(403, 404):
            found = self._api.get(repo, f"rulesets/{ruleset}", RulesetBypass)
        self._known[key] = found.current_user_can_bypass == "never", now + _CACHED
        return self._known[key][0]


def _excludes(protection: BranchProtection, me: str) -> bool:
    """Whether only others may push. The bot may be a member of any team, but an App is of none."""
    allowed = protection.push_allowances
    if not protection.restricts_pushes or allowed is None:
        return False
    if allowed.total_count > len(allowed.nodes):
        return False
    for actor in (one.actor for one in allowed.nodes):
        if actor is None or (actor.typename == "Team" and not me.endswith("[bot]")):
            return False
        if me in (actor.login, f"{actor.slug}[bot]"):
            return False
    return True
