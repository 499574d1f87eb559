"""A consumer group of a stream: what it has handed out, what is left behind, and what is acknowledged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from connect.errors import RetriableError
from connectors.redis.failures import code_of, told
from connectors.redis.server import Client
from connectors.redis.stream_consumers import ConsumerState, StreamId, parsed_id

__all__ = ["Entry", "MissingGroupError", "StreamGroup"]

Entry: TypeAlias = tuple[bytes, Sequence[bytes] | None]
"""The id of an entry, and its names and values one after the other; ``None`` if it was deleted meanwhile."""

_NO_KEY: Final = "no such key"
_MOST_ACKNOWLEDGED: Final = 1000


class StreamGroup:
    """The commands for one group of one stream."""

    def __init__(self, client: Client, stream: str, group: str) -> None:
        self._client = client
        self._stream = stream
        self._group = group
        # The client's own reading of entries makes a dict of each, which is slow.
        client.set_response_callback("XREADGROUP", _unchanged)

    def create(self, start: str) -> bool:
        """Create the group, and the stream if there is none; return whether there was no group."""
        from redis.exceptions import ResponseError  # noqa: PLC0415 - the client is loaded only where it is used

        with told(f"create the consumer group {self._group}"):
            try:
                self._client.execute_command("XGROUP CREATE", self._stream, self._group, start, "MKSTREAM")
            except ResponseError as error:
                if code_of(error) != "BUSYGROUP":
                    raise
                return False
        return True

    def exists(self) -> bool:
        """Return whether there is the group."""
        return any(group["name"] == self._group for group in self._groups())

    def pending(self, consumer: str, after: str, most: int) -> Sequence[Entry]:
        """Return entries that a consumer was given and has not acknowledged."""
        return self._read(consumer, after, most)

    def new(self, consumer: str, most: int, block_ms: int, *, keeps: bool) -> Sequence[Entry]:
        """Return entries that no consumer was given; they count as pending if the group ``keeps`` them so."""
        return self._read(consumer, ">", most, block_ms, keeps=keeps)

    def _read(
        self, consumer: str, after: str, most: int, block_ms: int | None = None, *, keeps: bool = True
    ) -> Sequence[Entry]:
        options: list[Any] = ["COUNT", most]
        if block_ms:
            options += ["BLOCK", block_ms]
        if not keeps:
            options.append("NOACK")
        command = ("XREADGROUP", "GROUP", self._group, consumer, *options, "STREAMS", self._stream, after)
        with told(f"read the stream {self._stream}"):
            answer = self._of_group(*command)
        if not answer:
            return ()
        ((_, entries),) = answer
        return [(entry[0], _fields(entry[1])) for entry in entries]

    def acknowledge(self, ids: Sequence[bytes]) -> None:
        """Acknowledge entries."""
        with told(f"acknowledge entries of the stream {self._stream}"):
            pipe = self._client.pipeline(transaction=False)
            for start in range(0, len(ids), _MOST_ACKNOWLEDGED):
                pipe.execute_command("XACK", self._stream, self._group, *ids[start : start + _MOST_ACKNOWLEDGED])
            pipe.execute()

    def last_id(self) -> StreamId | None:
        """Return the id of the newest entry that the stream has ever had; ``None`` if there is no stream."""
        from redis.exceptions import ResponseError  # noqa: PLC0415

        with told(f"ask about the stream {self._stream}"):
            try:
                found = _pairs(self._client.execute_command("XINFO STREAM", self._stream))
            except ResponseError as error:
                if _NO_KEY in str(error):
                    return None
                raise
        return parsed_id(found["last-generated-id"])

    def lag(self) -> int | None:
        """Return how many entries no consumer was given yet; ``None`` where the server does not know."""
        for group in self._groups():
            if group["name"] == self._group:
                lag = group.get("lag")
                return None if lag is None else int(lag)
        return None

    def consumers(self) -> list[ConsumerState]:
        """Return the consumers of the group."""
        with told(f"ask about the consumer group {self._group}"):
            found = [_pairs(each) for each in self._of_group("XINFO CONSUMERS", self._stream, self._group)]
        return [ConsumerState(each["name"], int(each["pending"]), int(each["idle"])) for each in found]

    def remove(self, consumer: str) -> None:
        """Remove a consumer that has nothing pending."""
        with told(f"remove the consumer {consumer}"):
            self._client.execute_command("XGROUP DELCONSUMER", self._stream, self._group, consumer)

    def _of_group(self, *command: Any) -> Any:
        try:
            return self._client.execute_command(*command)
        except Exception as error:
            if code_of(error) != "NOGROUP" and _NO_KEY not in str(error):
                raise
            text = f"The stream {self._stream} or its consumer group {self._group} is gone"
            raise MissingGroupError(f"{text}; it is created again.", 0.1) from error

    def _groups(self) -> list[Mapping[str, Any]]:
        from redis.exceptions import ResponseError  # noqa: PLC0415

        with told(f"ask about the stream {self._stream}"):
            try:
                return [_pairs(each) for each in self._client.execute_command("XINFO GROUPS", self._stream)]
            except ResponseError as error:
                if _NO_KEY in str(error):
                    return []
                raise


class MissingGroupError(RetriableError):
    """The stream or its group is gone."""


def _unchanged(answer: Any, **_: Any) -> Any:
    return answer


def _fields(answer: Any) -> Sequence[bytes] | None:
    """Return the names and values of an entry; ``None`` if it has none, as an entry that was deleted."""
    if isinstance(answer, Mapping):
        answer = [part for item in answer.items() for part in item]
    return answer or None


def _pairs(answer: Any) -> Mapping[str, Any]:
    """Return an answer of names and values as a mapping with texts."""
    items = answer.items() if isinstance(answer, Mapping) else zip(answer[::2], answer[1::2], strict=True)
    return {_text(name): _text(value) if isinstance(value, bytes) else value for name, value in items}


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
