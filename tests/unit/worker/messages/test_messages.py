import dataclasses

import pytest

from connect.errors import ConnectError
from worker.messages import messages
from worker.messages.messages import decode, encode

EXAMPLES = [
    messages.RunConnector("c", {"a": "b"}, {"w": "x"}),
    messages.RunTask("c", 1, {"t": "1"}, {"a": "b"}, {}, paused=True),
    messages.ValidateConfig({"a": "b"}, {}),
    messages.Pause(),
    messages.Stop(),
    messages.OffsetsRead(3, [{"position": 5}, None], None),
    messages.OffsetsCommitted(4, "disk full"),
    messages.Started("1.0"),
    messages.Failed("Traceback ..."),
    messages.TaskConfigs([{"file": "a"}]),
    messages.ConfigExpires(60_000),
    messages.Metrics({"source-record-poll-total": 5.0}),
    messages.LogRecord("a.b", 20, 1.5, "hällo"),
    messages.Validated({"error_count": 0}, "source"),
    messages.ReadOffsets(1, [{"filename": "x"}]),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_pipe(message: messages.Command) -> None:
    assert decode(encode(message)) == message


def test_offsets_keep_the_order_of_their_members() -> None:
    commit = messages.CommitOffsets(1, [({"b": 1, "a": 2}, {"z": 0, "y": 1})])
    partition, offset = decode(encode(commit)).offsets[0]
    assert list(partition) == ["b", "a"]
    assert offset is not None
    assert list(offset) == ["z", "y"]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1,2]", b'["Nothing",{}]', b'["Stop",{"a":1}]', b"\x80\x04", b"[[],{}]"]
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ConnectError, match="not a message"):
        decode(data)


def test_messages_are_frozen() -> None:
    for message in EXAMPLES:
        assert dataclasses.is_dataclass(message)
        assert type(message).__dataclass_params__.frozen  # type: ignore[attr-defined]
