"""The demo's scene: a repository, its CI, a reviewer, and issues that each ask for a file."""

import io
import os
import random
import secrets
import string
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import git

from bot.demo.agent import ASKS
from bot.demo.github import GitHubServer
from bot.demo.github.app_keys import key_pair
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.reviews import Thread
from bot.demo.programs import KEY
from lifecycle.model.names import NAME

PROJECT, REPOSITORY = "greetings", "acme/greetings"
BOT, PERSON, REVIEWER = "mergewright-bot", "alice", "rob"
_ANSWER_SECONDS = 300.0

_FILES = {
    "README.md": "# Greetings\n\nA file that greets. `sh check` says whether it does.\n",
    "check": """#!/bin/sh
# The repository's own check. WANTED is the word that the greeting in FILE must contain.
echo "checking $FILE"
test -f "$FILE" || { echo "$FILE is missing"; exit 1; }
grep -qx "$WANTED" "$FILE" && { echo "all good"; exit 0; }
echo "the greeting must hold the word \\"$WANTED\\" on a line of its own"
exit 1
""",
}
_ISSUE = """The repository has no greeting like this yet. Please add `{file}`.

- It says hello.
- `sh check` passes. It requires a word that only its output names.
"""


@dataclass(frozen=True, kw_only=True)
class Task:
    """An issue, the file it asks for, and two random words that this file must contain.

    The agent learns `check_word` from the failed check's output, `review_word` from the review.
    """

    issue: Issue
    file: str
    check_word: str
    review_word: str
    played: bool  #: Whether the scene labels and reviews; else the person at the demo does.

    @property
    def session(self) -> str:
        """The ID of the issue's session."""
        return f"{PROJECT}-{self.issue.number}"


