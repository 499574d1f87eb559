"""The contract kit notices plugins that break the contract, and finds nothing wrong with the same plugins in order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from broken_plugins import (
    LettersConnector,
    Moody,
    ObjectsConnector,
    PagesConnector,
    Silent,
    Stamp,
    TextConverter,
    Tilted,
    faults_of,
)

from connect.data import Schema, SchemaAndValue, SinkRecord
from connect.errors import ConnectError, DataError
from connect.testing import (
    ConverterTests,
    PredicateTests,
    SinkConnectorTests,
    SourceConnectorTests,
    TransformationTests,
    sample_sink_records,
    sample_source_records,
    sample_values,
    sink_records,
)
from connect.testing.sink_kill import KillMoment

NOTICED = (AssertionError, pytest.fail.Exception, DataError, ConnectError)
RECORDS = [*sample_source_records(), *sample_sink_records()]


class TestLettersInOrder(SourceConnectorTests):
    """The source without a fault."""

    connector_class = LettersConnector
    idle_seconds = 0.2

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"topic": "letters"}


class TestPagesInOrder(SinkConnectorTests):
    """The sink without a fault."""

    connector_class = PagesConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        return {"file": str(tmp_path / "pages")}

    @pytest.fixture
    def written(self, props: Mapping[str, str]) -> Callable[[], Iterable[Any]]:
        return lambda: Path(props["file"]).read_text().splitlines()


class TestTextInOrder(ConverterTests):
    """The converter without a fault."""

    converter_class = TextConverter

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"topic": ""}

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (b"\xff",)

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        return SchemaAndValue(Schema.string(optional=True), given.value)


class TestStampInOrder(TransformationTests):
    """The transformation without a fault."""

    transformation_class = Stamp

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"topic": ""}


class TestMoodyInOrder(PredicateTests):
    """The predicate without a fault."""

    predicate_class = Moody

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"topic": ""}


class TestDividedLetters(TestLettersInOrder):
    """The source with splits, without a fault."""

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"topic": "letters", "fault": "split"}


def test_notices_splits_that_overlap_or_are_read_again() -> None:
    props = {"topic": "letters", "fault": "split, forgets"}
    with pytest.raises(AssertionError):
        TestDividedLetters().test_splits_are_the_same_work_in_bounded_pieces(props, 3)
    with pytest.raises(AssertionError):
        TestDividedLetters().test_splits_leave_out_what_is_read(props)
    with pytest.raises(AssertionError):
        TestDividedLetters().test_splits_resume_after_an_offset(props)


def test_notices_splits_without_end_and_too_many() -> None:
    class Hasty(TestDividedLetters):
        patience_seconds = 0.5

    with pytest.raises(TimeoutError, match=r"drained\(\) of its task must become true"):
        Hasty().test_splits_leave_out_what_is_read({"topic": "t", "fault": "split, endless"})
    with pytest.raises(ConnectError, match="splits must respect max_splits"):
        TestDividedLetters().test_splits_leave_out_what_is_read({"topic": "t", "fault": "split, too many"})


SOURCE_FAULTS = {
    "test_records_are_well_formed": ["misfits", "nests"],
    "test_resumes_after_every_offset": ["forgets", "skips", "coarse"],
    "test_goes_on_from_its_own_offsets": ["forgets"],
    "test_an_idle_poll_gives_nothing_and_returns": ["blocks"],
    "test_waits_end_when_the_task_is_stopped": ["sleeps"],
    "test_tasks_share_the_work": ["every task does all"],
    "test_its_own_offsets_may_be_altered": ["refuses its offsets"],
}


@pytest.mark.parametrize(("fault", "test"), faults_of(SOURCE_FAULTS))
def test_notices_a_source_that(fault: str, test: str) -> None:
    with pytest.raises(NOTICED):
        getattr(TestLettersInOrder(), test)({"topic": "letters", "fault": fault})


def test_notices_a_source_that_makes_too_many_tasks() -> None:
    with pytest.raises(ConnectError, match="task_configs must respect max_tasks"):
        TestLettersInOrder().test_task_configs_keep_to_max_tasks({"topic": "t", "fault": "too many tasks"}, 2)


def test_notices_a_source_that_cannot_be_stopped_twice() -> None:
    with pytest.raises(AttributeError):
        TestLettersInOrder().test_stop_may_be_called_again({"topic": "t", "fault": "stops once"})


def test_a_source_may_resume_less_exactly_if_it_loses_nothing() -> None:
    class Doubling(TestLettersInOrder):
        resumes_exactly = False

    Doubling().test_resumes_after_every_offset({"topic": "t", "fault": "forgets"})
    with pytest.raises(AssertionError, match=r"1 record lost after offset \{'next': 3\}"):
        Doubling().test_resumes_after_every_offset({"topic": "t", "fault": "skips"})


@pytest.mark.parametrize(
    ("test", "fault", "text"),
    [
        (
            "test_resumes_after_every_offset",
            "forgets",
            r"1 record too many after offset \{'next': 1\}, that of record 1 of 6\. .* came twice: .*'a'",
        ),
        (
            "test_goes_on_from_its_own_offsets",
            "forgets",
            r"6 records too many after offset \{'next': 6\}, that of the last record\. .* came twice: .*'a'",
        ),
        ("test_splits_leave_out_what_is_read", "split, forgets", r"18 records too many in new splits, .* twice: .*'a'"),
        (
            "test_splits_resume_after_an_offset",
            "split, forgets",
            r"1 record too many in new splits after offset \{'next': 1\}, that of record 1 of 18\. .* twice: .*'a'",
        ),
    ],
)
def test_says_which_record_a_source_gives_twice(test: str, fault: str, text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        getattr(TestLettersInOrder(), test)({"topic": "t", "fault": fault})


class Endless(TestLettersInOrder):
    """The source as its author tests it who counts the records, because polls wait at the end."""

    __test__ = False
    record_count = 6


class HastyLetters(TestLettersInOrder):
    """The source as it is, tested with little patience."""

    __test__ = False
    patience_seconds = 2.0


class HastyEndless(Endless):
    """The same of the other."""

    patience_seconds = 2.0


def test_says_which_records_a_source_lost_that_never_ends() -> None:
    lost = r"1 record lost after offset \{'next': 3\}, that of record 3 of 6\. .* the first that is missing: .*'d'"
    with pytest.raises(AssertionError, match=lost):
        HastyEndless().test_resumes_after_every_offset({"topic": "t", "fault": "skips"})


@pytest.mark.parametrize("fault", ["", "blocks"])
def test_counts_on_idle_polls_though_the_records_are_counted(fault: str) -> None:
    props = {"topic": "t", "fault": fault}
    if not fault:
        Endless().test_an_idle_poll_gives_nothing_and_returns(props)
        return
    with pytest.raises(AssertionError, match=r"A poll without records took \d+\.\d s"):
        Endless().test_an_idle_poll_gives_nothing_and_returns(props)


@pytest.mark.parametrize("kit", [HastyEndless, HastyLetters])
def test_does_not_wait_for_a_poll_that_sleeps_for_minutes(kit: type[TestLettersInOrder]) -> None:
    with pytest.raises(AssertionError, match=r"A poll has not returned for \d+ s(.|\n)*time\.sleep\(600\)"):
        kit().test_an_idle_poll_gives_nothing_and_returns({"topic": "t", "fault": "sleeps for minutes"})


def test_notices_a_source_that_promises_more_than_is_tested() -> None:
    class Doubling(TestLettersInOrder):
        resumes_exactly = False

    Doubling().test_says_whether_it_resumes_exactly({"topic": "t"})
    with pytest.raises(AssertionError):
        Doubling().test_says_whether_it_resumes_exactly({"topic": "t", "fault": "claims too much"})


SINK_FAULTS = {
    "test_everything_put_is_written_and_committed": [
        "flushes nothing",
        "commits ahead",
        "writes at once and at flush",
    ],
    "test_what_may_be_committed_is_durable": ["flushes nothing", "commits before it flushes"],
    "test_an_empty_put_writes_nothing": ["fails when empty"],
    "test_partitions_come_and_go": ["forgets closed partitions"],
}


@pytest.mark.parametrize(("fault", "test"), faults_of(SINK_FAULTS))
def test_notices_a_sink_that(tmp_path: Path, fault: str, test: str) -> None:
    props, records, written = _pages(tmp_path, fault)
    with pytest.raises((*NOTICED, IndexError)):
        getattr(TestPagesInOrder(), test)(props, records, written)


@pytest.mark.parametrize(
    ("fault", "moment"),
    [("commits before it flushes", KillMoment.AFTER_COMMIT), ("commits ahead", KillMoment.AFTER_FLUSH)],
)
def test_notices_a_sink_that_loses_records_when_killed(tmp_path: Path, fault: str, moment: KillMoment) -> None:
    props, records, written = _pages(tmp_path, fault)
    with pytest.raises(AssertionError, match=r"Lost|was not given|the offset passed to it was"):
        TestPagesInOrder().test_nothing_is_lost_when_it_is_killed(props, records, written, moment)


def test_notices_a_sink_that_is_not_exact(tmp_path: Path) -> None:
    class Exact(TestPagesInOrder):
        exactly_once = True

    props, records, written = _pages(tmp_path, "")
    with pytest.raises(AssertionError, match="Doubled"):
        Exact().test_nothing_is_lost_when_it_is_killed(props, records, written, KillMoment.AFTER_FLUSH)


class TestObjects(SinkConnectorTests):
    """A sink of JSON objects: what is written is compared as the dicts and lists that they are."""

    connector_class = ObjectsConnector

    @pytest.fixture
    def props(self, tmp_path: Path) -> Mapping[str, str]:
        return {"file": str(tmp_path / "objects")}

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        return sink_records([{"id": number, "tags": [str(number), None]} for number in range(6)], partitions=2)

    def expected(self, record: SinkRecord) -> object:
        return {**record.value, "at": [record.original_partition, record.original_offset]}

    @pytest.fixture
    def written(self, props: Mapping[str, str]) -> Callable[[], Iterable[Any]]:
        return lambda: [json.loads(line) for line in Path(props["file"]).read_text().splitlines()]


def test_shows_the_objects_that_a_sink_has_lost(tmp_path: Path) -> None:
    kit, props = TestObjects(), {"file": str(tmp_path / "objects"), "fault": "flushes nothing"}
    records = sink_records([{"id": 1, "tags": []}])
    with pytest.raises(AssertionError, match=re.escape("{'id': 1, 'tags': [], 'at': [0, 0]} are committed and not in")):
        kit.test_what_may_be_committed_is_durable(props, records, list)
    with pytest.raises(AssertionError, match=re.escape("Lost: {'id': 1, 'tags': [], 'at': [0, 0]}")):
        kit.test_a_task_may_be_given_records_again(props, records, list)


CONVERTER_FAULTS = {
    "test_columns_are_written_like_rows": ["shouts by column"],
    "test_columns_are_read_like_rows": ["drops nulls by column"],
}


@pytest.mark.parametrize(("fault", "test"), faults_of(CONVERTER_FAULTS))
def test_notices_a_converter_that(fault: str, test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(TestTextInOrder(), test)(_text(fault), sample_values())


def test_notices_a_converter_that_takes_garbage_by_column() -> None:
    with pytest.raises(pytest.fail.Exception):
        TestTextInOrder().test_garbage_is_a_data_error(_text("replaces by column"), [b"\xff"])


def test_notices_a_converter_that_takes_garbage() -> None:
    with pytest.raises(AssertionError, match="is to be refused"):
        TestTextInOrder().test_garbage_is_a_data_error(_text(""), [b"text"])


def test_notices_a_converter_that_loses_tombstones() -> None:
    with pytest.raises(AssertionError):
        TestTextInOrder().test_a_tombstone_stays_one(_text("loses tombstones"))


def test_notices_a_converter_that_raises_something_else() -> None:
    with pytest.raises(TypeError):
        TestTextInOrder().test_what_is_written_is_read_again(_text("raises something"), sample_values())


def test_notices_a_converter_that_does_not_read_what_it_wrote() -> None:
    class Expecting(TestTextInOrder):
        def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
            return given

    with pytest.raises(AssertionError):
        Expecting().test_what_is_written_is_read_again(_text(""), sample_values())


TRANSFORMATION_FAULTS = {
    "test_some_records_are_changed": ["does nothing", "refuses all"],
    "test_its_input_is_not_changed": ["mutates", "mutates values", "mutates by batch"],
    "test_a_record_keeps_its_origin": ["moves"],
    "test_batches_are_transformed_like_rows": ["differs by batch"],
    "test_it_keeps_no_state": ["counts", "remembers"],
}


@pytest.mark.parametrize(("fault", "test"), faults_of(TRANSFORMATION_FAULTS))
def test_notices_a_transformation_that(fault: str, test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(TestStampInOrder(), test)(_stamps(fault), RECORDS)


def test_notices_a_mutation_that_another_test_has_made_before() -> None:
    """What is changed in place the same way each time is not to be seen in values that were changed before."""
    stamps = _stamps("mutates values")
    TestStampInOrder().test_some_records_are_changed(stamps, RECORDS)
    TestStampInOrder().test_batches_are_transformed_like_rows(stamps, RECORDS)
    with pytest.raises(AssertionError, match="It changes its input in place: make a new value"):
        TestStampInOrder().test_its_input_is_not_changed(stamps, RECORDS)


def test_says_what_to_do_where_nothing_changes() -> None:
    with pytest.raises(AssertionError, match=r"Stamp changes none of the \d+ records, .* override `records` with some"):
        TestStampInOrder().test_some_records_are_changed(_stamps("does nothing"), RECORDS)


def test_notices_a_transformation_that_fails_on_nulls() -> None:
    with pytest.raises(AttributeError):
        TestStampInOrder().test_tombstones_stay_tombstones_or_are_refused(_stamps("fails on nulls"), RECORDS)


def test_notices_variants_that_do_not_do_the_same() -> None:
    class TiltedTests(TransformationTests):
        transformation_class = Tilted

    with pytest.raises(AssertionError):
        TiltedTests().test_its_variants_do_the_same({"topic": ""}, RECORDS)


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("answers with a key", "test_it_says_yes_or_no"),
        ("remembers", "test_it_says_yes_or_no"),
        ("answers once a batch", "test_batches_are_tested_like_rows"),
    ],
)
def test_notices_a_predicate_that(fault: str, test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(TestMoodyInOrder(), test)(lambda: Moody.configured({"topic": "", "fault": fault}), RECORDS)


def test_notices_an_option_that_is_not_documented() -> None:
    with pytest.raises(AssertionError, match="these options need a doc: key"):
        PredicateTests().test_the_plugin_is_documented(Silent)


def _pages(folder: Path, fault: str) -> tuple[dict[str, str], list[SinkRecord], Callable[[], list[str]]]:
    file = folder / "pages"
    records = sink_records([f"line {number}" for number in range(12)], partitions=2)
    return {"file": str(file), "fault": fault}, records, lambda: file.read_text().splitlines()


def _text(fault: str) -> TextConverter:
    made: TextConverter = TextConverter.configured({"topic": "", "fault": fault})
    return made


def _stamps(fault: str) -> Callable[[], Stamp]:
    return lambda: Stamp.configured({"topic": "", "fault": fault})
