"""Attributes a new head of a session's branch to the bot, to GitHub's update, or to a person.

After a person's push the agent gets no failed checks, earlier reviews or conflicts until somebody
sends it a new request: `handed_to_human` in `lifecycle.read.session_view`.
"""

from bot.store import FactsReader, Session
from bot.system.locations import Locations
from lifecycle.model import keys
from lifecycle.model.facts import Pull
from lifecycle.model.status import Mover


class PushAttribution:
    """Attributes heads by the bot's own pushes, and by the commits themselves."""

    def __init__(self, facts: FactsReader, locations: Locations) -> None:
        self._facts = facts
        self._locations = locations

    def who(self, session: Session, pull: Pull, before: Pull | None) -> Mover:
        """Who moved the branch from the head of `before` to that of `pull`.

        Raises `GitFailure` if the commits cannot be fetched.
        """
        facts = self._facts.get(session.id)
        push, mirror = keys.push(pull.head), self._locations.mirror(session.project)
        last = facts.done.get(keys.push(before.head)) if before else None
        pushed = facts.done.get(push)
        if pushed is not None and last is not None and pushed.at < last.at:
            # The branch is back at an earlier push of the bot, unless GitHub's answer is outdated.
            mirror.refresh()
            reset = mirror.head_of(session.branch) == pull.head
            return Mover.PERSON if reset else Mover.BOT
        if pushed is not None or push in facts.pending or pull.head == session.work.base:
            return Mover.BOT
        old = before.head if before else session.work.head
        mirror.refresh()
        updated = mirror.contains(pull.head) and mirror.contains(old)
        if updated and mirror.is_update(old, pull.head, pull.base_branch):
            return Mover.UPDATE
        return Mover.PERSON
