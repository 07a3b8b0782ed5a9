"""How long to wait before the next try."""


def delay(tries: int, first: float, most: float = 300.0) -> float:
    """Seconds to wait after `tries` failures: `first`, doubled each time, never above `most`."""
    return min(most, first * 2.0 ** max(0, min(tries, 32) - 1))
