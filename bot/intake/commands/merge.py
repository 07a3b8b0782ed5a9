"""`merge`: a person decides that the pull request lands."""

from difflib import get_close_matches

from bot.intake.commands.base import CommandSyntax, Unfit
from lifecycle.model.policy import MergeMethod

_METHODS = [method.value for method in MergeMethod]


def method(text: str) -> str:
    """The way to merge; empty: as the configuration says."""
    if not text or text.lower() in _METHODS:
        return text.lower()
    near = get_close_matches(text.lower()[:20], _METHODS, n=1)
    meant = f" (did you mean `{near[0]}`?)" if near else ""
    raise Unfit(f"takes nothing or one of {', '.join(_METHODS)} after it{meant}")


MERGE = CommandSyntax(
    name="merge",
    takes="[METHOD]",
    asks="merge the pull request as it stands now, as soon as nothing stands in the way; "
    f"the method is one of {', '.join(_METHODS)}",
    read=method,
)
