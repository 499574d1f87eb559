"""Runs translate offsets of a partition both ways, exactly where they know the records, and never past one unread."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connect.errors import DataError
from connectors.mirror.run_records import RUNS_IN_CHUNK, RunChunk, RunKey, RunWriter, StoredRuns
from connectors.mirror.runs import Generation, Run, Runs, Translation
from equipment.growth import assert_grows_evenly

NEW, OLD = Generation(UUID(int=2), UUID(int=3)), Generation(UUID(int=1), UUID(int=3))


def _runs(*added: tuple[int, int, int], start: int | None = 0) -> Runs:
    runs = Runs()
    if start is not None:
        runs.resume(start)
    for upstream, downstream, length in added:
        runs.add(upstream, downstream, length)
    return runs


def test_every_offset_of_a_run_translates_exactly() -> None:
    runs = _runs((0, 7, 1000), (1000, 1007, 500))
    assert len(runs) == 1
    assert [runs.downstream_of(offset) for offset in (0, 1, 999, 1000, 1500)] == [
        Translation(offset) for offset in (7, 8, 1006, 1007, 1507)
    ]
    assert [runs.upstream_of(offset) for offset in (7, 8, 1507)] == [Translation(offset) for offset in (0, 1, 1500)]


def test_holes_at_either_end_cost_nothing() -> None:
    runs = _runs((0, 0, 10), (15, 10, 10), (25, 23, 5))
    assert [runs.downstream_of(offset) for offset in (10, 12, 15, 24, 25, 26)] == [
        Translation(offset) for offset in (10, 10, 10, 19, 23, 24)
    ]
    assert [runs.upstream_of(offset) for offset in (9, 10, 20, 21, 23, 24)] == [
        Translation(offset) for offset in (9, 15, 25, 25, 25, 26)
    ]


def test_a_group_before_the_first_record_is_placed_at_it_if_the_mirror_began_there() -> None:
    assert _runs((40, 0, 10), start=0).downstream_of(3) == Translation(0)
    assert _runs((40, 0, 10), start=40).downstream_of(3) is None
    assert _runs((40, 0, 10), start=None).downstream_of(39) is None
    assert Runs().downstream_of(0) is None
    assert Runs().upstream_of(0) is None


def test_a_group_in_front_of_the_mirror_waits_for_it_at_the_end() -> None:
    assert _runs((0, 0, 10)).downstream_of(500) == Translation(10)


def test_offsets_between_runs_that_are_not_joined_fall_back_to_the_earlier() -> None:
    runs = _runs((0, 0, 10))
    runs.resume(100)
    runs.add(110, 80, 5)
    assert runs.downstream_of(50) == Translation(10, again=40)
    assert runs.downstream_of(105) == Translation(80)
    assert runs.upstream_of(50) == Translation(10, again=40)


def test_after_a_restart_the_last_copies_count_as_soon_as_all_are_there() -> None:
    runs = _runs((0, 0, 100))
    runs.resume(50)
    runs.add(50, 100, 10)
    # The records 60 to 99 are only where they were first.
    assert runs.downstream_of(80) == Translation(80)
    assert runs.downstream_of(55) == Translation(50, again=55)
    runs.add(60, 110, 90)
    assert runs.downstream_of(80) == Translation(130)
    assert runs.downstream_of(40) == Translation(40)
    assert runs.upstream_of(130) == Translation(80)


def test_a_target_that_begins_anew_ends_what_is_known_of_the_old_one() -> None:
    runs = _runs((0, 0, 100), (100, 0, 10))
    assert runs.runs == (Run(100, 0, 10, 100),)


def test_many_runs_are_thinned_where_they_are_old() -> None:
    runs = Runs(most=64)
    runs.resume(0)
    for number in range(1000):
        runs.add(number * 10, number * 9, 9)
    assert len(runs) <= 64
    for number in range(1000):
        found = runs.downstream_of(number * 10 + 4)
        assert found is not None
        assert number * 9 + 4 - found.again <= found.offset <= number * 9 + 4
    assert runs.downstream_of(9904) == Translation(990 * 9 + 4)


def test_a_group_that_is_far_back_reads_again_a_small_part_of_what_it_lags() -> None:
    runs = Runs(most=512)
    runs.resume(0)
    for number in range(20_000):
        runs.add(number * 11, number * 10, 10)
    for offset in range(5, 19_999 * 11, 997):
        found = runs.downstream_of(offset)
        assert found is not None
        assert found.again <= 11 + (20_000 * 11 - offset) / 10


@pytest.mark.growth
def test_adding_takes_the_same_time_however_many_there_are() -> None:
    def add(count: int) -> None:
        runs = Runs()
        for number in range(count):
            runs.add(number * 2, number, 1)

    assert_grows_evenly(add, lambda count: count, 20_000)


def test_chunks_of_two_writings_agree() -> None:
    """As a crash while chunks are written leaves them: some thinned, some not."""
    runs = _runs(*((number * 2, number, 1) for number in range(300)))
    whole = runs.runs
    mixed = Runs.of(runs.generation, [*whole[:128:2], *whole[64:300], *whole[290:]])
    assert mixed.runs == (*whole[:64:2], *whole[64:])
    assert Runs.of(NEW, [Run(0, 0, 5, 0), Run(0, 0, 9, 0)]).runs == (Run(0, 0, 9, 0),)


def test_records_of_runs_read_as_they_were_written() -> None:
    chunk = RunChunk(NEW, (Run(3, 2**62, 2**40, 0), Run(1, 2**62 + 2**40 + 3, 1, 1)))
    assert RunChunk.decode(chunk.encode()) == chunk
    assert RunChunk.decode(RunChunk(Generation(), ()).encode()) == RunChunk(Generation(), ())
    key = RunKey("orders-ü", 7, 3)
    assert RunKey.decode(key.encode()) == key


@pytest.mark.parametrize(
    "value",
    [b"", b"\x00\x01", RunChunk(NEW, (Run(3, 4, 5, 3),)).encode()[:-1], RunChunk(NEW, ()).encode() + b"\x00"]
    + [RunChunk(NEW, (Run(3, 4, length, since),)).encode() for length, since in ((0, 3), (1, 4))]
    + [RunChunk(NEW, ()).encode()[:-4] + b"\x7f\xff\xff\xff"],
)
def test_bytes_that_are_no_runs_are_refused(value: bytes) -> None:
    with pytest.raises(DataError):
        RunChunk.decode(value)


def test_only_chunks_that_changed_are_written() -> None:
    stored, writer, runs = StoredRuns(), RunWriter("orders", 0), Runs(NEW, most=400)
    for number in range(300):
        runs.add(number * 2, number)
    first = dict(writer.records(runs))
    assert len(first) == 3
    assert not dict(writer.records(runs))
    runs.add(1000, 900)
    assert list(dict(writer.records(runs))) == [RunKey("orders", 0, 2).encode()]
    for number in range(1000, 1100):
        runs.add(number * 2, number)
    thinned = dict(writer.records(runs))
    assert len(thinned) == 3
    for key, value in (first | thinned).items():
        stored.read(key, value)
    found = stored.runs("orders", 0)
    assert found is not None
    assert found.runs == runs.runs
    runs.clear(OLD)
    first_key, *others = (RunKey("orders", 0, chunk).encode() for chunk in range(3))
    assert list(writer.records(runs)) == [(first_key, RunChunk(OLD, ()).encode()), *((key, None) for key in others)]


def test_which_topics_there_are_is_written_before_the_first_run() -> None:
    stored, runs = StoredRuns(), Runs(NEW)
    runs.touch()
    for key, value in RunWriter("orders", 0).records(runs):
        stored.read(key, value)
    found = stored.runs("orders", 0)
    assert found is not None
    assert (found.generation, found.runs) == (NEW, ())
    assert found.downstream_of(0) is None
    assert found.upstream_of(0) is None


def test_a_topic_made_anew_has_runs_of_its_own() -> None:
    stored = StoredRuns()
    for chunk, generation in ((0, OLD), (1, OLD), (0, NEW)):
        value = RunChunk(generation, (Run(chunk * 10, chunk * 10, 5, chunk * 10),)).encode()
        stored.read(RunKey("orders", 0, chunk).encode(), value)
    found = stored.runs("orders", 0)
    assert found is not None
    assert (found.generation, found.runs) == (NEW, (Run(0, 0, 5, 0),))
    stored.read(RunKey("orders", 0, 0).encode(), None)
    assert stored.runs("orders", 1) is None
    assert stored.runs("orders", 0).downstream_of(3) is None  # type: ignore[union-attr]
    assert len(RunChunk(NEW, (Run(0, 0, 1, 0),) * RUNS_IN_CHUNK).encode()) < 1024


# -- against a model of the two logs -----------------------------------------------------------------------------


@dataclass
class Mirror:
    """A source log with holes, a target log, and a mirror between them that is killed now and then."""

    most: int
    source: list[bool] = field(default_factory=list)
    """For each offset whether there is a record."""
    target: list[int | None] = field(default_factory=list)
    """For each offset the source's offset of the record, or ``None`` for what is no copy of one."""
    position: int = 0
    mirrored: int = 0
    committed: int = 0
    was_killed: bool = False

    def __post_init__(self) -> None:
        self.runs = Runs(NEW, most=self.most)
        self.runs.resume(0)
        self.writer = RunWriter("orders", 0)
        self.topic: dict[bytes, bytes | None] = {}

    def produce(self, count: int) -> None:
        self.source += [True] * count

    def leave_hole(self, count: int) -> None:
        self.source += [False] * count

    def put_marker(self, count: int) -> None:
        self.target += [None] * count

    def copy(self, count: int) -> None:
        for offset in range(self.position, min(len(self.source), self.position + count)):
            if self.source[offset]:
                self.runs.add(offset, len(self.target))
                self.target.append(offset)
                self.mirrored = offset + 1
            self.position = offset + 1

    def commit(self, _: int) -> None:
        self.topic.update(self.writer.records(self.runs))
        self.committed = self.mirrored

    def write_runs(self, _: int) -> None:
        self.topic.update(self.writer.records(self.runs))

    def kill(self, _: int) -> None:
        self.runs = self.stored()
        self.writer = RunWriter("orders", 0, len(self.topic))
        self.runs.resume(self.committed)
        self.runs.await_copies(len(self.target) - (self.runs.downstream_end or 0), len(self.source))
        self.was_killed = self.was_killed or self.mirrored != self.committed
        self.position = self.mirrored = self.committed

    def stored(self) -> Runs:
        stored = StoredRuns()
        for key, value in self.topic.items():
            stored.read(key, value)
        return stored.runs("orders", 0) or Runs(NEW, most=self.most)


