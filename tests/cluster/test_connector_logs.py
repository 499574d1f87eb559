"""``sluice connectors logs`` of a connector whose tasks run on several workers."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster, ClusterWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration]

SLUICE = str(Path(sys.executable).parent / "sluice")
SAID = re.compile(r"^\[.*\[talk\|task-(\d)\].* task \1 says (\w+)", re.MULTILINE)
PATIENCE = 90.0


class Output:
    """What a command prints while it runs."""

    def __init__(self, folder: Path) -> None:
        self.lines, self.errors = folder / "stdout", folder / "stderr"

    def said(self) -> list[tuple[str, str]]:
        """Each line of a task that is shown: the number of the task, and what it says."""
        return SAID.findall(self.lines.read_text())


@contextmanager
def following(worker: ClusterWorker, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Output]]:
    """``sluice connectors logs -f``, from now on; what it has shown when it ends is all."""
    output = Output(folder)
    command = [SLUICE, "connectors", "logs", "talk", "-f", "--lines", "0", "--url", worker.url()]
    with (
        output.lines.open("wb") as stdout,
        output.errors.open("wb") as stderr,
        subprocess.Popen(command, stdout=stdout, stderr=stderr, preexec_fn=_take_interrupts) as process,  # noqa: PLW1509
    ):
        try:
            yield process, output
        finally:
            process.kill()


def _take_interrupts() -> None:
    """Undo what a shell does for a test run in the background: what it starts would have them ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_what_the_tasks_say_is_followed_wherever_they_run(
    cluster: Callable[..., Cluster], topic: str, tmp_path: Path
) -> None:
    file, both = tmp_path / "said", lambda word: {("0", word), ("1", word)}
    file.touch()

    def say(word: str) -> None:
        with file.open("a") as stream:
            stream.write(word + "\n")

    pair = cluster(2).start()
    pair.create("talk", "Talkative", tasks=2, talkative_file=str(file), topic=topic)
    pair.wait_until_balanced()
    asked, other = pair.workers
    with following(asked, tmp_path) as (process, output):
        # Only what is said once both workers are asked is sure to be shown.
        def both_are_asked() -> bool:
            say(f"before{next(numbers)}")
            return {task for task, _ in output.said()} == {"0", "1"}

        numbers = itertools.count()
        wait_until("both are asked", both_are_asked)
        say("one")
        wait_until("both tasks are shown", lambda: both("one") <= set(output.said()))
        other.kill()
        pair.wait_until_all_run()
        say("two")
        wait_until("both are shown of one worker", lambda: both("two") <= set(output.said()))
        pair.start()
        pair.wait_until_balanced()
        say("three")
        wait_until("both are shown of both workers", lambda: both("three") <= set(output.said()), PATIENCE)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert len(output.said()) == len(set(output.said())), "no line is shown twice"
    (refusal,) = output.errors.read_text().splitlines()
    assert refusal.startswith(f"Worker {other.address} does not tell its lines: ")

    shown = subprocess.run(
        [SLUICE, "connectors", "logs", "talk", "--lines", "10000", "--url", other.url()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert both("three") <= set(SAID.findall(shown.stdout)), "any worker may be asked"
    times = [line[: line.index("]")] for line in shown.stdout.splitlines() if line.startswith("[2")]
    assert times == sorted(times)
