"""Finds errors that the settings' types do not reveal; suggests known names for unknown ones."""

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from config.schedules import digest_is_quiet, zone_of
from config.settings import PROJECT_NAME, ProjectDefaults, Settings
from lifecycle.model.policy import Policy

#: Matches names of variables and settings that hold secrets.
SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_OURS = re.compile(r"MERGEWRIGHT_|(?:GH|GITHUB)_(?:ENTERPRISE_)?TOKEN$")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._*?-]{1,100}")
#: A host's name, with `*.` for all hosts below it, and an optional port. Its last part begins with
#: a letter, unlike an IP address's.
_HOST = re.compile(r"(?:\*\.)?(?:[A-Za-z0-9_-]+\.)+[A-Za-z][A-Za-z0-9-]*(?::[1-9][0-9]{0,4})?")
_A_NAME = "expected a name of up to 39 lowercase letters, digits and dashes, not a dash first"

#: The longest path of the data directory. A Unix socket's path is limited to 104 to 108 bytes,
#: depending on the system, and includes the runtime's directory and socket below this one.
_DATA_BYTES = 80


def contradictions(settings: Settings) -> Iterator[str]:
    """Yield a line for each problem that the types of the settings do not reveal."""
    yield from _policy_contradictions("policy", settings.policy)
    if "" in settings.prices:
        yield 'prices."": expected a model or a pattern'
    yield from unfit_paths("runtime.steering-files", settings.runtime.steering_files)
    types = settings.agent_types.items()
    addresses = {
        **{f"agent-types.{name}.endpoint": kind.endpoint for name, kind in types},
        "github.api-url": settings.github.api_url,
        "github.git-url": settings.github.git_url,
        "server.public-url": settings.server.public_url,
    }
    for where, url in addresses.items():
        if url and not _is_address(url):
            yield f"{where} = {short(url)}: expected a URL such as https://example.com/"
    if _is_address(settings.github.api_url) and not settings.github.git_base:
        yield "github.git-url: required, because it cannot be derived from api-url"
    yield from _app_contradictions(settings)
    yield from _sign_in_contradictions(settings)
    if settings.signs and not settings.signing.email:
        yield (
            "signing.email: required with policy.sign-commits; a verified email of the account that"
            " has the signing key"
        )
    if len(os.fsencode(settings.data)) > _DATA_BYTES:
        yield (
            f"server.data = {short(str(settings.data))}: too long for the sockets in it;"
            f" expected at most {_DATA_BYTES} bytes"
        )
    limits = settings.limits
    if limits.reserved_for_people >= limits.sessions:
        yield (
            f"limits.reserved-for-people = {limits.reserved_for_people}: expected less than"
            f" limits.sessions, which is {limits.sessions}"
        )
    yield from _project_contradictions(settings)
    yield from _installation_contradictions(settings)
    yield from _type_contradictions(settings)
    yield from _agent_contradictions(settings)
    yield from _key_contradictions(settings)
    yield from _notifier_contradictions(settings)


def _policy_contradictions(where: str, policy: Policy) -> Iterator[str]:
    for name, value in msgspec.structs.asdict(policy).items():
        if isinstance(value, int | float) and value < 0:
            yield f"{where}.{name.replace('_', '-')} = {value}: expected 0 or more"
    if policy.budget_warning > 1:
        yield f"{where}.budget-warning = {policy.budget_warning}: expected a number from 0 to 1"
    for expression in policy.blocking_titles:
        try:
            re.compile(expression)
        except re.error as error:
            yield f"{where}.blocking-titles: {short(expression)}: {error}"
    yield from unfit_paths(f"{where}.protected-paths", policy.protected_paths)


def _is_address(url: str) -> bool:
    """Whether this is an http or https URL to which a path can be appended."""
    try:
        parts = urlsplit(url)
        usable = parts.port != 0 and bool(parts.hostname)
    except ValueError:  # An invalid port or an unmatched bracket.
        return False
    return usable and parts.scheme in ("http", "https") and not re.search(r"[?#\s]", url)


def _app_contradictions(settings: Settings) -> Iterator[str]:
    owners = {owner.casefold() for owner in settings.github.allowed_owners}
    if settings.github.app_id and not owners:
        yield "github.allowed-owners: required with an App; list the accounts that it works for"
    for name, project in settings.projects.items():
        owner = project.repository.partition("/")[0]
        if settings.github.app_id and owners and owner.casefold() not in owners:
            yield f"projects.{name}.repository: {short(owner)} is not in github.allowed-owners"


