"""Who lives where: whatever starts, stops, dies and is suspected, nobody moves without need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from equipment.examples import examples
from worker.supervisor.hosts.placement import ROOM, Group, Isolation, group_of, place_for, placed
from worker.unit import Unit

UNITS = st.builds(Unit, st.sampled_from("abcdefg"), st.integers(-1, 12))
WISHES = st.dictionaries(UNITS, st.tuples(st.sampled_from(Isolation), st.booleans()), max_size=80)


@dataclass(frozen=True)
class House:
    number: int
    group: Group
    units: Collection[Unit]
    condemned: bool = False


def groups_of(wishes: dict[Unit, tuple[Isolation, bool]]) -> dict[Unit, Group]:
    return {unit: group_of(unit, isolation, alone=alone) for unit, (isolation, alone) in wishes.items()}


def houses(groups: dict[Unit, Group], places: dict[Unit, int]) -> list[House]:
    units: dict[int, set[Unit]] = {}
    for unit, number in places.items():
        units.setdefault(number, set()).add(unit)
    return [House(number, groups[next(iter(there))], there) for number, there in units.items()]


@given(WISHES, WISHES, st.sets(st.integers(0, 20)))
@settings(max_examples=examples(200), deadline=None)
def test_a_unit_moves_only_if_it_must_and_never_to_others_than_its_own(
    before: dict[Unit, tuple[Isolation, bool]], after: dict[Unit, tuple[Isolation, bool]], condemned: set[int]
) -> None:
    first = groups_of(before)
    there = [
        House(house.number, house.group, house.units, house.number in condemned)
        for house in houses(first, placed(first, [], 0))
    ]
    was = {unit: house for house in there for unit in house.units}
    groups = groups_of(after)
    places = placed(groups, there, 1000)

    assert places.keys() == groups.keys()
    for house in houses(groups, places):
        assert len({groups[unit] for unit in house.units}) == 1
        if house.group.is_crowd:
            assert max(Counter(unit.is_task for unit in house.units).values()) <= ROOM
        elif house.group.kind == "process":
            assert len(house.units) == 1
        else:
            assert {unit.connector for unit in house.units} == {house.group.member}
    for unit, number in places.items():
        may_stay = unit in was and was[unit].group == groups[unit] and not was[unit].condemned
        assert (number == was[unit].number) if may_stay else (unit not in was or number != was[unit].number)
    settled = houses(groups, places)
    assert placed(groups, settled, 2000) == places, "once all have moved nobody moves again"


def test_one_more_goes_to_the_fullest_host_that_has_room() -> None:
    shared = Group("shared")

    def house(number: int, units: int, *, condemned: bool = False) -> House:
        return House(number, shared, [Unit(f"{number}-{unit}") for unit in range(units)], condemned)

    one = Unit("one")
    assert place_for(one, shared, [house(0, 3), house(1, 7), house(2, ROOM), house(3, 9, condemned=True)]) == 1
    assert place_for(one, shared, [house(2, ROOM)]) is None
    assert place_for(Unit("one", 0), shared, [house(1, 7), house(2, ROOM)]) == 2, "connectors take no room from tasks"
    assert place_for(one, Group("connector", "a"), [house(0, 3)]) is None


def test_units_whose_plugins_are_elsewhere_do_not_share() -> None:
    homes = {Unit("a"): "", Unit("b"): "/plugins/b", Unit("c"): "/plugins/b", Unit("d"): "/d/.venv/bin/python"}
    groups = {unit: group_of(unit, Isolation.SHARED, alone=False, home=home) for unit, home in homes.items()}
    places = placed(groups, [], 0)
    assert places[Unit("b")] == places[Unit("c")]
    assert len(set(places.values())) == 3
    alone = {group_of(Unit("a"), Isolation.PROCESS, alone=False, home=home) for home in homes.values()}
    assert len(alone) == 1
