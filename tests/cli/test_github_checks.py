"""Finding the workflows that give secrets to pushed branches."""

import pytest

from bot.cli.workflow_secrets import secrets_for_branches

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
        "on:\n- workflow_dispatch\n- push\n",
        "on: {push: {branches: ['**']}}\n",
        '"on": {"pull_request": null}\n',
        "on:\n  push:\n    branches-ignore: [main]\n",
        "on:\n  push:\n    branches: [main, '!x']\n",
        "on:\n  push: &filter\n    paths: [a]\n  release: *filter\n",
        "on: &events [push]\n",
        "on: merge_group\n",
        "on: an_event_of_tomorrow\n",
        "<<: {on: push}\n",
        "on:\n  push:\n    <<: {tags: [v1]}\n    branches: [main]\n",
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
        "on:\n- issues\n- schedule\n",
        "on: {push: {branches: [main]}}\n",
        "on:\n  push:\n    branches: main\n",
        "on:\n  push:\n    tags: ['v*']\n",
        "env:\n  on: push\n",
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
        ("x: ${{ toJSON(secrets) }}", ["*"]),
        ("x: ${{ secrets[format('{0}', matrix.name)] }}", ["*"]),
        ("x: ${{ SECRETS.token }}", ["token"]),
        ("x: {y: ['${{ secrets.A }}', {z: \"${{secrets.B}}\"}]}", ["A", "B"]),
        ("x: |\n  echo ${{\n    secrets.A }}", ["A"]),
        ("if: secrets.A != ''", ["A"]),
        ("? ${{ secrets.A }}\n: 1", ["A"]),
        ("x: echo no secrets here, secrets.A", []),
        ("x: ${{ steps.secrets.outputs.A }}", []),
        ("jobs:\n  a:\n    uses: b\n    secrets: inherit", ["*"]),
        ("a: &a ${{ secrets.A }}\nb: *a", ["A"]),
        ("x: [", []),
        ("x: [ secrets", ["*"]),
    ],
)
def test_every_syntax_for_secrets_is_recognized(text: str, secrets: list[str]) -> None:
    assert secrets_for_branches(f"on: push\n{text}\n") == secrets


def test_nested_aliases_take_no_time() -> None:
    bomb = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert secrets_for_branches(f"on: push\na0: &a0 [x]\n{bomb}") == []


def test_deep_nesting_is_not_understood() -> None:
    assert secrets_for_branches(f"on: push\nsecrets: {'[' * 100_000}") == ["*"]


def test_expressions_without_an_end_are_read_in_bounded_time() -> None:
    steps = "${{ " * 16_000 + "${{ secrets.DEPLOY_KEY"
    workflow = f"on: push\njobs: {{a: {{runs-on: x, steps: [{{run: '{steps}'}}]}}}}"
    assert secrets_for_branches(workflow) == []
    assert secrets_for_branches(workflow.replace("DEPLOY_KEY", "DEPLOY_KEY }}")) == ["DEPLOY_KEY"]
