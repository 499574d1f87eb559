"""Modules are short, and nothing in them is left for later."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final

from codebase import PACKAGES, ROOT, is_below, modules

LONGEST_LINES: Final = 600
SHORTEST_LINES: Final = 50
MOST_MODULES: Final = 25
DATA_TABLES: Final = {"connect/internals/kafka/settings/java_keys.py"}

_LEAF: Final = "a leaf of many modules, which would import each other if it stood in one of them"
_DOOR: Final = "imported when it is needed, since what it brings is large"
_WRITTEN_DOWN: Final = "plugin authors import it by this name"
_ENTRY: Final = "what another process starts with, before anything large is imported"
_CONTRACT: Final = "an interface, beside the modules that implement it"

FRAGMENTS: Final = {
    "connect/kits/avro/wire_format.py": "what reading and writing share",
    "connect/config/password.py": _LEAF,
    "connect/config/unsupported_keys.py": "shared by families, whose tables of keys are their own",
    "connect/data/excerpt.py": _LEAF,
    "connect/data/hash_collisions.py": _LEAF,
    "connect/internals/chain/converters.py": _LEAF,
    "connect/internals/crash.py": _LEAF,
    "connect/internals/extras.py": _LEAF,
    "connect/internals/garbage_collection.py": _ENTRY,
    "connect/internals/java/date_text.py": _LEAF,
    "worker/runtime/java/passwords.py": _LEAF,
    "connect/internals/jvm/home.py": _LEAF,
    "connect/internals/jvm/shared_process.py": "known to the fork server, which imports nothing else of Java",
    "connect/internals/kafka/settings/client.py": _LEAF,
    "connect/internals/tls/pem.py": _LEAF,
    "connect/internals/tls/self_signed.py": _LEAF,
    "connect/kits/cdc/conversion.py": _CONTRACT,
    "connect/kits/files/readers/formats/table.py": _CONTRACT,
    "connect/kits/files/systems/copies.py": _LEAF,
    "connect/kits/objects/entry.py": _CONTRACT,
    "connect/measurement.py": _WRITTEN_DOWN,
    "connect/plugin.py": _WRITTEN_DOWN,
    "connect/testing/strict_equality.py": _LEAF,
    "connectors/datagen/random_block.py": _LEAF,
    "connectors/cdc/mysql/binlog/errors.py": _LEAF,
    "connectors/cdc/mysql/jdbc_types.py": _LEAF,
    "connectors/cdc/mysql/starts.py": _LEAF,
    "connectors/jdbc/dialects.py": _WRITTEN_DOWN,
    "connectors/jdbc/sink/writers.py": _WRITTEN_DOWN,
    "connectors/mirror/extensions.py": _WRITTEN_DOWN,
    "connectors/mongodb/classes.py": _LEAF,
    "connectors/spark/decoding/column_reader.py": _CONTRACT,
    "connectors/spark/decoding/daemon.py": _ENTRY,
    "connectors/spark/folder_fields.py": _LEAF,
    "connectors/spark/sink/iceberg/table_names.py": _LEAF,
    "connectors/spark/sources/tables/factory.py": _DOOR,
    "connectors/spark/stores/factory.py": _DOOR,
    "connectors/syslog/cef.py": _LEAF,
    "converters/json/passthrough.py": _LEAF,
    "converters/simple_header.py": "a converter has a module of its own",
    "converters/universal.py": _LEAF,
    "rest/http/timeouts.py": _LEAF,
    "rest/ui/web_page.py": "puts the pages together",
    "worker/formatting.py": _LEAF,
    "worker/herder/loggers.py": "a part of the herder's interface, as its neighbours are",
    "worker/kafka/groups/offsets.py": _DOOR,
    "worker/runtime/entry.py": _ENTRY,
    "worker/security/principals.py": _LEAF,
    "worker/stores/offset/store.py": _CONTRACT,
    "worker/unit.py": _LEAF,
}
"""The modules that are short, and why each is one."""

ONE_THING_EACH: Final = ("connect/transforms", "rest/resources")
"""The folders in which each transformation, or each part of the REST API, has a module, however short."""

QUANTITIES: Final = {
    *("LEAST", "FEWEST", "LONGEST", "SHORTEST", "LARGEST", "SMALLEST", "MOST"),
    *(
        "AGAIN",
        "CHUNK",
        "DELAY",
        "GRACE",
        "INTERVAL",
        "PATIENCE",
        "PAUSE",
        "PERIOD",
        "PIECE",
        "SIZE",
        "SOON",
        "TIMEOUT",
        "WAIT",
    ),
}
"""Words that do not say of what: seconds, bytes or records."""

_LEFT_FOR_LATER: Final = re.compile(r"\b(?:TODO|FIXME)\b")
_WRITTEN: Final = {".py", ".md", ".toml", ".html", ".js", ".css"}


def test_modules_are_short() -> None:
    lengths = {path: length for path, length in _lengths(*PACKAGES, "tests").items() if path not in DATA_TABLES}
    long = [f"{path}: {length} lines" for path, length in lengths.items() if length > LONGEST_LINES]
    assert not long, f"No module is longer than {LONGEST_LINES} lines; divide:\n" + "\n".join(long)


def test_no_module_is_a_fragment() -> None:
    short = {
        path
        for path, length in _lengths(*PACKAGES).items()
        if length < SHORTEST_LINES and not path.endswith("__init__.py") and not is_below(path, *ONE_THING_EACH)
    }
    unexplained = sorted(short - FRAGMENTS.keys())
    assert not unexplained, (
        f"A module under {SHORTEST_LINES} lines is a part of its neighbour; move it there, or name the reason in "
        "FRAGMENTS:\n" + "\n".join(unexplained)
    )
    grown = sorted(FRAGMENTS.keys() - short)
    assert not grown, "These are gone, or no fragments any more; remove them from FRAGMENTS:\n" + "\n".join(grown)


def _lengths(*places: str) -> dict[str, int]:
    files = (file for place in places for file in (ROOT / place).rglob("*.py"))
    return {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}


def test_numbers_carry_their_unit() -> None:
    riddles = [
        f"{module}:{node.lineno} {node.target.id}"
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if node.target.id.strip("_") in QUANTITIES and _is_number(node.value)
    ]
    assert not riddles, "Say of what, such as _MOST_BYTES or _PATIENCE_SECONDS:\n" + "\n".join(riddles)


def _is_number(value: ast.expr | None) -> bool:
    """Whether a value is a number, or made of numbers, such as ``64 * 1024``."""
    match value:
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def test_folders_are_small() -> None:
    counts = Counter(str(Path(module.path).parent) for module in modules() if not module.path.endswith("__init__.py"))
    large = [f"{folder}: {count} modules" for folder, count in counts.items() if count > MOST_MODULES]
    assert not large, f"No folder has more than {MOST_MODULES} modules; divide:\n" + "\n".join(large)


def test_nothing_is_left_for_later() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number} {line.strip()}"
        for place in (*PACKAGES, "docs", "examples")
        for file in (ROOT / place).rglob("*")
        if file.suffix in _WRITTEN
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if _LEFT_FOR_LATER.search(line)
    ]
    assert not found, "Do these now, or write them down elsewhere:\n" + "\n".join(found)


def test_test_modules_have_names_of_their_own() -> None:
    counts = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    shared = [name for name, count in counts.items() if count > 1]
    assert not shared, f"pytest imports modules by these names: give {', '.join(shared)} each one of its own."
