"""The contract kit notices plugins that break the contract, and finds nothing wrong with the same plugins in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from broken_plugins import (
    LettersConnector,
    Moody,
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
    with pytest.raises(ConnectError, match="task_configs must keep to max_tasks"):
        TestLettersInOrder().test_task_configs_keep_to_max_tasks({"topic": "t", "fault": "too many tasks"}, 2)


def test_notices_a_source_that_cannot_be_stopped_twice() -> None:
    with pytest.raises(AttributeError):
        TestLettersInOrder().test_stop_may_be_called_again({"topic": "t", "fault": "stops once"})


def test_a_source_may_resume_less_exactly_if_it_loses_nothing() -> None:
    class Doubling(TestLettersInOrder):
        resumes_exactly = False

    Doubling().test_resumes_after_every_offset({"topic": "t", "fault": "forgets"})
    with pytest.raises(AssertionError, match="lost records"):
        Doubling().test_resumes_after_every_offset({"topic": "t", "fault": "skips"})


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
    with pytest.raises(AssertionError, match=r"Lost|was not given|of which it was given"):
        TestPagesInOrder().test_nothing_is_lost_when_it_is_killed(props, records, written, moment)


def test_notices_a_sink_that_is_not_exact(tmp_path: Path) -> None:
    class Exact(TestPagesInOrder):
        exactly_once = True

    props, records, written = _pages(tmp_path, "")
    with pytest.raises(AssertionError, match="Doubled"):
        Exact().test_nothing_is_lost_when_it_is_killed(props, records, written, KillMoment.AFTER_FLUSH)


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
    "test_its_input_is_not_changed": ["mutates"],
    "test_a_record_keeps_its_origin": ["moves"],
    "test_batches_are_transformed_like_rows": ["differs by batch"],
    "test_it_keeps_no_state": ["counts"],
}


@pytest.mark.parametrize(("fault", "test"), faults_of(TRANSFORMATION_FAULTS))
def test_notices_a_transformation_that(fault: str, test: str) -> None:
    stamp = Stamp.configured({"topic": "", "fault": fault})
    with pytest.raises(AssertionError):
        getattr(TestStampInOrder(), test)(stamp, RECORDS)


def test_notices_a_transformation_that_fails_on_nulls() -> None:
    with pytest.raises(AttributeError):
        TestStampInOrder().test_tombstones_stay_tombstones_or_are_refused(
            Stamp.configured({"topic": "", "fault": "fails on nulls"}), RECORDS
        )


def test_notices_variants_that_do_not_do_the_same() -> None:
    class TiltedTests(TransformationTests):
        transformation_class = Tilted

    with pytest.raises(AssertionError):
        TiltedTests().test_its_variants_do_the_same({"topic": ""}, RECORDS)


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("answers with a key", "test_it_says_yes_or_no"),
        ("answers once a batch", "test_batches_are_tested_like_rows"),
    ],
)
def test_notices_a_predicate_that(fault: str, test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(TestMoodyInOrder(), test)(Moody.configured({"topic": "", "fault": fault}), RECORDS)


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
