"""Bulk writes: of what fails, the record that is to blame is found, and the others are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import BulkWriteError, ConnectionFailure, OperationFailure, PyMongoError, WaitQueueTimeoutError

from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.mongodb.failures import DUPLICATE_KEY, failure, is_passing_code, told, write_error_text
from connectors.mongodb.sink.documents import Document
from connectors.mongodb.sink.namespaces import Namespace
from connectors.mongodb.sink.operations import Action
from connectors.mongodb.sink.plan import Planned

__all__ = ["BulkWriter", "GiveUp", "RefusedWriteError", "in_namespaces", "write_in_transaction"]

GiveUp: TypeAlias = Callable[[Planned, DataError], None]

_RAW: Final[CodecOptions[Any]] = CodecOptions(document_class=RawBSONDocument)
_NOT_OF_RECORDS: Final = frozenset({13, 18, 20, 26, 59, 72, 79, 100, 166, 323, 8000})
"""Codes of failed commands and writes that concern every record: rights, credentials, the kind of server or of
collection (such as a view), the write concern."""


class RefusedWriteError(Exception):
    """The server refuses the operation of a record, or, with ``item=None``, one of them: which, it does not say."""

    def __init__(self, item: Planned | None, error: DataError) -> None:
        super().__init__(str(error))
        self.item = item
        self.error = error


@dataclass(slots=True)
class _Bulk:
    """The operations in one collection that are still to be done, in order."""

    namespace: Namespace
    items: Sequence[Planned]
    size: int
    done: int = 0
    tried_again: set[int] = field(default_factory=set)


def in_namespaces(planned: Sequence[Planned]) -> Iterator[tuple[Namespace, list[Planned]]]:
    """Yield the operations of each collection, in order."""
    groups: dict[Namespace, list[Planned]] = {}
    for item in planned:
        groups.setdefault(item.namespace, []).append(item)
    yield from groups.items()


class BulkWriter:
    """Writes a batch in bulks of one collection each, and knows how far it has come if that is interrupted.

    A record that the server refuses is given up alone. In an ordered bulk the records after it are not tried by the
    server: they follow in smaller bulks, which grow again, so that many bad records cost a small multiple of good ones.
    """

    def __init__(
        self, client: MongoClient[Document], planned: Sequence[Planned], *, size: int, is_ordered: bool
    ) -> None:
        self._client = client
        self._size = size
        self._is_ordered = is_ordered
        self._bulks = [_Bulk(ns, items, size or len(items)) for ns, items in in_namespaces(planned)]

    def write(self, give_up: GiveUp, after_bulk: Callable[[], None]) -> None:
        """Write what is still to be written. After a ``RetriableError`` call it again."""
        for bulk in self._bulks:
            while bulk.done < len(bulk.items):
                self._write_next(bulk, give_up)
                after_bulk()

    def _write_next(self, bulk: _Bulk, give_up: GiveUp) -> None:
        items = bulk.items[bulk.done : bulk.done + bulk.size]
        collection = self._client[bulk.namespace.database][bulk.namespace.collection]
        try:
            collection.bulk_write([item.operation for item in items], ordered=self._is_ordered)
        except BulkWriteError as error:
            _raise_if_passing(error)
            self._settle(bulk, items, error.details["writeErrors"], give_up)
        except OperationFailure as error:
            self._command_failed(bulk, items, error, give_up)
        except PyMongoError as error:
            raise (failure(error, "write records") or error) from error
        else:
            bulk.done += len(items)
            bulk.size = min(bulk.size * 2, self._size or len(bulk.items))

    def _settle(self, bulk: _Bulk, items: Sequence[Planned], errors: Sequence[Document], give_up: GiveUp) -> None:
        """Give up the records that the server refused, and go on after those that it has tried."""
        start = bulk.done
        for error in errors:
            item = items[error["index"]]
            if self._is_ordered:
                # What comes before it is written: should giving up fail, it is not written again.
                bulk.done = start + error["index"]
                bulk.size = 1
                if _is_to_be_tried_again(bulk, item, error):
                    return
            if not self._is_written(item, error):
                give_up(item, DataError(write_error_text(error)))
            bulk.done += self._is_ordered
        if not self._is_ordered:
            bulk.done = start + len(items)

    def _command_failed(self, bulk: _Bulk, items: Sequence[Planned], error: OperationFailure, give_up: GiveUp) -> None:
        """Find the record for which the server refuses the whole command, such as one that is nested too deeply."""
        known = failure(error, "write records")
        if isinstance(known, RetriableError) or error.code in _NOT_OF_RECORDS or known is None:
            raise (known or error) from error
        if len(items) > 1:
            bulk.size = max(1, len(items) // 4)
            return
        give_up(items[0], DataError(str(known)))
        bulk.done += 1

    def _is_written(self, item: Planned, error: Document) -> bool:
        """Return whether a document cannot be added because it is there already, whole: it was written before."""
        if error.get("code") != DUPLICATE_KEY or item.inserted is None:
            return False
        collection = self._client[item.namespace.database].get_collection(item.namespace.collection, codec_options=_RAW)
        with told("read a document"):
            found: Any = collection.find_one({"_id": {"$eq": item.inserted["_id"]}})
        return found is not None and found.raw == item.inserted.raw


def _is_to_be_tried_again(bulk: _Bulk, item: Planned, error: Document) -> bool:
    """Return whether another writer was quicker to add the same document: the next attempt finds it."""
    if error.get("code") != DUPLICATE_KEY or item.action not in (Action.REPLACE, Action.UPDATE):
        return False
    if item.place in bulk.tried_again:
        return False
    bulk.tried_again.add(item.place)
    return True


def write_in_transaction(client: MongoClient[Document], planned: Sequence[Planned], session: ClientSession) -> None:
    """Write in the transaction of a session; raises :class:`RefusedWriteError` for the first operation refused."""
    for namespace, items in in_namespaces(planned):
        collection = client[namespace.database][namespace.collection]
        try:
            collection.bulk_write([item.operation for item in items], ordered=True, session=session)
        except BulkWriteError as error:
            _raise_if_passing(error)
            first = error.details["writeErrors"][0]
            raise RefusedWriteError(items[first["index"]], DataError(write_error_text(first))) from error
        except OperationFailure as error:
            known = failure(error, "write records")
            if isinstance(known, RetriableError) or error.code in _NOT_OF_RECORDS or known is None:
                raise (known or error) from error
            blamed = items[0] if len(items) == 1 else None
            raise RefusedWriteError(blamed, DataError(str(known))) from error
        except (ConnectionFailure, WaitQueueTimeoutError) as error:
            raise (failure(error, "write records") or error) from error


def _raise_if_passing(error: BulkWriteError) -> None:
    """Raise if a bulk failed for a reason that is not of its records."""
    details: Document = error.details  # type: ignore[assignment]
    for concern in details.get("writeConcernErrors", ()):
        text = f"The write concern of the connection is not met: {concern.get('errmsg')} (code {concern.get('code')})"
        if is_passing_code(concern.get("code")) or concern.get("code") in (91, 11600, 11602):
            raise RetriableError(f"{text}; the records are written again.") from error
        raise ConnectError(f"{text}; correct w in connection.uri.") from error
    for refused in details["writeErrors"]:
        if refused.get("code") in _NOT_OF_RECORDS:
            raise ConnectError(
                f"The server refuses to write to the collection: {refused.get('errmsg')} (code {refused.get('code')}). "
                "Other records would be refused as well: correct the collection, or the rights of the user."
            ) from error
        if is_passing_code(refused.get("code")) or error.has_error_label("TransientTransactionError"):
            raise RetriableError(f"The server cannot write now: {refused.get('errmsg')}") from error
