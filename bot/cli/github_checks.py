"""The doctor's checks of GitHub: credentials, permissions, events and workflows."""

import re
from collections.abc import Callable
from contextlib import closing
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

import httpx
from msgspec import Struct

from bot.app.github_client import github_client
from bot.cli.context import Installation
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, NotInstalled
from bot.setup.manifest import EVENTS_ASKED
from bot.system.clock import utc_now
from config.load import no_credentials
from config.repository import PATH, RepositoryError, narrowed
from lifecycle.model.names import NAME
from lifecycle.model.policy import MergeMethod, Policy

_CLOCK_SECONDS = 60  # GitHub refuses App tokens that are further off.


class Severity(StrEnum):
    """How serious a check's result is; a failed one prevents the server's work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class CheckResult(Struct, frozen=True):
    """The result of one check."""

    severity: Severity
    says: str
    remedy: str = ""


def ok(says: str) -> CheckResult:
    return CheckResult(Severity.OK, says)


def warn(says: str, remedy: str = "") -> CheckResult:
    return CheckResult(Severity.WARN, says, remedy)


def fail(says: str, remedy: str = "") -> CheckResult:
    return CheckResult(Severity.FAIL, says, remedy)


def _with_client(
    check: Callable[[Installation, GitHub], CheckResult],
) -> Callable[[Installation], CheckResult]:
    """Run a check with a client; if GitHub cannot be reached, the check `github` reports it."""

    def run(installed: Installation) -> CheckResult:
        if no_credentials(installed.settings, installed.secrets):
            return warn("not checked: no credentials")
        try:
            with closing(github_client(installed.settings, installed.secrets)) as us:
                return check(installed, us)
        except GitHubFailure as failure:
            return warn(f"not checked: {failure}")

    return run


def github(installed: Installation) -> CheckResult:
    if lacking := no_credentials(installed.settings, installed.secrets):
        says, _, remedy = lacking.partition(": ")
        return fail(says, remedy)
    try:
        with closing(github_client(installed.settings, installed.secrets)) as us:
            login = us.read.me()
            for project in installed.settings.projects.values():
                us.read.repository(project.repository)
    except NotInstalled as failure:
        return fail(str(failure))  # Its message has the remedy.
    except GitHubFailure as failure:
        return fail(str(failure), "check github.api-url and the credentials")
    slug, named = login.removesuffix("[bot]"), installed.settings.github.app_slug
    if slug not in (login, named.lower(), NAME):
        return warn(
            f"{installed.settings.github.api_url}: signed in as {login}, but @{slug} is ignored",
            f'set github.app-slug = "{slug}"',
        )
    return ok(f"{installed.settings.github.api_url}: signed in as {login}")


@_with_client
def permissions(installed: Installation, us: GitHub) -> CheckResult:
    projects = installed.settings.projects.values()
    places = dict.fromkeys(place for one in projects for place in (one.repository, one.home))

    wrong, unseen = [], []
    for place in places:
        try:
            wrong += [f"{place}: {what}" for what in us.read.missing_permissions(place)]
        except GitHubFailure as failure:
            unseen.append(str(failure))
    if unseen and not wrong:
        return fail("\n".join(unseen))
    if not wrong:
        return ok("complete, as far as GitHub shows them")
    remedy = (
        "grant it in the App's settings, then accept the change for the installation"
        if installed.settings.github.app_id
        else "give the token's account the role `write`, and a classic token the scope `repo`"
    )
    return fail("\n".join([*wrong, *unseen]), remedy)


def events(installed: Installation) -> CheckResult:
    if installed.settings.polls or not installed.settings.github.app_id:
        return ok("not checked: only Apps subscribe to events")
    return _app_events(installed)


@_with_client
def _app_events(installed: Installation, us: GitHub) -> CheckResult:
    places = [project.repository for project in installed.settings.projects.values()]
    missing = {place: set(EVENTS_ASKED).difference(us.read.events(place)) for place in places}
    lines = [f"{place}: {', '.join(sorted(some))}" for place, some in missing.items() if some]
    if not lines:
        return ok("the App is subscribed to all events")
    remedy = "subscribe to them in the App's settings, below its permissions"
    return warn("the App is not subscribed to\n" + "\n".join(lines), remedy)


@_with_client
def workflows(installed: Installation, us: GitHub) -> CheckResult:
    found = [
        f"{project.repository}: {path}: {', '.join(secrets)}"
        for project in installed.settings.projects.values()
        for path, text in us.read.workflows(project.repository).items()
        if (secrets := secrets_for_branches(text))
    ]
    if not found:
        return ok("no workflow gives secrets to pushed branches")
    return warn(
        "these run for every pushed branch and have secrets:\n" + "\n".join(found),
        "move the secrets to an environment for the default branch, or set `push-to` to a fork",
    )


@_with_client
def signatures(installed: Installation, us: GitHub) -> CheckResult:
    wanted, severity = [], Severity.OK
    for project in installed.settings.projects.values():
        place = project.repository
        here = us.read.repository(place)
        branch = project.base_branch or here.default_branch
        if us.read.requires_signatures(place, branch):
            method = here.merge_method(_policy(us, place, installed.settings.policy).merge_method)
            wanted.append(f"{place}: {branch} requires signed commits (merge method: {method})")
            if method is not MergeMethod.SQUASH:
                severity = Severity.FAIL
    if not wanted:
        return ok("no base branch requires signed commits")
    remedy = (
        'set policy.merge-method = "squash" and allow squash merging in the repository:'
        " GitHub signs squashed commits, agents do not sign theirs"
    )
    return CheckResult(severity, "\n".join(wanted), remedy if severity is Severity.FAIL else "")


def clock(installed: Installation) -> CheckResult:
    url = installed.settings.github.api_url
    try:
        there = parsedate_to_datetime(httpx.head(url, timeout=10).headers["Date"])
    except httpx.HTTPError as error:
        return fail(f"{url} does not answer: {error}", "check the network")
    except (KeyError, ValueError):
        return warn(f"{url} sent no date")
    off = abs((utc_now() - there).total_seconds())
    if off > _CLOCK_SECONDS:
        return fail(f"{off:.0f} s off GitHub's clock", "set the clock with NTP")
    return ok("in sync with GitHub")


def _policy(us: GitHub, repository: str, server: Policy) -> Policy:
    """Return a repository's policy: its own file, if it is valid, applied to the server's.

    Raises `GitHubFailure`.
    """
    try:
        return narrowed(us.read.file(repository, PATH).text or "", server)
    except RepositoryError:
        return server


#: Events that run a workflow for a branch with an agent's commits.
_EVENTS: Final = ("push", "pull_request", "pull_request_target", "create", "workflow_run")
_SECRET: Final = re.compile(r"\bsecrets\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*['\"](\w+)['\"]\s*\])")
_ALL: Final = re.compile(r"^\s*secrets:\s*inherit\b", re.MULTILINE)
_COMMENT: Final = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
#: `on` and what is indented below it; some quote it, because YAML 1.1 reads it as true.
_TRIGGERS: Final = re.compile(
    r"^(['\"]?)on\1\s*:(.*\n?(?:(?:[ \t]+.*|[ \t]*)(?:\n|$))*)", re.MULTILINE
)
#: The `push` trigger and what is indented below it.
_PUSH: Final = re.compile(r"^([ \t]+)push:[ \t]*\n((?:\1[ \t]+.*(?:\n|\Z))*)", re.MULTILINE)


def secrets_for_branches(workflow: str) -> list[str]:
    """Return the secrets a workflow has when it runs for a pushed branch; `*` is all of them.

    In doubt, a workflow is taken to run. `GITHUB_TOKEN` does not count.
    """
    text = _COMMENT.sub("", workflow)
    triggers = _TRIGGERS.search(text)
    events = triggers[2] if triggers else ""
    push = _PUSH.search(events)
    if push and "branches:" in push[2] and "*" not in push[2]:
        events = events.replace(push[0], "")  # Only branches listed by name.
    if not re.search(rf"\b(?:{'|'.join(_EVENTS)})\b", events):
        return []
    named = {one or other for one, other in _SECRET.findall(text)} - {"GITHUB_TOKEN"}
    return sorted(named | ({"*"} if _ALL.search(text) else set()))
