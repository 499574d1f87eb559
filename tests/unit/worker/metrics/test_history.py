"""The last five minutes of connectors: noted, put into steps, added up over workers."""

from __future__ import annotations

import tracemalloc

from worker.metrics.history import DAY, MINUTE, SECONDS, SLOT, History, Part, Point, Series, added, document

START = 1_000_000.0


def noted(*rates: float | None) -> History:
    """A history of one connector, from an even step of ten seconds on; the lag is a hundred times the rate."""
    history = History()
    for index, rate in enumerate(rates):
        history.note(START + index * SLOT, {} if rate is None else {"c": Point(rate, rate * 100, "records")})
    return history


def shown(history: History, step: int) -> object:
    return document(history.recorded().part(step), step)


def test_each_point_is_shown_and_what_is_unknown_is_null() -> None:
    assert shown(noted(1, 2, None, 4), SLOT) == {
        "end": int(START) + 3 * SLOT,
        "step": SLOT,
        "connectors": {"c": {"unit": "records", "rate": [1, 2, None, 4], "lag": [100, 200, None, 400]}},
    }


def test_a_step_has_the_mean_of_its_rates_and_its_last_lag() -> None:
    history = noted(1, 2, None, 4, 5, 7)
    assert shown(history, 10) == {
        "end": int(START) + 10,
        "step": 10,
        "connectors": {"c": {"unit": "records", "rate": [3.0, 7.0], "lag": [500, 700]}},
    }


def test_only_five_minutes_are_kept() -> None:
    history = noted(*range(1000))
    rates = history.recorded().part(SLOT).connectors["c"].rate
    assert list(rates) == list(range(1000 - SECONDS // SLOT, 1000))
    assert len(history.recorded().part(SECONDS).connectors["c"].rate) <= 2


def test_a_connector_that_has_gone_is_dropped_after_five_minutes() -> None:
    history = noted(1, *[None] * (SECONDS // SLOT - 1))
    assert set(history.recorded().part(SLOT).connectors) == {"c"}
    history.note(START + SECONDS, {})
    assert history.recorded().part(SLOT).connectors == {}


def test_a_deleted_connector_is_forgotten_at_once() -> None:
    history = noted(1)
    history.forget("c")
    history.forget("unknown")
    assert history.recorded().part(SLOT).connectors == {}


def test_looks_that_were_missed_are_unknown() -> None:
    history = noted(1)
    history.note(START + 3 * SLOT, {"c": Point(4, None, None)})
    series = history.recorded().part(SLOT).connectors["c"]
    assert (list(series.rate), list(series.lag)) == ([1, None, None, 4], [100, None, None, None])


def test_a_clock_that_is_set_begins_a_new_history() -> None:
    for at in (START - 3600, START + 3600):
        history = noted(1, 2)
        history.note(at, {"c": Point(3, 0, "records")})
        assert list(history.recorded().part(SLOT).connectors["c"].rate) == [3]


def test_what_is_recorded_does_not_change_any_more() -> None:
    history = noted(1)
    recorded = history.recorded("c")
    history.note(START, {"c": Point(9, 9, "records"), "other": Point(1, 1, None)})
    assert {name: list(series.rate) for name, series in recorded.part(SLOT).connectors.items()} == {"c": [1]}
    assert set(history.recorded("c").part(SLOT).connectors) == {"c"}


def test_the_workers_are_added_up_step_by_step() -> None:
    here = Part(10, {"c": Series("records", [1, 2, 3], [10, 20, 30]), "only": Series(None, [5], [None])})
    there = Part(11, {"c": Series("records", [1, 1, 1], [1, None, 1]), "far": Series("bytes", [7], [8])})
    total = added([here, there])
    assert total.end == 10
    assert total.connectors["c"] == Series("records", [1, 3, 4], [10, 21, None])
    assert total.connectors["only"] == Series(None, [5], [None])
    assert total.connectors["far"] == Series("bytes", [], [])


def test_a_worker_that_is_far_behind_holds_nobody_back() -> None:
    late, here = Part(2, {"c": Series("records", [1], [1])}), Part(10, {"c": Series("records", [4, 5, 6], [4, 5, 6])})
    assert added([late, here]) == Part(
        8, {"c": Series("records", [1, None, None, None, None, None, 4], [1, *[None] * 5, 4])}
    )
    assert added([]) == Part(0, {})


def test_24_hours_are_kept_by_the_minute() -> None:
    history = History()
    begin = 1_790_000_040
    for second in range(0, DAY + 600, 20):
        history.note(begin + second, {"c": Point(float(second % 60), float(second), "records")})
    part = history.recorded("c", DAY).part(MINUTE)
    series = part.connectors["c"]
    assert (len(series.rate), set(series.rate)) == (DAY // MINUTE, {20.0}), "the mean of each minute"
    assert part.end * MINUTE == begin + DAY + 540
    assert series.lag[-1] == DAY + 580, "the last lag of each minute"
    assert len(history.recorded("c", 3_600).part(MINUTE).connectors["c"].rate) == 60
    assert len(history.recorded("c", 3_600).part(600).connectors["c"].rate) <= 7
    assert len(history.recorded("c").part(SLOT).connectors["c"].rate) <= SECONDS // SLOT


def test_what_a_connector_takes_is_what_the_docs_say() -> None:
    history = History()
    tracemalloc.start()
    history.note(1_000.0, {f"c{number}": Point(1.0, 2.0, "records") for number in range(100)})
    taken = tracemalloc.get_traced_memory()[0] / 100
    tracemalloc.stop()
    assert 13_000 < taken < 15_500
