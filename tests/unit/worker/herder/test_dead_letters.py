"""Dead letter queues: which records are read, what each tells, and what is asked and answered."""

from __future__ import annotations

from typing import Any

import pytest

from worker.config.connector import SinkConnectorConfig
from worker.config.internal_topics import InternalTopics
from worker.errors import BadRequestError
from worker.herder.dead_letters import Replay, listed_document, read_after, read_limit, read_replay, replayed_document
from worker.messages.messages import DeadLettersListed, DeadLettersReplayed
from worker.runtime.dead_letters.dead_letter import REPLAYED, DeadLetter, DeadLetterOrigins
from worker.runtime.dead_letters.reading import Range, ranges_after, ranges_of, ranges_to_replay, rest_of
from worker.security.redaction import Redaction

BEGINS, ENDS = {0: 2, 1: 0}, {0: 10, 1: 5}
CONTEXT = [
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"3"),
    ("__connect.errors.offset", b"77"),
    ("__connect.errors.connector.name", b"sink"),
    ("__connect.errors.stage", b"VALUE_CONVERTER"),
    ("__connect.errors.exception.message", "fälsch".encode()),
]


def record(headers: list[tuple[str, bytes | None]], value: bytes | None = b"v") -> DeadLetter:
    return DeadLetter("queue", 0, 5, 1000, "CreateTime", b"\xff", value, headers)


def test_the_list_goes_on_after_a_record_partition_by_partition() -> None:
    assert ranges_after(None, BEGINS, ENDS) == [Range(0, 2, 10), Range(1, 0, 5)]
    assert ranges_after((0, 6), BEGINS, ENDS) == [Range(0, 7, 10), Range(1, 0, 5)]
    assert ranges_after((0, 9), BEGINS, ENDS) == [Range(1, 0, 5)]
    assert ranges_after((1, 4), BEGINS, ENDS) == []
    assert ranges_after(None, {}, {}) == []


def test_what_is_selected_and_not_there_is_left_out() -> None:
    assert ranges_of([(1, 3, 99), (0, 0, 2), (7, 0, 1), (0, 1, 4)], BEGINS, ENDS) == [Range(0, 2, 4), Range(1, 3, 5)]


def test_all_that_was_not_replayed_ends_where_it_ended_at_first() -> None:
    assert ranges_to_replay({0: 4}, {0: 8, 1: 5}, BEGINS, ENDS) == [Range(0, 4, 8), Range(1, 0, 5)]
    assert ranges_to_replay({0: 8, 1: 5}, {0: 8, 1: 5}, BEGINS, ENDS) == []


def test_what_remains() -> None:
    ranges = [Range(0, 2, 10), Range(1, 0, 5)]
    assert rest_of(ranges, {}) == ranges
    assert rest_of(ranges, {0: 10, 1: 3}) == [Range(1, 3, 5)]


def test_a_record_goes_back_as_it_came() -> None:
    original = record([("mine", b"1"), (REPLAYED, b"queue:0:1"), ("mine", None), *CONTEXT]).original(None)
    assert original is not None
    assert (original.topic, original.partition, original.offset) == ("orders", 3, 77)
    assert (original.key, original.value, original.timestamp) == (b"\xff", b"v", 1000)
    assert list(original.headers) == [("mine", b"1"), ("mine", None), (REPLAYED, b"queue:0:5")]


def test_a_record_without_context_goes_to_the_only_topic_or_nowhere() -> None:
    assert record([]).original(None) is None
    only = record([]).original("orders")
    assert only is not None
    assert (only.topic, only.partition, only.offset) == ("orders", -1, -1)


@pytest.mark.parametrize("named", [True, False])
def test_a_shared_queue_holds_records_of_others(named: bool) -> None:
    assert record(CONTEXT).belongs_to("sink", named=named)
    assert not record(CONTEXT).belongs_to("another", named=named)


def test_a_record_without_a_name_is_of_a_connector_that_names_none() -> None:
    assert record([]).belongs_to("another", named=False)
    assert not record([]).belongs_to("another", named=True)


def origins(**topics: str) -> DeadLetterOrigins:
    config = {"name": "sink", "connector.class": "C", "tasks.max": "1"}
    worker = {"config.storage.topic": "configs", "offset.storage.topic": "offsets", "status.storage.topic": "statuses"}
    parsed = SinkConnectorConfig.parse({**config, **{key.replace("_", "."): value for key, value in topics.items()}})
    return DeadLetterOrigins(parsed, InternalTopics(worker))


def from_topic(topic: str) -> DeadLetter:
    return record([*CONTEXT[1:], ("__connect.errors.topic", topic.encode())])


