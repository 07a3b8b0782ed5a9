"""An installation with its database, and the command line in this process."""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import respx

from bot.cli import main
from bot.demo.github.server import GitHubServer
from bot.store import NewSession, Observation, SessionDecision, Store
from lifecycle.judge.capacity import Caps
from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Agent, Check, Ended, Issue, Pull, Work
from lifecycle.model.status import Activity, CheckState, Probe, Reason, Status
from runtimes.host import StepRecord, StepState, WorkspaceStep
from runtimes.local_records import LocalRecords
from tests.cli.results import Result
from tests.cli.sandboxes import SandboxedProject
from tests.cli.terminals import agents_terminals
from tests.runtimes.stages import needs
from tests.world.databases import empty_database
from tests.world.session_paths import SessionPaths

CONFIGURATION = """
[server]
data = "{data}"
[projects.widgets]
repository = "acme/widgets"
agent = "shell"
[agent-types.shell]
program = "shell"
command = ["cat", "{{prompt}}"]
"""


class Deployment:
    """An installation: its file, its data folder, its database."""

    def __init__(self, root: Path) -> None:
        self.file = root / "mergewright.toml"
        self.paths = SessionPaths(root / "data")
        self.paths.data.mkdir(mode=0o700)
        self.file.write_text(CONFIGURATION.format(data=self.paths.data))
        self.now = datetime.now(UTC)

    def has_session(self, number: int = 12, title: str = "It breaks", slot: bool = False) -> str:
        """A session whose agent has worked for five minutes."""
        started = self.now - timedelta(minutes=5)
        store = Store(empty_database(self.paths.database), clock=lambda: started)
        new = NewSession(
            id=f"widgets-{number}",
            project="widgets",
            repository="acme/widgets",
            created=started,
            issue=Issue(number=number, title=title, url=f"https://example.com/issues/{number}"),
            branch=f"mergewright/{number}-it-breaks",
            requester="ada",
            agent_type="shell",
        )
        store.sessions.create(new)
        if slot:
            assert store.slots.assign(Caps(sessions=9)) == [new.id]
        self._decide(store, new.id, "working", Reason.AGENT_AT_WORK, "The agent is at work")
        agent = Agent(
            run=1,
            activity=Activity.ACTIVE,
            since=started,
            seen=self.now,
            evidence="it printed",
            runtime=Probe.ALIVE,
            program=Probe.ALIVE,
        )
        work = Work(path="/somewhere", branch=new.branch, base="b" * 40, head="c" * 40)
        store.observations.record(
            [Observation(session=new.id, run=1, agent=agent, work=work)], self.now
        )
        store.close()
        return new.id

    def has_waiting(self, number: int, agent: str = "shell", priority: int = 0) -> str:
        """A session that has waited for a slot for five minutes."""
        since = self.now - timedelta(minutes=5)
        store = Store(empty_database(self.paths.database), clock=lambda: since)
        new = NewSession(
            id=f"widgets-{number}",
            project="widgets",
            repository="acme/widgets",
            created=since,
            issue=Issue(number=number, title="It breaks"),
            branch=f"mergewright/{number}-it-breaks",
            requester="ada",
            agent_type="shell",
            agent_name=agent,
            priority=priority,
        )
        store.sessions.create(new)
        store.close()
        return new.id

    def looks_for_slots(self, sessions: int, minutes_ago: float = 0) -> None:
        """Assign slots to waiting sessions; at most `sessions` sessions can have a slot."""
        at = self.now - timedelta(minutes=minutes_ago)
        store = Store(empty_database(self.paths.database), clock=lambda: at)
        store.slots.assign(Caps(sessions=sessions))
        store.close()

    def has_a_red_check(self, session: str) -> None:
        """Record a pull request with a failed check, and decide."""
        pull = Pull(
            number=34,
            url="https://example.com/pull/34",
            head="c" * 40,
            checks=(
                Check(id="unit", name="unit", state=CheckState.FAILED),
                Check(id="lint", name="lint", state=CheckState.PASSED),
            ),
        )
        store = Store(self.paths.database, clock=lambda: self.now)
        store.observations.record([Observation(session=session, pulls=(pull,))], self.now)
        because = "a check that counts failed on ccccccc: unit"
        self._decide(store, session, "ci_failed", Reason.PULL_REQUEST, because)
        store.close()

    def has_ended(
        self,
        session: str,
        status: Status = Status.KILLED,
        reason: Reason = Reason.MANUALLY_KILLED,
    ) -> None:
        """End the session, by default as if stopped by a person, and free its slot."""
        store = Store(self.paths.database, clock=lambda: self.now)
        for due in store.outbox.due(self.now):
            store.outbox.mark_done(due.seq, "", self.now)
        because = "ada stopped it"
        ended = Ended(status=status, reason=reason, because=because, at=self.now)
        (loaded,) = store.facts.load([session])
        over = SessionDecision(
            status=status, reason=reason, because=because, run=1, ended=ended, frees_slot=True
        )
        store.decisions.record([(loaded, over)], self.now)[0].result()
        store.close()

    def printed(self, session: str, text: str, run: int = 1) -> Path:
        """Write the output of the session's program."""
        folder = self.paths.run(session, run)
        folder.mkdir(parents=True)
        path = folder / "output.log"
        path.write_bytes(text.encode())
        return path

    def has_run_setup(self, session: str, code: int, printed: str) -> None:
        """Record a set-up of the session's workspace that has ended."""
        ended = self.now + timedelta(seconds=12)
        state = StepState.FAILED if code else StepState.DONE
        record = StepRecord(
            session=session,
            step=WorkspaceStep.SETUP,
            attempt=1,
            began=self.now,
            state=state,
            ended=ended,
            code=code,
        )
        file = LocalRecords({}, self.paths.host).step_file(record)
        file.parent.mkdir(parents=True)
        file.write_bytes(msgspec.json.encode(record))
        file.with_name("output.log").write_text(printed)

    def _decide(
        self, store: Store, session: str, status: str, reason: Reason, because: str
    ) -> None:
        (loaded,) = store.facts.load([session])
        action = Comment(key=keys.ready_to_merge(status), number=12, topic="ready")
        decision = SessionDecision(
            status=status, reason=reason, because=because, run=1, actions=(action,)
        )
        store.decisions.record([(loaded, decision)], self.now)[0].result()


