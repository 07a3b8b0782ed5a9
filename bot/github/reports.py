"""Writes a session's status to GitHub, as a comment and as a check run, and updates both.

Also reports the problems of a repository's configuration file.
"""

from collections.abc import Mapping, Sequence

from bot.github.api_client import ApiClient
from bot.github.comment_markers import own_comments, with_marker, without_markers
from bot.github.errors import IgnoreRefused, Refused, TryLater
from bot.github.rest import CheckRuns, Identified
from lifecycle.model.actions import FaultyLine
from lifecycle.model.names import NAME

#: The longest description of a commit status, and the most annotations of one request.
#: https://docs.github.com/rest/checks/runs#create-a-check-run
_MAX_DESCRIPTION, _MAX_ANNOTATIONS = 140, 50


class StatusReporter:
    """Writes reports and replaces their earlier versions. Thread-safe.

    Methods are idempotent and raise `TryLater` or `Refused`.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def set_comment(
        self,
        repo: str,
        number: int,
        body: str,
        key: str,
        known: int | None,
        *,
        first: bool = False,
    ) -> int:
        """Update the bot's comment with this key, or create it; return the comment's id.

        `known` is the comment's id as last returned, or None. If it is None or the comment was
        deleted, the comments are searched for the key. `first` says that this is the first attempt:
        if `known` is None, the comment is then created without a search.
        https://docs.github.com/rest/issues/comments#update-an-issue-comment
        """
        path, fields = f"issues/{number}/comments", {"body": with_marker(body, key)}
        if known is not None and self._edited(repo, known, fields):
            return known
        absent = first and known is None
        for mine in () if absent else own_comments(self._api, repo, path, key):
            if self._edited(repo, mine.id, fields):
                return mine.id
        return self._api.send(repo, "POST", path, fields, Identified).id

    def _edited(self, repo: str, comment: int, fields: Mapping[str, str]) -> bool:
        """Update a comment; return False if the comment was deleted."""
        with IgnoreRefused(404):
            self._api.do(repo, "PATCH", f"issues/comments/{comment}", fields)
            return True
        return False

    @property
    def can_create_check_runs(self) -> bool:
        """Whether the bot may create check runs, which only Apps may.

        https://docs.github.com/rest/checks/runs#create-a-check-run
        """
        return self._api.tokens.is_app

    def set_check_run(
        self,
        repo: str,
        head: str,
        known: int | None,
        *,
        good: bool,
        title: str,
        summary: str,
        url: str,
        first: bool = False,
    ) -> int:
        """Update the bot's check run on a commit, or create it; return its id.

        `known` is the check run's id as last returned, or None. If it is None or GitHub has deleted
        that check run, the commit's check runs are searched. `first` says that this is the first
        attempt: if `known` is None, the check run is then created without a search.

        The conclusion is `success` if `good`, else `neutral`, so that it never blocks a merge.
        https://docs.github.com/rest/checks/runs#update-a-check-run

        Raises:
            TryLater: also if GitHub answers 404, as it may do for a moment.
        """
        fields = {
            "name": NAME,
            "status": "completed",
            "conclusion": "success" if good else "neutral",
            "details_url": url,
            "output": {"title": title, "summary": without_markers(summary)},
        }
        try:
            if known is not None:
                # GitHub deletes old check runs: then there may be another one, or none.
                with IgnoreRefused(404):
                    return self._updated_run(repo, known, fields)
            run = None if first and known is None else self._own_run(repo, head)
            if run is not None:
                return self._updated_run(repo, run, fields)
            return self._api.send(
                repo, "POST", "check-runs", {**fields, "head_sha": head}, Identified
            ).id
        except Refused as refusal:
            if refusal.status != 404:
                raise
            # GitHub may answer 404 for an installation's repository for a moment.
            raise TryLater(str(refusal)) from refusal

    def _updated_run(self, repo: str, run: int, fields: Mapping[str, object]) -> int:
        return self._api.send(repo, "PATCH", f"check-runs/{run}", fields, Identified).id

    def report_problems(
        self, repo: str, head: str, name: str, path: str, problems: Sequence[FaultyLine]
    ) -> None:
        """Report the problems of a file as the failed check `name` of a commit.

        An App creates a check run with up to 50 annotations, unless the commit already has one of
        this name. With a token, the commit status of this name is set, with the first problem only.
        https://docs.github.com/rest/commits/statuses#create-a-commit-status
        """
        first = problems[0]
        title = f"{path}, line {first.line}: {first.says}"
        if not self.can_create_check_runs:
            body = {"state": "failure", "context": name, "description": title[:_MAX_DESCRIPTION]}
            self._api.do(repo, "POST", f"statuses/{head}", body)
            return
        if self._own_run(repo, head, name) is not None:
            return
        annotations = [
            {
                "path": path,
                "start_line": problem.line,
                "end_line": problem.line,
                "annotation_level": "failure",
                "message": problem.says,
            }
            for problem in problems[:_MAX_ANNOTATIONS]
        ]
        fields = {
            "name": name,
            "head_sha": head,
            "status": "completed",
            "conclusion": "failure",
            "output": {
                "title": "The file is invalid and was not applied",
                "summary": title,
                "annotations": annotations,
            },
        }
        self._api.send(repo, "POST", "check-runs", fields, Identified)

    def _own_run(self, repo: str, head: str, name: str = NAME) -> int | None:
        params = {"check_name": name}
        runs = self._api.get(repo, f"commits/{head}/check-runs", CheckRuns, params).check_runs
        mine = (run.id for run in runs if run.app and f"{run.app.slug}[bot]" == self._api.me())
        return next(mine, None)
