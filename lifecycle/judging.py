"""One judgement: the status of facts, with its evidence."""

from datetime import datetime

from lifecycle.blockers import blockers_for, in_the_way
from lifecycle.evidence import sentence
from lifecycle.facts import Facts
from lifecycle.lives import this_life
from lifecycle.messages import Judged
from lifecycle.policy import Policy
from lifecycle.reading import foremost, read
from lifecycle.rules import rule_for
from lifecycle.signals import Signals
from lifecycle.view import View


def judge(facts: Facts, policy: Policy, now: datetime) -> Judged:
    """Read the status off `facts`, with all that reactions and answers need."""
    view = foremost(View(this_life(facts), policy, now))
    signals, evidence = read(view)
    rule = rule_for(signals)
    return Judged(
        view,
        signals,
        rule.status,
        rule.reason or evidence.reason,
        sentence(rule.because, view, why=evidence.why, blockers=in_the_way(signals)),
        evidence.cause,
        blocking(signals, view),
    )


def blocking(signals: Signals, view: View) -> tuple[str, ...]:
    """All that stands between a view's pull request and its merge, as `name: sentence`."""
    return tuple([f"{row.name}: {sentence(row.sentence, view)}" for row in blockers_for(signals)])
