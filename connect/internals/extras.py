"""Optional packages, installed as extras: which ones are missing and how to install them."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["how_to_install", "missing_extra"]


def missing_extra(extra: str, *modules: str) -> str | None:
    """Return which ``modules`` are missing and how to install ``extra``, which has them; ``None`` if none is missing.

    Meant for the ``check`` method of a config. It imports none of the modules, only their parent packages.
    """
    missing = [module for module in modules if not _is_there(module)]
    if not missing:
        return None
    named = " and ".join(part for part in (", ".join(missing[:-1]), missing[-1]) if part)
    return f"It needs {named}, which this worker does not have: {how_to_install(extra)}"


def how_to_install(extra: str) -> str:
    """Return the commands that install an extra: from the package index, and in a clone."""
    return f"pip install 'sluice-connect[{extra}]', or in a clone of Sluice pip install -e '.[{extra}]'"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # Raised if its parent package is missing.
        return False
