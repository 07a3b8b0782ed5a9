"""Completes command lines in shells without the slow libraries that Typer uses for it.

Typer checks each parameter with Pydantic, and renders the explanation of each choice with Rich. At
each press of Tab, importing these two takes longer than the rest of the completion.
"""

from collections.abc import Mapping
from typing import Any, Final

from typer._click.core import Command
from typer._click.shell_completion import CompletionItem, ShellComplete, add_completion_class
from typer._coercion import RuntimeParam
from typer._completion_classes import FishComplete, ZshComplete
from typer.core import _TyperParameter

#: What separates a choice from its explanation, by shell.
_SEPARATORS: Final[Mapping[type[FishComplete | ZshComplete], str]] = {
    FishComplete: "\t",
    ZshComplete: ":",
}


class _AsTyped(RuntimeParam):
    """Leaves the value of a parameter as it was typed."""

    def _coerce_value(self, value: Any, **_: Any) -> Any:  # type: ignore[override]
        return value


class CompletesFast(Command):
    """A command whose parameters are not checked while its line is completed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line, or during a completion the part that has been typed."""
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        parameters = [one for one in self.get_params(ctx) if isinstance(one, _TyperParameter)]
        for one in parameters:
            descriptor = one.type_descriptor
            one._runtime_param = _AsTyped(descriptor.parameter_info, descriptor.annotation)
        try:
            return super().parse_args(ctx, args)
        finally:
            for one in parameters:
                one._runtime_param = None  # Typer makes it when a command line is run.


def explain_as_plain_text() -> None:
    """Have completions in fish and zsh show explanations as they are, without using Rich.

    Typer uses Rich to remove markup, which these explanations do not have. Call this after Typer
    has registered its own completions.
    """
    for shell, separator in _SEPARATORS.items():
        add_completion_class(_plain(shell, separator), shell.name)


def _plain(shell: type[FishComplete | ZshComplete], separator: str) -> type[ShellComplete]:
    class Plain(shell):  # type: ignore[valid-type,misc]
        def format_completion(self, item: CompletionItem) -> str:
            texts = filter(None, (item.value, item.help))
            one_line = (CompletionItem(" ".join(text.split())) for text in texts)
            return separator.join(map(super().format_completion, one_line))

    return Plain
