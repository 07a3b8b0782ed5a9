"""`mergewright replay` of decisions and of recorded webhooks."""

import json
import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from bot.decide.reconciler import Reconciler
from bot.store import Observation, Store
from bot.system.crash_points import log_crash_point
from lifecycle.model.facts import Agent
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe
from tests.cli.conftest import CommandLine, Deployment

PAYLOADS = Path(__file__).parents[1] / "intake/payloads"


@pytest.fixture
def lived(deployment: Deployment) -> str:
    """A session with two recorded decisions."""
    name = deployment.has_session(slot=True)
    now = deployment.now
    with closing(Store(deployment.paths.database, clock=lambda: now)) as store:
        reconciler = Reconciler(
            store, lambda _: Policy(), lambda: now, log_crash_point, lambda: None
        )
        reconciler.reconcile_due()
        for activity in (Activity.ACTIVE, Activity.WAITING_INPUT):
            now += timedelta(seconds=30)
            for due in store.outbox.due(now):
                store.outbox.mark_done(due.seq, "", now)
            agent = Agent(
                run=1,
                activity=activity,
                since=now,
                seen=now,
                question="Which colour?",
                runtime=Probe.ALIVE,
                program=Probe.ALIVE,
            )
            store.observations.record([Observation(session=name, agent=agent)], now)
            reconciler.reconcile_due()
    return name


def spoil(deployment: Deployment, statement: str) -> None:
    with closing(Store(deployment.paths.database)) as store:
        store.db.write(lambda connection: connection.execute(statement))


def test_replayed_decisions_do_not_differ(mergewright: CommandLine, lived: str) -> None:
    result = mergewright("replay", lived)
    assert result.code == 0, result.out
    assert f"{lived}: 2 decisions replayed, no differences" in result.out
    assert "1 older decision cannot be" in result.out, (
        "the decision that the deployment wrote down itself"
    )
    found = json.loads(mergewright("replay", lived, "--json").out)
    assert found == {"session": lived, "decisions": 3, "replayed": 2, "differ": []}


@pytest.mark.parametrize(
    ("statement", "field", "then"),
    [
        (
            "UPDATE history SET data = json_set(data, '$.because', 'it felt so')"
            " WHERE seq = (SELECT max(history) FROM decision_records)",
            "because",
            'recorded "it felt so"',
        ),
        (
            "UPDATE policies SET policy = json_set(policy, '$.mode', 'observe')",
            "actions",
            "replayed []",
        ),
        (
            "UPDATE history SET data = json_set(data, '$.actions', json('[\"merge:x\"]'))"
            " WHERE seq = (SELECT max(history) FROM decision_records)",
            "new actions",
            'recorded ["merge:x"]',
        ),
    ],
)
def test_a_differing_decision_is_shown_and_fails(
    mergewright: CommandLine,
    deployment: Deployment,
    lived: str,
    statement: str,
    field: str,
    then: str,
) -> None:
    spoil(deployment, statement)
    result = mergewright("replay", lived)
    assert result.code == 1
    assert field in result.out
    assert then in result.out
    assert "differ" in result.out


def test_a_corrupt_decision_is_reported_by_its_number(
    mergewright: CommandLine, deployment: Deployment, lived: str
) -> None:
    spoil(deployment, "UPDATE decision_records SET record = x'00' WHERE history = 5")
    result = mergewright("replay", lived)
    assert result.code == 1
    assert "decision_records" in result.err
    assert "5" in result.err


@pytest.mark.parametrize(
    "text",
    [
        '{"request": 5}',
        '{"headers": ["x-github-event"], "payload": {}}',
        '{"event": ["issues"], "payload": {"a": 1}}',
        '{"request": {"headers": {"X-GitHub-Event": {"a": 1}}, "payload": {}}}',
        '{"a": ' * 50_000,
    ],
)
def test_a_file_that_is_no_recorded_webhook_is_refused(
    mergewright: CommandLine, deployment: Deployment, tmp_path: Path, text: str
) -> None:
    deployment.has_session(12)
    file = tmp_path / "delivery.json"
    file.write_text(text)
    result = mergewright("replay", "--delivery", str(file))
    assert result.code == 2
    assert f"{file}: this is neither a payload nor a recorded delivery" in result.err


def test_a_recorded_webhook_is_explained_without_effects(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    name = deployment.has_session(12)
    before = deployment.paths.database.read_bytes()
    result = mergewright("replay", "--delivery", str(PAYLOADS / "issues.json"), "--event", "issues")
    assert result.code == 0, result.err
    assert "The webhook `issues` would cause:" in result.out
    assert f"{name}  the bot reads issue #12 of acme/widgets again" in result.out
    assert deployment.paths.database.read_bytes() == before


def test_a_recorded_comment_shows_its_command(
    mergewright: CommandLine, deployment: Deployment, tmp_path: Path
) -> None:
    name = deployment.has_session(12)
    payload = json.loads((PAYLOADS / "issue_comment.json").read_text())
    payload["comment"]["body"] = "/mergewright tell use tabs"
    payload["issue"]["number"] = 12
    record = {"headers": {"X-GitHub-Event": "issue_comment"}, "payload": payload}
    file = tmp_path / "delivery.json"
    file.write_text(json.dumps({"event": "ignored", "request": record}))
    found = json.loads(mergewright("replay", "--delivery", str(file), "--json").out)
    assert found["event"] == "issue_comment"
    actor = payload["comment"]["user"]["login"]
    command = {"what": f"@{actor} asks: tell use tabs", "session": name}
    assert command in found["effects"]


def test_a_webhook_for_no_project_causes_nothing(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session(12)
    result = mergewright("replay", "--delivery", str(PAYLOADS / "ping.json"), "--event", "ping")
    says = "The webhook `ping` would have no effect: the bot does not read this kind of event"
    assert says in " ".join(result.out.split())


#: The id of its repository does not fit into the database.
HUGE = re.sub(
    r'("repository": \{\s*"id": )\d+', rf"\g<1>{2**63}", (PAYLOADS / "issues.json").read_text()
)


@pytest.mark.parametrize(
    ("text", "words", "code", "says"),
    [
        ("{}", (), 2, "does not name its event: use --event"),
        ("[1]", ("--event", "issues"), 2, "this is neither a payload nor a record"),
        ("{}", ("--event", "issues"), 1, "not a payload of the event `issues`"),
        ('{"action": "\xff"}', ("--event", "issues"), 1, "not a payload of the event `issues`"),
        (HUGE, ("--event", "issues"), 1, "not a payload of the event `issues`"),
    ],
)
def test_an_invalid_payload_is_refused(
    mergewright: CommandLine,
    deployment: Deployment,
    tmp_path: Path,
    text: str,
    words: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    deployment.has_session(12)
    file = tmp_path / "delivery.json"
    file.write_text(text, encoding="latin-1")
    result = mergewright("replay", "--delivery", str(file), *words)
    assert result.code == code
    assert says in result.err


def test_replay_requires_a_session_or_a_webhook(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session(12)
    assert mergewright("replay").code == 2
    assert mergewright("replay", "widgets-12", "--delivery", "x.json").code == 2
