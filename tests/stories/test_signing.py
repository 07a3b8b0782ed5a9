"""With `policy.sign-commits`, the bot signs agents' commits, as a rule on GitHub may require."""

from pathlib import Path

from msgspec.structs import replace

from bot.demo.github.repository import Repository
from tests.world.signing_key import EMAIL, KEY, PRIVATE, is_verified
from tests.world.waiting import eventually
from tests.world.world import ALICE, World

#: The rule "Require signed commits" for all branches, in GitHub's words.
_RULE = """#!/bin/sh
while read -r old new ref; do
    for commit in $(git rev-list "$new" --not --all); do
        git -c gpg.ssh.allowedSignersFile={signers} verify-commit "$commit" 2>/dev/null || {{
            echo "error: GH013: Repository rule violations found for $ref." >&2
            echo "- Commits must have verified signatures." >&2
            exit 1
        }}
    done
done
"""


def requires_signatures(repo: Repository) -> None:
    """Have GitHub refuse every push of commits without a signature of the bot's key."""
    signers = Path(repo.git.path, "signers")
    signers.write_text(f"{EMAIL} {KEY.public}\n")
    hook = Path(repo.git.path, "hooks", "pre-receive")
    hook.write_text(_RULE.format(signers=signers))
    hook.chmod(0o755)


def bot_has_a_key(world: World) -> None:
    world.signing = f'email = "{EMAIL}"'
    world.secrets = replace(world.secrets, signing_key=PRIVATE)


def test_signed_commits_are_pushed_and_the_agent_continues_on_them(world: World) -> None:
    requires_signatures(world.repo)
    bot_has_a_key(world)
    world.bot_starts({"sign_commits": True})
    issue = world.issue("Add widgets").is_labelled()
    agent = issue.agent
    agent.commits({"a": "1\n"}, "Add a\n\nCo-authored-by: Ada <ada@example.com>")
    agent.commits({"b": "1\n"}, "Add b").ends_its_turn()
    pull = issue.pull
    first = pull.pull.head
    pull.ci_fails("unit", log="b must be 2")
    agent.receives("b must be 2")
    agent.commits({"b": "2\n"}, "Make b 2").ends_its_turn()
    second = pull.moves_from(first)
    git = world.repo.git
    commits = git.run("rev-list", f"main..{second}").split()
    assert len(commits) == 3
    assert commits[1] == first
    assert all(is_verified(git.path, sha) for sha in commits)
    first_commit = git.commit(commits[2])
    assert first_commit.author.email == "mergewright@localhost"
    assert first_commit.committer.email == EMAIL
    assert "Co-authored-by: Ada <ada@example.com>" in first_commit.message
    moves = [move.after for move in world.repo.moves if move.branch == pull.pull.head_branch]
    assert moves == [first, second]
    pull.ci_passes("unit").reviewer_approves()
    assert issue.becomes("merged").work.head == second


def test_commits_that_a_person_allows_are_signed_too(world: World) -> None:
    requires_signatures(world.repo)
    bot_has_a_key(world)
    world.bot_starts({"sign_commits": True})
    issue = world.issue("Own the widgets").is_labelled()
    forged = ["git", "commit", "-q", "-m", "Own", "--author", "Alice <alice@example.com>"]
    agent = issue.agent.writes({"CODEOWNERS": "* @mallory\n"})
    agent.runs(["git", "add", "--all"], forged).ends_its_turn()
    held = issue.becomes("needs_input")
    issue.issue.comment(f"/mergewright allow {held.work.head[:7]}", by=ALICE)
    head = issue.pull.pull.head
    assert head != held.work.head
    assert is_verified(world.repo.git.path, head)
    assert world.repo.git.commit(head).author.email == "alice@example.com"


def test_a_push_that_the_rule_refuses_says_what_to_set(world: World) -> None:
    requires_signatures(world.repo)
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"a": "1\n"}, "Add a").ends_its_turn()
    refused = issue.becomes("needs_input")
    assert refused.reason == "push_refused"
    assert "set `policy.sign-commits`" in refused.because
    eventually(
        lambda: any("`policy.sign-commits`" in posted for posted in issue.comments_by()),
        "people are told what to set",
    )
