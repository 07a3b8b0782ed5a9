"""Many things asked for at once: what is wrong with one is said of that one alone."""

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
def test_trouble_with_one_leaves_the_others_as_they_are(
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
def test_trouble_with_all_of_it_is_no_answer(
    github: GitHub, respx_mock: respx.MockRouter, problem: Any, failure: type[Exception]
) -> None:
    respx_mock.post(GRAPHQL).respond(json={"data": {"repository": None}, "errors": [problem]})
    with pytest.raises(failure):
        github.read.fingerprints("acme/widgets", [1], [])


@pytest.mark.parametrize("problems", [[], [{"message": "Wrong", "path": ["repository", "l1"]}]])
def test_a_list_of_issues_that_is_there_only_in_part_is_none(
    github: GitHub, respx_mock: respx.MockRouter, problems: list[Any]
) -> None:
    page = {"pageInfo": {"hasNextPage": False}, "nodes": [{"number": 1}]}
    respx_mock.post(GRAPHQL).respond(json=answer(problems, l0=page, l1=None))
    with pytest.raises(TryLater):
        github.read.labelled_issues("acme/widgets", ["agent", "@wright"])
