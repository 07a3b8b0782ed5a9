"""`mergewright doctor`: checks the installation and names a remedy for each problem."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import asdict
from rich.table import Table
from rich.text import Text

from bot.cli import agent_health, context
from bot.cli.context import Installation
from bot.cli.github_checks import (
    CheckResult,
    Severity,
    clock,
    events,
    github,
    permissions,
    signatures,
    workflows,
)
from bot.cli.options import CliError
from bot.cli.screens import show, show_json
from bot.setup.files import SECRETS
from bot.system.paths import Paths
from config.load import VARIABLES

_SHORT_SECRET = 16


def examine(config: Path | None, environ: Mapping[str, str], *, as_json: bool = False) -> bool:
    """Print a line for each check and return whether none failed."""
    findings = [(name, check()) for name, check in OF_THE_MACHINE]
    try:
        installed = context.installation(config, environ)
    except CliError as refusal:
        says, _, hint = str(refusal).partition("\n")
        findings.append(("configuration", CheckResult(Severity.FAIL, says, hint)))
    else:
        findings += [(name, check(installed)) for name, check in OF_THE_INSTALLATION]
    if as_json:
        show_json([{"name": name, **asdict(finding)} for name, finding in findings])
    else:
        show(_table(findings))
    return all(finding.severity is not Severity.FAIL for _, finding in findings)


def not_installed(installed: Installation) -> list[str]:
    """Return the missing programs that the server requires, each with its remedy."""
    looked = {"git": git(), "sqlite": sqlite(), "tmux": tmux(installed)}
    return [
        f"{name}: {found.says}: {found.remedy}"
        for name, found in looked.items()
        if found.severity is Severity.FAIL
    ]


def git() -> CheckResult:
    said = _answer("git", "--version")
    if _numbers(said) < (2, 31):  # The first that reads settings from environment variables.
        return CheckResult(Severity.FAIL, said or "not found", "install git 2.31 or newer")
    return CheckResult(Severity.OK, said)


def sqlite() -> CheckResult:
    said = sqlite3.sqlite_version
    if _numbers(said) < (3, 38):  # The first with `->>`.
        return CheckResult(Severity.FAIL, said, "use a Python with SQLite 3.38 or newer")
    if _numbers(said) < (3, 51, 3):
        return CheckResult(
            Severity.WARN,
            f"{said}: before 3.51.3, two concurrent writers can damage a database",
            "nothing to do: Mergewright writes through one connection; let nothing else write",
        )
    return CheckResult(Severity.OK, said)


def configuration(installed: Installation) -> CheckResult:
    if not installed.settings.projects:
        return CheckResult(Severity.FAIL, "no project", "add [projects.NAME] with a repository")
    return CheckResult(Severity.OK, f"projects: {', '.join(installed.settings.projects)}")


def tmux(installed: Installation) -> CheckResult:
    if installed.settings.runtime.kind != "tmux":
        return CheckResult(Severity.OK, "not used")
    said = _answer("tmux", "-V")
    if said == "tmux master":  # Built from the repository, without a version number.
        return CheckResult(Severity.OK, said)
    if _numbers(said) < (3, 2):  # The first with `new-session -e`.
        return CheckResult(Severity.FAIL, said or "not found", "install tmux 3.2 or newer")
    if _numbers(said) < (3, 5):
        return CheckResult(
            Severity.WARN,
            f"{said}: before 3.5, tmux can lose a program's exit status",
            "nothing to do: Mergewright keeps its own record; tmux 3.5 has the fix",
        )
    return CheckResult(Severity.OK, said)


def data(installed: Installation) -> CheckResult:
    folder = installed.settings.data
    if not folder.exists():
        parent = next(one for one in folder.parents if one.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            return CheckResult(Severity.OK, f"{folder} will be created")
        return CheckResult(Severity.FAIL, f"{folder} cannot be created", f"make {parent} writable")
    if not os.access(folder, os.W_OK | os.X_OK):
        return CheckResult(Severity.FAIL, f"{folder} is not writable", "make this user its owner")
    if folder.stat().st_mode & 0o077:
        return CheckResult(
            Severity.FAIL, f"{folder} is accessible to other users", f"chmod 700 {folder}"
        )
    return CheckResult(Severity.OK, f"{folder}, writable and private")


def webhook_secret(installed: Installation) -> CheckResult:
    if installed.settings.polls:
        return CheckResult(Severity.OK, "not used: the bot polls GitHub")
    secret = installed.secrets.webhook_secret
    if not secret:
        return CheckResult(
            Severity.FAIL, "not set", "set MERGEWRIGHT_WEBHOOK_SECRET to the webhook's secret"
        )
    return _strength(secret)


def page_token(installed: Installation) -> CheckResult:
    secret = installed.secrets.page_token
    if not secret:
        return CheckResult(Severity.FAIL, "not set", "set MERGEWRIGHT_PAGE_TOKEN to use the page")
    return _strength(secret)


def secret_files(installed: Installation) -> CheckResult:
    variables = (*VARIABLES.values(), *installed.settings.key_variables)
    named = [installed.environ.get(f"{variable}_FILE", "") for variable in variables]
    beside = [installed.settings.github.private_key_file, SECRETS]
    files = [
        *(Path(name).expanduser() for name in named if name),
        *(installed.folder / name for name in beside if name),
    ]
    loose = [str(file) for file in files if file.exists() and file.stat().st_mode & 0o077]
    if loose:
        return CheckResult(
            Severity.WARN, "other users can read a secret", f"chmod 600 {' '.join(loose)}"
        )
    return CheckResult(Severity.OK, "private")


def agents(installed: Installation) -> CheckResult:
    looked = agent_health.check_agents(
        installed, [agent_health.AgentCase(type=name) for name in installed.settings.agent_types]
    )
    wrong = [f"{one.case.type}: {said}" for one in looked for said in one.problems]
    if wrong:
        return CheckResult(Severity.FAIL, "some cannot start", "\n-> ".join(wrong))
    odd = [f"{one.case.type}: {said}" for one in looked for said in one.warnings]
    if odd:
        return CheckResult(Severity.WARN, "some have warnings", "\n-> ".join(odd))
    said = [f"{one.case.type} {one.version}".rstrip() for one in looked]
    return CheckResult(Severity.OK, ", ".join(said) or "none configured")


def incidents(installed: Installation) -> CheckResult:
    if not Paths(installed.settings.data).database.exists():
        return CheckResult(Severity.OK, "none")
    try:
        with context.store(installed.settings) as store:
            open_ones = store.incidents.current()
    except CliError as refusal:
        return CheckResult(Severity.WARN, str(refusal))
    if not open_ones:
        return CheckResult(Severity.OK, "none")
    said = "\n".join(f"since {one.since:%Y-%m-%d %H:%M} UTC: {one.text}" for one in open_ones)
    return CheckResult(Severity.WARN, said, "each closes when its cause is gone")


def sandbox(installed: Installation) -> CheckResult:
    if installed.settings.runtime.sandbox == "none":
        return CheckResult(
            Severity.WARN, "none: agents run with the rights of this user", "as configured"
        )
    return CheckResult(
        Severity.WARN,
        "not configured: agents run with the rights of this user",
        'set runtime.sandbox = "none" to accept this, and run Mergewright as its own user',
    )


#: Every check with its name, in the order they are printed.
OF_THE_MACHINE: tuple[tuple[str, Callable[[], CheckResult]], ...] = (
    ("git", git),
    ("sqlite", sqlite),
)
OF_THE_INSTALLATION: tuple[tuple[str, Callable[[Installation], CheckResult]], ...] = (
    ("configuration", configuration),
    ("tmux", tmux),
    ("data folder", data),
    ("GitHub", github),
    ("permissions", permissions),
    ("events", events),
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


def _table(findings: Sequence[tuple[str, CheckResult]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column()
    table.add_column(overflow="fold")
    colours = {Severity.OK: "green", Severity.WARN: "yellow", Severity.FAIL: "red"}
    for name, finding in findings:
        said = Text(finding.says)
        if finding.remedy:
            said.append(f"\n-> {finding.remedy}", "dim")
        table.add_row(Text(finding.severity, colours[finding.severity]), Text(name), said)
    return table


def _strength(secret: str) -> CheckResult:
    if len(secret) < _SHORT_SECRET:
        return CheckResult(
            Severity.WARN, "set, but short", "use a longer one: openssl rand -hex 32"
        )
    return CheckResult(Severity.OK, "set")


def _answer(program: str, option: str) -> str:
    """Return a program's version; empty if it is not installed."""
    if not shutil.which(program):
        return ""
    said = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return said.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", version)
    return tuple(map(int, found[0].split("."))) if found else ()
