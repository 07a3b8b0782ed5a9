"""From a draft to people: made ready once it is green, and only then shown to reviewers."""

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.judge.signals import Ci
from lifecycle.model import actions as do
from lifecycle.model import keys


def make_ready(judged: Judged) -> Wanted:
    """What was opened as a draft is one until it is green, once: later it is people's to say.

    Many workflows pass drafts over, so that one on which no check begins is made ready too.
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
    """Reviewers are asked when there is something to review, once a pull request.

    Where GitHub refuses them, people are told: nothing else goes another way for it.
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
