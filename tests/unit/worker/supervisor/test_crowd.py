"""Few units have a process each; of many, those that rest share, and nobody goes back and forth."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from worker.supervisor.hosts.placement import FEW, Crowd
from worker.unit import Unit

CONNECTORS = [Unit(f"c{number:02}") for number in range(FEW + 4)]
TASKS = [Unit("c", number) for number in range(FEW + 4)]


def crowd_of(units: Iterable[Unit]) -> Crowd:
    crowd = Crowd()
    for unit in units:
        crowd.comes(unit)
    return crowd


def alone(crowd: Crowd) -> list[Unit]:
    return [unit for unit in [*CONNECTORS, *TASKS] if crowd.is_alone(unit)]


def test_tasks_and_connectors_are_counted_each_for_themselves() -> None:
    crowd = crowd_of([*CONNECTORS[:FEW], *TASKS[:FEW]])
    assert alone(crowd) == [*CONNECTORS[:FEW], *TASKS[:FEW]]
    assert not crowd.is_many(CONNECTORS[0])
    assert crowd.comes(CONNECTORS[FEW]), "the other connectors are to move"
    assert alone(crowd) == TASKS[:FEW]
    assert not crowd.comes(TASKS[FEW]), "those that move data have to rest first"
    assert alone(crowd) == TASKS[:FEW]
    assert crowd.is_many(TASKS[0])


def test_a_task_that_has_joined_stays_with_the_others_and_one_that_begins_again_is_counted_once() -> None:
    crowd = crowd_of(TASKS[: FEW + 1])
    crowd.joins(TASKS[0])
    crowd.comes(TASKS[0])
    assert not crowd.is_alone(TASKS[0])
    crowd.goes(TASKS[1])
    assert not crowd.is_many(TASKS[0])
    assert not crowd.is_alone(TASKS[0]), "there are few again, for which nobody moves"
    crowd.comes(TASKS[1])
    assert not crowd.is_alone(TASKS[1])
    for unit in TASKS[2:4]:
        crowd.goes(unit)
    crowd.comes(TASKS[0])
    assert crowd.is_alone(TASKS[0]), "who begins when there are few has a process"


@given(st.lists(st.tuples(st.sampled_from([*CONNECTORS, *TASKS]), st.booleans()), max_size=200))
def test_who_lives_alone_began_when_there_were_few(steps: list[tuple[Unit, bool]]) -> None:
    crowd = Crowd()
    there: set[Unit] = set()
    for unit, comes in steps:
        before = frozenset(alone(crowd))
        if comes:
            there.add(unit)
            others = crowd.comes(unit)
            moved = before - frozenset(alone(crowd)) - {unit}
            assert others == bool(moved)
            assert all(not one.is_task for one in moved)
        else:
            there.discard(unit)
            crowd.goes(unit)
            assert frozenset(alone(crowd)) == before - {unit}
        assert set(alone(crowd)) <= there
        kind = [one for one in there if one.is_task == unit.is_task]
        assert crowd.is_many(unit) == (len(kind) > FEW)
