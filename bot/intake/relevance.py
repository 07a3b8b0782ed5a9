"""Recognises deliveries that concern no session, so that nothing is read from GitHub for them.

A busy repository sends thousands of such deliveries an hour, and reading GitHub for each would
exceed the rate limit.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from bot.intake.changes import ChangedSubject
from bot.store import SessionsTable


@dataclass(frozen=True)
class Relevance:
    """Determines what to refresh for a subject that a payload names."""

    sessions: SessionsTable
    #: By repository, the labels and assignees (`@login`) that request an agent, in lower case.
    triggers: Mapping[str, Collection[str]] = field(default_factory=dict)

    def refreshes(self, repository: str, changed: ChangedSubject) -> tuple[str, ...]:
        """Return the subjects to refresh, as in `RefreshRequest.subject`; empty if there are none.

        If the payload names a pull request that is not known yet, such as 34, without its branch,
        the subject is `other:34`. Such pull requests are looked up together, with one query for
        each repository, after those of sessions have been read. If an issue has no session, and no
        label or assignee that requests an agent, the subjects are the issues whose sessions wait
        for it.
        """
        subject = changed.subject
        kind, _, name = subject.partition(":")
        known = self.sessions.of_subject(repository, subject)
        if kind == "branch" and known and not self._has_pulls(known):
            return ()  # Its first pull request has an event of its own.
        if known or kind not in ("issue", "pull"):
            return (subject,)
        if kind == "pull":
            return self._of_pull(repository, name, changed.branch)
        triggers = self.triggers.get(repository)
        if changed.labels is None or triggers is None or not changed.labels.isdisjoint(triggers):
            return (subject,)
        blocks = self.sessions.issues_blocked_by(repository, int(name))
        return tuple(f"issue:{number}" for number in blocks)

    def _of_pull(self, repository: str, number: str, branch: str | None) -> tuple[str, ...]:
        if branch is None:
            return (f"other:{number}",)
        ours = self.sessions.of_subject(repository, f"branch:{branch}")
        return (f"pull:{number}",) if ours else ()

    def _has_pulls(self, id: str) -> bool:
        session = self.sessions.get(id)
        return session is not None and bool(session.pulls)