class Scene:
    """Sets up the stand-in for GitHub, runs CI on each new head, and reviews heads that pass.

    Heads of tasks that are not `played` are left to the person at the demo to review.
    """

    def __init__(
        self,
        github: GitHubServer,
        tell: Callable[[str, str], None],
        *,
        spelled_out: bool = False,
        app: bool = False,
    ) -> None:
        """Set up the repository, the people and the bot. `tell` gets each event and its URL.

        With `spelled_out`, the issues, logs and reviews contain the commands for the scripted
        model. With `app`, the bot authenticates as a GitHub App instead of with a token.
        """
        self._github = github
        self._tell = tell
        self._spelled_out = spelled_out
        self._lock = threading.Lock()
        self.tasks: dict[int, Task] = {}  #: The tasks by the numbers of their issues.
        self.token, self.secret = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.page_token = secrets.token_urlsafe(12)
        self._model_key = secrets.token_urlsafe(24)
        self.repo = github.repository(REPOSITORY, files=_FILES)
        self._set_up_bot(app=app)
        self.repo.permission(self.bot, "write")
        for login, level in ((PERSON, "admin"), (REVIEWER, "write")):
            github.user(login)
            self.repo.permission(login, level)
        github.on_head(self._head_moved)

    @property
    def secrets(self) -> dict[str, str]:
        """The bot's environment: its secrets, and the key of the scripted model."""
        return {
            KEY: self._model_key,
            **self._credentials,
            "MERGEWRIGHT_WEBHOOK_SECRET": self.secret,
            "MERGEWRIGHT_PAGE_TOKEN": self.page_token,
        }

    def _set_up_bot(self, *, app: bool) -> None:
        """Give the bot an account: that of an installed App, or one with a token."""
        if not app:
            self.bot, self.app_id = self._github.bot_account(BOT, token=self.token).login, ""
            self._credentials = {"MERGEWRIGHT_GITHUB_TOKEN": self.token}
            return
        keys = key_pair()
        made = self._github.app(BOT, keys.public)
        self.bot, self.app_id = made.bot.login, str(made.id)
        self._credentials = {"MERGEWRIGHT_GITHUB_PRIVATE_KEY": keys.private}

    def open_issue(
        self, file: str = "greeting.txt", *, played: bool = True, asks: bool = False
    ) -> Issue:
        """Have the person open an issue that asks for a file; if `played`, also label it.

        If `asks`, the scripted agent is to ask the person a question.
        """
        words = _word(), _word()
        body = _ISSUE.format(file=file) + self._spelled(file)
        if asks:
            body += f"- {ASKS}.\n"
        with self._lock:
            issue = self.repo.open_issue(f"Add {file}", body, by=PERSON)
            self.tasks[issue.number] = Task(
                issue=issue, file=file, check_word=words[0], review_word=words[1], played=played
            )
        if not played:
            return issue
        issue.label(NAME, by=PERSON)
        self._tell(f'@{PERSON} labels issue #{issue.number} "{issue.title}"', issue.url)
        return issue

    def task_of(self, pull: Pull) -> Task | None:
        """Find the task whose issue a pull request closes; None if there is none."""
        with self._lock:
            return next(
                (self.tasks[one.number] for one in pull.closes if one.number in self.tasks), None
            )

    def _head_moved(self, pull: Pull) -> None:
        if pull.repo is self.repo and (task := self.task_of(pull)):
            # One thread per head, because a review waits for an answer while others continue.
            threading.Thread(target=self._play, args=(pull, task), daemon=True).start()

    def _play(self, pull: Pull, task: Task) -> None:
        """Check a new head; if it passes and `task.played` is set, review the pull request."""
        head = pull.head
        self._tell(f"pull request #{pull.number} is at {head[:7]}", pull.url)
        passed, log = self._check(head, task)
        if pull.head != head or pull.merged:
            return
        conclusion = "success" if passed else "failure"
        log += self._spelled(task.file, task.check_word)
        pull.check("greeting", conclusion=conclusion, log=log, suite="ci")
        self._tell(f"the check of {head[:7]} ends in {conclusion}", pull.url)
        if passed and task.played:
            self._review(pull, head, task)

    def _check(self, sha: str, task: Task) -> tuple[bool, str]:
        """Run the repository's own check on this commit.

        Returns whether it passed, and its output.
        """
        archive = io.BytesIO()
        with git.Repo(self.repo.git.path) as repository:
            repository.archive(archive, treeish=sha)
        archive.seek(0)
        path = os.environ.get("PATH", os.defpath)
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(fileobj=archive) as files:
                files.extractall(folder, filter="data")
            ran = subprocess.run(
                ["sh", "check"],
                check=False,
                cwd=folder,
                env={"PATH": path, "FILE": task.file, "WANTED": task.check_word},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        return ran.returncode == 0, ran.stdout

    def _review(self, pull: Pull, head: str, task: Task) -> None:
        with git.Repo(self.repo.git.path) as repository:
            file = repository.commit(head).tree / task.file
            greeting = file.data_stream.read().decode()
        if task.review_word not in greeting.split():
            if not pull.reviews:
                words = f'Friendlier, please: add the word "{task.review_word}" on its own line.'
                words += self._spelled(task.file, task.check_word, task.review_word)
                pull.review(
                    by=REVIEWER,
                    state="CHANGES_REQUESTED",
                    body="Almost there.",
                    threads=[(task.file, 1, words)],
                )
                self._tell(f"@{REVIEWER} asks for a change", pull.url)
            return
        for thread in pull.threads:
            # A reviewer resolves a thread only after reading the bot's answer.
            deadline = time.monotonic() + _ANSWER_SECONDS
            while not self._answered(thread) and time.monotonic() < deadline:
                time.sleep(0.05)
            thread.resolve(by=REVIEWER)
        if pull.head == head:
            pull.review(by=REVIEWER, state="APPROVED", body="Thank you!")
            self._tell(f"@{REVIEWER} approves {head[:7]}", pull.url)

    def _answered(self, thread: Thread) -> bool:
        return thread.comments[-1].user.login == self.bot

    def _spelled(self, file: str, *words: str) -> str:
        """Return commands that make the scripted model commit a file with a greeting.

        Returns "" unless the `Scene` was created with `spelled_out=True`.
        """
        if not self._spelled_out:
            return ""
        greeting = "\\n".join(("Hello.", *words))
        commit = f"git add {file} && git commit --quiet -m 'Greet with {len(words)} words'"
        return f"\n#do: write {file} {greeting}\n#do: bash {commit}\n"


def _word() -> str:
    """Return a random word, which an agent can know only from a text that contains it."""
    return "".join(random.choices(string.ascii_lowercase, k=12))
