"""Finds the rule that keeps the bot from pushing to a base branch, and therefore from merging.

Only documented fields of GitHub's API are read. A rule counts only if the bot can read it and it
certainly keeps the bot from pushing.
https://docs.github.com/en/graphql/reference/objects#branchprotectionrule
"""

from datetime import datetime, timedelta

from msgspec import Struct

from bot.github.api_client import ApiClient
from bot.github.errors import IgnoreRefused
from bot.github.shapes import BaseRef, BranchProtection

#: Types of rules under which only accounts that may bypass the ruleset can push.
#: https://docs.github.com/en/graphql/reference/enums#repositoryruletype
_BARS = {"UPDATE", "LOCK_BRANCH"}
#: How long it is cached whether the bot may bypass a ruleset.
_CACHED = timedelta(minutes=10)


class RulesetBypass(Struct, frozen=True):
    """Whether the bot may bypass a ruleset.

    https://docs.github.com/rest/repos/rules#get-a-repository-ruleset
    """

    #: `always`, `pull_requests_only`, `exempt` or `never`; if empty, not visible.
    current_user_can_bypass: str = ""


class PushRules:
    """Finds rules that keep the bot from pushing. Methods raise `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        #: For each repository and ruleset: whether it bars the bot, and until when that is cached.
        self._known: dict[tuple[str, int], tuple[bool, datetime]] = {}

    def barring(self, repo: str, base: BaseRef | None, me: str) -> str:
        """Return the name of a rule that keeps the bot from pushing to `base`; empty if none known.

        Sends one request per ruleset that restricts pushes, at most every ten minutes.
        """
        if base is None:
            return ""
        update, protection = base.ref_update_rule, base.branch_protection_rule
        # Both conditions are needed: `viewer_can_push` is also False where only a pull request is
        # required, and administrators may push despite branch protection.
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
    """Whether the rule certainly excludes the bot's account from pushing.

    A bot with a user's token may be a member of a listed team. An App is a member of none.
    """
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
