"""The demo's scene: a repository, its CI, a reviewer, and two random words."""

import io
import os
import random
import secrets
import string
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable

import git

from bot.demo.github import GitHubServer
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.reviews import Thread

REPOSITORY = "acme/greetings"
BOT, PERSON, REVIEWER = "mergewright-bot", "alice", "rob"
_ANSWER_SECONDS = 90.0

_FILES = {
    "README.md": "# Greetings\n\nA file that greets. `sh check` says whether it does.\n",
    "check": """#!/bin/sh
# The repository's own check. WANTED is the word that the greeting must contain.
echo "checking greeting.txt"
test -f greeting.txt || { echo "greeting.txt is missing"; exit 1; }
grep -qx "$WANTED" greeting.txt && { echo "all good"; exit 0; }
echo "the greeting must hold the word \\"$WANTED\\" on a line of its own"
exit 1
""",
}
_ISSUE = """The repository has no greeting yet. Please add `greeting.txt`.

- It says hello.
- `sh check` passes. It wants a word that only its output tells.
"""


class Scene:
    """Sets up the stand-in, and plays CI and the reviewer as heads move."""

    def __init__(
        self, github: GitHubServer, tell: Callable[[str, str], None], *, spelled_out: bool = False
    ) -> None:
        """`tell` receives each event with where to look at it.

        `spelled_out`: requests contain the commands for the scripted model.
        """
        self._github = github
        self._tell = tell
        self._spelled_out = spelled_out
        self.check_word, self.review_word = _word(), _word()
        self.token, self.secret = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        github.bot_account(BOT, token=self.token)
        self.repo = github.repository(REPOSITORY, files=_FILES)
        self.repo.permission(BOT, "write")
        for login in (PERSON, REVIEWER):
            github.user(login)
            self.repo.permission(login, "write")
        github.on_head(self._head_moved)

    def open_issue(self) -> Issue:
        """Have the person open an issue and label it."""
        issue = self.repo.open_issue("Add a greeting", _ISSUE + self._spelled(), by=PERSON)
        issue.label("mergewright", by=PERSON)
        self._tell(f'@{PERSON} labels issue #{issue.number} "{issue.title}"', issue.url)
        return issue

    def _head_moved(self, pull: Pull) -> None:
        """Handle a new head: run the check, then review it."""
        if pull.repo is not self.repo:
            return
        head = pull.head
        self._tell(f"pull request #{pull.number} is at {head[:7]}", pull.url)
        passed, log = self._check(head)
        if pull.head != head or pull.merged:
            return
        conclusion = "success" if passed else "failure"
        log += self._spelled(self.check_word)
        pull.check("greeting", conclusion=conclusion, log=log, suite="ci")
        self._tell(f"the check of {head[:7]} ends in {conclusion}", pull.url)
        if passed:
            self._review(pull, head)

    def _check(self, sha: str) -> tuple[bool, str]:
        """Run the repository's own check on a checkout of this commit."""
        archive = io.BytesIO()
        with git.Repo(self.repo.git.path) as repository:
            repository.archive(archive, treeish=sha)
        archive.seek(0)
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(fileobj=archive) as files:
                files.extractall(folder, filter="data")
            ran = subprocess.run(
                ["sh", "check"],
                check=False,
                cwd=folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "WANTED": self.check_word},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        return ran.returncode == 0, ran.stdout

    def _review(self, pull: Pull, head: str) -> None:
        with git.Repo(self.repo.git.path) as repository:
            file = repository.commit(head).tree / "greeting.txt"
            greeting = file.data_stream.read().decode()
        if self.review_word not in greeting.split():
            if not pull.reviews:
                words = f'Friendlier, please: add the word "{self.review_word}" on its own line.'
                words += self._spelled(self.check_word, self.review_word)
                pull.review(
                    by=REVIEWER,
                    state="CHANGES_REQUESTED",
                    body="Almost there.",
                    threads=[("greeting.txt", 1, words)],
                )
                self._tell(f"@{REVIEWER} asks for a change", pull.url)
            return
        for thread in pull.threads:
            # A person reads the answer before they are content with it.
            deadline = time.monotonic() + _ANSWER_SECONDS
            while not _answered(thread) and time.monotonic() < deadline:
                time.sleep(0.05)
            thread.resolve(by=REVIEWER)
        pull.review(by=REVIEWER, state="APPROVED", body="Thank you!")
        self._tell(f"@{REVIEWER} approves {head[:7]}", pull.url)

    def _spelled(self, *words: str) -> str:
        """The scripted model's commands for a greeting with these words."""
        if not self._spelled_out:
            return ""
        greeting = "\\n".join(("Hello.", *words))
        commit = f"git add greeting.txt && git commit --quiet -m 'Greet with {len(words)} words'"
        return f"\n#do: write greeting.txt {greeting}\n#do: bash {commit}\n"


def _answered(thread: Thread) -> bool:
    return thread.comments[-1].user.login == BOT


def _word() -> str:
    """Return a random word, whose use proves that the agent read the text containing it."""
    return "".join(random.choices(string.ascii_lowercase, k=12))
