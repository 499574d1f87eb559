"""What a plugin measures of itself, for whoever scrapes the worker."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Measurement"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number: ``name``, in small letters, digits and underscores, is shown as ``sluice_plugin_name``.

    It is a counter if the name ends in ``_total``, else a gauge. ``labels`` tell one from others of the name; they are
    for names of things, such as a table, and never for data or secrets. ``help`` is a sentence for people.
    """

    name: str
    value: float
    help: str
    labels: tuple[tuple[str, str], ...] = ()
