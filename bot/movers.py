"""Who moved a session's branch: we by a push, GitHub by an update, or a person."""

from bot.sites import Sites
from bot.store import Session, Store
from lifecycle.facts import Pull
from lifecycle.status import Mover


class Movers:
    """Tells an update of the branch from a person's commit by the commits themselves."""

    def __init__(self, store: Store, sites: Sites) -> None:
        self._store = store
        self._sites = sites

    def who(self, session: Session, pull: Pull, before: Pull | None) -> Mover:
        """Who brought the branch from where it was last seen to where it is now.

        Raises `GitFailure` where the commits cannot be had: then nothing is known.
        """
        facts = self._store.facts(session.id)
        push = f"push:{pull.head}"
        if push in facts.done or push in facts.pending or pull.head == session.work.base:
            return Mover.BOT
        old = before.head if before else session.work.head
        mirror = self._sites.mirror(session.project)
        mirror.refresh()
        updated = mirror.contains(pull.head) and mirror.contains(old)
        if updated and mirror.is_update(old, pull.head, pull.base_branch):
            return Mover.UPDATE
        return Mover.PERSON
