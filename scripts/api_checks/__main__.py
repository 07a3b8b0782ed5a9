"""Tests the API with tools that know only its OpenAPI document. Run by `scripts/test-web`."""

import argparse
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from bot.show.run_log import LogPage
from bot.store import Delivery
from bot.web.api.operations import DELIVERY
from bot.web.api.router import document
from lifecycle.model.status import Status
from tests.web.conftest import Site

TOKEN = "the-token-of-the-page"
#: Invalid requests may be refused with any client error. The default lacks 413, for a large body.
_SCHEMATHESIS = """[checks.negative_data_rejection]
expected-statuses = ["4xx"]
"""


def main() -> None:
    """Run all checks; exit 1 if any fails."""
    parser = argparse.ArgumentParser(prog="scripts/test-web api", description=main.__doc__)
    parser.add_argument("tools", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--max-examples", type=int, default=50, help="requests for each operation")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "openapi.json").write_bytes(document())
        with closing(Site(folder, token=TOKEN)) as site:
            fill(site)
            conforms = fuzzed(given.tools, folder, site.url, given.max_examples)
            works = client_works(given.tools, folder, site.url)
    sys.exit(not (conforms and works))


def fill(site: Site) -> None:
    """Create the sessions, agents and deliveries that the document's examples name."""
    site.end(site.session(12), Status.KILLED)
    site.store.db.write(
        lambda connection: connection.execute("UPDATE sessions SET agent_name = 'ada'")
    )
    failed = Delivery(id=DELIVERY, event="issues", at=site.store.clock(), body=b"{")
    site.store.deliveries.add([failed]).result()
    site.log_page = lambda *_: LogPage(lines=("Done.",), cursor=6, more=False, ended=True, run=1)
    # Streams end at once, and no request waits, as while a server stops.
    site.watchers.close()


def fuzzed(tools: Path, folder: Path, url: str, examples: int) -> bool:
    """Whether Schemathesis finds no difference between the server and the document."""
    (folder / "schemathesis.toml").write_text(_SCHEMATHESIS)
    command = [str(tools / "st"), "run", str(folder / "openapi.json"), "--url", url]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--max-examples", str(examples)]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


def client_works(tools: Path, folder: Path, url: str) -> bool:
    """Whether a generated client can read a session, give a command and parse an error."""
    generate = [str(tools / "openapi-python-client"), "generate", "--meta", "none"]
    generate += ["--path", str(folder / "openapi.json")]
    generate += ["--output-path", str(folder / "mergewright_client")]
    settings = folder / "generator.yml"
    settings.write_text("post_hooks: []\n")  # Otherwise the generator runs ruff.
    generate += ["--config", str(settings)]
    use = [str(tools / "python"), str(Path(__file__).with_name("client.py"))]
    use += [str(folder), url, TOKEN]
    return all(subprocess.run(line, check=False).returncode == 0 for line in (generate, use))


if __name__ == "__main__":
    main()
