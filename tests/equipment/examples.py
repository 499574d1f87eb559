"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["ALL", "MANY", "QUICK", "SUITE", "examples", "register_profiles"]

ALL = "sluice"
"""The profile that a run has unless it asks for another."""

SUITE = "suite"
"""The profile of ``make test``: two fifths of the examples."""

QUICK = "quick"
"""The profile of ``make check``: a tenth of them."""

MANY = "many"
"""The profile of ``make properties``: ten times as many, and other ones each time."""

_USUAL = 100
"""What a property is tried with that does not say otherwise."""

_LEAST = 3


def register_profiles(*, derandomize: bool) -> None:
    """Register the profiles, and load the thorough one. A busy machine makes an example slow, which is no defect."""
    numbers = {ALL: _USUAL, SUITE: _USUAL * 2 // 5, QUICK: _USUAL // 10, MANY: _USUAL * 10}
    for name, number in numbers.items():
        again = derandomize and name != MANY
        settings.register_profile(name, deadline=None, derandomize=again, max_examples=number)
    settings.load_profile(ALL)


def examples(number: int) -> int:
    """The ``max_examples`` of a property that all of ``number`` are tried with in a thorough run."""
    return max(_LEAST, number * settings().max_examples // _USUAL)
