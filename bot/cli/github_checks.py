"""Defines the doctor's checks of GitHub, such as credentials, permissions and webhooks."""

import re
from collections.abc import Callable
from contextlib import closing
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus

import httpx
from msgspec import Struct

from bot.app.github_client import github_client
from bot.cli.context import Installation
from bot.cli.workflow_secrets import secrets_for_branches
from bot.github.auth import key_fault
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Limited, NotInstalled, Refused, TryLater
from bot.setup.manifest import EVENTS_ASKED, webhook_url
from bot.system.clock import utc_now
from bot.system.ssh_signatures import SigningKey, UnfitKey
from config.load import no_credentials
from config.repository import PATH, RepositoryError, narrowed
from lifecycle.model.names import NAME
from lifecycle.model.policy import MergeMethod, Policy

#: The email that GitHub gives to an account. It contains the login.
#: https://docs.github.com/en/account-and-profile/reference/email-addresses-reference
_NOREPLY = re.compile(r"(?:\d+\+)?([A-Za-z0-9-]+)@users\.noreply\..+")
_CLOCK_SECONDS = 60  # GitHub refuses an App's token if the clock is off by more.


class Severity(StrEnum):
    """How serious a check's result is; a failure makes `doctor` exit with 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class CheckResult(Struct, frozen=True):
    """The result of one check."""

    severity: Severity
    says: str
    remedy: str = ""  #: If empty, none is needed or known.
    #: Whether GitHub cannot be asked now; if so, the other checks of GitHub are skipped.
    outage: bool = False


def ok(says: str) -> CheckResult:
    return CheckResult(Severity.OK, says)


def warn(says: str, remedy: str = "") -> CheckResult:
    return CheckResult(Severity.WARN, says, remedy)


def fail(says: str, remedy: str = "") -> CheckResult:
    return CheckResult(Severity.FAIL, says, remedy)


def _with_client(
    check: Callable[[Installation, GitHub], CheckResult],
) -> Callable[[Installation], CheckResult | None]:
    """Wrap a check that needs a GitHub client.

    If there are no credentials, the wrapped check returns None, because the check `github` reports
    this. If GitHub fails, it returns a warning.
    """

    def run(installed: Installation) -> CheckResult | None:
        if no_credentials(installed.settings, installed.secrets):
            return None
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
    except Limited as failure:
        remedy = "run `mergewright doctor` again after this time"
        says = f"{failure} Nothing else about GitHub was checked."
        return CheckResult(Severity.FAIL, says, remedy, outage=True)
    except TryLater as failure:
        return CheckResult(
            Severity.FAIL,
            f"{failure} Nothing else about GitHub was checked.",
            "check the network and github.api-url, then run `mergewright doctor` again",
            outage=True,
        )
    except GitHubFailure as failure:
        return fail(str(failure), _credentials_remedy(installed, failure))
    slug, named = login.removesuffix("[bot]"), installed.settings.github.app_slug
    if slug not in (login, named.lower(), NAME):
        return warn(
            f"{installed.settings.github.api_url}: signed in as {login}, but commands to @{slug}"
            " are ignored",
            f'set github.app-slug = "{slug}"',
        )
    return ok(f"{installed.settings.github.api_url}: signed in as {login}")


def _credentials_remedy(installed: Installation, failure: GitHubFailure) -> str:
    """Return what to do after GitHub has refused the credentials.

    GitHub answers 401 to a JWT that is signed with the key of another App, and to one whose times
    do not fit GitHub's clock:
    https://github.com/actions/create-github-app-token/issues/153
    https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
    """
    app_id, key = installed.settings.github.app_id, installed.secrets.private_key
    unauthorized = isinstance(failure, Refused) and failure.status == HTTPStatus.UNAUTHORIZED
    if not (unauthorized and app_id) or key_fault(key):
        return "check github.api-url and the credentials"
    return (
        "the App's ID and its private key do not belong together, or this machine's clock is wrong:"
        f" compare github.app-id ({app_id}) with the App ID in the App's settings on GitHub, or"
        " generate a key there (General, Private keys)"
    )


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


def events(installed: Installation) -> CheckResult | None:
    if installed.settings.polls:
        return ok("not used: the bot polls GitHub")
    if not installed.settings.github.app_id:
        return ok("not used: the bot signs in with a token, and only Apps subscribe to events")
    return _app_events(installed)


@_with_client
def _app_events(installed: Installation, us: GitHub) -> CheckResult:
    missing = {
        place: set(EVENTS_ASKED).difference(us.read.events(place)) for place in _places(installed)
    }
    lines = [f"{place}: {', '.join(sorted(some))}" for place, some in missing.items() if some]
    if not lines:
        return ok("the App is subscribed to all events")
    remedy = "subscribe to them in the App's settings, below its permissions"
    return warn("the App is not subscribed to\n" + "\n".join(lines), remedy)


def webhook(installed: Installation) -> CheckResult | None:
    if installed.settings.polls:
        return ok("not used: the bot polls GitHub")
    return _webhooks(installed)


@_with_client
def _webhooks(installed: Installation, us: GitHub) -> CheckResult:
    url = webhook_url(installed.settings.public_url)
    if us.hook.is_available:
        there = us.hook.url()
        if there == url:
            return ok(f"the App's webhook sends to {url}")
        remedy = f"set the webhook URL in the App's settings to {url}"
        return fail(f"the App's webhook sends to {there or 'no address'}", remedy)
    missing, unseen = [], []
    for place in _places(installed):
        try:
            hooks = [hook for hook in us.read.webhooks(place) if hook.config.url == url]
        except Refused:  # Only administrators may see webhooks.
            unseen.append(place)
            continue
        heard = {event for hook in hooks if hook.active for event in hook.events}
        if "*" not in heard and (lost := set(EVENTS_ASKED) - heard):
            what = f"does not send {', '.join(sorted(lost))}" if heard else "is missing or inactive"
            missing.append(f"{place}: the webhook {what}")
    remedy = (
        f"in the repository's settings (Webhooks), add or correct the webhook: payload URL {url},"
        " content type application/json, the secret of MERGEWRIGHT_WEBHOOK_SECRET, all events"
    )
    if missing:
        return fail("\n".join(missing), remedy)
    if unseen:
        return warn(f"not visible to this token: {', '.join(unseen)}", f"if missing, {remedy}")
    return ok(f"every repository sends to {url}")


@_with_client
def labels(installed: Installation, us: GitHub) -> CheckResult:
    missing = [
        f"{project.repository} has no label `{project.label}`"
        for project in installed.settings.projects.values()
        if project.label.casefold()
        not in map(str.casefold, us.read.labels(project.repository, project.label))
    ]
    if missing:
        return fail("\n".join(missing), "create it on the repository's Labels page")
    return ok("every repository has its label")


def _places(installed: Installation) -> list[str]:
    return [project.repository for project in installed.settings.projects.values()]


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
        "these workflows run for agents' branches and get secrets:\n" + "\n".join(found),
        "move the secrets to an environment of the default branch only, or have agents push to a"
        ' fork: set push-to = "fork" and fork = "OWNER/NAME" for the project',
    )


@_with_client
def signatures(installed: Installation, us: GitHub) -> CheckResult:
    wanted, severity = [], Severity.OK
    for name, project in installed.settings.projects.items():
        place, policy = project.repository, installed.settings.policy_of(name)
        here = us.read.repository(place)
        branch = project.base_branch or here.default_branch
        if us.read.requires_signatures(place, branch):
            method = here.merge_method(_policy(us, place, policy).merge_method)
            by_bot = "; the bot signs" if policy.sign_commits else ""
            how = f"merge method: {method}{by_bot}"
            wanted.append(f"{place}: {branch} requires signed commits ({how})")
            # GitHub signs the commits of a squash and of a merge, but not those of a rebase.
            signed = policy.sign_commits and method is MergeMethod.MERGE
            if method is not MergeMethod.SQUASH and not signed:
                severity = Severity.FAIL
    if not wanted:
        return ok("no base branch requires signed commits")
    remedy = (
        'set policy.merge-method = "squash" and allow squash merging in the repository: GitHub'
        " signs squashed commits, agents do not sign theirs. Or have the bot sign them, with"
        ' policy.sign-commits = true and policy.merge-method = "merge"'
    )
    return CheckResult(severity, "\n".join(wanted), remedy if severity is Severity.FAIL else "")


def signing_key(installed: Installation) -> CheckResult | None:
    settings, secrets = installed.settings, installed.secrets
    if settings.signs and not secrets.signing_key:
        return fail("there is none", "set signing.key-file or MERGEWRIGHT_SIGNING_KEY_FILE")
    return _registered_key(installed)


@_with_client
def _registered_key(installed: Installation, us: GitHub) -> CheckResult:
    """Check that the committer's GitHub account has registered the key that signs commits.

    A committer's email that is a `noreply` address of GitHub names the account. For any other
    email, the check assumes the bot's own account.
    """
    settings, secrets = installed.settings, installed.secrets
    if not settings.signs:
        return ok("not used: no project has policy.sign-commits")
    try:
        public = SigningKey(secrets.signing_key).public
    except UnfitKey as fault:
        return fail(f"{fault}", "make a key with `ssh-keygen -t ed25519 -N '' -f FILE`")
    email, places = settings.signing.email, _places(installed)
    remedy = (
        f"add this key to the GitHub account whose verified email is {email}: Settings, SSH and GPG"
        " keys, New SSH key, with the key type Signing Key; GitHub then shows commits as verified"
    )
    noreply = _NOREPLY.fullmatch(email)
    login = noreply[1] if noreply else us.read.me()
    if login.endswith("[bot]") or not places:
        return warn(f"{public}: not checked: the account of {email} is unknown", remedy)
    if public in us.read.signing_keys(places[0], login):
        return ok(f"{login} signs with it, as {email}")
    return fail(f"{login} has no such signing key at GitHub: {public}", remedy)


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
    """Return a repository's policy: the server's, narrowed by the file in the repository.

    An invalid file is ignored. Raises `GitHubFailure` if the file cannot be read.
    """
    try:
        return narrowed(us.read.file(repository, PATH).text or "", server)
    except RepositoryError:
        return server
