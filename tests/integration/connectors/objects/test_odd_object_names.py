"""Objects and folders of odd names, and more of them than a page of a list has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from connect.data import Schema
from connect.testing import TopicLog, run_sink
from connectors import objects
from equipment.proofs import thorough
from equipment.stores.object_sources import CONNECTORS, Source, read, records_of
from equipment.stores.object_targets import ObjectTarget

pytestmark = pytest.mark.integration

ODD: Final = (
    "a b",
    "a%41",
    "a%2Fb",
    "a+b",
    "a&b=c?d#e",
    "/first",
    "..",
    ".",
    "last ",
    " first",
    "ä\u2028ö",
    "a\u0308",
    "\U0001f600",
    "a:b*c|d",
    'say "no"',
    "~x",
    "a//b",
    "back\\slash",
    "tab\there",
    "$x{y}[z]^`",
)
"""Values that name folders, of which each service, and each client, takes some for something else."""


@pytest.mark.parametrize("target", ["local", "s3", *thorough("sftp", "gcs", "azure")], indirect=True)
def test_odd_names_of_folders_come_back(target: ObjectTarget, sources: list[Source]) -> None:
    values = [{"id": at, "place": odd} for at, odd in enumerate(ODD)]
    schema = Schema.struct({"id": Schema.int64(), "place": Schema.string()}, name="Odd")
    records = records_of(values, list(ODD), schema, Schema.string())
    props = {**target.props, "format.class": "AvroFormat", "flush.size": "1000", "rotate.on.offset.commit": "true"}
    props |= {"store.kafka.keys": "true", "keys.format.class": "AvroFormat", "partitioner.class": "FieldPartitioner"}
    props |= {"partition.field.name": "place"}
    sink: Any = getattr(objects, target.connector)
    run_sink(sink, {**props, "topics": "orders"}, TopicLog(records))
    files = target.files()
    assert len(files) == 2 * len(ODD)
    assert not any(part in ("", ".", "..") for path in files for part in path.split("/"))
    if target.kind in CONNECTORS:
        reads = {key: value for key, value in props.items() if not key.startswith(("flush", "rotate"))}
        source = Source(CONNECTORS[target.kind], reads)
        sources.append(source)
        found = read(source.start())
        assert sorted((each.value["id"], each.value["place"], each.key) for each in found) == [
            (at, odd, odd) for at, odd in enumerate(ODD)
        ]


def test_objects_of_odd_names_are_read_and_removed(target: ObjectTarget, sources: list[Source]) -> None:
    """The names are those of others, who escape nothing."""
    unlikely = {"a//b", "back\\slash", "tab\there"}
    names = [f"in/{at} {odd}.txt" for at, odd in enumerate(ODD) if odd not in unlikely]
    for name in names:
        target.store.put(name, name.encode() + b"\n")
    props = {key: value for key, value in target.props.items() if "size" not in key}
    source = Source(CONNECTORS[target.kind], {**props, "prefix": "in/", "topic": "t", "finished.action": "delete"})
    sources.append(source)
    task = source.start()
    found = read(task)
    assert sorted(record.value for record in found) == sorted(names)
    source.commit(task, found)
    assert list(target.store.below("in")) == []


@pytest.mark.thorough
def test_thousands_of_objects_are_listed(target: ObjectTarget, sources: list[Source]) -> None:
    """A page of a list has 1,000 of S3 and Google, and 5,000 of Azure."""
    store, count = target.store, 1203
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda at: store.put(f"in/{at:05}.txt", b"%d\n" % at), range(count)))
    props = {key: value for key, value in target.props.items() if "size" not in key}
    source = Source(CONNECTORS[target.kind], {**props, "prefix": "in/", "topic": "t"})
    sources.append(source)
    assert [record.value for record in read(source.start())] == [str(at) for at in range(count)]


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["gcs", "azure"], indirect=True)
def test_objects_are_removed_and_added_between_the_pages_of_a_list(target: ObjectTarget, sources: list[Source]) -> None:
    """The task removes those of the first pages before it asks for the next one; others remove and add some, too."""
    store, fillers = target.store, 4100 if target.kind == "azure" else 200
    keys = [f"in/0{at:04}.txt" for at in range(1010)] + [f"in/2{at:04}.txt" for at in range(50)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: store.put(key, f"{key}\n".encode()), keys))
        list(threads.map(lambda at: store.put(f"in/1{at:04}.none", b"x"), range(fillers)))
    props = {key: value for key, value in target.props.items() if "size" not in key}
    props |= {"prefix": "in/", "topic": "t", "file.name.template": r".*\.txt", "finished.action": "delete"}
    source = Source(CONNECTORS[target.kind], props)
    sources.append(source)
    task, found, gone, late = source.start(), list[Any](), keys[-20:-10], ["in/00000a.txt", "in/3.txt"]
    while len(found) < 500:
        found += (records := list(task.poll()))
        source.commit(task, records)
    for key in gone:
        store.remove(key)
    for key in late:
        store.put(key, f"{key}\n".encode())
    while (batch := task.poll()) is not None:
        found += (records := list(batch))
        source.commit(task, records)
    found += read(task)
    assert sorted(record.value for record in found) == sorted({*keys, *late}.difference(gone))
    source.commit(task, found)
    assert task.drained()
    assert {key for key, _ in store.below("in") if key.endswith(".txt")} == set()
