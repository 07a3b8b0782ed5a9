"""Reports on GitHub: kept up to date, and safe from imitation."""

from bot.demo.github.issues import Comment, Issue
from bot.demo.github.pulls import Pull
from tests.world.waiting import eventually
from tests.world.world import ALICE, BOT, MALLORY, World


def report_on(place: Issue | Pull, says: str) -> Comment:
    """Wait until the bot's only report contains the text, and return the comment."""
    by = f"{BOT}[bot]"

    def there() -> Comment | None:
        reports = [c for c in place.comments if c.user.login == by and "/report:" in c.body]
        assert len(reports) <= 1
        return reports[0] if reports and says in reports[0].body else None

    return eventually(there, f"the report on #{place.number} says {says!r}")


def test_the_report_is_updated_over_the_whole_session(world: World) -> None:
    world.has_an_app()
    world.github.fail_next("POST", "/check-runs$", status=0, after=True)
    world.bot_starts({"check_run": True, "state_labels": True, "draft": True, "reviewers": ["rob"]})
    issue = world.issue("Add widgets")
    # The key is not secret: other people's comments may contain it.
    key = f"<!-- mergewright:key={issue.id}/report:{issue.issue.number} -->"
    theirs = issue.issue.comment(f"All is well.\n\n{key}", by=MALLORY)
    issue.is_labelled()
    first = report_on(issue.issue, f"session `{issue.id}`")
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    pull = issue.pull.pull
    assert pull.draft
    assert not pull.requested
    report_on(pull, "Mergewright: pull request open.")
    issue.pull.ci_passes()
    eventually(lambda: not pull.draft, "it is made ready")
    eventually(
        lambda: [user.login for user in pull.requested] == ["rob"], "its review is asked for"
    )
    issue.becomes("review_pending")
    before = report_on(pull, "Mergewright: pull request open.").body
    assert before, "a moment later nothing is edited"
    world.time_passes(seconds=61)
    report_on(pull, "Mergewright: review pending.")
    assert report_on(issue.issue, "Mergewright: review pending.") is first

    def labels() -> list[str]:
        return [name for name in issue.issue.labels if name.startswith("mergewright/")]

    eventually(lambda: labels() == ["mergewright/review_pending"], "the status is shown")
    issue.pull.reviewer_approves()
    issue.becomes("merged")
    world.time_passes(seconds=61)
    report_on(pull, "Mergewright: merged.")
    made = pull.repo.checks.runs_of(pull.head, latest=False)
    runs = [run for run in made if run.name == "mergewright"]
    eventually(lambda: runs[0].output["title"].startswith("Merged: "), "the check says so")
    assert len(runs) == 1, "though the first response was lost"
    assert world.github.traffic.planned == 0
    assert theirs.body == f"All is well.\n\n{key}"


def test_comments_and_checks_that_imitate_the_bots_are_left_alone(world: World) -> None:
    fork = world.repo.fork(MALLORY)
    fork.push("mergewright/1-add-widgets", {"widgets.txt": "evil\n"}, by=MALLORY)
    world.repo.push("mergewright/2-add-more", {"widgets.txt": "early\n"}, by=ALICE)
    world.bot_starts()
    issue, other = world.issue("Add widgets"), world.issue("Add more")
    theirs = world.repo.open_pull(
        "mergewright/1-add-widgets", title="Mine", by=MALLORY, source=fork
    )
    issue.is_labelled()
    other.is_labelled()
    ended = other.becomes("errored")
    assert "was not created by Mergewright" in ended.because
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    session = issue.becomes("review_pending")
    assert [pull.number for pull in session.pulls] == [theirs.number + 1]
    assert theirs.comments == []
    assert other.agent.received == []
