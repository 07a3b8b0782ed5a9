"""Sends signed deliveries about issues and pull requests without a session."""

import hmac
import json
import random
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import httpx

_SENDERS = 8


def send_unrelated(
    url: str,
    secret: str,
    repository: Mapping[str, object],
    count: int,
    dice: random.Random,
    over: threading.Event,
) -> None:
    """Send `count` deliveries from several threads to the bot at `url`; stop once `over` is set."""
    seeds = [dice.getrandbits(32) for _ in range(_SENDERS)]

    def send(seed: int) -> None:
        own = random.Random(seed)
        with httpx.Client(base_url=url, timeout=30.0) as client:
            for _ in range(count // _SENDERS):
                if over.is_set():
                    return
                event, body = unrelated(own, repository)
                content = json.dumps(body).encode()
                proof = hmac.digest(secret.encode(), content, "sha256").hex()
                headers = {
                    "content-type": "application/json",
                    "x-github-event": event,
                    "x-github-delivery": str(uuid.UUID(int=own.getrandbits(128))),
                    "x-hub-signature-256": f"sha256={proof}",
                }
                client.post("webhooks/github", content=content, headers=headers)

    with ThreadPoolExecutor(_SENDERS) as senders:
        for sent in [senders.submit(send, seed) for seed in seeds]:
            sent.result()


def unrelated(
    dice: random.Random, repository: Mapping[str, object]
) -> tuple[str, dict[str, object]]:
    """Return the name and the payload of an event about a random number that no session has."""
    number = dice.randint(10_000, 99_999)
    person = {"login": "mallory", "id": 99, "type": "User"}
    common = {"repository": repository, "sender": person}
    issue = {"number": number, "id": number, "title": "T", "body": "", "user": person, "labels": []}
    kind = dice.randrange(4)
    if kind == 0:
        return "issues", {"action": "edited", "issue": issue, **common}
    if kind == 1:
        comment = {"id": number, "body": "Me too.", "user": person}
        if number % 3 == 0:  # On a pull request, whose branch such a payload does not hold.
            issue["pull_request"] = {}
        return "issue_comment", {"action": "created", "issue": issue, "comment": comment, **common}
    sha = f"{dice.getrandbits(160):040x}"
    head = {"ref": f"feature-{number}", "sha": sha, "repo": repository}
    base = {"ref": "main", "sha": "0" * 40, "repo": repository}
    if kind == 2:
        pull = {**issue, "head": head, "base": base, "merged": False, "draft": False}
        return "pull_request", {
            "action": "synchronize",
            "number": number,
            "pull_request": pull,
            **common,
        }
    run = {
        "id": number,
        "name": "unit",
        "head_sha": sha,
        "status": "completed",
        "conclusion": "success",
        "pull_requests": [{"number": number, "head": head, "base": base}],
        "check_suite": {"head_branch": f"feature-{number}"},
    }
    return "check_run", {"action": "completed", "check_run": run, **common}
