"""The pages of issues and pull requests, where a person labels, comments and reviews."""

import html
import re
import subprocess
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from bot.demo.github.http import Answer, Request
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Forge, Repository

_ISSUE = re.compile(r"/([^/]+/[^/]+)/(?:issues|pull)/(\d+)(?:/(\w+))?")
_REPOSITORY = re.compile(r"/([^/]+/[^/]+?)/?")
#: What GitHub hides: HTML comments, and the one tag that the bot's reports use.
_HIDDEN = re.compile(r"<!--.*?-->|</?sub>", re.DOTALL)
_HTML = {"Content-Type": "text/html; charset=utf-8"}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2128; background: #fff; }
a { color: #0550ae; } h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
article { border: 1px solid #d0d7de; border-radius: 6px; padding: .2rem 1rem; margin: 1rem 0; }
pre { background: #f6f8fa; padding: .6rem; overflow-x: auto; } .by, .state { color: #57606a; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
textarea { width: 100%; box-sizing: border-box; min-height: 5rem; font: inherit; }
button { font: inherit; padding: .3rem .8rem; margin: .3rem .3rem .3rem 0; }
"""


class Pages:
    """Serves the pages of the stand-in. Their buttons act in the name of `person`.

    Reviews are by `reviewer`, because nobody can approve their own pull request.
    """

    def __init__(
        self, world: Forge, person: str, reviewer: str, label: str, links: str = ""
    ) -> None:
        """Serve the pages. Each begins with the HTML `links`. A button adds or removes `label`."""
        self._world = world
        self._person = person
        self._reviewer = reviewer
        self._label = label
        self._links = links

    def answer(self, request: Request) -> Answer | None:
        """Answer the request for a page or a pressed button. Returns None for any other address."""
        with self._world.lock:
            if found := _ISSUE.fullmatch(request.path):
                repo = self._world.repositories.get(found[1].lower())
                number = int(found[2]) if len(found[2]) < 10 else 0
                item = repo.issues_and_pulls.get(number) if isinstance(repo, Repository) else None
                if item is None:
                    return None
                if request.method == "POST":
                    return self._press(request, item, found[3] or "")
                return self._page(item.title, self._item(item)) if not found[3] else None
            if request.path == "/" or (found := _REPOSITORY.fullmatch(request.path)):
                name = found[1].lower() if found else ""
                repositories = [
                    repo
                    for repo in self._world.repositories.values()
                    if isinstance(repo, Repository) and name in ("", repo.full_name.lower())
                ]
                if repositories:
                    return self._page("Issues and pull requests", _listed(repositories))
        return None

    def _press(self, request: Request, item: Issue, button: str) -> Answer:
        origin = request.headers.get("origin", "")
        if origin and urlsplit(origin).netloc != urlsplit(self._world.url).netloc:
            return Answer(status=403, body=b"Forbidden", headers={"Content-Type": "text/plain"})
        text = parse_qs(request.body.decode("utf-8", "replace")).get("text", [""])[0].strip()
        if button == "label":
            item.label(self._label, self._person)
        elif button == "unlabel" and self._label in item.labels:
            item.unlabel(self._label, self._person)
        elif button == "comment" and text:
            item.comment(text, by=self._person)
        elif button == "approve" and isinstance(item, Pull):
            item.review(by=self._reviewer, state="APPROVED", body=text)
        elif button == "request" and isinstance(item, Pull) and text:
            item.review(by=self._reviewer, state="CHANGES_REQUESTED", body=text)
        return Answer(status=303, headers={"Location": item.url})

    def _item(self, item: Issue) -> Iterator[str]:
        repo, state = item.repo, "merged" if isinstance(item, Pull) and item.merged else item.state
        labels = ", ".join(item.labels) or "no labels"
        kind = "Pull request" if item.is_pull else "Issue"
        yield f'<p><a href="{_attribute(repo.url)}">{html.escape(repo.full_name)}</a></p>'
        yield f'<p class="state">{kind} #{item.number}, {state}; {html.escape(labels)}</p>'
        yield _said(item.user.login, item.body)
        for comment in item.comments:
            yield _said(comment.user.login, comment.body)
        if isinstance(item, Pull):
            yield from _of_pull(item)
        yield "<h2>Write</h2>" + self._forms(item)

    def _forms(self, item: Issue) -> str:
        on = self._label in item.labels
        verb, action = ("Remove", "unlabel") if on else ("Add", "label")
        label = f"{verb} the label {html.escape(self._label)}"
        here, reviewer = _attribute(item.url), html.escape(self._reviewer)
        reviews = (
            ""
            if not item.is_pull
            else (
                f'<button formaction="{here}/approve">Approve as {reviewer}</button>'
                f'<button formaction="{here}/request">Request changes as {reviewer}</button>'
            )
        )
        return (
            f'<form method="post" action="{here}/comment"><textarea name="text" '
            f'placeholder="A comment by {html.escape(self._person)}, or /mergewright help">'
            f"</textarea><br><button>Comment</button>{reviews}</form>"
            f'<form method="post" action="{here}/{action}"><button>{label}</button></form>'
        )

    def _page(self, title: str, parts: Iterator[str]) -> Answer:
        text = html.escape(title)
        body = (
            f'<!doctype html><meta charset="utf-8"><meta name="viewport" content="width='
            f'device-width"><link rel="icon" href="data:,"><title>{text}</title>'
            f"<style>{_STYLE}</style>"
            f"<p>{self._links}</p><h1>{text}</h1>{''.join(parts)}"
        )
        return Answer(body=body.encode(), headers=dict(_HTML))


def _listed(repositories: list[Repository]) -> Iterator[str]:
    for repo in repositories:
        yield f"<h2>{html.escape(repo.full_name)}</h2><ul>"
        for item in sorted(repo.issues_and_pulls.values(), key=lambda one: -one.number):
            state = "merged" if isinstance(item, Pull) and item.merged else item.state
            kind = "pull request" if item.is_pull else "issue"
            link = f'<a href="{_attribute(item.url)}">{html.escape(item.title)}</a>'
            yield f'<li>{link} <span class="state">{kind} #{item.number}, {state}</span></li>'
        yield "</ul>"


def _of_pull(pull: Pull) -> Iterator[str]:
    yield "<h2>Reviews</h2>"
    for review in pull.reviews:
        yield _said(f"{review.user.login} ({review.state.lower()})", review.body)
    for thread in pull.threads:
        solved = ", resolved" if thread.resolved_by else ""
        yield f'<p class="state">{html.escape(thread.path)}{solved}</p>'
        for comment in thread.comments:
            yield _said(comment.user.login, comment.body)
    yield "<h2>Checks</h2><ul>"
    for run in pull.repo.checks.runs_of(pull.head):
        yield f"<li>{html.escape(run.name)}: {html.escape(run.conclusion or run.status)}</li>"
    yield "</ul><h2>Changes</h2>"
    yield f"<pre>{html.escape(_diff(pull))}</pre>"


def _diff(pull: Pull) -> str:
    command = ["git", "-C", str(pull.repo.git.path), "diff", f"{pull.base}...{pull.head}"]
    ran = subprocess.run(command, capture_output=True, check=False)
    return ran.stdout.decode("utf-8", "replace")[:100_000]


def _said(by: str, text: str) -> str:
    body = html.escape(_HIDDEN.sub("", text).strip())
    return f'<article><p class="by">{html.escape(by)}</p><p class="text">{body}</p></article>'


def _attribute(text: str) -> str:
    return html.escape(text, quote=True)
