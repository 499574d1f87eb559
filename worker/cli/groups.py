"""How groups of commands show themselves: under headings, each with its whole first sentence, and with suggestions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar

import click

__all__ = ["CommandGroup"]

_WHOLE = 500
"""More letters than a first sentence has."""


class CommandGroup(click.Group):
    """A group of commands. ``headings`` are the commands below each heading; others come last."""

    headings: ClassVar[Mapping[str, Sequence[str]]] = {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is meant; for one that does not exist, name what resembles it."""
        wanted = args[0] if args else ""
        if wanted and not wanted.startswith("-") and self.get_command(ctx, wanted) is None:
            raise click.UsageError(_unknown(wanted, self.list_commands(ctx), ctx.command_path), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below their headings."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        commands = {name: command for name, command in found if command is not None and not command.hidden}
        named = [name for names in self.headings.values() for name in names]
        rest = [name for name in commands if name not in named]
        for heading, names in {**self.headings, "Commands": rest}.items():
            rows = [(name, commands[name].get_short_help_str(_WHOLE)) for name in names if name in commands]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def group(self, *args: Any, **kwargs: Any) -> Any:
        """Make groups below this one of the same kind."""
        return super().group(*args, **{"cls": CommandGroup, **kwargs})


def _unknown(wanted: str, known: Sequence[str], path: str) -> str:
    close = get_close_matches(wanted, known, n=2)
    if close:
        meant = " or ".join(f"`{path} {name}`" for name in close)
        return f"There is no command {wanted!r}. Did you mean {meant}?"
    return f"There is no command {wanted!r}. There are {', '.join(known)}."
