"""A worker's process imports neither plugins nor what runs in its children."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def imported_by(module: str) -> set[str]:
    told = f"import {module}, json, sys; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", told], capture_output=True, check=True, text=True)
    return set(json.loads(answer.stdout))


@pytest.mark.parametrize("module", ["worker.app.standalone", "worker.app.distributed", "worker.cli.main"])
def test_a_worker_imports_no_plugin_and_no_task_loop(module: str) -> None:
    imported = imported_by(module)
    assert module in imported
    plugins = {name for name in imported if name.partition(".")[0] in ("connectors", "converters")}
    assert not plugins
    assert not imported & {
        "worker.runtime.child",
        "worker.runtime.source.loop",
        "worker.runtime.sink.loop",
        "pyarrow",
        "pyspark",
        # For tokens of an issuer alone.
        "joserfc",
        "cryptography",
    }


def test_the_command_line_imports_a_command_s_module_with_the_command() -> None:
    assert not imported_by("worker.cli.main") & {
        "confluent_kafka",
        "flask",
        "requests",
        "worker.embedded.broker.server",
    }
