"""A unit that keeps a core busy is found soon, and moves seldom however it goes on."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from equipment.examples import examples
from worker.supervisor.hosts.load import Load
from worker.unit import Unit

A, B, C, D = (Unit(name) for name in "abcd")
REST = 600.0


class World:
    """Units that say every second what they have done."""

    def __init__(self, *units: Unit) -> None:
        self.load = Load()
        self.units = units
        self.now = 0.0
        self.totals = dict.fromkeys(units, 0.0)
        self.moves: list[tuple[float, Unit]] = []

    def together(self) -> list[Unit]:
        return [unit for unit in self.units if not self.load.is_alone(unit)]

    def run(self, seconds: float, step: float = 1.0, **shares: float) -> None:
        """Let them take these shares of a core for so long."""
        for _ in range(int(seconds / step)):
            self.now += step
            for unit in self.units:
                self.totals[unit] += step * shares.get(unit.connector, 0.0)
                mates = [unit] if self.load.is_alone(unit) else self.together()
                if self.load.spent(unit, self.totals[unit], mates, self.now):
                    self.moves.append((self.now, unit))
                    self.load.begin(unit)
                    self.totals[unit] = 0.0


def test_one_that_takes_a_core_leaves_within_five_seconds() -> None:
    world = World(A, B)
    world.run(60, a=0.02, b=0.02)
    assert world.moves == []
    world.run(5, a=1.0, b=0.02)
    assert [unit for _, unit in world.moves] == [A]
    world.run(300, a=1.0, b=0.02)
    assert world.together() == [B]
    assert len(world.moves) == 1


def test_a_burst_moves_nobody() -> None:
    world = World(A, B)
    for _ in range(20):
        world.run(2, a=1.0, b=0.1)
        world.run(28)
    assert world.moves == []


def test_where_many_take_a_little_the_busiest_leaves_until_there_is_room() -> None:
    world = World(A, B, C, D)
    world.run(300, a=0.15, b=0.18, c=0.15, d=0.15)
    assert [unit for _, unit in world.moves] == [B]
    assert world.together() == [A, C, D]
    resting = World(*(Unit(f"u{number}") for number in range(50)))
    resting.run(120, **{f"u{number}": 0.03 for number in range(50)})
    assert resting.moves == [], "nobody there keeps the others from anything"


def test_what_took_much_to_start_is_not_busy() -> None:
    world = World(A, B)
    world.totals[A] = 8.0
    world.run(60, a=0.02)
    assert world.moves == []


def test_it_comes_back_after_it_has_rested_and_the_next_time_has_to_rest_longer() -> None:
    world = World(A, B)
    rests = []
    for _ in range(3):
        world.run(10, a=1.0)
        assert world.together() == [B]
        begun = world.now
        while not world.load.is_alone(B) and world.load.is_alone(A):
            world.run(5, step=5.0)
        rests.append(round((world.now - begun) / REST))
    assert rests == [1, 4, 16]


def test_one_that_works_now_and_then_does_not_rest() -> None:
    world = World(A, B)
    world.run(10, a=1.0)
    for _ in range(100):
        world.run(3, a=1.0)
        world.run(297, step=3.0)
    assert len(world.moves) == 1


def test_one_that_has_always_lived_alone_rests_after_a_minute_and_work_begins_that_anew() -> None:
    load = Load()
    load.begin(A)
    totals = [(0.0, 0.0), (20.0, 0.1), (59.0, 0.2), (60.0, 0.2), (62.0, 2.2), (121.0, 2.2), (122.0, 2.2)]
    assert [load.rests(A, total, now) for now, total in totals] == [False] * 3 + [True] + [False] * 2 + [True]
    assert not load.is_alone(A)


def test_a_unit_with_another_configuration_is_another_one() -> None:
    world = World(A, B)
    world.run(10, a=1.0)
    world.load.forget(A)
    assert world.together() == [A, B]


@given(st.lists(st.tuples(st.floats(1, 5000), st.floats(0, 1), st.floats(0, 1)), max_size=60))
@settings(max_examples=examples(100), deadline=None)
def test_nobody_goes_back_and_forth(phases: Iterable[tuple[float, float, float]]) -> None:
    """Whatever units do, in any time T a unit moves out at most 1 + log4(1 + 3 * T / 600) times."""
    world = World(A, B)
    for seconds, a, b in phases:
        world.run(seconds, step=max(1.0, seconds / 50), a=a, b=b)
    for unit in (A, B):
        moves = [at for at, moved in world.moves if moved == unit]
        least = 0.0
        for times, (out, back) in enumerate(zip(moves[::2], moves[1::2], strict=False)):
            least += REST * 4**times
            assert back - out >= REST * 4**times
        assert world.now >= least
