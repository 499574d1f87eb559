"""The contract of transformations and predicates, as test classes to inherit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeAlias

import pytest

from connect.data import Batch, Record, SinkBatch, SinkRecord, SourceBatch, SourceRecord
from connect.errors import DataError
from connect.plugin import Plugin
from connect.testing.plugin_contract import PluginTests
from connect.testing.samples import sample_sink_records, sample_source_records
from connect.testing.strict_equality import exact_record
from connect.transformation import Predicate, Transformation

__all__ = ["PredicateTests", "TransformationTests"]

NewTransformation: TypeAlias = Callable[[], Transformation[Any]]
"""Makes a transformation that has seen no record."""

NewPredicate: TypeAlias = Callable[[], Predicate[Any]]
"""Makes a predicate that has seen no record."""


class TransformationTests(PluginTests):
    """Tests of a transformation. Set its class, and the fixture ``props`` if it has required options::

        class TestMaskField(TransformationTests):
            transformation_class = MaskField

            @pytest.fixture
            def props(self):
                return {"fields": "name"}

    If it has two variants, the nested classes ``Key`` and ``Value``, set the outer class: both are tested, and must
    behave the same. The transformation is tried on many kinds of records; it must refuse records that it cannot
    transform with a ``DataError``. Override ``records`` to use others, some of which it must change.
    """

    transformation_class: ClassVar[type[Transformation[Any]]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run every test once for each variant."""
        if "plugin_class" in metafunc.fixturenames:
            variants = _variants(self.transformation_class)
            metafunc.parametrize("plugin_class", variants, ids=[variant.__name__ for variant in variants])

    @pytest.fixture
    def transformation(self, plugin_class: type[Plugin[Any]], props: Mapping[str, str]) -> Transformation[Any]:
        """The transformation, or one of its variants, configured with ``props``, for tests of your own."""
        made: Transformation[Any] = plugin_class.configured(props)
        return made

    @pytest.fixture
    def new_transformation(self, plugin_class: type[Plugin[Any]], props: Mapping[str, str]) -> NewTransformation:
        """A function that returns a new transformation, or variant, which has not seen any record."""
        return lambda: plugin_class.configured(props)

    @pytest.fixture
    def records(self) -> Sequence[Record]:
        """The records to try: source and sink records, including tombstones."""
        return [*sample_source_records(), *sample_sink_records()]

    def identity(self, record: Record) -> object:
        """Return the part of a record that must be the same when it is transformed again: by default all of it."""
        return exact_record(record)

    def test_some_records_are_changed(self, new_transformation: NewTransformation, records: Sequence[Record]) -> None:
        """The transformation changes or drops some of the records, and does not refuse all of them.

        Otherwise the other tests would pass whatever it does.
        """
        made = [_applied(new_transformation, record) for record in records]
        refusals = [item for item in made if isinstance(item, DataError)]
        assert len(refusals) < len(records), f"Every record was refused, the first with: {refusals[0]}"
        unchanged = [
            isinstance(after, DataError) or (after is not None and exact_record(after) == exact_record(before))
            for before, after in zip(records, made, strict=True)
        ]
        name = type(new_transformation()).__qualname__
        assert not all(unchanged), (
            f"{name} changes none of the {len(records)} records, so that nothing is tested: override `records` with "
            "some that it changes (and `props`, if it needs other options for that)."
        )

    def test_a_record_keeps_its_origin(self, new_transformation: NewTransformation, records: Sequence[Record]) -> None:
        """A transformation does not change the origin of a record, which offsets refer to."""
        for record in records:
            new = _applied(new_transformation, record)
            if isinstance(new, Record):
                assert type(new) is type(record)
                assert _origin(new) == _origin(record)

    def test_its_input_is_not_changed(self, new_transformation: NewTransformation, records: Sequence[Record]) -> None:
        """The input is needed again for a report or a retry, so transformations return new records."""
        for record in records:
            given, before = copy.deepcopy(record), exact_record(record)
            with suppress(DataError):
                new_transformation().apply(given)
            assert exact_record(given) == before, f"It changes its input in place: make a new value. Input: {record}"
        for batch, untouched in zip(_batches(records), _batches(records), strict=True):
            with suppress(Exception):
                new_transformation().apply_batch(batch)
            changed = [row for row, before in zip(batch, untouched, strict=True) if not _same(row, before)]
            assert not changed, f"apply_batch changes its input in place: make new values. Changed: {changed[0]}"

    def test_batches_are_transformed_like_rows(
        self, new_transformation: NewTransformation, records: Sequence[Record]
    ) -> None:
        """``apply_batch`` returns what ``apply`` returns for the rows, and raises where that raises."""
        for batch in _batches(records):
            rows = [_applied(new_transformation, record) for record in batch]
            good = [index for index, row in enumerate(rows) if not isinstance(row, DataError)]
            for indices in (good, good[::-1], *([index] for index in good)) if good else ():
                made = new_transformation().apply_batch(_copied(batch.take(indices)))
                wanted = [row for index in indices if isinstance(row := rows[index], Record)]
                found = [record for part in made for record in part]
                assert [self.identity(record) for record in found] == [self.identity(record) for record in wanted]
            if len(good) < len(rows):
                with pytest.raises(Exception):  # noqa: B017 - any error has the runtime go by rows
                    list(new_transformation().apply_batch(_copied(batch)))

    def test_tombstones_stay_tombstones_or_are_refused(
        self, new_transformation: NewTransformation, records: Sequence[Record]
    ) -> None:
        """A record without key and value is transformed, or refused with a ``DataError``."""
        for record in records:
            bare = record.replace(key=None, key_schema=None, value=None, value_schema=None)
            made = _applied(new_transformation, bare)
            if not isinstance(made, DataError):
                found = [item for part in new_transformation().apply_batch(_batches([bare])[0]) for item in part]
                assert len(found) == (0 if made is None else 1)

    def test_it_keeps_no_state(self, new_transformation: NewTransformation, records: Sequence[Record]) -> None:
        """The result for a record does not depend on earlier records.

        The runtime creates a new transformation after a restart, and one for each task.
        """
        alone = [self._comparable(_applied(new_transformation, record)) for record in records]
        for order in (list(range(len(records))), list(range(len(records)))[::-1]):
            kept = new_transformation()
            for index in order:
                after_others = self._comparable(_applied(lambda: kept, records[index]))  # noqa: B023 - called at once
                assert after_others == alone[index], (
                    f"After other records it makes another result of {records[index]} than a new instance does: "
                    "keep no values of records in the transformation."
                )

    def test_its_variants_do_the_same(self, props: Mapping[str, str], records: Sequence[Record]) -> None:
        """The variant for keys treats keys as the variant for values treats values."""
        variants = {variant.__name__: variant for variant in _variants(self.transformation_class)}
        if variants.keys() != {"Key", "Value"}:
            pytest.skip("The transformation has no variants.")
        of_keys, of_values = variants["Key"].configured(props), variants["Value"].configured(props)
        for record in records:
            wanted = _applied(lambda: of_values, record)
            swapped = _applied(lambda: of_keys, _swapped(record))
            found = _swapped(swapped) if isinstance(swapped, Record) else swapped
            assert self._comparable(found) == self._comparable(wanted)

    def _comparable(self, made: Record | DataError | None) -> object:
        if isinstance(made, Record):
            return self.identity(made)
        return type(made).__name__


