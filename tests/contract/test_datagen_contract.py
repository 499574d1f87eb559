"""The datagen source keeps the contract."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connect.data import SourceRecord
from connect.testing import SourceConnectorTests
from connectors.datagen import DatagenConnector


class TestDatagenSource(SourceConnectorTests):
    """Records of a quickstart, without an end."""

    connector_class = DatagenConnector
    record_count = 12

    def identity(self, record: SourceRecord) -> object:
        """All but how often the task was started, which a header and the offset count."""
        headers = record.headers.remove("task.generation")
        offset = {**record.source_offset, "task.generation": 0}
        return super().identity(record.replace(headers=headers, source_offset=offset))

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"kafka.topic": "rows", "quickstart": "orders", "max.interval": "1", "random.seed": "42"}


class TestLimitedDatagenSource(TestDatagenSource):
    """Records of a schema of its own, a few of them."""

    record_count = None

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        schema = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int", "string"]}]}'
        return {
            "kafka.topic": "rows",
            "schema.string": schema,
            "max.interval": "0",
            "iterations": "12",
            "random.seed": "1",
        }

    def test_tasks_share_the_work(self) -> None:
        """They do not: each makes as many."""
        pytest.skip("iterations are those of each task.")
