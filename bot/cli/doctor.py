"""Implements `mergewright doctor`: checks the installation, and names remedies for problems."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from bot.cli import agent_health, context, github_checks, notifiers, server_checks
from bot.cli.context import Installation
from bot.cli.github_checks import CheckResult, Severity, fail, ok, warn
from bot.cli.options import CliError
from bot.cli.progress import progress
from bot.cli.screens import report, table
from bot.github.auth import key_fault
from bot.setup.files import SECRETS, load_command, stored_variables
from bot.store import StoreDamaged, StoreFailure, check_whole
from bot.system.isolation import isolation_of, limits_of, problems, unisolated
from bot.system.locations import Paths
from bot.system.ssh_signatures import UnfitKey, commit_signer
from bot.text.prompts import PromptError, Prompts
from config.load import VARIABLES, missing, secret_file
from config.settings import Settings
from runtimes.agents import AGENTS
from runtimes.isolation import ISOLATIONS
from runtimes.workspaces.lfs import uses_lfs
from runtimes.workspaces.mirror import Mirror

_SHORT_SECRET = 16


def examine(config: Path | None, *, as_json: bool) -> bool:
    """Print a line for each check, and return whether no check failed."""
    findings = [("git", git()), ("sqlite", sqlite())]
    try:
        installed = context.installation(config)
        with suppress(CliError):  # A damaged database has a check of its own.
            everything = context.with_installed(installed.settings)
            installed = replace(installed, settings=everything)
    except CliError as refusal:
        wrong = str(refusal).splitlines()
        hint = wrong.pop() if wrong[-1].startswith("to create one") else ""
        findings += [("configuration", fail(problem, hint)) for problem in wrong]
    else:
        with progress("Checking the installation ..."):
            findings += _checked(installed)
    return show(findings, as_json=as_json)


def show(findings: Sequence[tuple[str, CheckResult]], *, as_json: bool) -> bool:
    """Print a line for each finding, and return whether no check failed."""
    found = [
        {"name": name, "severity": one.severity, "says": one.says, "remedy": one.remedy}
        for name, one in findings
    ]
    report(found, _table(findings), as_json=as_json)
    return all(finding.severity is not Severity.FAIL for _, finding in findings)


def _checked(installed: Installation) -> Iterator[tuple[str, CheckResult]]:
    """Yield each check's name and result. Once GitHub cannot be reached, skip its other checks."""
    outage = False
    for name, check in CHECKS:
        if outage and name in OF_GITHUB:
            continue
        finding = check(installed)
        if finding is not None:
            outage |= finding.outage
            yield name, replace(finding, remedy=_loading(finding.remedy, installed.folder))


def not_installed(installed: Installation) -> list[str]:
    """Return required programs of the server that are missing or too old, each with its remedy."""
    looked = {"git": git(), "sqlite": sqlite(), "tmux": tmux(installed)}
    return [
        f"{name}: {found.says}: {found.remedy}"
        for name, found in looked.items()
        if found.severity is Severity.FAIL
    ]


def refusals(installed: Installation) -> list[str]:
    """Return the reasons why the server refuses a configuration, each with its remedy."""
    lacking = missing(installed.settings, installed.secrets)
    return [*(_loading(one, installed.folder) for one in lacking), *_invalid(installed)]


def _loading(remedy: str, folder: Path) -> str:
    """Return `remedy`, with "load FILE" instead of "set X" if the secrets file has variable X."""
    names = "|".join(name for name in stored_variables(folder) if name not in os.environ)
    if not names:
        return remedy
    load = load_command(folder)
    return re.sub(
        rf"\bset ({names})\b.*", lambda it: f"load {SECRETS}, which has {it[1]}: {load}", remedy
    )