class CommandLine:
    """`mergewright`, as if it were started in the installation's folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str) -> Result:
        self._monkeypatch.setattr("sys.argv", ["mergewright", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int | None)
        return Result(code or 0, out, err)


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide from the tests any server that the developer has stored with `mergewright login`."""
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)


@pytest.fixture
def deployment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    root = tmp_path_factory.mktemp("h")  # The sockets below it allow a short path only.
    monkeypatch.chdir(root)
    monkeypatch.delenv("MERGEWRIGHT_CONFIG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return Deployment(root)


@pytest.fixture
def runs(deployment: Deployment) -> Iterator[Callable[[str], None]]:
    """Starts a program in place of an agent's, by the name of its run."""
    with agents_terminals(deployment.paths.runtime) as run:
        yield run


@pytest.fixture
def mergewright(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def a_bot(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A leading bot that does something while the command waits."""

    def leads(meanwhile: Callable[[Store], None]) -> None:
        with closing(Store(empty_database(deployment.paths.database))) as opened:
            assert opened.lease.acquire("a bot", opened.clock(), 60)

        def sleep(_: float) -> None:
            with closing(Store(deployment.paths.database)) as opened:
                meanwhile(opened)

        monkeypatch.setattr(time, "sleep", sleep)

    return leads


# -- doctor ---------------------------------------------------------------------------------------

API = "https://github.example/api/v3/"
GRAPHQL = "https://github.example/api/graphql"
TOKEN = "ghp_" + "x" * 36

LineTail = Callable[[], dict[str, str]]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Programs that print a version, the only ones on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(**answers: str) -> None:
        for old in folder.iterdir():
            old.unlink()
        for name, answer in answers.items():
            (folder / name).write_text(f"#!/bin/sh\necho '{answer}'\n")
            (folder / name).chmod(0o755)

    install(git="git version 2.39.5", tmux="tmux 3.5a", cat="")
    return install


def configured(deployment: Deployment, table: str, lines: str) -> None:
    """Add lines to a table of the configuration."""
    text = deployment.file.read_text()
    deployment.file.write_text(text.replace(table, f"{table}\n{lines}"))


def printed(protected: bool = False, *rules: str) -> dict[str, Any]:
    """The GraphQL response: login, no workflows, rules of the base branch."""
    ref = {
        "refUpdateRule": {"requiresSignatures": protected},
        "rules": {"nodes": [{"type": rule} for rule in rules]},
    }
    viewer = {"login": "mergewright-bot"}
    labels = {"nodes": [{"name": "Mergewright"}, {"name": "mergewright:codex"}]}
    repository = {"object": None, "defaultBranchRef": None, "ref": ref, "labels": labels}
    return {"viewer": viewer, "repository": repository}


def hook(**fields: Any) -> dict[str, Any]:
    """The repository's webhook, as the REST API returns it."""
    url = "https://bot.example/webhooks/github"
    return {"id": 1, "active": True, "events": ["*"], "config": {"url": url}, **fields}


@pytest.fixture
def github() -> Iterator[respx.MockRouter]:
    """A GitHub without problems."""
    with respx.mock(assert_all_called=False) as router:
        router.head(API).respond(headers={"Date": format_datetime(datetime.now(UTC))})
        router.post(GRAPHQL).respond(json={"data": printed()})
        router.get(f"{API}repos/acme/widgets/hooks").respond(json=[hook()])
        router.get("https://bot.example/healthz").respond(text='{"alive":true}')
        router.route(host="127.0.0.1").pass_through()
        router.get(f"{API}repos/acme/widgets").respond(
            json={
                "id": 7,
                "full_name": "acme/widgets",
                "default_branch": "main",
                "private": False,
                "archived": False,
                "clone_url": "https://github.example/acme/widgets.git",
            }
        )
        yield router


@pytest.fixture
def lines(
    mergewright: CommandLine,
    deployment: Deployment,
    tools: Callable[..., None],
    github: respx.MockRouter,
    monkeypatch: pytest.MonkeyPatch,
) -> LineTail:
    """The results of doctor for an installation without problems."""
    with deployment.file.open("a") as file:
        file.write(f'\n[github]\napi-url = "{API}"\n[runtime]\nisolation = "none"\n')
    configured(deployment, "[server]", 'port = 0\npublic-url = "https://bot.example/"')
    monkeypatch.setenv("MERGEWRIGHT_GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("MERGEWRIGHT_WEBHOOK_SECRET", "w" * 32)
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", "p" * 32)

    def ask() -> dict[str, str]:
        result = mergewright("doctor")
        assert not {TOKEN, "w" * 32, "p" * 32} & set(result.out.split())
        found: dict[str, str] = {}
        for line in result.out.splitlines():
            if begins := re.fullmatch(r"(ok|warn|fail) +(.+?)(?:  +(.+))?", line):
                severity, name, says = begins.groups()
                found[name] = f"{severity} {says or ''}".rstrip()
            else:
                found[name] += f" {line.strip()}"
        assert result.code == any(text.startswith("fail") for text in found.values())
        return found

    return ask


# -- sandboxes ------------------------------------------------------------------------------------


@pytest.fixture
def sandboxed(tmp_path: Path) -> Iterator[SandboxedProject]:
    needs("bubblewrap")
    with (
        tempfile.TemporaryDirectory(prefix="mw-") as folder,
        GitHubServer(tmp_path / "github") as github,
    ):
        made = SandboxedProject(Path(folder).resolve(), github, os.environ["PATH"])
        yield made
        made.close()


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets that a server needs."""
    for name in ("GITHUB_TOKEN", "WEBHOOK_SECRET", "PAGE_TOKEN"):
        monkeypatch.setenv(f"MERGEWRIGHT_{name}", "x" * 32)
