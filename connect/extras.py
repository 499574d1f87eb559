"""The optional packages of Sluice, installed as extras: which are missing, and how to get them."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["how_to_install", "missing_extra"]


def missing_extra(extra: str, *modules: str) -> str | None:
    """Say which of the ``modules`` are missing and that ``extra`` brings them; ``None`` if all are there.

    For ``check`` of a configuration: none of them is imported, only the packages that they are in.
    """
    missing = [module for module in modules if not _is_there(module)]
    if not missing:
        return None
    return f"It needs {' and '.join(missing)}, which this worker does not have: {how_to_install(extra)}"


def how_to_install(extra: str) -> str:
    """Return the commands that install an extra: from the package index, and in a clone."""
    return f"pip install 'sluice-connect[{extra}]', or in a clone of Sluice pip install -e '.[{extra}]'"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package that it would be in.
        return False
