"""What a run used is summed up by model, once."""

from lifecycle.model.facts import Usage
from runtimes.agents.shared.usage import UsageCounter


def test_what_no_model_is_named_for_counts_in_the_whole_alone() -> None:
    tally = UsageCounter()
    tally.count("first", "", Usage(input=1))
    tally.count("second", "gpt", Usage(input=2))
    assert tally.usage() == Usage(input=3, models={"gpt": Usage(input=2)})


def test_a_later_word_on_an_answer_replaces_the_earlier_one() -> None:
    tally = UsageCounter()
    tally.count("first", "gpt", Usage(input=1, cost_usd=0.5))
    tally.count("first", "gpt", Usage(input=2, output=1, cost_usd=0.75))
    used = Usage(input=2, output=1, cost_usd=0.75)
    assert tally.usage() == Usage(input=2, output=1, cost_usd=0.75, models={"gpt": used})