@pytest.mark.parametrize("to", ["topic", "task"])
@pytest.mark.parametrize(
    ("topics", "topic", "goes"),
    [
        ({"topics": "orders,payments"}, "payments", True),
        ({"topics": "orders,payments"}, "payroll", False),
        ({"topics_regex": "or.*"}, "orders", True),
        ({"topics_regex": "or.*"}, "my-orders", False),
        ({"topics_regex": ".*"}, "configs", False),
        ({"topics_regex": ".*"}, "offsets", False),
        ({"topics_regex": ".*"}, "statuses", False),
        ({"topics_regex": ".*"}, "__consumer_offsets", False),
    ],
)
def test_a_record_goes_back_to_topics_of_the_connector_alone(
    topics: dict[str, str], topic: str, goes: bool, to: str
) -> None:
    known = origins(**topics)
    reason = known.why_not(known.original(from_topic(topic)), to)
    if goes:
        assert reason is None
    else:
        assert reason is not None
        assert f"comes from topic {topic}, which connector sink does not read" in reason


def test_a_task_is_given_only_what_is_known_to_be_at_a_place() -> None:
    known = origins(topics="orders")
    original = known.original(record([]))
    assert known.why_not(original, "topic") is None
    assert "origin of the record is unknown" in str(known.why_not(original, "task"))
    several = origins(topics="orders,payments")
    assert "origin of the record is unknown" in str(several.why_not(several.original(record([])), "topic"))


def test_bytes_are_shown_as_text_where_they_are() -> None:
    shown = record([("h", b"x"), *CONTEXT], value=None).document(Redaction())
    assert (shown["key"], shown["value"]) == ({"base64": "/w=="}, None)
    assert shown["headers"] == [{"key": "h", "value": {"text": "x"}}]
    assert (shown["error"]["offset"], shown["error"]["message"], shown["error"]["task"]) == (77, "fälsch", None)
    assert record([]).document(Redaction())["error"] is None


@pytest.mark.parametrize(
    ("body", "replay"),
    [
        ({"to": "topic", "selection": "all"}, Replay("topic", None, None, dry_run=False)),
        (
            {"to": "task", "selection": [{"partition": 0, "offset": 5}], "dry_run": True},
            Replay("task", [(0, 5, 6)], None, dry_run=True),
        ),
        (
            {"to": "task", "selection": [{"partition": 1, "from": 5, "to": 9}], "until": {"0": 3}},
            Replay("task", [(1, 5, 10)], {"0": 3}, dry_run=False),
        ),
    ],
)
def test_requests_to_replay(body: dict[str, Any], replay: Replay) -> None:
    assert read_replay(body) == replay


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"selection": "all"}, "to is None; it must be topic"),
        ({"to": "topic"}, "selection must be"),
        ({"to": "topic", "selection": []}, "selection must be"),
        ({"to": "topic", "selection": [{"partition": 0}]}, "selects nothing"),
        ({"to": "topic", "selection": [{"partition": 0, "offset": -1}]}, "selects nothing"),
        ({"to": "topic", "selection": [{"partition": 0, "from": 5, "to": 4}]}, "selects nothing"),
        ({"to": "topic", "selection": [5]}, "selects nothing"),
        ({"to": "topic", "selection": "all", "dry_run": "yes"}, "dry_run is 'yes'"),
        ({"to": "topic", "selection": "all", "until": {"x": 1}}, "until must be"),
    ],
)
def test_a_mistake_names_the_member(body: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequestError, match=text):
        read_replay(body)


def test_the_answer_holds_the_request_that_goes_on() -> None:
    more = DeadLettersReplayed("q", [{"partition": 0, "offset": 1}], [], [(0, 2, 6)], {"0": 6}, more=True)
    everything = Replay("task", None, None, dry_run=False)
    assert replayed_document(everything, more)["next"] == {"to": "task", "selection": "all", "until": {"0": 6}}
    looked = replayed_document(Replay("task", None, None, dry_run=True), more)["next"]
    assert read_replay(looked) == Replay("task", [(0, 2, 6)], None, dry_run=True)
    chosen = replayed_document(Replay("task", [(0, 1, 6)], None, dry_run=False), more)["next"]
    assert read_replay(chosen) == Replay("task", [(0, 2, 6)], None, dry_run=False)


def test_a_list_is_read_page_by_page() -> None:
    document = listed_document(DeadLettersListed("q", [], (1, 41), {"0": 2}, 7, 5))
    assert document == {"topic": "q", "records": [], "next": "1:41", "replayed": {"0": 2}, "total": 7, "remaining": 5}
    assert read_after("1:41") == (1, 41)
    assert read_after(None) is None
    assert (read_limit(None), read_limit("7")) == (100, 7)


@pytest.mark.parametrize("after", ["1", "a:1", "1:-1", ":", "1:²"])
def test_what_is_no_place(after: str) -> None:
    with pytest.raises(BadRequestError, match="partition:offset"):
        read_after(after)


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "99999999999999999999999"])
def test_what_is_no_limit(limit: str) -> None:
    with pytest.raises(BadRequestError, match="limit"):
        read_limit(limit)
