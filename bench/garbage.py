"""Measures the cost of Python's garbage collector in a child that reads batches of JSON, and the garbage it leaves.

``python bench/garbage.py``; each figure is measured in a process of its own. ``kept`` is the maximum memory growth of a
process in which every record leaves a reference cycle behind, as with a plugin that keeps its exceptions.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import resource
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

# When this file runs as a script, bench/converters.py would hide the package of the same name.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

from connect.internals.garbage_collection import COLLECT_AFTER
from converters.json import JsonConverter

RECORDS = 60_000
ROUNDS = 5
SIZES = (500, 2_000, 10_000)
DEFAULTS = (700, 10, 10)
THRESHOLDS = (DEFAULTS, (10_000, 10, 10), COLLECT_AFTER, (100_000, 10, 10))


class Knot:
    """Refers to itself and to some bytes, until the garbage collector finds it."""

    def __init__(self, size: int) -> None:
        self.itself = self
        self.held = bytes(size)


def record(number: int) -> bytes:
    """Return an order of five lines."""
    lines = [{"sku": f"sku-{line}", "count": line, "tags": ["a", "b"]} for line in range(5)]
    return json.dumps({"id": number, "lines": lines, "who": {"name": "x", "at": {"city": "y"}}}).encode()


def read(size: int) -> float:
    """Return the CPU seconds per million records in batches of that size, each dropped before the next."""
    converter = JsonConverter.configured({"schemas.enable": "false"})
    messages = [record(number) for number in range(size)]
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(RECORDS // size):
            (column,) = converter.to_connect_column("t", messages)
            column.values()
        best = min(best, time.process_time() - start)
    return best / (RECORDS // size * size) * 1_000_000


def kept() -> float:
    """Return the growth in megabytes of a process that leaves a cycle with a kilobyte behind for each record."""
    converter = JsonConverter.configured({"schemas.enable": "false"})
    messages = [record(number) for number in range(500)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1_000):
        converter.to_connect_column("t", messages)
        for _ in messages:
            Knot(1_000)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def measure(connection: Connection, thresholds: tuple[int, int, int], size: int) -> None:
    """Send one figure: for batches of ``size``, or the memory kept if ``size`` is 0."""
    gc.collect()
    if thresholds != DEFAULTS:
        gc.freeze()
    gc.set_threshold(*thresholds)
    connection.send(read(size) if size else kept())


def figure(thresholds: tuple[int, int, int], size: int) -> float:
    """Return one figure, measured in a new process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=measure, args=(theirs, thresholds, size))
    process.start()
    found: float = ours.recv()
    process.join()
    return found


def main() -> None:
    """Print one line for each choice of thresholds."""
    print("CPU seconds for a million records, in batches of")
    print(f"{'thresholds':>18}" + "".join(f"{size:>10}" for size in SIZES) + f"{'kept, MB':>12}")
    for thresholds in THRESHOLDS:
        figures = [figure(thresholds, size) for size in SIZES]
        shown = "".join(f"{each:>10.2f}" for each in figures)
        print(f"{thresholds!s:>18}{shown}{figure(thresholds, 0):>12.0f}")


if __name__ == "__main__":
    main()
