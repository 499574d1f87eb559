"""Generation of Python source that is specific to one schema, and its compilation into a function.

No text of a schema ever becomes code: field names appear as quoted literals, and everything else is passed in as an
object under a generated name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["DEEPEST", "Source", "choose"]

DEEPEST: Final = 12
"""The maximum block depth in one function. Python allows 20 nested loops and 100 levels of indentation."""
_FEW: Final = 8
"""The number of alternatives that are compared one after another."""


class Source:
    """The lines of a module under construction, and the objects that its code refers to."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names: dict[str, Any] = dict(names)
        self._finished: list[str] = []
        self._lines: list[str] = []
        self._indent = 0
        self._serial = 0

    def know(self, names: Mapping[str, object]) -> None:
        """Register objects that the code refers to."""
        self._names |= names

    @property
    def depth(self) -> int:
        """The number of blocks that are open in the current function."""
        return self._indent

    def new(self, stem: str) -> str:
        """Return a name that is not in use yet."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def constant(self, value: object) -> str:
        """Return the name by which the code refers to an object."""
        name = self.new("K")
        self._names[name] = value
        return name

    def line(self, text: str) -> None:
        """Append a line to the current block."""
        self._lines.append(f"{'    ' * self._indent}{text}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Open a compound statement; lines added meanwhile form its body."""
        self.line(f"{head}:")
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Open a separate function, independent of the block being written."""
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
        """Keep the lines that are added in this context, or none of them if it raises."""
        lines, written = self._lines, len(self._lines)
        try:
            yield
        except BaseException:
            del lines[written:]
            raise

    def slot(self) -> Callable[[str], None]:
        """Reserve a line in the current block. The returned function fills it."""
        lines, place, indent = self._lines, len(self._lines), self._indent
        lines.append("")

        def fill(text: str) -> None:
            lines[place] = f"{'    ' * indent}{text}"

        return fill

    def compiled(self, name: str) -> Callable[..., Any]:
        """Compile the source and return the function of that name."""
        code = compile("\n".join(self._finished), f"<{name} of an Avro schema>", "exec")
        exec(code, self._names)  # noqa: S102 - words of a schema stand in it as literals only, see above
        made: Callable[..., Any] = self._names[name]
        return made


def choose(
    source: Source, variable: str, numbers: Sequence[int], write: Callable[[int], None], otherwise: Callable[[], None]
) -> None:
    """Emit code that picks one of several actions by number. Many alternatives are searched in few comparisons."""
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
