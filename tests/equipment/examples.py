"""The number of examples for each property."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

__all__ = ["ALL", "MANY", "QUICK", "SUITE", "examples", "register_profiles"]

ALL = "sluice"
"""The default profile of a run."""

SUITE = "suite"
"""The profile of ``make test``: a fifth of the examples."""

QUICK = "quick"
"""The profile of ``make check``: a tenth of them."""

MANY = "many"
"""The profile of ``make properties``: ten times as many, and different ones each time."""

_USUAL = 100
"""The number of examples for a property that does not set one."""

_LEAST = 3


def register_profiles(*, derandomize: bool) -> None:
    """Register the profiles, and load the thorough one. A busy machine makes an example slow, which is no defect."""
    numbers = {ALL: _USUAL, SUITE: _USUAL // 5, QUICK: _USUAL // 10, MANY: _USUAL * 10}
    for name, number in numbers.items():
        again = derandomize and name != MANY
        slow = (HealthCheck.too_slow,)
        settings.register_profile(
            name, deadline=None, derandomize=again, max_examples=number, suppress_health_check=slow
        )
    settings.load_profile(ALL)


def examples(number: int) -> int:
    """The ``max_examples`` of a property that has ``number`` examples in a thorough run."""
    return max(_LEAST, number * settings().max_examples // _USUAL)
