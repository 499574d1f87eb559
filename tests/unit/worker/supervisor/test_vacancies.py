"""Half empty hosts are left, seldom, and only where there is room for their units."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from equipment.examples import examples
from worker.supervisor.hosts.placement import ROOM, Group, Vacancies, place_for, placed
from worker.unit import Unit

AUTO = Group("auto")
WAIT = 300.0
COMFORTABLE = 40


@dataclass
class House:
    number: int
    group: Group
    units: set[Unit] = field(default_factory=set)
    condemned: bool = False


def house(number: int, units: int, group: Group = AUTO, *, condemned: bool = False) -> House:
    return House(number, group, {Unit(f"{number}-{unit}") for unit in range(units)}, condemned)


def closing(hosts: list[House], *times: float) -> list[int]:
    """The numbers of those to be left, after a look at each of these times."""
    vacancies = Vacancies()
    for now in times:
        vacancies.look(hosts, now)
    return [each.number for each in hosts if vacancies.is_closing(each.number)]


def test_the_emptiest_is_left_once_there_has_been_room_elsewhere_for_a_while() -> None:
    hosts = [house(0, 30), house(1, 4), house(2, 20)]
    vacancies = Vacancies()
    assert not vacancies.look(hosts, 100.0)
    assert vacancies.next_look() == 100.0 + WAIT
    assert closing(hosts, 100.0, 399.0) == []
    assert closing(hosts, 100.0, 400.0) == [1]


def test_nobody_is_left_where_the_others_would_be_full_or_are_of_another_kind() -> None:
    assert closing([house(0, COMFORTABLE), house(1, 1)], 0.0, WAIT) == []
    assert closing([house(0, COMFORTABLE - 1), house(1, 1)], 0.0, WAIT) == [1]
    assert closing([house(0, 3), house(1, 1, Group("shared"))], 0.0, WAIT) == []
    assert closing([house(0, 3), house(1, 1, Group("auto", home="/elsewhere"))], 0.0, WAIT) == []
    assert closing([house(0, 1, Group("connector", "a")), house(1, 1, Group("connector", "a"))], 0.0, WAIT) == []
    assert closing([house(0, 3), house(1, 1, condemned=True)], 0.0, WAIT) == []


def test_who_fills_the_others_meanwhile_has_it_stay_as_it_is() -> None:
    hosts = [house(0, 30), house(1, 4)]
    vacancies = Vacancies()
    vacancies.look(hosts, 0.0)
    hosts[0].units |= house(2, 7).units
    vacancies.look(hosts, 200.0)
    hosts[0].units -= house(2, 7).units
    vacancies.look(hosts, 400.0)
    assert not vacancies.is_closing(1), "the time begins anew"
    vacancies.look(hosts, 700.0)
    assert vacancies.is_closing(1)
    hosts[0].units |= house(2, 17).units
    assert vacancies.look(hosts, 701.0)
    assert not vacancies.is_closing(1), "there is no room for all of its units any more"


STEPS = st.lists(st.tuples(st.floats(0, 400), st.integers(0, 150)), max_size=25)


@given(STEPS)
@settings(max_examples=examples(100), deadline=None)
def test_whoever_comes_and_goes_a_merge_is_seldom_and_there_is_an_end_to_it(steps: list[tuple[float, int]]) -> None:
    """A population that grows and shrinks as it likes: each host that is left was one too many for five minutes."""
    vacancies, hosts, now, unused = Vacancies(), dict[int, House](), 0.0, 0
    merges: list[float] = []
    for seconds, population in [*steps, *[(WAIT, -1)] * 12]:
        now += seconds
        lives = {unit for each in hosts.values() for unit in each.units}
        if population >= 0:
            wanted = {Unit(f"u{number}") for number in range(population)}
            for each in hosts.values():
                each.units &= wanted
            for unit in sorted(wanted - lives):
                open_hosts = [each for each in hosts.values() if not vacancies.is_closing(each.number)]
                number = place_for(unit, AUTO, open_hosts)
                if number is None:
                    number, unused = unused, unused + 1
                hosts.setdefault(number, House(number, AUTO)).units.add(unit)
            lives = wanted
        hosts = {number: each for number, each in hosts.items() if each.units}
        before = {number for number in hosts if vacancies.is_closing(number)}
        vacancies.look(hosts.values(), now)
        left = {number for number in hosts if vacancies.is_closing(number)}
        merges += [now] * bool(left - before)
        places = placed(
            dict.fromkeys(lives, AUTO), [each for number, each in hosts.items() if number not in left], unused
        )
        assert all(number < unused for number in places.values()), "a merge opens no host"
        for each in hosts.values():
            each.units = {unit for unit, number in places.items() if number == each.number}
            assert len(each.units) <= ROOM
        hosts = {number: each for number, each in hosts.items() if each.units}
    assert all(later - earlier >= WAIT for earlier, later in pairwise(merges))
    fewest = -(-len({unit for each in hosts.values() for unit in each.units}) // COMFORTABLE)
    assert len(hosts) <= fewest, "in the end there is no host too many"