_STEPS = st.sampled_from(
    ["produce", "produce", "copy", "copy", "leave_hole", "put_marker", "commit", "write_runs", "kill"]
)


@given(
    most=st.sampled_from([4, 8, 1024]),
    steps=st.lists(st.tuples(_STEPS, st.integers(1, 6)), max_size=60),
)
@example(most=4, steps=[("produce", 6), ("copy", 6), ("write_runs", 1), ("kill", 1), ("copy", 3)])
@example(most=4, steps=[("produce", 2), ("copy", 2), ("kill", 1), ("copy", 1)])
def test_runs_never_skip_a_record_and_are_exact_where_nothing_was_forgotten(
    most: int, steps: list[tuple[str, int]]
) -> None:
    mirror = Mirror(most)
    for name, count in steps:
        getattr(mirror, name)(count)
        _check_nothing_is_skipped(mirror, mirror.stored())
    if not mirror.runs.is_behind:
        _check(mirror, mirror.runs)
    mirror.topic.update(mirror.writer.records(mirror.runs))
    _check(mirror, mirror.stored())


def test_copies_that_no_run_tells_of_keep_new_runs_back_until_they_are_made_again() -> None:
    mirror = Mirror(4)
    for name, count in [("produce", 9), ("copy", 2), ("commit", 1), ("copy", 3), ("kill", 1), ("copy", 2)]:
        getattr(mirror, name)(count)
    mirror.write_runs(1)
    assert mirror.runs.is_behind
    assert mirror.stored().runs == (Run(0, 0, 2, 0),)
    mirror.copy(1)
    mirror.write_runs(1)
    assert mirror.stored().runs == (Run(0, 0, 2, 0), Run(2, 5, 3, 2))


