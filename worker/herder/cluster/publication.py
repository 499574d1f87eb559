"""Publications of task configs, numbered so that the leader knows the newest, whatever way they take.

A worker sends one publication of a connector after the other, but one that it has given up may still be on its way: in
the leader's queue, at another worker that passes it on, or with a worker whose connector runs elsewhere by now. So the
sender numbers them, in a header beside the body that Kafka Connect knows: Java's workers neither send nor read it.

Within a generation of the group a connector has one owner, and a new leader begins a new generation. So what the leader
has to remember ends with the generation, and a leader that is killed takes nothing with it that the next one needs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from worker.errors import BadRequestError, RebalanceInProgressError

__all__ = ["PUBLICATION_HEADER", "Publication", "Publications"]

PUBLICATION_HEADER: Final = "X-Sluice-Publication"
"""The header that carries :meth:`Publication.text`."""

_TEXT: Final = re.compile(r"(\d{1,10}) ([0-9a-f]{1,32}) (\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Publication:
    """The number of a publication, with the generation and the process of its sender."""

    generation: int
    process: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Publication:
        """Parse what :meth:`text` gave; :class:`~worker.errors.BadRequestError` for anything else."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise BadRequestError(
                f"{PUBLICATION_HEADER} has to be a generation, a process and a number with spaces between them; only "
                "workers are to send it."
            )
        return cls(int(found[1]), found[2], int(found[3]))

    def text(self) -> str:
        """The value of the header."""
        return f"{self.generation} {self.process} {self.number}"


@dataclass(slots=True)
class _Taken:
    generation: int
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def last_process(self) -> str | None:
        return next(reversed(self.numbers), None)


class Publications:
    """The publications that the leader has taken, by connector. The herder's thread alone."""

    def __init__(self) -> None:
        self._taken: dict[str, _Taken] = {}

    def take(self, connector: str, publication: Publication, generation: int) -> None:
        """Remember a publication in this generation, and let no older one come after it.

        Raises :class:`~worker.errors.RebalanceInProgressError` for one of another generation, whose sender may not run
        the connector any more, and for one that was overtaken.
        """
        if publication.generation != generation:
            raise RebalanceInProgressError(
                f"The task configs of connector {connector} are of generation {publication.generation} of the cluster, "
                f"and this is generation {generation}; whoever runs the connector now says what it wants."
            )
        taken = self._taken.get(connector)
        if taken is None or taken.generation != generation:
            taken = self._taken[connector] = _Taken(generation)
        if _is_overtaken(publication, taken):
            raise RebalanceInProgressError(f"Newer task configs of connector {connector} have come before these.")
        taken.numbers[publication.process] = publication.number

    def forget(self, connector: str) -> None:
        """Forget a connector that was deleted."""
        self._taken.pop(connector, None)


def _is_overtaken(publication: Publication, taken: _Taken) -> bool:
    # A static member that was restarted keeps its generation; what its former process sent is older.
    number = taken.numbers.get(publication.process)
    return number is not None and (publication.process != taken.last_process or publication.number <= number)
