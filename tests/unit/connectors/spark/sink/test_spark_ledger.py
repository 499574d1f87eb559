"""The ledger on a real folder: crashes at every step, two drivers at once, and what a reader sees meanwhile."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect.data import Schema, TopicPartition
from connect.internals.crash import CRASH_POINT_VARIABLE
from connectors.spark.sink.ledger.ledger import Ledger
from connectors.spark.sink.ledger.manifest import LedgerError, Move
from connectors.spark.sink.target import FencedError
from connectors.spark.stores.local import LocalStore
from connectors.spark.stores.store import Upload
from equipment.examples import examples

PARTITIONS = (0, 1)
SCHEMA = Schema.struct({"number": Schema.int64(optional=True)})


class Crash(BaseException):
    """A kill, as far as the code is concerned: nothing that handles errors handles it."""


class SteppedStore(LocalStore):
    """A folder that calls ``before`` and ``after`` around everything that changes or lists it."""

    def __init__(self, root: Path, step: Callable[[], None]) -> None:
        super().__init__(root)
        self.step = step

    def create(self, path: str, data: bytes) -> None:
        self.step()
        super().create(path, data)
        self.step()

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:
        self.step()
        super().publish(staged, target, upload)
        self.step()

    def names(self, path: str) -> list[str]:
        self.step()
        return super().names(path)

    def size(self, path: str) -> int | None:
        self.step()
        return super().size(path)

    def remove_tree(self, path: str) -> None:
        self.step()
        super().remove_tree(path)
        self.step()

    def remove(self, path: str) -> None:
        self.step()
        super().remove(path)
        self.step()


def crash_at(number: int) -> Callable[[], None]:
    """A step that crashes when it is taken for that time."""
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 1
        if taken == number:
            raise Crash(number)

    return step


def load(ledger: Ledger, files: LocalStore, count: int = 3) -> None:
    """Load the next ``count`` numbers of each partition, as the sink does with records."""
    staging = ledger.new_staging()
    moves: list[Move] = []
    offsets: dict[TopicPartition, int] = {}
    for partition in PARTITIONS:
        tp = TopicPartition("t", partition)
        first = ledger.offsets.get(tp, 0)
        source = f"{staging}/part-{partition}"
        target = f"topics/t/partition={partition}/t+{partition}+{first}+{first + count - 1}.txt"
        text = "".join(f"{number}\n" for number in range(first, first + count))
        place = files.root / source
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        moves.append(Move(source, target, len(text), count))
        offsets[tp] = first + count
    ledger.commit(staging, moves, offsets, {"t": SCHEMA})


def merge(ledger: Ledger, files: LocalStore) -> None:
    """Replace the files of each partition by one with their rows, as a compaction does."""
    staging = ledger.new_staging()
    moves: list[Move] = []
    removals: list[str] = []
    for partition in PARTITIONS:
        folder = f"topics/t/partition={partition}"
        old = [f"{folder}/{name}" for name in files.files(folder)]
        text = "".join(files.read(path).decode() for path in old)
        place = files.root / staging / f"part-{partition}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        target = f"{folder}/t+{partition}+compacted-{ledger.next_number}.txt"
        moves.append(Move(f"{staging}/part-{partition}", target, len(text), text.count("\n")))
        removals += old
    ledger.commit(staging, moves, {}, {}, removals=removals)


def visible(root: Path) -> dict[int, list[int]]:
    """The numbers a reader finds, by partition."""
    found: dict[int, list[int]] = {partition: [] for partition in PARTITIONS}
    for partition in PARTITIONS:
        for file in (root / f"topics/t/partition={partition}").glob("*.txt"):
            found[partition] += map(int, file.read_text().split())
    return {partition: sorted(numbers) for partition, numbers in found.items()}


def assert_no_row_twice(root: Path) -> None:
    for numbers in visible(root).values():
        assert len(numbers) == len(set(numbers))


def assert_exact(root: Path, ledger: Ledger) -> None:
    for partition, numbers in visible(root).items():
        assert numbers == list(range(ledger.offsets.get(TopicPartition("t", partition), 0)))


def opened(root: Path) -> tuple[Ledger, LocalStore]:
    files = LocalStore(root)
    ledger = Ledger(files, "sink")
    ledger.open()
    return ledger, files


def staging_folders(root: Path) -> list[str]:
    folder = root / "_sluice/sink/staging"
    return [entry.name for entry in folder.iterdir()] if folder.exists() else []


def test_which_topics_the_offsets_are_of_survives_a_restart(tmp_path: Path) -> None:
    """It is not known of a ledger of before that was kept."""
    ledger, files = opened(tmp_path)
    load(ledger, files)
    assert ledger.topics == {}
    ledger.commit(ledger.new_staging(), (), {TopicPartition("t", 0): 4}, {}, {"t": "id"})
    ledger, _ = opened(tmp_path)
    assert ledger.topics == {"t": "id"}
    ledger.commit(ledger.new_staging(), (), {TopicPartition("u", 0): 4}, {}, {"t": "id", "u": "other"})
    ledger.commit(ledger.new_staging(), (), {TopicPartition("t", 0): 5}, {})
    assert opened(tmp_path)[0].topics == {"u": "other"}
    [newest] = sorted((tmp_path / "_sluice/sink/manifests").glob("*.json"))[-1:]
    before = {key: value for key, value in json.loads(newest.read_bytes()).items() if key != "topics"}
    newest.write_text(json.dumps(before))
    ledger, _ = opened(tmp_path)
    assert ledger.topics == {}
    assert ledger.offsets[TopicPartition("t", 0)] == 5


def test_a_load_is_seen_and_its_offsets_survive_a_restart(tmp_path: Path) -> None:
    ledger, files = opened(tmp_path)
    assert ledger.offsets == {}
    load(ledger, files)
    load(ledger, files, 2)
    again, _ = opened(tmp_path)
    assert again.offsets == {TopicPartition("t", 0): 5, TopicPartition("t", 1): 5}
    assert again.tables == {"t": SCHEMA}
    assert_exact(tmp_path, again)
    assert staging_folders(tmp_path) == []


def crashes_at_every_step(
    folder: Path,
    loads_before: int,
    work: Callable[[Ledger, LocalStore], None],
    recovered: Callable[[Ledger, LocalStore], None],
) -> int:
    """Crash a driver at each step of its work, with the same loads before, and have another one recover from that.

    How many crashes there were until the work came to its end.
    """
    before = folder / "before"
    ledger, files = opened(before)
    for _ in range(loads_before):
        load(ledger, files)
    for number in range(1, 200):
        root = folder / str(number)
        shutil.copytree(before, root)
        stepped = SteppedStore(root, crash_at(number))
        finished = False
        with suppress(Crash):
            driver = Ledger(stepped, "sink")
            driver.open()
            work(driver, stepped)
            finished = True
        assert_no_row_twice(root)
        survivor, files = opened(root)
        assert_exact(root, survivor)
        recovered(survivor, files)
        assert_exact(root, survivor)
        assert staging_folders(root) == []
        if finished:
            return number - 1
    raise AssertionError("the work does not come to its end")


@pytest.mark.parametrize("loads_before", [0, 1, 21])
def test_a_crash_at_every_step_loses_and_doubles_nothing(tmp_path: Path, loads_before: int) -> None:
    def work(ledger: Ledger, files: LocalStore) -> None:
        load(ledger, files)
        load(ledger, files)

    assert crashes_at_every_step(tmp_path, loads_before, work, load) > 30


def test_a_crash_at_every_step_of_a_compaction_loses_and_doubles_nothing(tmp_path: Path) -> None:
    def work(ledger: Ledger, files: LocalStore) -> None:
        merge(ledger, files)
        load(ledger, files)
        merge(ledger, files)

    def recovered(ledger: Ledger, files: LocalStore) -> None:
        merge(ledger, files)
        assert all(len(list(folder.iterdir())) == 1 for folder in (files.root / "topics/t").iterdir())

    assert crashes_at_every_step(tmp_path, 3, work, recovered) > 60


def test_a_driver_that_was_fenced_removes_nothing_that_is_new(tmp_path: Path) -> None:
    """It had committed, and does what it still had to do when another has gone on."""
    ledger, files = opened(tmp_path)
    load(ledger, files)
    load(ledger, files)
    stepped = SteppedStore(tmp_path, crash_at(10**9))
    late = Ledger(stepped, "sink")
    late.open()
    removed: list[str] = []
    remove = stepped.remove

    def taken_over(path: str) -> None:
        if not removed:
            other, others = opened(tmp_path)
            load(other, others)
            merge(other, others)
        removed.append(path)
        remove(path)

    stepped.remove = taken_over  # type: ignore[method-assign]
    with pytest.raises(FencedError):
        merge(late, stepped)
    assert len(removed) >= 4
    assert_exact(tmp_path, opened(tmp_path)[0])


def test_an_older_version_does_not_read_past_a_compaction(tmp_path: Path) -> None:
    ledger, files = opened(tmp_path)
    load(ledger, files)
    merge(ledger, files)
    [newest] = sorted((tmp_path / "_sluice/sink/manifests").glob("*.json"))[-1:]
    document = json.loads(newest.read_bytes())
    assert (document["format"], len(document["removals"])) == (2, 2)
    load(ledger, files)
    [newest] = sorted((tmp_path / "_sluice/sink/manifests").glob("*.json"))[-1:]
    assert json.loads(newest.read_bytes())["format"] == 1


def test_an_error_at_every_step_is_recovered_from_by_the_same_driver(tmp_path: Path) -> None:
    for number in range(1, 200):
        root = tmp_path / str(number)
        ledger, files = opened(root)
        load(ledger, files)
        stepped = SteppedStore(root, crash_at(10**9))
        driver = Ledger(stepped, "sink")
        driver.open()
        stepped.step = crash_at(number)
        try:
            load(driver, stepped)
            finished = True
        except Crash:
            finished = False
        stepped.step = crash_at(10**9)
        driver.recover()
        assert_exact(root, driver)
        load(driver, stepped)
        assert_exact(root, driver)
        assert staging_folders(root) == []
        if finished:
            break
    assert finished


class PausedFileSystem(SteppedStore):
    """A folder whose user falls asleep at one step until it is woken."""

    def __init__(self, root: Path, number: int) -> None:
        super().__init__(root, self._pause)
        self._number = number
        self._taken = 0
        self.asleep = threading.Event()
        self.wake = threading.Event()

    def _pause(self) -> None:
        self._taken += 1
        if self._taken == self._number:
            self.asleep.set()
            self.wake.wait()


def _run(driver: Ledger, files: PausedFileSystem, outcome: list[object]) -> None:
    try:
        driver.open()
        load(driver, files)
        load(driver, files)
        outcome.append("done")
    except (FencedError, LedgerError, OSError) as error:
        outcome.append(error)
    finally:
        files.asleep.set()


@pytest.mark.parametrize("loads_meanwhile", [0, 2])
def test_of_two_drivers_one_is_fenced_wherever_it_slept(tmp_path: Path, loads_meanwhile: int) -> None:
    fenced = taken_over = 0
    for number in range(1, 200):
        root = tmp_path / str(number)
        first, files = opened(root)
        load(first, files)
        paused = PausedFileSystem(root, number)
        outcome: list[object] = []
        thread = threading.Thread(target=_run, args=(Ledger(paused, "sink"), paused, outcome))
        thread.start()
        paused.asleep.wait()
        slept_through = bool(outcome)
        other, files = opened(root)
        for _ in range(loads_meanwhile):
            load(other, files)
            assert_exact(root, other)
        paused.wake.set()
        thread.join()
        assert_no_row_twice(root)
        if slept_through:
            assert outcome == ["done"]
            break
        if isinstance(outcome[0], FencedError):
            fenced += 1
            other.recover()
            load(other, files)
            assert_exact(root, other)
        else:
            # It slept before its claim, and so it is the newer one; or after all its commits.
            assert outcome == ["done"], outcome
            try:
                load(other, files)
            except FencedError:
                taken_over += 1
        newest, files = opened(root)
        load(newest, files)
        assert_exact(root, newest)
        assert staging_folders(root) == []
    assert fenced > 10
    assert taken_over > 1


def test_a_fenced_driver_deletes_nothing_of_the_winner(tmp_path: Path) -> None:
    loser, files = opened(tmp_path)
    winner, _ = opened(tmp_path)
    staged = tmp_path / winner.new_staging() / "part-0"
    staged.parent.mkdir(parents=True)
    staged.write_text("1\n")
    with pytest.raises(FencedError, match="taken over"):
        load(loser, files)
    with pytest.raises(FencedError):
        loser.recover()
    with pytest.raises(FencedError):
        loser.check_fence()
    assert staged.exists()


def test_what_a_zombie_writes_after_its_driver_died_is_removed_before_the_next_load(tmp_path: Path) -> None:
    zombie, _ = opened(tmp_path)
    late = tmp_path / zombie.new_staging()
    ledger, files = opened(tmp_path)
    late.mkdir(parents=True)
    (late / "part-0").write_text("7\n")
    ledger.recover()
    assert not late.exists()
    load(ledger, files)
    assert_exact(tmp_path, ledger)


def test_a_number_that_was_pruned_is_not_used_again(tmp_path: Path) -> None:
    sleeper, files = opened(tmp_path)
    other, _ = opened(tmp_path)
    for _ in range(40):
        load(other, files)
    kept = list((tmp_path / "_sluice/sink/manifests").glob("*.json"))
    assert len(kept) <= 21
    before = visible(tmp_path)
    with pytest.raises(FencedError):
        load(sleeper, files)
    with pytest.raises(FencedError):
        # No file in the way and its next number free again: only the higher numbers tell.
        sleeper.commit(sleeper.new_staging(), [], {TopicPartition("t", 0): 10**6}, {})
    assert visible(tmp_path) == before
    again, _ = opened(tmp_path)
    assert_exact(tmp_path, again)


def test_a_file_of_somebody_else_is_neither_replaced_nor_taken_for_ours(tmp_path: Path) -> None:
    ledger, files = opened(tmp_path)
    foreign = tmp_path / "topics/t/partition=1/t+1+0+2.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("0\n1\n2\n")
    with pytest.raises(LedgerError, match=r"topics\.dir"):
        load(ledger, files)
    assert foreign.read_text() == "0\n1\n2\n"
    assert opened(tmp_path)[0].offsets == {}


@pytest.mark.parametrize("damage", ["gone", "shorter"])
def test_a_committed_file_that_was_damaged_before_it_was_done_is_told(tmp_path: Path, damage: str) -> None:
    stepped = SteppedStore(tmp_path, crash_at(10**9))
    ledger = Ledger(stepped, "sink")
    ledger.open()
    renames = 0

    def crash_after_rename(staged: str, target: str, upload: Upload | None = None) -> None:
        nonlocal renames
        LocalStore.publish(stepped, staged, target, upload)
        renames += 1
        if renames == len(PARTITIONS):
            raise Crash

    stepped.publish = crash_after_rename  # type: ignore[method-assign]
    with pytest.raises(Crash):
        load(ledger, stepped)
    file = tmp_path / "topics/t/partition=0/t+0+0+2.txt"
    if damage == "gone":
        file.unlink()
    else:
        file.write_text("0\n")
    with pytest.raises(LedgerError, match="Restore it"):
        opened(tmp_path)


def test_a_manifest_that_is_no_manifest_is_told(tmp_path: Path) -> None:
    ledger, files = opened(tmp_path)
    load(ledger, files)
    (tmp_path / "_sluice/sink/manifests/0000000002.json").write_text("{")
    with pytest.raises(LedgerError, match="Restore it from a backup"):
        opened(tmp_path)


def test_connectors_have_a_ledger_each_whatever_their_names(tmp_path: Path) -> None:
    files = LocalStore(tmp_path)
    for name in ("a/b", "..", "ü", "a b"):
        Ledger(files, name).open()
    assert files.names("_sluice") == ["%2E.", "%C3%BC", "a%20b", "a%2Fb"]


POINTS = ("after-manifest", "mid-rename", "mid-rename:2", "mid-rename:3", "before-done", "before-done:2")
# A process has imported all that takes long, and forks one for each point.
DRIVERS = """
import os, sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_spark_ledger import load, opened
for point in {points!r}:
    if (child := os.fork()) == 0:
        os.environ[{variable!r}] = point
        ledger, files = opened(Path({root!r}, point))
        load(ledger, files)
        load(ledger, files)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_kill_at_every_named_point_loses_and_doubles_nothing(tmp_path: Path) -> None:
    here = Path(__file__)
    path = [str(here.parent), str(here.parents[4])]
    code = DRIVERS.format(path=path, points=POINTS, variable=CRASH_POINT_VARIABLE, root=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(POINTS), done.stderr
    for root in (tmp_path / point for point in POINTS):
        assert_no_row_twice(root)
        ledger, files = opened(root)
        assert_exact(root, ledger)
        load(ledger, files)
        assert_exact(root, ledger)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(crashes=st.lists(st.integers(1, 60), max_size=8), counts=st.lists(st.integers(1, 4), min_size=1))
def test_any_number_of_crashes_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, crashes: list[int], counts: list[int]
) -> None:
    root = tmp_path_factory.mktemp("store")
    for number in crashes:
        stepped = SteppedStore(root, crash_at(number))
        try:
            driver = Ledger(stepped, "sink")
            driver.open()
            for count in counts:
                load(driver, stepped, count)
        except Crash:
            pass
        assert_no_row_twice(root)
    ledger, files = opened(root)
    assert_exact(root, ledger)
    load(ledger, files)
    assert_exact(root, ledger)
