"""Arrow without pandas, as long as nobody else has imported it.

Arrow knows the objects of pandas. To do so it imports pandas, where that is installed, for the first array that is made
of anything: 34 MB and a third of a second, in each process. There is no object of pandas before somebody imports it, so
it is enough that Arrow looks for it then.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

__all__ = ["await_pandas"]

_PANDAS: Final = "pandas"


def await_pandas() -> None:
    """Have Arrow look for pandas when somebody imports it, and not before."""
    if _PANDAS in sys.modules:
        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    # Arrow looks for pandas once by itself, and takes it that there is none.
    pa.array([])
    finder.hides = None


class _Finder(MetaPathFinder):
    """Finds pandas as the other finders do, but not for Arrow, and has Arrow told once it is imported."""

    def __init__(self) -> None:
        self.hides: int | None = threading.get_ident()
        """The thread that does not find pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where pandas is."""
        if fullname != _PANDAS:
            return None
        if self.hides == threading.get_ident():
            raise ModuleNotFoundError(fullname, name=fullname)
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((each for each in found if each is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _TellingLoader(spec.loader)
        return spec


class _TellingLoader(Loader):
    """Loads pandas as another loader does, and tells Arrow."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module, or ``None`` for an ordinary one."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and have Arrow look for it."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with suppress(ImportError):  # it is older than Arrow takes
            _ = pa.lib._pandas_api.pd
