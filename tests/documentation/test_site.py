"""The documentation is a site: each page is in its contents, and no link leads nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_without_a_warning() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "site.py"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (ROOT / "build" / "site" / "docs" / "quickstart" / "index.html").is_file()
