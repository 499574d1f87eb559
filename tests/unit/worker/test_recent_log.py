"""What is kept of the log of each connector."""

from __future__ import annotations

import logging

from worker.recent_log import RecentLog


def log(recent: RecentLog, context: str | None, text: str) -> None:
    record = logging.LogRecord("n", logging.INFO, "", 0, text, (), None)
    if context is not None:
        record.context = context
    recent.handle(record)


def test_lines_of_a_connector_and_its_tasks_are_kept_and_no_others() -> None:
    recent = RecentLog()
    for context, text in (("a|worker", "1"), ("a|task-0", "2"), ("b|task-0", "3"), (None, "4"), ("worker", "5")):
        log(recent, context, text)
    log(recent, "a|b|task-12", "6")
    assert recent.since("a", 0, 100).lines == ("1", "2")
    assert recent.since("a|b", 0, 100).lines == ("6",)
    assert recent.since("nobody", 0, 100).lines == ()


def test_only_what_is_new_is_told() -> None:
    recent = RecentLog()
    log(recent, "a|worker", "1")
    log(recent, "a|worker", "2")
    first = recent.since("a", 0, 1)
    assert first.lines == ("2",)
    assert recent.since("a", first.position, 100).lines == ()
    log(recent, "b|worker", "3")
    log(recent, "a|worker", "4")
    assert recent.since("a", first.position, 100).lines == ("4",)
    assert recent.since("a", 0, 0).lines == ()


def test_a_worker_that_was_restarted_tells_all_that_it_has_logged_since() -> None:
    before = RecentLog()
    log(before, "a|worker", "1")
    position = before.since("a", 0, 100).position
    after = RecentLog()
    for text in "234":
        log(after, "a|worker", text)
    assert after.since("a", position, 100).lines == ("2", "3", "4")
    set_back = after.since("a", 0, 100).position + 10**9
    assert after.since("a", set_back, 100).lines == ("2", "3", "4"), "the clock was set back before the restart"


def test_each_connector_and_all_together_have_their_limits() -> None:
    recent = RecentLog(of_connector=1000, of_all=2500)
    for number in range(1000):
        log(recent, "loud|task-0", f"{number} ".ljust(100, "x"))
    lines = recent.since("loud", 0, 10_000).lines
    assert [line.split()[0] for line in lines] == [str(number) for number in range(995, 1000)]
    for name in "abcdefgh":
        for number in range(3):
            log(recent, f"{name}|worker", f"{number} ".ljust(100, "x"))
    kept = {name: len(recent.since(name, 0, 100).lines) for name in ("loud", *"abcdefgh")}
    assert 8 <= sum(kept.values()) <= 2500 // 200
    assert kept["h"] == 3, "the newest lines are kept"
    assert kept["loud"] < 3, "the connector with the most gives way first"


def test_an_endless_line_is_cut() -> None:
    recent = RecentLog()
    log(recent, "a|worker", "x" * 10**6)
    (line,) = recent.since("a", 0, 1).lines
    assert len(line) < 40_000
    assert line.endswith("more characters)")
