"""Marks drafts as ready for review once checks pass, and then requests reviews."""

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.judge.signals import Ci
from lifecycle.model import actions as do
from lifecycle.model import keys


def make_ready(judged: Judged) -> Wanted:
    """Mark the bot's draft as ready once checks pass; a later return to draft is left to people.

    Many workflows skip drafts, so a draft on which no check starts is made ready too.
    """
    view, pull = judged.view, judged.view.pull
    if pull is None or not view.policy.draft or not view.current:
        return
    wait = None
    if judged.signals.ci not in (Ci.PASSING, Ci.NONE):
        if not pull.checks_complete or pull.head_since is None:
            return
        if any(check.reported for check in pull.checks):
            return
        # Checks are expected and none has begun: they have some time for it.
        wait = view.wait(pull.head_since, view.policy.settle_seconds)
    yield wait or do.MakeReady(key=keys.make_ready(pull.number), number=pull.number)


def ask_reviewers(judged: Judged) -> Wanted:
    """Request the configured reviews once for each pull request, when checks pass.

    If GitHub refuses, people are warned, and nothing else changes.
    """
    pull, reviewers, facts = judged.view.pull, judged.view.policy.reviewers, judged.view.facts
    if pull is None or not reviewers:
        return
    key = keys.request_review(pull.number)
    yield do.RequestReview(key=key, number=pull.number, reviewers=reviewers)
    if refused := facts.failures.get(key):
        because = f"its reviewers ({', '.join(reviewers)}) could not be asked: {refused.detail}"
        values = {"session": facts.session, "because": because}
        notice = keys.warning(key)
        yield do.Comment(key=notice, number=pull.number, topic="warning", values=values)
