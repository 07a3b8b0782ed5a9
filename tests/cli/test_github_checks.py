"""Finding the workflows that give secrets to pushed branches."""

import pytest

from bot.cli.github_checks import secrets_for_branches

USES = "jobs:\n  a:\n    steps:\n      - run: deploy ${{ secrets.DEPLOY_KEY }}\n"


@pytest.mark.parametrize(
    "events",
    [
        "on: push\n",
        "on: [push, workflow_dispatch]\n",
        "'on':\n  - pull_request\n",
        "on:\n  pull_request_target:\n    branches: [main]\n",
        "on:\n  push:\n    branches: ['**']\n",
        "on:\n  push:\n    branches:\n      - main\n      - 'feature/*'\n",
        "on:\n  push:\n    branches: [main]\n  pull_request:\n",
        "on:\n  push:\n    paths: [src]\n",
        "on:\n  # on every branch\n  push:\n\npermissions: {}\n",
    ],
)
def test_a_workflow_for_branches_gives_them_its_secrets(events: str) -> None:
    assert secrets_for_branches(f"name: CI\n{events}{USES}") == ["DEPLOY_KEY"]


@pytest.mark.parametrize(
    "events",
    [
        "on: workflow_dispatch\n",
        "on:\n  schedule:\n    - cron: '0 0 * * *'\n",
        "on:\n  push:\n    branches: [main]\n",
        "on:\n  push:\n    branches:\n      - main\n      - release\n  workflow_dispatch:\n",
        "on: # push\n  release:\n",
        "",
    ],
)
def test_a_workflow_not_run_for_branches_gives_no_secrets(events: str) -> None:
    assert secrets_for_branches(f"name: push\n{events}{USES}") == []


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("x: ${{ secrets.GITHUB_TOKEN }}", []),
        ("x: ${{ secrets.B }} ${{ secrets.A }} ${{ secrets.B }}", ["A", "B"]),
        ("x: ${{ secrets['NPM_TOKEN'] }}", ["NPM_TOKEN"]),
        ("    secrets: inherit", ["*"]),
        ("# ${{ secrets.OLD }}", []),
    ],
)
def test_every_syntax_for_secrets_is_recognized(text: str, secrets: list[str]) -> None:
    assert secrets_for_branches(f"on: push\n{text}\n") == secrets