def _invalid(installed: Installation) -> Iterator[str]:
    """Yield a problem for each setting whose file or value cannot be used."""
    settings, secrets = installed.settings, installed.secrets
    if settings.github.app_id and secrets.private_key and (fault := key_fault(secrets.private_key)):
        yield (
            f"{secrets.private_key_source}: not the private key of a GitHub App: {fault}; generate"
            " a private key in the App's settings on GitHub and use its .pem file"
        )
    try:
        if secrets.signing_key:
            commit_signer(settings, secrets.signing_key)
    except UnfitKey as fault:
        yield f"the signing key: {fault}; make a key with `ssh-keygen -t ed25519 -N '' -f FILE`"
    for name, kind in settings.agent_types.items():
        if not kind.command and not AGENTS[kind.program].program:
            yield (
                f"agent-types.{name}.command: missing, and {kind.program} has no default; set it"
                ' to the program and its arguments, such as command = ["my-agent", "--fast"]'
            )
    yield from invalid_prompts(settings)


def invalid_prompts(settings: Settings) -> Iterator[str]:
    """Yield a problem for each setting whose folder of prompts cannot be used."""
    places = {"server.prompts": settings.prompts}
    places |= {f"projects.{name}.prompts": at for name, at in settings.project_prompts.items()}
    for where, folder in places.items():
        try:
            Prompts(folder)
        except PromptError as failure:
            yield f"{where}: {failure}"


def git() -> CheckResult:
    version = _answer("git", "--version")
    if _numbers(version) < (2, 31):  # The first that reads settings from environment variables.
        return fail(version or "not found", "install git 2.31 or newer")
    return ok(version)


def sqlite() -> CheckResult:
    version = sqlite3.sqlite_version
    if _numbers(version) < (3, 38):  # The first with `->>`.
        return fail(version, "use a Python with SQLite 3.38 or newer")
    if _numbers(version) < (3, 51, 3):
        return warn(
            f"{version}: before 3.51.3, two concurrent writers can damage a database",
            "nothing to do: a lock lets only one Mergewright process write at a time; let nothing"
            " else write to the database",
        )
    return ok(version)


def configuration(installed: Installation) -> CheckResult:
    settings = installed.settings
    patterns = ", ".join(settings.installation.repositories)
    if not settings.projects and not patterns:
        return fail("no project", "add [projects.NAME] with a repository")
    if invalid := list(_invalid(installed)):
        remedy = "`mergewright serve` refuses this configuration until it is fixed"
        return fail("; ".join(invalid), remedy)
    also = (
        f"; and all repositories matching {patterns} that have the App installed"
        if patterns
        else ""
    )
    return ok(f"projects: {', '.join(settings.projects) or 'none yet'}{also}")


def tmux(installed: Installation) -> CheckResult:
    if installed.settings.runtime.kind != "tmux":
        return ok("not used")
    version = _answer("tmux", "-V")
    if version == "tmux master":  # Built from the repository, without a version number.
        return ok(version)
    if _numbers(version) < (3, 2):  # The first with `new-session -e`.
        return fail(version or "not found", "install tmux 3.2 or newer")
    if _numbers(version) < (3, 5):
        return warn(
            f"{version}: before 3.5, tmux can lose a program's exit status",
            "nothing to do: Mergewright keeps its own record; tmux 3.5 has the fix",
        )
    return ok(version)


def data(installed: Installation) -> CheckResult:
    folder = installed.settings.data
    parent = next(one for one in (folder, *folder.parents) if one.exists())
    if not parent.is_dir():
        return fail(f"{parent} is not a folder", "set server.data to a folder")
    if parent != folder:
        if os.access(parent, os.W_OK | os.X_OK):
            return ok(f"{folder} does not exist yet: `mergewright serve` creates it")
        return fail(f"{folder} cannot be created", f"make {parent} writable")
    if not os.access(folder, os.W_OK | os.X_OK):
        return fail(f"{folder} is not writable", "make this user its owner")
    if folder.stat().st_mode & 0o077:
        return fail(f"{folder} is accessible to other users", f"chmod 700 {folder}")
    return ok(f"{folder}, writable and private")


