"""Tries the API of a server with tools that know only its document. Run by `scripts/test-web`."""

import argparse
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from bot.show.run_log import LogPage
from bot.web.api.router import document
from lifecycle.model.status import Status
from tests.web.conftest import Site

TOKEN = "the-token-of-the-page"
#: Checks of Schemathesis that do not fit, each with its reason.
UNFIT = {
    "positive_data_acceptance": "a project, a cursor or a command that does not exist is refused",
    "allow_header_conformance": "Litestar answers OPTIONS for one of the handlers of a path",
}


def main() -> None:
    """Run all checks; exit 1 if any fails."""
    parser = argparse.ArgumentParser(prog="scripts/test-web", description=main.__doc__)
    parser.add_argument("tools", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--max-examples", type=int, default=50, help="requests for each operation")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "openapi.json").write_bytes(document())
        with closing(Site(folder, token=TOKEN)) as site:
            # Nobody waits for an ended session, whatever the timeout of a request.
            site.end(site.session(12), Status.KILLED)
            site.log_page = lambda *_: LogPage(lines=("Done.",), cursor=6, more=False)
            conforms = fuzzed(given.tools, folder, site.url, given.max_examples)
            works = client_works(given.tools, folder, site.url)
    sys.exit(not (conforms and works))


def fuzzed(tools: Path, folder: Path, url: str, examples: int) -> bool:
    """Whether Schemathesis finds no response that the document does not describe."""
    command = [str(tools / "st"), "run", str(folder / "openapi.json"), "--url", url]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--max-examples", str(examples)]
    command += ["--exclude-checks", ",".join(UNFIT), "--phases", "examples,coverage,fuzzing"]
    # The stream of events does not end.
    command += ["--exclude-path", "/api/v1/events"]
    return subprocess.run(command, cwd=folder, check=False).returncode == 0


def client_works(tools: Path, folder: Path, url: str) -> bool:
    """Whether a generated client reads a session, gives a command and gets a problem."""
    generate = [str(tools / "openapi-python-client"), "generate", "--meta", "none"]
    generate += ["--path", str(folder / "openapi.json")]
    generate += ["--output-path", str(folder / "mergewright_client")]
    use = [str(tools / "python"), str(Path(__file__).with_name("client.py"))]
    use += [str(folder), url, TOKEN]
    return all(subprocess.run(line, check=False).returncode == 0 for line in (generate, use))


if __name__ == "__main__":
    main()
