"""How much of the slow proofs by kills a run of the tests makes."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["EVERY_KILL"]

EVERY_KILL: Final = bool({"SLUICE_EVERY_KILL", "SLUICE_LAKE_KILLS"} & os.environ.keys())
"""Whether to kill at each point in every combination, as `make kills` and `make lake-kills` do, or once for each
mechanism, as `make test` does."""
