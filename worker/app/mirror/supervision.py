"""What the driver of a mirror does when the process of a flow has ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["End", "Restart", "after"]

_STEADY: Final = 60.0
"""After so many seconds a process that ends is the first of a new row."""

_LONGEST: Final = 30.0


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the flow again after ``seconds``; ``failures`` is how many of its processes have ended in a row."""

    seconds: float
    failures: int


@dataclass(frozen=True, slots=True)
class End:
    """End the driver with ``status``, and all other flows."""

    status: int


def after(*, refused: bool, ran: float, failures: int, could_not_start: int) -> Restart | End:
    """Decide what follows the end of a flow's process that nobody has asked for.

    A flow whose connectors are ``refused`` would be so again: its file has to be corrected, and the driver ends with
    ``could_not_start``. Any other, one that was killed or whose cluster does not answer, is started again, and the
    other flows go on meanwhile. It had run for ``ran`` seconds, and had failed so often before, each time at once.
    """
    if refused:
        return End(could_not_start)
    row = 1 if ran >= _STEADY else failures + 1
    return Restart(min(_LONGEST, 2.0 ** (row - 1)), row)
