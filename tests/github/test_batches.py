"""Batches of subjects: an error of one does not fail the others."""

from typing import Any

import pytest
import respx

from bot.github.client import GitHub
from bot.github.errors import Refused, TryLater
from tests.github.conftest import GRAPHQL

ISSUE = {"state": "OPEN", "updatedAt": "2026-11-21T11:00:00Z"}


def answer(problems: list[Any], **aliases: Any) -> dict[str, Any]:
    return {"data": {"repository": aliases, "rateLimit": None}, "errors": problems}


@pytest.mark.parametrize(
    ("odd", "problems"),
    [
        (None, [{"type": "NOT_FOUND", "path": ["repository", "n2"]}]),
        (ISSUE, [{"message": "Something went wrong", "path": ["repository", "n2", "state"]}]),
        ({"state": "OPEN"}, []),
        ("nonsense", []),
    ],
)
def test_an_error_of_one_alias_leaves_the_others_readable(
    github: GitHub, respx_mock: respx.MockRouter, odd: Any, problems: list[Any]
) -> None:
    respx_mock.post(GRAPHQL).respond(json=answer(problems, n1=ISSUE, n2=odd, n3=ISSUE))
    seen = github.read.fingerprints("acme/widgets", [1, 2, 3], [])
    assert [number for number, fingerprint in seen.items() if fingerprint is None] == [2]


@pytest.mark.parametrize(
    ("problem", "failure"),
    [
        ({"message": "Something went wrong"}, TryLater),
        ({"type": "NOT_FOUND", "path": ["repository"]}, Refused),
        ({"type": "RATE_LIMITED", "message": "no more"}, TryLater),
    ],
)
def test_a_general_error_fails_the_batch(
    github: GitHub, respx_mock: respx.MockRouter, problem: Any, failure: type[Exception]
) -> None:
    respx_mock.post(GRAPHQL).respond(json={"data": {"repository": None}, "errors": [problem]})
    with pytest.raises(failure):
        github.read.fingerprints("acme/widgets", [1], [])


@pytest.mark.parametrize("problems", [[], [{"message": "Wrong", "path": ["repository", "l1"]}]])
def test_a_partial_list_of_issues_is_not_used(
    github: GitHub, respx_mock: respx.MockRouter, problems: list[Any]
) -> None:
    page = {"pageInfo": {"hasNextPage": False}, "nodes": [{"number": 1}]}
    respx_mock.post(GRAPHQL).respond(json=answer(problems, l0=page, l1=None))
    with pytest.raises(TryLater):
        github.read.labelled_issues("acme/widgets", ["agent", "@wright"])
