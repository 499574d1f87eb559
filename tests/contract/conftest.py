"""Puts the folder of the example plugins on the import path, as ``plugin.path`` does in a worker."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "plugins"))
