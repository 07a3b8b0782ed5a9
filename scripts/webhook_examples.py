"""Parses GitHub's published webhook examples as the bot parses deliveries.

`scripts/check-webhook-examples` runs it; the argument is the path of the examples' npm archive.
"""

import json
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bot.intake.events import EVENTS, parse_event


class Example(NamedTuple):
    """One example payload from GitHub's npm package `@octokit/webhooks-examples`."""

    host: str  #: The kind of GitHub that sends it: `api.github.com`, `ghes-35`, ...
    event: str
    payload: dict[str, Any]


def examples(archive: Path) -> Iterator[Example]:
    """Yield every example: `package/HOST/index.json` lists the events, each with its payloads."""
    with tarfile.open(archive) as package:
        for member in package:
            path = Path(member.name)
            content = package.extractfile(member) if path.name == "index.json" else None
            if content is None:
                continue
            for event in json.load(content):
                for payload in event["examples"]:
                    yield Example(path.parent.name, event["name"], payload)


def main(archive: Path) -> int:
    """Print each example that cannot be parsed; return 1 if there is one, or no example at all."""
    read: Counter[str] = Counter()
    refused = 0
    for example in examples(archive):
        if example.event not in EVENTS:
            continue
        read[example.event] += 1
        try:
            parse_event(example.event, json.dumps(example.payload).encode())
        except Exception as problem:  # noqa: BLE001 - the script looks for any failure
            refused += 1
            action = example.payload.get("action", "")
            print(f"{example.host} {example.event} {action}: {type(problem).__name__}: {problem}")
    print(f"{read.total()} examples of {len(read)} events, {refused} refused.")
    without = sorted(EVENTS.keys() - read.keys())
    if without:
        print(f"Events without an example in the package: {', '.join(without)}.")
    return 1 if refused or not read else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