class PredicateTests(PluginTests):
    """Tests of a predicate. Set its class, and the fixture ``props`` if it has required options."""

    predicate_class: ClassVar[type[Predicate[Any]]]

    @pytest.fixture
    def plugin_class(self) -> type[Plugin[Any]]:
        """The predicate."""
        return self.predicate_class

    @pytest.fixture
    def predicate(self, props: Mapping[str, str]) -> Predicate[Any]:
        """The predicate, configured with ``props``, for tests of your own."""
        made: Predicate[Any] = self.predicate_class.configured(props)
        return made

    @pytest.fixture
    def new_predicate(self, props: Mapping[str, str]) -> NewPredicate:
        """A function that returns a new predicate, which has not seen any record."""
        return lambda: self.predicate_class.configured(props)

    @pytest.fixture
    def records(self) -> Sequence[Record]:
        """The records to try: source and sink records, including tombstones."""
        return [*sample_source_records(), *sample_sink_records()]

    def test_it_says_yes_or_no(self, new_predicate: NewPredicate, records: Sequence[Record]) -> None:
        """The result is a boolean or a ``DataError``, whatever was tested before, and the record is unchanged."""
        kept = new_predicate()
        for record in records:
            given, before = copy.deepcopy(record), exact_record(record)
            answer = _answer(new_predicate(), given)
            assert isinstance(answer, bool | DataError)
            assert isinstance(answer, DataError) or _answer(kept, given) is answer, (
                f"After other records it answers otherwise about {record} than a new instance does."
            )
            assert exact_record(given) == before, f"It changes the record it is asked about: {record}"

    def test_batches_are_tested_like_rows(self, new_predicate: NewPredicate, records: Sequence[Record]) -> None:
        """``test_batch`` has one result per row, that of ``test``, and raises where that raises."""
        for batch in _batches(records):
            rows = [_answer(new_predicate(), record) for record in batch]
            good = [index for index, row in enumerate(rows) if isinstance(row, bool)]
            if good:
                assert list(new_predicate().test_batch(batch.take(good))) == [rows[index] for index in good]
            if len(good) < len(rows):
                with pytest.raises(Exception):  # noqa: B017 - any error has the runtime go by rows
                    list(new_predicate().test_batch(batch))


def _variants(transformation_class: type[Transformation[Any]]) -> list[type[Transformation[Any]]]:
    nested = [getattr(transformation_class, name, None) for name in ("Key", "Value")]
    variants = [variant for variant in nested if variant is not None]
    return variants or [transformation_class]


def _applied(made: NewTransformation, record: Record) -> Record | DataError | None:
    """Apply the transformation to a copy of the record: it may modify its input, which other tests use too."""
    try:
        return made().apply(copy.deepcopy(record))
    except DataError as error:
        return error


def _same(one: Record, other: Record) -> bool:
    return exact_record(one) == exact_record(other)


def _answer(predicate: Predicate[Any], record: Record) -> bool | DataError:
    try:
        return predicate.test(record)
    except DataError as error:
        return error


def _batches(records: Iterable[Record]) -> list[Batch[Any]]:
    every = [copy.deepcopy(record) for record in records]
    return [
        *SourceBatch.from_records(record for record in every if isinstance(record, SourceRecord)),
        *SinkBatch.from_records(record for record in every if isinstance(record, SinkRecord)),
    ]


def _copied(batch: Batch[Any]) -> Batch[Any]:
    """Return the same records in one batch, with copied values."""
    (copied,) = _batches(batch)
    return copied


def _origin(record: Record) -> object:
    match record:
        case SourceRecord():
            return record.source_partition, record.source_offset
        case SinkRecord():
            return record.original_topic, record.original_partition, record.original_offset, record.offset
        case _:
            return None


def _swapped(record: Record) -> Record:
    return record.replace(
        key=record.value, key_schema=record.value_schema, value=record.key, value_schema=record.key_schema
    )
