"""`budget`: a person allows a session to cost more."""

import re

from bot.intake.commands.base import CommandSyntax, Unfit

_AMOUNT = re.compile(r"\+?\s?\$?([0-9]{1,5}(?:\.[0-9]{1,2})?)(?:\s?(?:usd|\$))?", re.IGNORECASE)


def amount(text: str) -> str:
    """`+5`, `+2.50` or `5 USD` as `+N`."""
    found = _AMOUNT.fullmatch(text)
    if not found or not float(found[1]):
        raise Unfit("needs an amount in US dollars, such as `+5`")
    return f"+{found[1]}"


BUDGET = CommandSyntax(
    name="budget",
    takes="+USD",
    asks="let the session cost so much more, and go on if that had paused it",
    read=amount,
)
