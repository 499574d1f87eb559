"""What validation says of exactly-once support and transaction boundaries."""

from __future__ import annotations

import pytest

from connect.config import Config
from connect.source import ConnectorTransactionBoundaries, ExactlyOnceSupport, SourceConnector
from worker.messages import messages
from worker.runtime.inquiries.validation import validate
from worker.security.redaction import Redaction

STANDALONE = {
    "bootstrap.servers": "unused:1",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "plugin.import.allowlist": f"{__name__}.*",
}
DISTRIBUTED = {
    **STANDALONE,
    "group.id": "g",
    "offset.storage.topic": "o",
    "config.storage.topic": "c",
    "status.storage.topic": "s",
}
ENABLED = {**DISTRIBUTED, "exactly.once.source.support": "ENABLED"}


class SilentConnector(SourceConnector[Config]):
    """Does not say whether it is exactly once, and fails when asked about transactions."""

    @classmethod
    def can_define_transaction_boundaries(cls, config: Config) -> ConnectorTransactionBoundaries:
        raise OSError("ask me later")


class AbleConnector(SourceConnector[Config]):
    """Can do everything."""

    @classmethod
    def exactly_once_support(cls, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def can_define_transaction_boundaries(cls, config: Config) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED


def errors(worker: dict[str, str], connector: str, **props: str) -> dict[str, list[str]]:
    config: dict[str, str | None] = {"name": "n", "connector.class": connector, "topic": "t"}
    config |= {key.replace("_", "."): value for key, value in props.items()}
    infos = validate(messages.ValidateConfig(config, worker), Redaction()).infos
    return {item["value"]["name"]: item["value"]["errors"] for item in infos["configs"] if item["value"]["errors"]}


ABLE, SILENT = f"{__name__}.AbleConnector", f"{__name__}.SilentConnector"


def test_what_an_engine_runs_may_be_exactly_once() -> None:
    assert errors(ENABLED, "FileStreamSource", file="/f", exactly_once_support="required", engine="spark") == {}


def test_a_file_is_exactly_once_where_the_worker_is() -> None:
    assert errors(ENABLED, "FileStreamSource", file="/f", exactly_once_support="REQUIRED") == {}


@pytest.mark.parametrize("worker", [STANDALONE, DISTRIBUTED, {**ENABLED, "exactly.once.source.support": "preparing"}])
def test_a_worker_without_support_refuses_what_requires_it(worker: dict[str, str]) -> None:
    text = "This worker does not have exactly-once source support enabled."
    assert errors(worker, ABLE, exactly_once_support="required") == {"exactly.once.support": [text]}
    assert errors(worker, ABLE, exactly_once_support="requested") == {}


def test_the_standard_input_is_not_exactly_once() -> None:
    text = "The connector does not support exactly-once semantics with the provided configuration."
    found = errors(ENABLED, "FileStreamSource", exactly_once_support="required")
    assert found["exactly.once.support"] == [text]


def test_a_connector_that_does_not_say_is_refused_if_it_is_required() -> None:
    found = errors(ENABLED, SILENT, exactly_once_support="required")
    assert "does not implement the API required for preflight validation" in found["exactly.once.support"][0]
    assert errors(ENABLED, SILENT) == {}


def test_only_a_connector_that_can_defines_transactions() -> None:
    found = errors(ENABLED, "FileStreamSource", file="/f", transaction_boundary="connector")
    assert "does not support connector-defined transaction boundaries" in found["transaction.boundary"][0]
    assert errors(ENABLED, ABLE, transaction_boundary="Connector") == {}


def test_what_a_connector_raises_when_asked_is_told() -> None:
    found = errors(ENABLED, SILENT, transaction_boundary="connector")
    assert found == {"transaction.boundary": ["An unexpected error occurred during validation: ask me later"]}


def test_what_is_not_a_choice_is_told_once() -> None:
    found = errors(ENABLED, ABLE, exactly_once_support="always", transaction_boundary="never")
    assert "must be one of (case insensitive): REQUIRED, REQUESTED" in found["exactly.once.support"][0]
    assert "must be one of (case insensitive): INTERVAL, POLL, CONNECTOR" in found["transaction.boundary"][0]
    assert all(len(each) == 1 for each in found.values())
