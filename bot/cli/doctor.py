"""What could stand in the way, looked at before it does; every fault comes with its remedy."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path

import httpx
from msgspec import Struct, convert
from msgspec.structs import asdict
from rich.table import Table
from rich.text import Text

from bot.account import client
from bot.cli import given
from bot.cli.refused import Refused
from bot.cli.screens import show, show_json
from bot.cli.workflows import secrets_for_branches
from bot.clock import utc_now
from bot.github.errors import GitHubFailure
from bot.layout import Layout
from bot.models import key_source
from config.load import VARIABLES, Secrets, no_credentials
from config.settings import Settings
from lifecycle.names import NAME
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, Endpoint

_CLOCK_SECONDS = 60  # A signed App token that is further off is refused.
_SHORT_SECRET = 16


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(Struct, frozen=True):
    """What one check found."""

    verdict: Verdict
    says: str
    remedy: str = ""


class Installation(Struct, frozen=True, kw_only=True):
    """What is configured, for the checks that need it."""

    settings: Settings
    secrets: Secrets
    environ: Mapping[str, str]


def examine(config: Path | None, environ: Mapping[str, str], *, as_json: bool = False) -> bool:
    """Print one line for each check; whether none failed."""
    findings = [(name, check()) for name, check in OF_THE_MACHINE]
    try:
        settings, secrets = given.everything(config)
    except Refused as refusal:
        says, _, hint = str(refusal).partition("\n")
        findings.append(("configuration", Finding(Verdict.FAIL, says, hint)))
    else:
        installed = Installation(settings=settings, secrets=secrets, environ=environ)
        findings += [(name, check(installed)) for name, check in OF_THE_INSTALLATION]
    if as_json:
        show_json([{"name": name, **asdict(finding)} for name, finding in findings])
    else:
        show(_table(findings))
    return all(finding.verdict is not Verdict.FAIL for _, finding in findings)


def git() -> Finding:
    said = _answer("git", "--version")
    if _numbers(said) < (2, 31):  # The first that takes settings from variables, off disk and argv.
        return Finding(Verdict.FAIL, said or "not found", "install git 2.31 or newer")
    return Finding(Verdict.OK, said)


def sqlite() -> Finding:
    said = sqlite3.sqlite_version
    if _numbers(said) < (3, 37):  # The first with STRICT tables.
        return Finding(Verdict.FAIL, said, "use a Python with SQLite 3.37 or newer")
    if _numbers(said) < (3, 51, 3):
        return Finding(
            Verdict.WARN,
            f"{said}: before 3.51.3 two writers at once can damage a database",
            "nothing to do: Mergewright writes by one connection; let nothing else write",
        )
    return Finding(Verdict.OK, said)


def configuration(installed: Installation) -> Finding:
    if not installed.settings.projects:
        return Finding(Verdict.FAIL, "no project", "add [projects.NAME] with a repository")
    return Finding(Verdict.OK, f"projects: {', '.join(installed.settings.projects)}")


def tmux(installed: Installation) -> Finding:
    if installed.settings.runtime.kind != "tmux":
        return Finding(Verdict.OK, "not used")
    said = _answer("tmux", "-V")
    if _numbers(said) < (3, 2):  # The first that takes a session's variables from its caller.
        return Finding(Verdict.FAIL, said or "not found", "install tmux 3.2 or newer")
    if _numbers(said) < (3, 5):
        return Finding(
            Verdict.WARN,
            f"{said}: before 3.5 it can lose how a program ended",
            "nothing to do: Mergewright keeps its own record; 3.5 has the fix",
        )
    return Finding(Verdict.OK, said)


def data(installed: Installation) -> Finding:
    folder = installed.settings.data
    if not folder.exists():
        parent = next(one for one in folder.parents if one.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            return Finding(Verdict.OK, f"{folder} will be made")
        return Finding(Verdict.FAIL, f"{folder} cannot be made", f"make {parent} writable")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding(Verdict.FAIL, f"{folder} cannot be written", "give this user the folder")
    if folder.stat().st_mode & 0o077:
        return Finding(Verdict.FAIL, f"{folder} is open to others", f"chmod 700 {folder}")
    return Finding(Verdict.OK, f"{folder}, writable and private")


def github(installed: Installation) -> Finding:
    if lacking := no_credentials(installed.settings, installed.secrets):
        says, _, remedy = lacking.partition(": ")
        return Finding(Verdict.FAIL, says, remedy)
    try:
        with closing(client(installed.settings, installed.secrets)) as us:
            login = us.read.me()
            for project in installed.settings.projects.values():
                us.read.repository(project.repository)
    except GitHubFailure as failure:
        return Finding(Verdict.FAIL, str(failure), "check github.api-url and the credentials")
    slug, named = login.removesuffix("[bot]"), installed.settings.github.app_slug
    if slug not in (login, named.lower(), NAME):
        return Finding(
            Verdict.WARN,
            f"{installed.settings.github.api_url} knows us as {login}: @{slug} is not heard",
            f'set github.app-slug = "{slug}"',
        )
    return Finding(Verdict.OK, f"{installed.settings.github.api_url} knows us as {login}")


def permissions(installed: Installation) -> Finding:
    if no_credentials(installed.settings, installed.secrets):
        return Finding(Verdict.WARN, "not looked at: no credentials")
    wrong = []
    with closing(client(installed.settings, installed.secrets)) as us:
        for project in installed.settings.projects.values():
            try:
                lacking = us.read.lacking(project.repository)
            except GitHubFailure as failure:
                lacking = (str(failure),)
            wrong += [f"{project.repository}: {what}" for what in lacking]
    if not wrong:
        return Finding(Verdict.OK, "all that are needed, as far as GitHub tells")
    app = installed.settings.github.app_id
    remedy = (
        "grant it in the App's settings, then accept the change where it is installed"
        if app
        else "give the token's account the role `write` in the repository"
    )
    return Finding(Verdict.FAIL, "\n".join(wrong), remedy)


def workflows(installed: Installation) -> Finding:
    if no_credentials(installed.settings, installed.secrets):
        return Finding(Verdict.WARN, "not looked at: no credentials")
    found = []
    try:
        with closing(client(installed.settings, installed.secrets)) as us:
            for project in installed.settings.projects.values():
                for path, text in us.files.workflows(project.repository).items():
                    if secrets := secrets_for_branches(text):
                        found.append(f"{project.repository}: {path}: {', '.join(secrets)}")
    except GitHubFailure as failure:
        return Finding(Verdict.WARN, f"not looked at: {failure}")
    if not found:
        return Finding(Verdict.OK, "none gives secrets to branches")
    return Finding(
        Verdict.WARN,
        "these run for every branch, with secrets:\n" + "\n".join(found),
        "keep them in an environment for the default branch alone, or push to a fork: push-to",
    )


def signatures(installed: Installation) -> Finding:
    if no_credentials(installed.settings, installed.secrets):
        return Finding(Verdict.WARN, "not looked at: no credentials")
    wanted = []
    try:
        with closing(client(installed.settings, installed.secrets)) as us:
            for project in installed.settings.projects.values():
                place = project.repository
                branch = project.base_branch or us.read.repository(place).default_branch
                if us.read.wants_signatures(place, branch):
                    wanted.append(f"{place}: {branch} takes signed commits alone")
    except GitHubFailure as failure:
        return Finding(Verdict.WARN, f"not looked at: {failure}")
    if not wanted:
        return Finding(Verdict.OK, "no base branch asks for signed commits")
    remedy = (
        'use policy.merge-method = "squash": GitHub signs what it squashes, agents sign nothing'
    )
    verdict = Verdict.OK if installed.settings.policy.merge_method == "squash" else Verdict.FAIL
    return Finding(verdict, "\n".join(wanted), "" if verdict is Verdict.OK else remedy)


def clock(installed: Installation) -> Finding:
    url = installed.settings.github.api_url
    try:
        there = parsedate_to_datetime(httpx.head(url, timeout=10).headers["Date"])
    except httpx.HTTPError as error:
        return Finding(Verdict.FAIL, f"{url} does not answer: {error}", "check the network")
    except (KeyError, ValueError):
        return Finding(Verdict.WARN, f"{url} does not say the time")
    off = abs((utc_now() - there).total_seconds())
    if off > _CLOCK_SECONDS:
        return Finding(Verdict.FAIL, f"{off:.0f} s off GitHub's", "set it by NTP")
    return Finding(Verdict.OK, "agrees with GitHub's")


def webhook_secret(installed: Installation) -> Finding:
    if installed.settings.polls:
        return Finding(Verdict.OK, "not used: GitHub is polled")
    secret = installed.secrets.webhook_secret
    if not secret:
        return Finding(
            Verdict.FAIL, "not set", "set MERGEWRIGHT_WEBHOOK_SECRET to the one given to GitHub"
        )
    return _strength(secret)


def page_token(installed: Installation) -> Finding:
    secret = installed.secrets.page_token
    if not secret:
        return Finding(Verdict.FAIL, "not set", "set MERGEWRIGHT_PAGE_TOKEN to see the page")
    return _strength(secret)


def secret_files(installed: Installation) -> Finding:
    named = [installed.environ.get(f"{variable}_FILE", "") for variable in VARIABLES.values()]
    files = [Path(name).expanduser() for name in named if name]
    loose = [str(file) for file in files if file.exists() and file.stat().st_mode & 0o077]
    if loose:
        return Finding(Verdict.WARN, "others can read a secret", f"chmod 600 {' '.join(loose)}")
    return Finding(Verdict.OK, "none others can read")


def agents(installed: Installation) -> Finding:
    said, wrong = [], []
    for name, settings in installed.settings.agent_types.items():
        kind = convert(settings, AgentType, from_attributes=True)
        program = AGENTS[kind.program](kind)
        try:
            said.append(f"{name} {program.version()}")
        except FileNotFoundError as error:
            wrong.append(f"{name}: {error}")
        else:
            variable, _ = key_source(installed.settings, name)
            key = installed.secrets.model_keys.get(variable, "")
            endpoint = Endpoint(url=settings.endpoint, key=key)
            wrong += [
                f"{name}: {problem}" for problem in program.check(installed.environ, endpoint)
            ]
    if wrong:
        return Finding(Verdict.FAIL, "not all can start", "\n-> ".join(wrong))
    return Finding(Verdict.OK, ", ".join(said) or "none configured")


def incidents(installed: Installation) -> Finding:
    if not Layout(installed.settings.data).database.exists():
        return Finding(Verdict.OK, "none")
    try:
        with given.store(installed.settings) as store:
            standing = store.incidents()
    except Refused as refusal:
        return Finding(Verdict.WARN, str(refusal))
    if not standing:
        return Finding(Verdict.OK, "none")
    said = "\n".join(f"since {one.since:%Y-%m-%d %H:%M} UTC: {one.text}" for one in standing)
    return Finding(Verdict.WARN, said, "each goes by itself once its cause is gone")


def sandbox(installed: Installation) -> Finding:
    if installed.settings.runtime.sandbox == "none":
        return Finding(Verdict.WARN, "none: agents have the rights of this user", "as configured")
    return Finding(
        Verdict.WARN,
        "not decided: agents have the rights of this user",
        'say so with runtime.sandbox = "none", or run Mergewright as a user of its own',
    )


#: Every check by the name people read, in the order they are printed.
OF_THE_MACHINE: tuple[tuple[str, Callable[[], Finding]], ...] = (
    ("git", git),
    ("sqlite", sqlite),
)
OF_THE_INSTALLATION: tuple[tuple[str, Callable[[Installation], Finding]], ...] = (
    ("configuration", configuration),
    ("tmux", tmux),
    ("data folder", data),
    ("GitHub", github),
    ("permissions", permissions),
    ("workflows", workflows),
    ("signatures", signatures),
    ("clock", clock),
    ("webhook secret", webhook_secret),
    ("page token", page_token),
    ("secret files", secret_files),
    ("agents", agents),
    ("sandbox", sandbox),
    ("incidents", incidents),
)


def _table(findings: Sequence[tuple[str, Finding]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column()
    table.add_column(overflow="fold")
    colours = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red"}
    for name, finding in findings:
        said = Text(finding.says)
        if finding.remedy:
            said.append(f"\n-> {finding.remedy}", "dim")
        table.add_row(Text(finding.verdict, colours[finding.verdict]), Text(name), said)
    return table


def _strength(secret: str) -> Finding:
    if len(secret) < _SHORT_SECRET:
        return Finding(Verdict.WARN, "set, but short", "make a long one: openssl rand -hex 32")
    return Finding(Verdict.OK, "set")


def _answer(program: str, option: str) -> str:
    """What a program says its version is; empty where it is missing."""
    if not shutil.which(program):
        return ""
    said = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return said.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", version)
    return tuple(map(int, found[0].split("."))) if found else ()
