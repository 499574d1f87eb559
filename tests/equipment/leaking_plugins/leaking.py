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
    return (
        f"leaked {given!r}\n{json.dumps(given)}\n{urllib.parse.urlencode(given)}\n{' '.join(given.values())}\n{lines}"
    )


class LeakingConfig(Config):
    """The place at which to raise."""

    leaks_in: str = option(default="", importance=LOW, doc="Where.")
    own_password: Password | None = option(default=None, importance=LOW, doc="A secret.")

    def leak(self, where: str, kind: type[Exception] = ConnectError) -> None:
        """Raise if this is the chosen place."""
        if self.leaks_in == where:
            raise kind(everything(self.originals))


class LeakingConnectorConfig(LeakingConfig):
    """The same for a connector."""

    topic: str = option(default="", importance=LOW, doc="Where to write to.")

    def check(self) -> Iterable[Any]:
        """Raise in the middle of a validation."""
        if self.leaks_in == "check":
            yield ConfigRuleError(everything(self.originals), "topic")
        if self.leaks_in == "validate":
            raise ValueError(everything(self.originals))


class LeakingSourceTask(SourceTask[LeakingConnectorConfig]):
    """Returns one record."""

    def start(self) -> None:
        self.given = False
        self.config.leak("task")
        if self.config.leaks_in == "log":
            text = everything(self.config.originals)
            logging.getLogger("leaking").warning("%s", text)
            warnings.warn(text, stacklevel=1)
            thread = threading.Thread(target=lambda: LeakingConfig.parse({"leaks.in": "it", "text": text}).leak("it"))
            thread.start()
            thread.join()

    def poll(self) -> Iterable[SourceRecord]:
        self.config.leak("poll")
        if self.given:
            self.context.wait(1)
            return []
        self.given = True
        return [SourceRecord(self.config.topic, "a value", source_partition={}, source_offset={})]


class LeakingSourceConnector(SourceConnector[LeakingConnectorConfig]):
    """A connector that reveals everything."""

    task_class = LeakingSourceTask

    def start(self) -> None:
        self.config.leak("connector")

    @classmethod
    def alter_offsets(cls, config: LeakingConnectorConfig, offsets: Any) -> bool:
        """Refuse."""
        raise ConnectError(everything(config.originals))


class LeakingSinkTask(SinkTask[LeakingConnectorConfig]):
    """Accepts records, or reports each."""

    def put(self, records: SinkBatch) -> None:
        if self.config.leaks_in == "report":
            for record in records:
                assert self.context.errant_record_reporter is not None
                error = ConnectError(everything(self.config.originals))
                self.context.errant_record_reporter.report(record, error)
        elif records:
            self.config.leak("put")


class LeakingSinkConnector(SinkConnector[LeakingConnectorConfig]):
    """A connector that reveals everything."""

    task_class = LeakingSinkTask


class LeakingConverter(Converter[LeakingConfig]):
    """Raises instead of converting."""

    def from_connect(self, topic: str, schema: Any, value: Any) -> bytes | None:
        self.config.leak("convert", DataError)
        return None if value is None else str(value).encode()

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        self.config.leak("convert", DataError)
        return SchemaAndValue(None, None if data is None else data.decode())


class LeakingTransformation(Transformation[LeakingConfig]):
    """Raises instead of transforming."""

    def apply(self, record: Any) -> Any:
        self.config.leak("apply", DataError)
        return record


class LeakingPredicate(Predicate[LeakingConfig]):
    """Raises instead of choosing."""

    def test(self, record: Any) -> bool:
        self.config.leak("test", DataError)
        return False


class LeakingProvider(ConfigProvider):
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
        logging.getLogger("leaking").warning("looked up %s in %s", *found.values(), os.getpid())
        return ConfigData(found, 60_000)
