"""What a run used so far, by model, with nothing counted twice."""

from lifecycle.model.facts import Usage

_NOTHING = Usage()


class UsageCounter:
    """Counts answers of models as they are written down, also again and again."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[str, Usage]] = {}
        self._models: dict[str, Usage] = {}
        self._total: Usage | None = _NOTHING  #: None: to be summed up again.

    def counts(self, answer: str, model: str, used: Usage) -> None:
        """What one answer used; a later word on it replaces the earlier one."""
        before = self._answers.get(answer)
        if before == (model, used):
            return
        if before is not None:
            self._add(*before, -1)
        self._answers[answer] = (model, used)
        self._add(model, used, 1)

    def usage(self) -> Usage:
        """All of it, and of each model where its name is known.

        It has a cost where every model has one.
        """
        if self._total is None:
            used = self._models.values()
            costs = [each.cost_usd for each in used if each.cost_usd is not None]
            self._total = Usage(
                input=sum(each.input for each in used),
                output=sum(each.output for each in used),
                cache_read=sum(each.cache_read for each in used),
                cache_write=sum(each.cache_write for each in used),
                reasoning=sum(each.reasoning for each in used),
                cost_usd=round(sum(costs), 6) if len(costs) == len(used) else None,
                models={name: each for name, each in self._models.items() if name},
            )
        return self._total

    def _add(self, model: str, used: Usage, times: int) -> None:
        before = self._models.get(model, _NOTHING)
        costs = [cost for cost in (before.cost_usd, used.cost_usd) if cost is not None]
        more = (used.cost_usd or 0.0) * times
        self._models[model] = Usage(
            input=before.input + used.input * times,
            output=before.output + used.output * times,
            cache_read=before.cache_read + used.cache_read * times,
            cache_write=before.cache_write + used.cache_write * times,
            reasoning=before.reasoning + used.reasoning * times,
            cost_usd=round((before.cost_usd or 0.0) + more, 6) if costs else None,
        )
        self._total = None
