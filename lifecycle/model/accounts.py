"""Who acts: logins of people and bots on GitHub, and visitors of this server."""

from typing import Final

#: The account type of bots at GitHub; that of people is `User`.
BOT: Final = "Bot"
_SUFFIX: Final = "[bot]"
#: Bots that GitHub names differently by REST (`Copilot`) and by GraphQL.
_ALIASES: Final = {
    "copilot-pull-request-reviewer": "copilot",
    "copilot-swe-agent": "copilot",
}


def is_local(actor: str) -> bool:
    """Whether an actor is a user of the CLI (`cli:ann`), or of a page or the API without a login.

    No login has a colon.
    """
    return ":" in actor


def bot_login(login: str) -> str:
    """Return a bot's login with `[bot]`, which GraphQL always omits, and REST omits for Copilot."""
    return login if is_bot(login) else f"{login}{_SUFFIX}"


def is_bot(login: str) -> bool:
    """Whether a login is written as a bot's: with the suffix `[bot]`, which no person's has."""
    return login.endswith(_SUFFIX)


def bot_name(login: str) -> str:
    """Return a bot's name for comparisons, the same for all of GitHub's spellings of its login."""
    name = login.casefold().removesuffix(_SUFFIX)
    return _ALIASES.get(name, name)