def _sign_in_contradictions(settings: Settings) -> Iterator[str]:
    signing = settings.sign_in
    if signing.takes_people and not signing.client_id:
        yield "sign-in.client-id: required to sign in with GitHub; the App's settings there show it"
    if signing.takes_people and not settings.server.public_url:
        yield "server.public-url: required to sign in with GitHub, which sends people back to it"


def _project_contradictions(settings: Settings) -> Iterator[str]:
    owners: dict[str, str] = {}
    for name, project in settings.projects.items():
        where = f"projects.{name}"
        if not PROJECT_NAME.fullmatch(name):
            yield f"{where}: {_A_NAME}"
        repository = f"{where}.repository = {short(project.repository)}"
        if not _REPOSITORY.fullmatch(project.repository):
            yield f"{repository}: expected 'owner/name'"
        forked = project.push_to == "fork"
        fork = f"{where}.fork = {short(project.fork)}"
        if forked and not _REPOSITORY.fullmatch(project.fork):
            yield f"{fork}: expected 'owner/name', because push-to is \"fork\""
        elif project.fork and not forked:
            yield f'{fork}: set push-to = "fork" too, or remove it'
        if project.env_files and not project.env_folder:
            yield f"{where}.env-folder: required with env-files"
        yield from _default_contradictions(settings, where, project)
        first = owners.setdefault(project.repository.lower(), name)
        if first != name:
            yield f"{repository}: also used by projects.{first}"


def _default_contradictions(
    settings: Settings, where: str, project: ProjectDefaults
) -> Iterator[str]:
    if project.policy is not None:
        yield from _policy_contradictions(f"{where}.policy", project.policy)
    if "," in project.label:
        label = f"{where}.label = {short(project.label)}"
        yield f"{label}: expected no comma, because GitHub cannot search for one"
    yield from _unknown_types(settings, f"{where}.agent = {short(project.agent)}", [project.agent])
    yield from _unknown_profile(settings, where, project.profile)
    if project.fetch_depth and project.workspace != "clone":
        yield f'{where}.fetch-depth: only with workspace = "clone"; worktrees copy no history'
    first, last = project.port_bounds
    if not 1024 <= first <= last <= 65535 or last - first + 1 < project.ports:
        yield (
            f"{where}.port-range = {short(project.port_range)}: expected"
            f" FIRST-LAST within 1024-65535, with {max(1, project.ports)} or more ports"
        )
    if isinstance(project.network, str):
        if project.network != "open":
            yield f'{where}.network = {short(project.network)}: expected "open" or a list of hosts'
        return
    for host in project.network:
        if not _HOST.fullmatch(host):
            yield (
                f"{where}.network has {short(host)}: expected a host's name, such as"
                " files.example.org, *.example.org or example.org:8443"
            )


def _installation_contradictions(settings: Settings) -> Iterator[str]:
    patterns, where = settings.installation.repositories, "installation.repositories"
    owners = {owner.casefold() for owner in settings.github.allowed_owners}
    if patterns and not settings.github.app_id:
        yield (
            f"{where}: only a GitHub App has installations: set github.app-id, or list each"
            " repository in a table [projects.NAME]"
        )
    for pattern in patterns:
        owner = pattern.partition("/")[0]
        if not _PATTERN.fullmatch(pattern):
            yield f"{where} has {short(pattern)}: expected 'owner/name' or 'owner/*'"
        elif owners and owner.casefold() not in owners:
            yield f"{where} has {short(pattern)}: {short(owner)} is not in github.allowed-owners"
    if patterns:
        project = settings.installation.project or ProjectDefaults()
        yield from _default_contradictions(settings, "installation.project", project)


def _type_contradictions(settings: Settings) -> Iterator[str]:
    for name, kind in settings.agent_types.items():
        where = f"agent-types.{name}"
        yield from _unknown_profile(settings, where, kind.profile)
        if re.search(r"/v\d\w*/?$", kind.endpoint):
            yield (
                f"{where}.endpoint = {short(kind.endpoint)}: expected a URL without"
                " a version such as /v1 at its end: the agent's program appends it"
            )
        for variable in filter(SECRET_NAME.search, kind.env):
            yield (
                f"{where}.env.{variable}: a secret does not belong in a file; set it in the"
                " server's environment and list it in pass-env"
            )
        for key, variables in (("env", kind.env), ("pass-env", kind.pass_env)):
            if not all(map(_VARIABLE.fullmatch, variables)):
                yield f"{where}.{key}: expected variable names, such as LANG"
        for variable in filter(_OURS.match, kind.pass_env):
            yield (
                f"{where}.pass-env: {variable} would give the agent Mergewright's own rights;"
                " only Mergewright pushes"
            )


