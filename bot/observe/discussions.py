"""Selects an issue's newest comments, and its last edit since its session was triggered."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256

from msgspec.structs import replace

from bot.github.snapshots import IssueEvent, IssueSnapshot
from bot.github.write_access import WriteAccess
from bot.store import Session
from bot.text.markdown import addresses
from bot.text.prompt_text import fit
from lifecycle.model.facts import Issue, Remark
from lifecycle.model.names import NAME

#: The most characters of one text, and of all comments of an issue together.
_MOST, _MOST_TOGETHER = 10_000, 40_000


@dataclass(frozen=True)
class Discussions:
    """Decides which remarks may be sent to agents, by the permissions of authors and editors."""

    people: WriteAccess
    app_slug: str = ""  #: The App's slug, by which people may mention it; empty without an App.

    def remark(self, repository: str, edited_by: Mapping[str, str], remark: Remark) -> Remark:
        """Return the remark with `allowed` set, and with `to_bot` if it is addressed to this bot.

        The bot's own remarks are not changed. A person's remark is allowed if its author and its
        last editor may give commands. For another bot's remark, only an editor other than that bot
        is checked. `edited_by` has the last editors by remark id. Raises `GitHubFailure`.
        """
        if remark.own:
            return remark
        editor = edited_by.get(remark.id, remark.author)
        # The policy decides which bots count; people who edit a bot's remark need access too.
        people = {editor} - {remark.author} if remark.bot else {remark.author, editor}
        allowed = all(self.people.may_command(repository, login) for login in people)
        return replace(remark, allowed=allowed, to_bot=bool(addresses(remark.body, self.app_slug)))

    def of(
        self, repository: str, reading: IssueSnapshot, known: Issue, ours: Collection[str]
    ) -> Issue:
        """Return the issue `known` with the comments, labels, milestone and links of `reading`.

        Comments that are in `known` keep the text and permission with which they were first read.
        `ours` are the labels that request an agent, in lower case. The returned issue has neither
        these labels nor others that start with `mergewright`. Assignees, which `reading.labels`
        contains as `@LOGIN`, are omitted. Raises `GitHubFailure`.
        """
        newest, left_out = self._newest(reading)
        before = {one.id: one for one in known.remarks}
        remarks = [
            # The author's permission was read when the remark was new.
            before.get(one.id) or _kept(self.remark(repository, reading.edited_by, one))
            for one in newest
        ]
        edits = [one for one in known.remarks if one.edit]
        return replace(
            known,
            remarks=tuple(sorted((*remarks, *edits), key=lambda one: (one.at, one.id))),
            left_out=reading.earlier_comments + left_out,
            labels=tuple(label for label in reading.labels if not _is_ours(label, ours)),
            milestone=reading.issue.milestone,
            linked=reading.issue.linked,
        )

    def with_edit(self, session: Session, issue: Issue, reading: IssueSnapshot) -> Issue:
        """Return the issue with a remark for the last edit since its session was triggered.

        An edit is a change of title or text. The remark is added only if everybody who has edited
        the issue since then may give commands. Raises `GitHubFailure`.
        """
        since = (issue.labelled_at or session.created).replace(microsecond=0)
        edits = [edit for edit in reading.edits if edit.at >= since]
        before = next((one for one in issue.remarks if one.edit), None)
        current = _digest(reading.issue)
        if not edits or current == (before.id[-len(current) :] if before else _digest(issue)):
            return issue
        may = self.people.may_command
        if not all(may(session.repository, edit.actor) for edit in edits):
            return issue
        others = [one for one in issue.remarks if one is not before]
        return replace(issue, remarks=(*others, _edit(edits[-1], reading.issue, current)))

    def _newest(self, reading: IssueSnapshot) -> tuple[list[Remark], int]:
        """Return the newest comments within the limits, oldest first, and the number left out.

        The bot's own comments are neither returned nor counted.
        """
        newest: list[Remark] = []
        comments = [one for one in reading.comments if not one.own]
        left = _MOST_TOGETHER
        for one in reversed(comments):
            short = replace(one, body=fit(one.body, _MOST))
            left -= len(short.body)
            if left < 0:
                break
            newest.insert(0, short)
        return newest, len(comments) - len(newest)


def _kept(remark: Remark) -> Remark:
    """Return a remark, without its text if the agent will never get it."""
    return remark if remark.allowed and not remark.to_bot else replace(remark, body="")


def _is_ours(label: str, ours: Collection[str]) -> bool:
    return label.lower() in ours or label.startswith("@") or label.lower().startswith(NAME)


def _edit(edit: IssueEvent, issue: Issue, digest: str) -> Remark:
    return Remark(
        id=f"edit:{edit.at:%Y%m%dT%H%M%S}-{digest}",
        author=edit.actor,
        body=f"{issue.title}\n\n{fit(issue.body, _MOST)}",
        at=edit.at,
        allowed=True,
        edit=True,
    )


def _digest(issue: Issue) -> str:
    return sha256(f"{issue.title}\n{issue.body}".encode()).hexdigest()[:12]
