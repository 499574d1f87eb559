"""Who has hurt a host is found, and nobody else is held for it."""

from __future__ import annotations

from worker.supervisor.hosts.blame import Blame
from worker.unit import Unit

A, B, C, D = (Unit(name) for name in "abcd")


def alone(blame: Blame) -> list[Unit]:
    return [unit for unit in (A, B, C, D) if blame.is_alone(unit)]


def test_all_are_apart_until_one_does_it_again() -> None:
    blame = Blame()
    blame.suspect([A, B, C], now=0.0)
    assert alone(blame) == [A, B, C]
    blame.find(B)
    assert alone(blame) == [B]
    assert blame.next_acquittal() is None


def test_nobody_does_it_again_and_all_go_back_after_a_while() -> None:
    blame = Blame()
    blame.suspect([A, B], now=100.0)
    assert blame.next_acquittal() == 160.0
    blame.acquit(159.0)
    assert alone(blame) == [A, B]
    blame.acquit(160.0)
    assert alone(blame) == []


def test_who_does_it_seldom_is_watched_longer_each_time() -> None:
    """A unit that kills its host every ten minutes is alone for longer than that, the third time."""
    blame, waits = Blame(), []
    for now in (0.0, 600.0, 1200.0, 1800.0, 2400.0):
        blame.acquit(now)
        blame.suspect([A, B], now)
        waits.append((blame.next_acquittal() or 0.0) - now)
        blame.acquit(now + waits[-1])
    assert waits == [60.0, 240.0, 960.0, 3600.0, 3600.0]


def test_two_cases_have_nothing_to_do_with_each_other() -> None:
    blame = Blame()
    blame.suspect([A, B], now=0.0)
    blame.suspect([C, D], now=10.0)
    blame.find(A)
    assert alone(blame) == [A, C, D]
    blame.acquit(70.0)
    assert alone(blame) == [A]


def test_a_unit_with_another_configuration_is_another_one() -> None:
    blame = Blame()
    blame.find(A)
    blame.suspect([B, C], now=0.0)
    blame.forget(A)
    blame.forget(B)
    assert alone(blame) == [C]


def test_suspects_in_cells_are_divided_until_one_is_left() -> None:
    blame = Blame()
    blame.suspect([A, B, C, D], now=0.0)
    assert [blame.cell(unit) for unit in (A, B, C, D)] == ["0a", "0a", "0b", "0b"]
    blame.suspect([C, D], now=10.0)
    assert [blame.cell(unit) for unit in (A, B, C, D)] == ["0a", "0a", "1a", "1b"]
    blame.find(D)
    assert [blame.cell(unit) for unit in (A, B, C, D)] == [None] * 4
    assert alone(blame) == [D]


def test_cells_keep_a_connector_together() -> None:
    blame = Blame()
    units = [Unit("a"), Unit("a", 0), Unit("b"), Unit("b", 0)]
    blame.suspect(units, now=0.0)
    assert [blame.cell(unit) for unit in units] == ["0a", "0a", "0b", "0b"]
