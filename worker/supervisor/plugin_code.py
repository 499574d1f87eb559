"""The state of a plugin's code. A process keeps what it has imported, so who needs newer code needs another process."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from itertools import chain
from pathlib import Path
from typing import Final

from connect.plugins import PluginEntry

__all__ = ["code_state", "comes_with_sluice"]

_OURS: Final = frozenset({"connect", "connectors", "converters"})
_MODULES: Final = "*.py"
_INSTALLED: Final = "lib/python*/site-packages"


def comes_with_sluice(entry: PluginEntry) -> bool:
    """Whether a plugin is one of Sluice's own."""
    return entry.folder is None and entry.interpreter is None and _top(entry) in _OURS


def code_state(entry: PluginEntry) -> str:
    """A text that is another one once the code of a plugin has changed; nothing is imported to find out.

    What is looked at are the modules of its folder, or of its package. Of an interpreter of its own it is
    what is installed there.
    """
    if comes_with_sluice(entry):
        return ""
    state = hashlib.blake2b(digest_size=8)
    for file in sorted(_files(entry)):
        state.update(f"{file} {_written(file)}\n".encode())
    return state.hexdigest()


def _files(entry: PluginEntry) -> Iterator[Path]:
    if entry.interpreter is not None:
        yield from entry.interpreter.parents[1].glob(_INSTALLED)
    if entry.folder is not None:
        yield from entry.folder.glob(_MODULES)
        yield from (entry.folder / _top(entry)).rglob(_MODULES)
    elif entry.interpreter is None and (spec := _spec(_top(entry))) is not None:
        folders = map(Path, spec.submodule_search_locations or ())
        found = chain.from_iterable(folder.rglob(_MODULES) for folder in folders)
        yield from found if spec.submodule_search_locations else [Path(spec.origin or "")]


def _spec(package: str) -> ModuleSpec | None:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(package)
    return None


def _written(file: Path) -> tuple[int, ...]:
    """Which file it is, and when it was written or put in its place, whatever time it was given then."""
    try:
        found = file.stat()
    except OSError:
        return ()  # It has just gone.
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _top(entry: PluginEntry) -> str:
    return entry.class_name.partition(".")[0]
