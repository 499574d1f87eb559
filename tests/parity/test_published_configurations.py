"""Configurations of Java's connectors as they were published are accepted unchanged.

``data/published_configurations.json`` has them as found, but for hosts and secrets that were left to be filled in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from connect.config import validate_keys
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.connector_keys import chain_keys, framework_of
from worker.security.redaction import Redaction

PUBLISHED: Final = json.loads((Path(__file__).parent / "data/published_configurations.json").read_text())
WORKER: Final = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}


@pytest.mark.parametrize("given", PUBLISHED, ids=[each["published"].split()[0] for each in PUBLISHED])
def test_it_has_no_mistakes(given: dict[str, Any]) -> None:
    # The name is that of the URL or of the document around it where the configuration has none.
    config = {"name": "published", **given["config"]}
    assembly = Assembly.resolve(WORKER, config, Redaction())
    own = assembly.connector_class.config_class
    own.parse(assembly.with_worker_keys(own, assembly.props))
    # Not the validation of the whole, which asks their servers.
    values = [*framework_of(assembly.connector_class).validate(assembly.props)]
    values += validate_keys(list(chain_keys(assembly)), assembly.props)
    assert {value.name: value.errors for value in values if value.errors} == {}
