"""The wheel has the files that are no Python: the web page's, and the list of plugins; and what PySpark looks for."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from rest.ui import web_page

ROOT = Path(web_page.__file__).parents[2]


def test_the_wheel_has_every_file_of_the_web_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    page = {
        str(file.relative_to(ROOT)) for kind in ("static", "templates") for file in (ROOT / "rest/ui" / kind).iterdir()
    }
    assert page <= packed
    assert {"connect/plugins.toml", "pyspark_sluice.py"} <= packed
