"""What models were used for, summed up as people ask for it."""

from collections.abc import Mapping
from typing import Final

from bot.store.base import Base
from bot.store.values import Used

#: What it may be summed up by: how each is called, and in which order they come.
GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "session": ("usage.session", "min(created) DESC"),
    "run": ("usage.session || '_r' || usage.run", "min(created) DESC, usage.run"),
    "agent": ("agent_name", "1"),
    "issue": ("usage.repository || '#' || number", "min(created) DESC"),
    "repository": ("usage.repository", "1"),
    "day": ("day", "1 DESC"),
}
_SUMS = """SELECT {name} AS name, count(DISTINCT usage.session) AS sessions,
        sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read,
        sum(cache_write) AS cache_write, sum(reasoning) AS reasoning, sum(unpriced) AS unpriced,
        sum(cost_usd) AS cost_usd, sum(active_seconds) AS active_seconds
    FROM usage JOIN sessions ON sessions.id = usage.session
    WHERE ?1 = '' OR usage.session = ?1 GROUP BY 1 ORDER BY {order}"""


class Spent(Base):
    """Sums over everything that is remembered."""

    def used(self, by: str, session: str = "") -> list[Used]:
        """What was used, by one of GROUPS; of one session or, without a name, of all."""
        name, order = GROUPS[by]
        with self._read() as connection:
            rows = connection.execute(_SUMS.format(name=name, order=order), (session,)).fetchall()
        return [Used(**dict(row)) for row in rows]