def database(installed: Installation) -> CheckResult:
    paths = Paths(installed.settings.data)
    if paths.database.exists() and paths.database.stat().st_size:
        try:
            check_whole(paths.database)
        except StoreFailure as failure:
            damaged = isinstance(failure, StoreDamaged)
            return fail(str(failure), "docs/running.md (Backups) has the steps" if damaged else "")
        return ok("intact")
    if remains := paths.remains():
        return fail(
            f"{paths.database} is missing or empty, but {paths.data} holds the files of sessions,"
            f" such as {remains}",
            "restore a backup, or begin with an empty one: mergewright serve --new-database",
        )
    return ok("does not exist yet: `mergewright serve` creates it")


def webhook_secret(installed: Installation) -> CheckResult:
    if installed.settings.polls:
        return ok("not used: the bot polls GitHub")
    secret = installed.secrets.webhook_secret
    if not secret:
        return fail("not set", "set MERGEWRIGHT_WEBHOOK_SECRET to the webhook's secret")
    return _strength(secret)


def page_token(installed: Installation) -> CheckResult:
    secret = installed.secrets.page_token
    if not installed.settings.sign_in.takes_token:
        return ok("neither needed nor accepted: people sign in with GitHub")
    if not secret and installed.settings.sign_in.takes_people:
        return ok("not set: people sign in with GitHub")
    if not secret:
        return warn("not set: the pages are off", "set MERGEWRIGHT_PAGE_TOKEN to use them")
    return _strength(secret)


def secret_files(installed: Installation) -> CheckResult:
    settings = installed.settings
    variables = (*VARIABLES.values(), *settings.key_variables, *settings.notifier_variables)
    named = [secret_file(variable, os.environ)[0] for variable in variables]
    beside = [settings.github.private_key_file, settings.signing.key_file, SECRETS]
    files = [
        *(file.expanduser() for file in named if file),
        *(installed.folder / name for name in beside if name),
    ]
    loose = [str(file) for file in files if file.exists() and file.stat().st_mode & 0o077]
    if loose:
        return warn("other users can read a secret", f"chmod 600 {' '.join(loose)}")
    return ok("private")


def agents(installed: Installation) -> CheckResult:
    looked = agent_health.check_types(installed)
    wrong = [f"{one.case.type}: {text}" for one in looked for text in one.problems]
    if wrong:
        return fail("some cannot start", "\n-> ".join(wrong))
    odd = [f"{one.case.type}: {text}" for one in looked for text in one.warnings]
    if odd:
        return warn("some have warnings", "\n-> ".join(odd))
    versions = [f"{one.case.type} {one.version}".rstrip() for one in looked]
    return ok(", ".join(versions) or "none configured")


def incidents(installed: Installation) -> CheckResult:
    if not Paths(installed.settings.data).database.exists():
        return ok("none")
    try:
        with context.store(installed.settings) as store:
            open_ones = store.incidents.current()
    except CliError as refusal:
        return warn(str(refusal))
    if not open_ones:
        return ok("none")
    text = "\n".join(f"since {one.since:%Y-%m-%d %H:%M} UTC: {one.text}" for one in open_ones)
    return warn(text, "an incident closes by itself once its cause is gone")


#: What bubblewrap or a container engine needs to limit a whole run.
_LIMITING = (
    "run the service with Delegate=yes and DelegateSubgroup=bot (systemd 254), or as root,"
    " so that it may make control groups"
)
_LIMITING_CONTAINERS = (
    "let the engine use control groups; without root, set Delegate=cpu memory pids in the"
    " user@.service of its user"
)


