"""How far long work is, as it is seen in front of a worker."""

from __future__ import annotations

import re
from collections.abc import Callable

from equipment.terminal import Terminal
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

BAR = r"made \[[#.]{20}\] \d+ % of 600 records, \d+/s, about \d+ s to go"


def test_a_terminal_shows_a_bar_in_place_and_the_log_ends_with_the_sums(
    standalone: Callable[..., StandaloneWorker], topic: str
) -> None:
    worker = standalone(value_converter="JsonConverter")
    props = {"kafka_topic": topic, "quickstart": "inventory", "max_interval": "20", "iterations": "600"}
    worker.connector("made", connector_class="DatagenConnector", **props, run_until="drained")
    with Terminal.opened() as terminal:
        worker.start_on(terminal)
        wait_until(
            "a row is a bar",
            lambda: any(re.match(BAR, row) for row in terminal.rows),
            seconds=60,
        )
        assert worker.wait() == 0
    assert not any("[##" in row or "[.." in row for row in terminal.rows), "nothing of it is left"
    assert len([row for row in terminal.rows if re.search(r"In all: 600 records read in [\d.]+ s", row)]) == 1
