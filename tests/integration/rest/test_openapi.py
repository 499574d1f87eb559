"""The OpenAPI document is true: calls generated from it are answered as it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from equipment.workers.standalone import StandaloneWorker
from rest.openapi import openapi_document


@pytest.fixture(scope="module")
def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneWorker]:
    """A worker with one connector."""
    folder = tmp_path_factory.mktemp("openapi")
    worker = StandaloneWorker(folder, bootstrap).start()
    try:
        config = {"connector.class": "FileStreamSource", "file": str(folder / "in.txt"), "topic": "openapi"}
        made = requests.post(f"{worker.url()}connectors", json={"name": "a", "config": config}, timeout=60)
        assert made.status_code == 201, made.text
        yield worker
    finally:
        worker.close()


API = schemathesis.openapi.from_dict(openapi_document("of a test"))
OPERATIONS = [found.ok() for found in API.get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_calls_are_answered_as_the_document_says(operation: Any, worker: StandaloneWorker) -> None:
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy())
    def call(case: Any) -> None:
        case.call_and_validate(
            base_url=worker.url().rstrip("/"),
            checks=[not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance],
            timeout=30,
        )

    call()


def test_the_document_is_served(worker: StandaloneWorker) -> None:
    served = worker.get("openapi.json").json()
    assert served["paths"].keys() == openapi_document("of a test")["paths"].keys()
