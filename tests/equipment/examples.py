"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["ALL", "QUICK", "examples", "register_profiles"]

ALL = "sluice"
"""The profile that a run has unless it asks for another."""

QUICK = "quick"
"""The profile of ``make check``: a tenth of the examples."""

_USUAL = 100
"""What a property is tried with that does not say otherwise."""

_LEAST = 3


def register_profiles(*, derandomize: bool) -> None:
    """Register both profiles, and load the thorough one. A busy machine makes an example slow, which is no defect."""
    settings.register_profile(ALL, deadline=None, derandomize=derandomize, max_examples=_USUAL)
    settings.register_profile(QUICK, deadline=None, derandomize=derandomize, max_examples=_USUAL // 10)
    settings.load_profile(ALL)


def examples(number: int) -> int:
    """The ``max_examples`` of a property that all of ``number`` are tried with in a thorough run."""
    return max(_LEAST, number * settings().max_examples // _USUAL)
