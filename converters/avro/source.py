"""Python source that is written for one schema and compiled into a function.

The words of a schema never become code: names of fields stand in it as quoted literals, everything else is passed as
objects under names made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["DEEPEST", "Source", "choose"]

DEEPEST: Final = 12
"""The depth of blocks in one function: Python allows 20 loops and 100 indentations."""
_FEW: Final = 8
"""How many numbers are compared one after the other."""


class Source:
    """The lines of a module that is being written, and the objects to which its code refers."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names: dict[str, Any] = dict(names)
        self._finished: list[str] = []
        self._lines: list[str] = []
        self._indent = 0
        self._serial = 0

    def know(self, names: Mapping[str, object]) -> None:
        """Add objects to which the code refers."""
        self._names |= names

    @property
    def depth(self) -> int:
        """How many blocks are open in the current function."""
        return self._indent

    def new(self, stem: str) -> str:
        """A name that is not in use yet."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def constant(self, value: object) -> str:
        """The name by which the code refers to an object."""
        name = self.new("K")
        self._names[name] = value
        return name

    def line(self, text: str) -> None:
        """Add a line in the current block."""
        self._lines.append(f"{'    ' * self._indent}{text}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add the lines of a compound statement."""
        self.line(f"{head}:")
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Add a separate function, whatever is being written."""
        lines, indent = self._lines, self._indent
        self._lines, self._indent = [], 0
        try:
            with self.block(f"def {head}"):
                yield
            self._finished += self._lines
        finally:
            self._lines, self._indent = lines, indent

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Add all lines of the block or, if it raises, none."""
        lines, written = self._lines, len(self._lines)
        try:
            yield
        except BaseException:
            del lines[written:]
            raise

    def slot(self) -> Callable[[str], None]:
        """Leave room for a line in the current block; what is returned fills it."""
        lines, place, indent = self._lines, len(self._lines), self._indent
        lines.append("")

        def fill(text: str) -> None:
            lines[place] = f"{'    ' * indent}{text}"

        return fill

    def compiled(self, name: str) -> Callable[..., Any]:
        """The function of that name."""
        code = compile("\n".join(self._finished), f"<{name} of an Avro schema>", "exec")
        exec(code, self._names)  # noqa: S102 - words of a schema stand in it as literals only, see above
        made: Callable[..., Any] = self._names[name]
        return made


def choose(
    source: Source, variable: str, numbers: Sequence[int], write: Callable[[int], None], otherwise: Callable[[], None]
) -> None:
    """Add code that does one of several things by a number; where there are many it compares only few of them."""
    if len(numbers) > _FEW:
        middle = len(numbers) // 2
        with source.block(f"if {variable} < {numbers[middle]}"):
            choose(source, variable, numbers[:middle], write, otherwise)
        with source.block("else"):
            choose(source, variable, numbers[middle:], write, otherwise)
        return
    for place, number in enumerate(numbers):
        with source.block(f"{'el' if place else ''}if {variable} == {number}"):
            write(number)
    with source.block("else" if numbers else "if True"):
        otherwise()
