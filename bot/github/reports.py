"""What the bot keeps up to date on GitHub: a comment, a check run, the label of a status."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from bot.github.calls import ApiClient
from bot.github.comment_markers import MarkedComments, with_marker, without_markers
from bot.github.errors import Refused, TryLater
from bot.github.shapes import CheckApp, NamedNode
from bot.github.write import GitHubWriter
from lifecycle.model.names import NAME, SHOWS_STATUS

#: GitHub takes so much text in a status, and so many notes at once.
_MOST_OF_STATUS, _MOST_NOTES = 140, 50


class Fault(Protocol):
    """One thing that is wrong with a file."""

    @property
    def line(self) -> int: ...

    @property
    def says(self) -> str: ...


class CreatedReport(Struct, frozen=True):
    """A comment or check run just made or changed."""

    id: int


class _OwnCheckRun(Struct, frozen=True):
    """A check run of a commit, and whose it is."""

    id: int
    app: CheckApp | None


class _OwnCheckRuns(Struct, frozen=True):
    """The newest check runs of a commit that have one name."""

    check_runs: tuple[_OwnCheckRun, ...]


class StatusReporter:
    """Writing what stands until it is written anew. May be used from any thread.

    Every method may be repeated, and raises `TryLater` or `Refused`.
    """

    def __init__(self, calls: ApiClient, me: Callable[[], str], write: GitHubWriter) -> None:
        self._calls = calls
        self._me = me
        self._signed = MarkedComments(calls, me)
        self._write = write

    def comment(self, repo: str, number: int, body: str, key: str, known: int | None) -> int:
        """Bring our comment with this key up to date, or write it; the comment's number.

        `known` is the number it had; where somebody deleted that one, it is looked for.
        """
        path, said = f"issues/{number}/comments", {"body": with_marker(body, key)}
        if known is not None and self._edited(repo, known, said):
            return known
        for mine in self._signed.with_key(repo, path, key):
            if self._edited(repo, mine.id, said):
                return mine.id
        return self._calls.send(repo, "POST", path, said, CreatedReport).id

    def _edited(self, repo: str, comment: int, said: Mapping[str, str]) -> bool:
        """Change a comment of ours; whether it is still there."""
        try:
            self._calls.do(repo, "PATCH", f"issues/comments/{comment}", said)
        except Refused as refusal:
            if refusal.status != 404:
                raise
            return False
        return True

    @property
    def may_check(self) -> bool:
        """Whether GitHub lets us make check runs: it does so for Apps alone."""
        return self._calls.tokens.is_app

    def check(
        self,
        repo: str,
        head: str,
        known: int | None,
        *,
        good: bool,
        title: str,
        summary: str,
        url: str,
    ) -> int:
        """Bring our check run on a commit up to date, or make it; its number.

        It has always ended, and never as a failure: nothing may wait for what only reports. Raises
        `TryLater` where GitHub does not find it, too.
        """
        told = {
            "name": NAME,
            "status": "completed",
            "conclusion": "success" if good else "neutral",
            "details_url": url,
            "output": {"title": title, "summary": without_markers(summary)},
        }
        try:
            run = known or self._own_run(repo, head)
            if run is not None:
                return self._calls.send(repo, "PATCH", f"check-runs/{run}", told, CreatedReport).id
            return self._calls.send(
                repo, "POST", "check-runs", {**told, "head_sha": head}, CreatedReport
            ).id
        except Refused as refusal:
            if refusal.status != 404:
                raise
            # The repository is still there: its installation lacks it for a moment.
            raise TryLater(str(refusal)) from refusal

    def fault(self, repo: str, head: str, name: str, path: str, faults: Sequence[Fault]) -> None:
        """Report what is wrong with a file as a check of a commit, once for its name.

        An App's has a note at each line; of a token's account GitHub takes a commit status alone.
        """
        first = faults[0]
        title = f"{path}, line {first.line}: {first.says}"
        if not self.may_check:
            body = {"state": "failure", "context": name, "description": title[:_MOST_OF_STATUS]}
            self._calls.do(repo, "POST", f"statuses/{head}", body)
            return
        if self._own_run(repo, head, name) is not None:
            return
        notes = [
            {
                "path": path,
                "start_line": fault.line,
                "end_line": fault.line,
                "annotation_level": "failure",
                "message": fault.says,
            }
            for fault in faults[:_MOST_NOTES]
        ]
        told = {
            "name": name,
            "head_sha": head,
            "status": "completed",
            "conclusion": "failure",
            "output": {"title": "It cannot be used", "summary": title, "annotations": notes},
        }
        self._calls.send(repo, "POST", "check-runs", told, CreatedReport)

    def _own_run(self, repo: str, head: str, name: str = NAME) -> int | None:
        params = {"check_name": name}
        runs = self._calls.get(repo, f"commits/{head}/check-runs", _OwnCheckRuns, params).check_runs
        mine = (run.id for run in runs if run.app and f"{run.app.slug}[bot]" == self._me())
        return next(mine, None)

    def show_status(self, repo: str, number: int, status: str) -> None:
        """Have an issue wear the label of a status and of no other one."""
        path, wanted = f"issues/{number}/labels", f"{SHOWS_STATUS}{status}"
        worn = {label.name for label in self._calls.pages(repo, path, NamedNode)}
        for name in sorted(worn - {wanted}):
            if name.startswith(SHOWS_STATUS):
                self._write.label(repo, number, name, on=False)
        if wanted not in worn:
            self._write.label(repo, number, wanted, on=True)