def isolation(installed: Installation) -> CheckResult:
    settings = installed.settings
    if found := problems(settings):
        return fail("; ".join(found), "until this is fixed, the bot does not start these agents")
    if warning := unisolated(settings):
        return warn(
            f"none: {warning}", 'install bubblewrap or Docker, and remove isolation = "none"'
        )
    projects, types = settings.projects or ("",), settings.agent_types
    kinds = {isolation_of(settings, project, kind) for project in projects for kind in types}
    for kind in sorted(kinds):
        if lacking := ISOLATIONS[kind].unlimited(limits_of(settings)):
            return warn(
                f"{', '.join(sorted(kinds))}; {kind} cannot limit, for a run as a whole: {lacking}",
                _LIMITING if kind == "bubblewrap" else _LIMITING_CONTAINERS,
            )
    return ok(", ".join(sorted(kinds)))


def git_lfs(installed: Installation) -> CheckResult | None:
    """Check that git-lfs is installed; None if no base branch in a mirror is known to need it."""
    using = [name for name in installed.settings.projects if _uses_lfs(installed, name)]
    if not using:
        return None
    if version := _answer("git-lfs", "--version"):
        return ok(f"{version.split()[0]}, for {', '.join(using)}")
    remedy = "apt-get install git-lfs, or set lfs-max-mb = 0 to check out pointers, not files"
    return fail(f"missing, but required for the Git LFS files of {', '.join(using)}", remedy)


def _uses_lfs(installed: Installation, project: str) -> bool:
    settings, own = installed.settings, installed.settings.projects[project]
    mirror = Mirror(Paths(settings.data).mirror(project), "")
    if not own.lfs_max_mb or not mirror.path.is_dir():
        return False
    heads = map(mirror.head_of, filter(None, (own.base_branch, "main", "master")))
    head = next(filter(None, heads), None)
    return head is not None and uses_lfs(mirror, head)


#: Every check that needs the configuration, with its name, in the order they are printed.
CHECKS: tuple[tuple[str, Callable[[Installation], CheckResult | None]], ...] = (
    ("configuration", configuration),
    ("tmux", tmux),
    ("data folder", data),
    ("database", database),
    ("git-lfs", git_lfs),
    ("GitHub", github_checks.github),
    ("permissions", github_checks.permissions),
    ("events", github_checks.events),
    ("workflows", github_checks.workflows),
    ("signatures", github_checks.signatures),
    ("signing key", github_checks.signing_key),
    ("clock", github_checks.clock),
    ("webhook", github_checks.webhook),
    ("labels", github_checks.labels),
    ("port", server_checks.port),
    ("public URL", server_checks.public_url),
    ("webhook secret", webhook_secret),
    ("page token", page_token),
    ("sign-in", server_checks.sign_in),
    ("secret files", secret_files),
    ("agents", agents),
    ("isolation", isolation),
    ("notifiers", notifiers.check),
    ("incidents", incidents),
)


#: The names of the checks that an outage of GitHub makes impossible.
OF_GITHUB = frozenset(
    {"permissions", "events", "workflows", "signatures", "signing key", "clock", "webhook"}
    | {"labels"}
)


def _table(findings: Sequence[tuple[str, CheckResult]]) -> Table:
    rows = table()
    colours = {Severity.OK: "green", Severity.WARN: "yellow", Severity.FAIL: "red"}
    for name, finding in findings:
        text = Text(finding.says, overflow="fold")
        if finding.remedy:
            text.append(f"\n-> {finding.remedy}", "dim")
        rows.add_row(Text(finding.severity, colours[finding.severity]), Text(name), text)
    return rows


def _strength(secret: str) -> CheckResult:
    if len(secret) < _SHORT_SECRET:
        return warn("set, but short", "use a longer one: openssl rand -hex 32")
    return ok("set")


def _answer(program: str, option: str) -> str:
    """Return what a program prints for an option such as `--version`; empty if not installed."""
    if not shutil.which(program):
        return ""
    result = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return result.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", version)
    return tuple(map(int, found[0].split("."))) if found else ()
