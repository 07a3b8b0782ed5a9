"""Groups the commands in the output of `mergewright --help`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typer.core import TyperGroup

from bot.cli.fast_completion import CompletesFast, explain_as_plain_text

#: The commands of each group, in the order in which people usually need them.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Look": (
        *("ls", "top", "show", "why", "wait", "attach", "logs", "transcript", "usage", "queue"),
        *("agents", "health", "deliveries", "replay"),
    ),
    "Steer sessions": (
        *(
            "spawn",
            "chat",
            "pull-request",
            "start",
            "stop",
            "pause",
            "resume",
            "restart",
            "tell",
            "answer",
            "agent",
        ),
        *("review", "merge", "cancel", "update", "allow", "retry", "budget", "freeze", "unfreeze"),
        "meta",
    ),
    "Set up": ("init", "setup", "config", "doctor", "sandbox"),
    "Run the server": ("serve", "reload", "token", "notify", "backup", "restore", "cleanup"),
    "Use a server elsewhere": ("login", "logout", "whoami"),
}
_OTHERS: Final = "Others"


class Commands(CompletesFast, TyperGroup):
    """The commands of a group such as `mergewright token`."""


class GroupedCommands(Commands):
    """The commands of the program, listed by group."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        explain_as_plain_text()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group with the summaries of its commands in full."""
        for title, names in self._groups():
            commands = [(name, self.commands[name]) for name in names if name in self.commands]
            rows = [
                (name, (one.help or "").partition("\n")[0].removesuffix("."))
                for name, one in commands
                if not one.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _groups(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield from GROUPS.items()
        grouped = {name for names in GROUPS.values() for name in names}
        yield _OTHERS, tuple(name for name in self.commands if name not in grouped)