def _check_nothing_is_skipped(mirror: Mirror, runs: Runs) -> None:
    copied = {copy for copy in mirror.target if copy is not None}
    for offset in range(len(mirror.source) + 1):
        if (found := runs.downstream_of(offset)) is not None:
            assert {copy for copy in copied if copy >= offset} <= set(mirror.target[found.offset :])
    for offset in range(len(mirror.target) + 1):
        if (found := runs.upstream_of(offset)) is not None:
            assert {copy for copy in copied if copy < found.offset} <= set(mirror.target[:offset])


def _check(mirror: Mirror, runs: Runs) -> None:
    _check_nothing_is_skipped(mirror, runs)
    if mirror.was_killed or mirror.runs.is_behind:
        return
    for offset in range(len(mirror.source) + 1):
        if (found := runs.downstream_of(offset)) is not None:
            after = {copy for copy in mirror.target[found.offset :] if copy is not None}
            assert sum(copy < offset for copy in after) <= found.again
    for offset in range(len(mirror.target) + 1):
        if (found := runs.upstream_of(offset)) is not None:
            before = {copy for copy in mirror.target[:offset] if copy is not None}
            assert sum(copy >= found.offset for copy in before) <= found.again
    if len(runs) < mirror.most // 2:
        for offset in range(len(mirror.source) + 1):
            assert set(mirror.target) <= {None} or runs.downstream_of(offset) is not None
