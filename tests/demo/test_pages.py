"""The stand-in's pages of issues and pull requests, and the demo that keeps them running."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bot.demo.bot_process import free_port
from bot.demo.github import GitHubServer
from bot.demo.github.repository import Repository
from tests.world.waiting import PATIENCE, eventually


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path) as server:
        for login in ("alice", "rob"):
            server.user(login)
        server.show_pages("alice", "rob", "mergewright", "<b>links</b>")
        yield server


@pytest.fixture
def repo(github: GitHubServer) -> Repository:
    made = github.repository("acme/widgets", files={"a.txt": "one\n"})
    for login in ("alice", "rob"):
        made.permission(login, "write")
    return made


def press(address: str, **fields: str) -> int:
    return httpx.post(address, data=fields, trust_env=False).status_code


def test_a_person_labels_and_comments_on_the_page_of_an_issue(repo: Repository) -> None:
    issue = repo.open_issue("<i>Broken</i>", "It **breaks**.<script>x</script>", by="alice")
    page = httpx.get(issue.url, trust_env=False)
    assert "&lt;i&gt;Broken&lt;/i&gt;" in page.text
    assert "It **breaks**.&lt;script&gt;" in page.text
    assert "<script>" not in page.text
    assert "<b>links</b>" in page.text
    assert press(f"{issue.url}/label") == 303
    assert issue.labels == ["mergewright"]
    assert "Remove the label mergewright" in httpx.get(issue.url, trust_env=False).text
    assert press(f"{issue.url}/unlabel") == 303
    assert issue.labels == []
    assert press(f"{issue.url}/comment", text="Hello <!-- hidden --> there") == 303
    (comment,) = issue.comments
    assert (comment.user.login, comment.body) == ("alice", "Hello <!-- hidden --> there")
    assert "hidden" not in httpx.get(issue.url, trust_env=False).text
    assert press(f"{issue.url}/comment", text=" ") == 303
    assert len(issue.comments) == 1
    refused = httpx.post(
        f"{issue.url}/label", headers={"Origin": "https://evil.example"}, trust_env=False
    )
    assert (refused.status_code, issue.labels) == (403, [])


def test_a_person_reviews_on_the_page_of_a_pull_request(
    github: GitHubServer, repo: Repository
) -> None:
    repo.push("topic", {"a.txt": "two\n"}, by="alice")
    pull = repo.open_pull("topic", title="Two", body="Please", by="alice")
    pull.check("unit", conclusion="failure")
    page = httpx.get(pull.url, trust_env=False).text
    assert "+two" in page
    assert "unit: failure" in page
    assert "Approve as rob" in page
    assert press(f"{pull.url}/request", text="Three, please") == 303
    assert press(f"{pull.url}/approve") == 303
    assert [(review.user.login, review.state) for review in pull.reviews] == [
        ("rob", "CHANGES_REQUESTED"),
        ("rob", "APPROVED"),
    ]
    listed = httpx.get(f"{github.url}acme/widgets", trust_env=False).text
    assert f'<a href="{pull.url}">Two</a>' in listed
    assert httpx.get(github.url, trust_env=False).text == listed
    for missing in ("acme/widgets/issues/99", "acme/gears", "acme/widgets/pull/1/nothing"):
        assert httpx.get(f"{github.url}{missing}", trust_env=False).status_code == 404


def test_a_kept_demo_has_a_link_that_signs_in_and_three_issues_to_try(tmp_path: Path) -> None:
    log, port = tmp_path / "log", free_port()

    def printed(what: str) -> list[str]:
        return re.findall(what, log.read_text())

    with (
        log.open("wb") as file,
        subprocess.Popen(
            # A shell that runs the tests in the background has them ignore SIGINT.
            [
                *("env", "--default-signal=INT"),
                *(sys.executable, "-m", "bot.demo", "--keep", "--port", str(port)),
            ],
            stdout=file,
            stderr=file,
            start_new_session=True,
        ) as demo,
        httpx.Client(trust_env=False, follow_redirects=True) as browser,
    ):
        try:
            to_try = r"(http\S+/issues/\d+)  Add "
            eventually(lambda: demo.poll() is not None or len(printed(to_try)) == 3, "it is kept")
            assert demo.poll() is None, log.read_text()
            for issue in printed(to_try):
                assert "Add the label mergewright" in browser.get(issue).text
            page = browser.get(printed(r"signed in: (http\S+)")[-1]).text
            (address,) = re.findall(r'href="(\S+/login/github)"', page)
            assert address == f"http://127.0.0.1:{port}/login/github"
            assert "greetings-1" in browser.get(address).text
            assert "@alice" in browser.get(f"http://127.0.0.1:{port}/account").text
            first = printed(to_try)[0]
            browser.post(f"{first}/label")
            repository, _, issue = first.partition("/issues/")

            def found(what: str) -> list[str]:
                """The addresses of the issue's pull requests whose pages show this."""
                numbers = re.findall(r"/pull/(\d+)", browser.get(repository).text)
                addresses = [f"{repository}/pull/{number}" for number in numbers]
                pages = [browser.get(address).text for address in addresses]
                return [
                    address
                    for address, page in zip(addresses, pages, strict=True)
                    if f"Closes #{issue}" in page and what in page
                ]

            (pull,) = eventually(lambda: found("greeting: success"), "its check passes")
            assert found("rob (") == []  # The review is left to who watches.
            browser.post(f"{pull}/approve")
            eventually(lambda: found(", merged; "), "it is merged")
        finally:
            os.killpg(demo.pid, signal.SIGINT)  # As Ctrl-C in a terminal does.
            try:
                ended = demo.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(demo.pid, signal.SIGKILL)
                raise
        assert ended == 0, log.read_text()
    assert printed("Traceback") == []
    (config,) = printed(r"--config (\S+)")
    assert not Path(config).parent.exists()
