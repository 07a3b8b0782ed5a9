"""The doctor's checks at GitHub: whether it knows us, what we may do there, what it asks of us."""

from collections.abc import Callable
from contextlib import closing
from email.utils import parsedate_to_datetime

import httpx

from bot.app.account import client
from bot.cli.check_result import CheckResult, Installation, Severity
from bot.cli.workflows import secrets_for_branches
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, NotInstalled
from bot.setup.manifest import EVENTS_ASKED
from bot.system.clock import utc_now
from config.load import no_credentials
from config.repository import PATH, RepositoryError, narrowed
from lifecycle.model.names import NAME
from lifecycle.model.policy import MergeMethod, Policy

_CLOCK_SECONDS = 60  # A signed App token that is further off is refused.


def github(installed: Installation) -> CheckResult:
    if lacking := no_credentials(installed.settings, installed.secrets):
        says, _, remedy = lacking.partition(": ")
        return CheckResult(Severity.FAIL, says, remedy)
    try:
        with closing(client(installed.settings, installed.secrets)) as us:
            login = us.read.me()
            for project in installed.settings.projects.values():
                us.read.repository(project.repository)
    except NotInstalled as failure:
        return CheckResult(Severity.FAIL, str(failure))  # It says what to do.
    except GitHubFailure as failure:
        return CheckResult(Severity.FAIL, str(failure), "check github.api-url and the credentials")
    slug, named = login.removesuffix("[bot]"), installed.settings.github.app_slug
    if slug not in (login, named.lower(), NAME):
        return CheckResult(
            Severity.WARN,
            f"{installed.settings.github.api_url} knows us as {login}: @{slug} is not heard",
            f'set github.app-slug = "{slug}"',
        )
    return CheckResult(Severity.OK, f"{installed.settings.github.api_url} knows us as {login}")


def permissions(installed: Installation) -> CheckResult:
    projects = installed.settings.projects.values()
    places = dict.fromkeys(place for one in projects for place in (one.repository, one.home))

    def look(us: GitHub) -> CheckResult:
        wrong, unseen = [], []
        for place in places:
            try:
                wrong += [f"{place}: {what}" for what in us.read.lacking(place)]
            except GitHubFailure as failure:
                unseen.append(str(failure))
        if unseen and not wrong:
            return CheckResult(Severity.FAIL, "\n".join(unseen))
        if not wrong:
            return CheckResult(Severity.OK, "all that are needed, as far as GitHub tells")
        remedy = (
            "grant it in the App's settings, then accept the change where it is installed"
            if installed.settings.github.app_id
            else "give the token's account the role `write`, and a classic token the scope `repo`"
        )
        return CheckResult(Severity.FAIL, "\n".join([*wrong, *unseen]), remedy)

    return _looked(installed, look)


def events(installed: Installation) -> CheckResult:
    if installed.settings.polls or not installed.settings.github.app_id:
        return CheckResult(Severity.OK, "not looked at: only an App is told which")

    def look(us: GitHub) -> CheckResult:
        places = [project.repository for project in installed.settings.projects.values()]
        unheard = {place: set(EVENTS_ASKED).difference(us.read.events(place)) for place in places}
        deaf = [f"{place}: {', '.join(sorted(some))}" for place, some in unheard.items() if some]
        if not deaf:
            return CheckResult(Severity.OK, "the App is told of all that is read")
        remedy = "subscribe to them in the App's settings, below its permissions"
        return CheckResult(Severity.WARN, "the App is not told of\n" + "\n".join(deaf), remedy)

    return _looked(installed, look)


def workflows(installed: Installation) -> CheckResult:
    def look(us: GitHub) -> CheckResult:
        found = [
            f"{project.repository}: {path}: {', '.join(secrets)}"
            for project in installed.settings.projects.values()
            for path, text in us.files.workflows(project.repository).items()
            if (secrets := secrets_for_branches(text))
        ]
        if not found:
            return CheckResult(Severity.OK, "none gives secrets to branches")
        return CheckResult(
            Severity.WARN,
            "these run for every branch, with secrets:\n" + "\n".join(found),
            "keep them in an environment for the default branch alone, or push to a fork: push-to",
        )

    return _looked(installed, look)


def signatures(installed: Installation) -> CheckResult:
    def look(us: GitHub) -> CheckResult:
        wanted, verdict = [], Severity.OK
        for project in installed.settings.projects.values():
            place = project.repository
            here = us.read.repository(place)
            branch = project.base_branch or here.default_branch
            if us.read.wants_signatures(place, branch):
                method = here.way(_policy(us, place, installed.settings.policy).merge_method)
                wanted.append(f"{place}: {branch} takes signed commits alone (merged by {method})")
                if method is not MergeMethod.SQUASH:
                    verdict = Severity.FAIL
        if not wanted:
            return CheckResult(Severity.OK, "no base branch asks for signed commits")
        remedy = (
            'use policy.merge-method = "squash", and allow it there:'
            " GitHub signs what it squashes, agents sign nothing"
        )
        return CheckResult(verdict, "\n".join(wanted), remedy if verdict is Severity.FAIL else "")

    return _looked(installed, look)


def clock(installed: Installation) -> CheckResult:
    url = installed.settings.github.api_url
    try:
        there = parsedate_to_datetime(httpx.head(url, timeout=10).headers["Date"])
    except httpx.HTTPError as error:
        return CheckResult(Severity.FAIL, f"{url} does not answer: {error}", "check the network")
    except (KeyError, ValueError):
        return CheckResult(Severity.WARN, f"{url} does not say the time")
    off = abs((utc_now() - there).total_seconds())
    if off > _CLOCK_SECONDS:
        return CheckResult(Severity.FAIL, f"{off:.0f} s off GitHub's", "set it by NTP")
    return CheckResult(Severity.OK, "agrees with GitHub's")


def _looked(installed: Installation, look: Callable[[GitHub], CheckResult]) -> CheckResult:
    """What one look finds; a GitHub that cannot be looked at is told of by `github`."""
    if no_credentials(installed.settings, installed.secrets):
        return CheckResult(Severity.WARN, "not looked at: no credentials")
    try:
        with closing(client(installed.settings, installed.secrets)) as us:
            return look(us)
    except GitHubFailure as failure:
        return CheckResult(Severity.WARN, f"not looked at: {failure}")


def _policy(us: GitHub, repository: str, server: Policy) -> Policy:
    """What a repository makes of the server's policy; a file that cannot be used changes nothing.

    Raises `GitHubFailure`.
    """
    try:
        return narrowed(us.files.one(repository, PATH).text or "", server)
    except RepositoryError:
        return server
