"""Plugins that reveal everything they know, in every form, in the error that they raise at a chosen place."""

from __future__ import annotations

import json
import logging
import os
import threading
import urllib.parse
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from connect.config import LOW, Config, ConfigRuleError, Password, option
from connect.converter import Converter
from connect.data import SchemaAndValue, SinkBatch, SourceRecord
from connect.errors import ConnectError, DataError
from connect.providers import ConfigData, ConfigProvider
from connect.sink import SinkConnector, SinkTask
from connect.source import SourceConnector, SourceTask
from connect.transformation import Predicate, Transformation


def everything(values: Mapping[str, str | None]) -> str:
    """All values, as they are and in the notation of Python, JSON and URLs, and line by line."""
    given = {key: value for key, value in values.items() if value is not None}
    lines = "\n> ".join(line for value in given.values() for line in value.splitlines())
    return f"told {given!r}\n{json.dumps(given)}\n{urllib.parse.urlencode(given)}\n{' '.join(given.values())}\n{lines}"


class TellingConfig(Config):
    """The place at which to raise."""

    tells_in: str = option(default="", importance=LOW, doc="Where.")
    own_password: Password | None = option(default=None, importance=LOW, doc="A secret.")

    def tell(self, where: str, kind: type[Exception] = ConnectError) -> None:
        """Raise if this is the chosen place."""
        if self.tells_in == where:
            raise kind(everything(self.originals))


class TellingConnectorConfig(TellingConfig):
    """The same for a connector."""

    topic: str = option(default="", importance=LOW, doc="Where to write to.")

    def check(self) -> Iterable[Any]:
        """Raise in the middle of a validation."""
        if self.tells_in == "check":
            yield ConfigRuleError(everything(self.originals), "topic")
        if self.tells_in == "validate":
            raise ValueError(everything(self.originals))


class TellingSourceTask(SourceTask[TellingConnectorConfig]):
    """Returns one record."""

    def start(self) -> None:
        self.given = False
        self.config.tell("task")
        if self.config.tells_in == "log":
            text = everything(self.config.originals)
            logging.getLogger("telling").warning("%s", text)
            warnings.warn(text, stacklevel=1)
            thread = threading.Thread(target=lambda: TellingConfig.parse({"tells.in": "it", "text": text}).tell("it"))
            thread.start()
            thread.join()

    def poll(self) -> Iterable[SourceRecord]:
        self.config.tell("poll")
        if self.given:
            self.context.wait(1)
            return []
        self.given = True
        return [SourceRecord(self.config.topic, "a value", source_partition={}, source_offset={})]


class TellingSourceConnector(SourceConnector[TellingConnectorConfig]):
    """A connector that reveals everything."""

    task_class = TellingSourceTask

    def start(self) -> None:
        self.config.tell("connector")

    @classmethod
    def alter_offsets(cls, config: TellingConnectorConfig, offsets: Any) -> bool:
        """Refuse."""
        raise ConnectError(everything(config.originals))


class TellingSinkTask(SinkTask[TellingConnectorConfig]):
    """Accepts records, or reports each."""

    def put(self, records: SinkBatch) -> None:
        if self.config.tells_in == "report":
            for record in records:
                assert self.context.errant_record_reporter is not None
                error = ConnectError(everything(self.config.originals))
                self.context.errant_record_reporter.report(record, error)
        elif records:
            self.config.tell("put")


class TellingSinkConnector(SinkConnector[TellingConnectorConfig]):
    """A connector that reveals everything."""

    task_class = TellingSinkTask


class TellingConverter(Converter[TellingConfig]):
    """Raises instead of converting."""

    def from_connect(self, topic: str, schema: Any, value: Any) -> bytes | None:
        self.config.tell("convert", DataError)
        return None if value is None else str(value).encode()

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        self.config.tell("convert", DataError)
        return SchemaAndValue(None, None if data is None else data.decode())


class TellingTransformation(Transformation[TellingConfig]):
    """Raises instead of transforming."""

    def apply(self, record: Any) -> Any:
        self.config.tell("apply", DataError)
        return record


class TellingPredicate(Predicate[TellingConfig]):
    """Raises instead of choosing."""

    def test(self, record: Any) -> bool:
        self.config.tell("test", DataError)
        return False


class TellingProvider(ConfigProvider):
    """Returns the values in its parameters, logs them, and does what the path says."""

    def configure(self, props: Mapping[str, str]) -> None:
        self.values = dict(props)

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        if path == "die":
            os._exit(3)
        if path == "hang":
            threading.Event().wait()
        if path == "refuse":
            raise ConnectError("the vault is sealed")
        if path == "fail":
            raise ValueError(everything(self.values))
        found = {key: value for key, value in self.values.items() if keys is None or key in keys}
        logging.getLogger("telling").warning("looked up %s in %s", *found.values(), os.getpid())
        return ConfigData(found, 60_000)
