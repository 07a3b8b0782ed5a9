"""The conversion of pull requests."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from bot.github.comment_markers import with_marker
from bot.github.pulls import pull_snapshot
from bot.github.shapes import (
    Actor,
    AppSlug,
    BaseChange,
    BaseRef,
    BranchProtection,
    CheckSuite,
    CommitNode,
    HeadCheck,
    NodeList,
    PullRequest,
    RequiredCheck,
    RuleParameters,
    RulesetRule,
)
from bot.github.snapshots import PullSnapshot
from lifecycle.model.facts import Check
from lifecycle.model.status import CheckState, PullState
from lifecycle.model.status import Review as ReviewState
from tests.github.conftest import NOW
from tests.github.pages import (
    START,
    bot,
    checks,
    comment,
    listed,
    page,
    review,
    run,
    status,
    thread,
    user,
)

ME, SLUG = "mergewright[bot]", "mergewright"
OLD = "c" * 40


def read(*pages: PullRequest, **changes: Any) -> PullSnapshot:
    return pull_snapshot(pages or (page(**changes),), ME, NOW)


def protects(check: str) -> BranchProtection:
    """Branch protection that requires a check."""
    return BranchProtection(requires_status_checks=True, required_status_check_contexts=(check,))


def requires(check: str) -> RulesetRule:
    """A rule of a ruleset that requires a check."""
    required = RuleParameters(required_status_checks=(RequiredCheck(context=check),))
    return RulesetRule(type="REQUIRED_STATUS_CHECKS", parameters=required)


def base(protection: BranchProtection | None = None, *rules: RulesetRule) -> BaseRef:
    return BaseRef(
        target=CommitNode(oid="d" * 40),
        branch_protection_rule=protection,
        rules=NodeList(nodes=rules),
    )


def test_plain_fields_are_copied() -> None:
    reading = read(is_draft=True, merged_by=user("ann"), base_ref=base())
    pull = reading.pull
    assert (pull.number, pull.title, pull.draft, pull.state) == (34, "Retry", True, PullState.OPEN)
    assert (pull.base, pull.base_branch) == ("d" * 40, "main")
    assert pull.read_at == NOW
    assert (reading.author, reading.pull.merged_by) == (ME, "ann")
    assert (reading.head_repository, reading.pull.branch) == (
        "acme/widgets",
        "mergewright/12-retry",
    )


@pytest.mark.parametrize("state", PullState)
def test_every_pull_request_state_is_mapped(state: PullState) -> None:
    assert read(state=state.name).pull.state is state


def test_a_deleted_fork_has_no_repository() -> None:
    assert read(head_repository=None).head_repository == ""


def test_the_newest_run_of_a_check_counts_in_any_order() -> None:
    runs = [run(2, "unit", "SUCCESS"), run(3, "unit", None), run(1, "unit", "FAILURE")]
    assert states(read(commits=checks(*runs)).pull.checks) == [CheckState.PENDING]


def test_checks_of_one_name_from_two_workflows_are_two_checks() -> None:
    found = read(
        commits=checks(
            run(1, "unit", "FAILURE"),
            run(2, "unit", event="pull_request"),
            run(3, "unit", workflow="Nightly"),
            run(4, "unit", check_suite=None),
            status("unit", "SUCCESS"),
        )
    ).pull.checks
    assert [check.id for check in found] == [
        "github-actions / CI / pull_request / unit",
        "github-actions / CI / push / unit",
        "github-actions / Nightly / push / unit",
        "status / unit",
        "unit",
    ]
    assert CheckState.FAILED in states(found)


def test_the_newest_commit_status_of_a_context_counts() -> None:
    found = read(
        commits=checks(status("ci", "FAILURE", minute=2), status("ci", "SUCCESS", minute=1))
    ).pull.checks
    assert states(found) == [CheckState.FAILED]
    assert found[0].run_id is None


def test_checks_of_all_pages_count() -> None:
    first = page(commits=checks(run(1, "unit", "FAILURE"), more=True))
    second = page(commits=checks(run(2, "lint")))
    reading = read(first, second)
    assert [check.name for check in reading.pull.checks] == ["lint", "unit"]
    assert reading.pull.checks_complete


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param({"commits": checks(run(1, "unit"), more=True)}, id="checks"),
        pytest.param({"commits": checks(run(1, "unit"), None)}, id="a check that may not be seen"),
        pytest.param({"commits": checks(run(1, "unit"), oid=OLD)}, id="checks of an older head"),
        pytest.param({"commits": NodeList(nodes=())}, id="the head commit"),
        pytest.param({"latest_opinionated_reviews": listed(more=True)}, id="opinions"),
        pytest.param({"reviews": listed(more=True)}, id="reviews"),
        pytest.param({"comments": listed(more=True)}, id="comments"),
        pytest.param({"review_threads": listed(more=True)}, id="threads"),
    ],
)
def test_a_snapshot_with_missing_parts_is_incomplete(missing: dict[str, Any]) -> None:
    assert not read(**missing).pull.checks_complete


def test_a_snapshot_without_checks_is_complete() -> None:
    pull = read().pull
    assert pull.checks_complete
    assert pull.checks == ()
    assert not pull.checks_expected


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(
            base(protects("unit")),
            id="branch protection",
        ),
        pytest.param(
            base(
                None,
                RulesetRule(type="DELETION", parameters=None),
                requires("unit"),
            ),
            id="a ruleset",
        ),
    ],
)
def test_a_required_check_that_never_reported_is_pending(rules: BaseRef) -> None:
    pull = read(base_ref=rules, commits=checks(run(1, "lint"))).pull
    assert pull.checks[-1] == Check(
        id="required / unit",
        name="unit",
        state=CheckState.PENDING,
        required=True,
        reported=False,
    )
    reported = read(base_ref=rules, commits=checks(run(1, "unit", is_required=True))).pull
    assert [check.required for check in reported.checks] == [True]


@pytest.mark.parametrize(
    ("context", "counts"),
    [("ci/travis/pr", True), ("ci/travis/push", True), ("ci/travis-2", False), ("ci", False)],
)
def test_a_required_status_is_satisfied_by_one_below_its_name(context: str, counts: bool) -> None:
    rules = base(protects("ci/travis"))
    pull = read(base_ref=rules, commits=checks(status(context, "SUCCESS"))).pull
    required = [(check.name, check.reported) for check in pull.checks if check.required]
    assert required == [(context, True) if counts else ("ci/travis", False)]


def test_checks_required_by_protection_and_by_rulesets_are_expected() -> None:
    pull = read(base_ref=base(protects("unit"), requires("lint"), requires("types"))).pull
    assert [check.name for check in pull.checks] == ["lint", "types", "unit"]


def test_unreadable_rules_require_no_checks() -> None:
    hidden = BaseRef(target=None, branch_protection_rule=None, rules=None)
    pull = read(base_ref=hidden).pull
    assert not pull.checks_expected
    assert pull.base == "b" * 40


def test_protection_without_status_checks_requires_none() -> None:
    rule = BranchProtection(requires_status_checks=False, required_status_check_contexts=("unit",))
    pull = read(base_ref=base(rule)).pull
    assert not pull.checks_expected
    assert pull.checks == ()


def test_a_verdict_says_whether_it_came_after_the_last_change_of_the_base_branch() -> None:
    def verdicts(*changes: int) -> list[bool]:
        times = [BaseChange(created_at=START + timedelta(minutes=minute)) for minute in changes]
        reviews = [review("ann", "APPROVED", 1), review("bob", "CHANGES_REQUESTED", 3)]
        found = read(
            base_changes=NodeList(nodes=tuple(times)),
            latest_opinionated_reviews=listed(*reviews),
        )
        return [verdict.for_base for verdict in found.pull.verdicts]

    assert verdicts() == [True, True]
    assert verdicts(2) == [False, True]
    # GitHub's times are whole seconds: of two events in one, the order is unknown.
    assert verdicts(3) == [False, False]


def test_comments_have_stable_ids_and_say_whether_a_bot_wrote_them() -> None:
    found = read(
        comments=listed(
            comment(2, author=bot("renovate")),
            comment(1, "ann"),
            comment(3, author=bot("mergewright")),
            comment(4, author=None),
            comment(5, author=user("mergewright")),
        )
    ).pull.comments
    assert [(each.id, each.author, each.bot, each.own) for each in found] == [
        ("comment:1", "ann", False, False),
        ("comment:2", "renovate[bot]", True, False),
        ("comment:3", ME, True, True),
        ("comment:4", "", False, False),
        ("comment:5", "mergewright", False, False),
    ]
    assert not any(each.allowed for each in found)


@pytest.mark.parametrize(
    ("me", "by", "marked", "own"),
    [
        ("ann", user("ann"), True, True),
        ("ann", user("ann"), False, False),
        ("ann", user("ben"), True, False),
        (ME, bot(SLUG), False, True),
    ],
)
def test_a_remark_of_the_tokens_owner_is_the_bots_only_with_its_marker(
    me: str, by: Actor, marked: bool, own: bool
) -> None:
    body = with_marker("Use tabs.", "comment:1") if marked else "Use tabs."
    wrote = page(
        comments=listed(comment(1, author=by, body=body)),
        reviews=listed(
            msgspec.structs.replace(review("", "COMMENTED", id=2, body=body), author=by)
        ),
        review_threads=listed(thread("T1", comment(3, author=by, body=body))),
    )
    pull = pull_snapshot([wrote], me, NOW).pull
    assert [one.own for one in (*pull.comments, *pull.threads[0].remarks)] == [own] * 3


def test_the_text_of_a_review_appears_once() -> None:
    latest = review("ann", "CHANGES_REQUESTED", id=3, body="Still no.")
    reading = read(
        latest_opinionated_reviews=listed(latest, review("ben", "DISMISSED", id=4)),
        reviews=listed(
            review("ann", "CHANGES_REQUESTED", id=1, body="No."),
            review("cid", "COMMENTED", id=2, body="Have you thought of time-outs?"),
            latest,
            review("ben", "DISMISSED", id=4, body="Never mind."),
            review("dan", "COMMENTED", id=5),
        ),
    )
    (verdict,) = reading.pull.verdicts
    assert (verdict.author, verdict.approved, verdict.allowed) == ("ann", False, False)
    assert verdict.remark is not None
    assert verdict.remark.id == "review:3"
    assert [each.id for each in reading.pull.comments] == ["review:1", "review:2", "review:4"]


def test_reviews_of_all_pages_count() -> None:
    pages = (
        page(latest_opinionated_reviews=listed(review("ann", "CHANGES_REQUESTED"), more=True)),
        page(latest_opinionated_reviews=listed(review("ben", "APPROVED"))),
    )
    pull = read(*pages).pull
    assert [(one.author, one.approved) for one in pull.verdicts] == [("ann", False), ("ben", True)]
    assert pull.review is ReviewState.CHANGES_REQUESTED
    assert pull.checks_complete


def test_reviews_say_whether_a_bot_wrote_them() -> None:
    entries = [
        msgspec.structs.replace(review("", "COMMENTED", id=n, body="Look."), author=author)
        for n, author in enumerate([user("ann"), bot("renovate"), bot(SLUG)])
    ]
    objects = msgspec.structs.replace(
        review("", "CHANGES_REQUESTED", id=9, body="No."), author=bot("renovate")
    )
    reading = read(reviews=listed(*entries), latest_opinionated_reviews=listed(objects))
    assert [(each.author, each.bot, each.own) for each in reading.pull.comments] == [
        ("ann", False, False),
        ("renovate[bot]", True, False),
        (ME, True, True),
    ]
    (verdict,) = reading.pull.verdicts
    assert verdict.remark is not None
    assert (verdict.remark.bot, verdict.remark.own) == (True, False)


def test_a_verdict_names_the_reviewed_commit() -> None:
    latest = listed(review("ann", "APPROVED"))
    (verdict,) = read(latest_opinionated_reviews=latest).pull.verdicts
    assert verdict.approved
    assert verdict.sha == "a" * 40
    assert verdict.remark is None


def test_a_thread_has_its_location_and_all_its_comments() -> None:
    (found,) = read(
        review_threads=listed(
            thread(
                "T1",
                comment(8, diff_hunk="@@ -1 +1 @@"),
                comment(9, author=bot("mergewright")),
                line=None,
                is_resolved=True,
                is_outdated=True,
            )
        )
    ).pull.threads
    assert (found.id, found.path, found.line) == ("T1", "src/retry.py", 5)
    assert (found.diff, found.resolved, found.outdated) == ("@@ -1 +1 @@", True, True)
    assert [(each.id, each.own) for each in found.remarks] == [
        ("thread-comment:8", False),
        ("thread-comment:9", True),
    ]


def test_comments_edited_by_others_name_the_editor() -> None:
    edited: dict[str, Any] = {"last_edited_at": START}
    reading = read(
        comments=listed(
            comment(1, "ann", editor=user("ann"), **edited),
            comment(2, "ann", editor=user("eve"), **edited),
            comment(3, "ann", editor=None, **edited),
            comment(4, "ann"),
        ),
        review_threads=listed(thread("T1", comment(5, "ann", editor=user("eve"), **edited))),
    )
    assert reading.edited_by == {"comment:2": "eve", "comment:3": "", "thread-comment:5": "eve"}


def states(found: tuple[Check, ...]) -> list[CheckState]:
    return [check.state for check in found]


# -- ignored checks, and checks of the base --------------------------------------------------------


def own(id: int, name: str, conclusion: str = "FAILURE") -> HeadCheck:
    """A check run of the bot's own App."""
    return run(
        id, name, conclusion, check_suite=CheckSuite(app=AppSlug(slug=SLUG), workflow_run=None)
    )


def test_the_bots_own_check_runs_are_left_out() -> None:
    entries = msgspec.structs.replace(status("ours", "FAILURE"), creator=bot(SLUG))
    theirs = msgspec.structs.replace(status("theirs", "SUCCESS"), creator=bot("ci"))
    reading = read(commits=checks(own(1, "mergewright"), entries, theirs, run(2, "unit")))
    assert [check.name for check in reading.pull.checks] == ["unit", "theirs"]


def test_a_required_check_run_of_the_bot_is_not_expected() -> None:
    needs = BranchProtection(requires_status_checks=True, required_status_check_contexts=(SLUG,))
    reading = read(commits=checks(own(1, SLUG)), base_ref=base(needs))
    assert reading.pull.checks == ()
