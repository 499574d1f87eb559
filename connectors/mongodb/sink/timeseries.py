"""Time series: the collections that are created, and the dates in the time field."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from bson.datetime_ms import DatetimeMS
from pymongo.errors import CollectionInvalid, OperationFailure

from connect.errors import ConnectError
from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.date_pattern import DatePattern
from connectors.mongodb.sink.documents import Document
from connectors.mongodb.sink.namespaces import Namespace

if TYPE_CHECKING:
    from pymongo import MongoClient

__all__ = ["TimeSeries", "time_converter"]

_NAMESPACE_EXISTS: Final = 48


def time_converter(config: MongoSinkConfig) -> Callable[[Document], None] | None:
    """Return the function that makes a date of the time field, in place; ``None`` if it is not asked for."""
    name = config.timeseries_timefield
    if not (name and config.timeseries_timefield_auto_convert):
        return None
    pattern = DatePattern(config.timeseries_timefield_auto_convert_date_format)

    def convert(document: Document) -> None:
        value = document.get(name)
        if isinstance(value, str):
            document[name] = DatetimeMS(pattern.milliseconds(value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            document[name] = DatetimeMS(int(value))

    return convert


class TimeSeries:
    """Creates the time series that are missing, each once."""

    def __init__(self, client: MongoClient[Document]) -> None:
        self._client = client
        self._known: set[Namespace] = set()

    def ensure(self, namespace: Namespace, config: MongoSinkConfig) -> None:
        """Create a collection as a time series if it is missing; raise if it is there and is none."""
        if namespace in self._known:
            return
        database = self._client[namespace.database]
        if not self._is_there(namespace):
            try:
                database.create_collection(namespace.collection, **_options(config))
            except CollectionInvalid:
                self._is_there(namespace)
            except OperationFailure as error:
                # Another task was quicker.
                if error.code != _NAMESPACE_EXISTS:
                    raise
        self._known.add(namespace)

    def _is_there(self, namespace: Namespace) -> bool:
        database = self._client[namespace.database]
        found = next(iter(database.list_collections(filter={"name": namespace.collection})), None)
        if found is not None and found.get("type") != "timeseries":
            raise ConnectError(
                f"The collection {namespace.database}.{namespace.collection} is there and is no time series: write to "
                "another one, drop it, or remove timeseries.timefield."
            )
        return found is not None


def _options(config: MongoSinkConfig) -> dict[str, Any]:
    series = {"timeField": config.timeseries_timefield}
    if config.timeseries_metafield:
        series["metaField"] = config.timeseries_metafield
    if config.timeseries_granularity:
        series["granularity"] = config.timeseries_granularity.lower()
    options: dict[str, Any] = {"timeseries": series}
    if config.timeseries_expire_after_seconds:
        options["expireAfterSeconds"] = config.timeseries_expire_after_seconds
    return options
