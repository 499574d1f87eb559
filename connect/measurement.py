"""Measurements that a plugin exports as metrics of its own."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Measurement"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number, exported as ``sluice_plugin_`` plus ``name``, which has lower case letters, digits and underscores.

    It is a counter if the name ends in ``_total``, otherwise a gauge. ``labels`` distinguish measurements of the same
    name; use them for names of things, such as tables, and never for data or secrets. ``help`` is a sentence that
    explains the number.
    """

    name: str
    value: float
    help: str
    labels: tuple[tuple[str, str], ...] = ()