def _agent_contradictions(settings: Settings) -> Iterator[str]:
    for name, agent in settings.agents.items():
        yield from _unknown_types(settings, f"agents.{name}.types", agent.types)
        if not PROJECT_NAME.fullmatch(name):
            yield f"agents.{name}: {_A_NAME}"
        if name in settings.agent_types and name not in agent.types:
            yield f"agents.{name}: also an agent type's name; rename it or add that type to `types`"


def _key_contradictions(settings: Settings) -> Iterator[str]:
    for variable, place in settings.key_variables.items():
        if not _VARIABLE.fullmatch(variable):
            yield f"{place}: expected the name of an environment variable"
        elif _OURS.match(variable):
            yield (
                f"{place}: {variable} would send Mergewright's own credentials to the model's"
                " provider"
            )
    for where, owner in settings.key_owners.items():
        for kind in owner.model_keys:
            yield from _unknown_types(settings, f"{where}.model-keys.{kind}", [kind])


def _notifier_contradictions(settings: Settings) -> Iterator[str]:
    for name, one in settings.notify.items():
        where = f"notify.{name}"
        if not PROJECT_NAME.fullmatch(name):
            yield f"{where}: {_A_NAME}"
        if one.kind == "webhook" and not one.secret:
            yield f"{where}.secret: required: the variable with the secret that signs messages"
        elif one.kind != "webhook" and one.secret:
            yield f'{where}.secret: only a notifier of kind = "webhook" signs its messages'
        known = settings.projects
        for project in one.projects:
            # The projects of the App's installations are known only while the bot runs.
            if project not in known and not settings.installation.repositories:
                yield f"{where}.projects has {short(project)}: {nearest(project, dict(known))}"
        if zone_of(one) is None:
            expected = "expected a time zone, such as Europe/Berlin or UTC"
            yield f"{where}.time-zone = {short(one.time_zone)}: {expected}"
        if one.quiet and one.quiet[:5] == one.quiet[6:]:
            yield f"{where}.quiet = {short(one.quiet)}: begins and ends at the same time; remove it"
        elif digest_is_quiet(one):
            yield f"{where}.digest = {short(one.digest)}: within its quiet hours, {one.quiet}"
    for variable, place in settings.notifier_variables.items():
        if not _VARIABLE.fullmatch(variable):
            yield f"{place}: expected the name of an environment variable"
        elif _OURS.match(variable):
            yield f"{place}: {variable} would send Mergewright's own credentials to a receiver"


def _unknown_profile(settings: Settings, where: str, name: str) -> Iterator[str]:
    if name and name not in settings.profiles:
        known = nearest(name, settings.profiles)
        yield f"{where}.profile = {short(name)}: no [profiles.{name}]; {known}"


def _unknown_types(settings: Settings, where: str, types: Iterable[str]) -> Iterator[str]:
    for kind in types:
        if kind not in settings.agent_types:
            yield f"{where}: no [agent-types.{kind}]; {nearest(kind, settings.agent_types)}"


def nearest(word: str, choices: Mapping[str, object] | list[str]) -> str:
    """Return the end of an error about an unknown `word`: the closest choice, then all choices."""
    close = difflib.get_close_matches(word, list(choices), n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return f"{meant}known: {', '.join(sorted(choices)) or 'none'}"


def unfit_paths(where: str, paths: Iterable[str]) -> Iterator[str]:
    """Yield an error for each pattern that has a part `..`, begins with `//` or is unprintable.

    Git fails on such patterns, so no run could start and nothing could be pushed. A pattern may
    begin with one `/`, which stands for the repository's root. `where` is the setting's name.
    """
    for path in paths:
        if ".." in path.split("/") or path.startswith("//") or not path.isprintable():
            yield f"{where} has {short(path)}: expected printable paths inside the repository"


def short(value: object) -> str:
    """Return a value as error messages show it, cut to 60 characters."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
