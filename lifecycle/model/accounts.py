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
    """Whether a command came from the CLI (`cli:ann`), a page or the API. No login has a colon."""
    return ":" in actor


def bot_login(login: str) -> str:
    """Return a bot's login with `[bot]`, which GraphQL always omits, and REST omits for Copilot."""
    return login if is_bot(login) else f"{login}{_SUFFIX}"


def is_bot(login: str) -> bool:
    """Whether a login is that of a bot. A person's login cannot have the suffix `[bot]`."""
    return login.endswith(_SUFFIX)


def bot_name(login: str) -> str:
    """Return a bot's name for comparisons, the same for all of GitHub's spellings of its login."""
    name = login.casefold().removesuffix(_SUFFIX)
    return _ALIASES.get(name, name)
