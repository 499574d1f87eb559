"""The folder in which Sluice keeps what it fetches and runs for its user: jars, embedded servers, their data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["sluice_home"]


def sluice_home(environ: Mapping[str, str] = os.environ) -> Path:
    """``SLUICE_HOME`` if set, else ``sluice`` below the user's data folder (``XDG_DATA_HOME``, ``~/.local/share``)."""
    if home := environ.get("SLUICE_HOME"):
        return Path(home)
    data = environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "sluice"
