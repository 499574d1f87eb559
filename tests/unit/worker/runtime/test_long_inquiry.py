"""Where an inquiry is that lasts long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PLUGIN = """\
import threading
from worker.runtime.inquiries.long_inquiry import telling_where

told = threading.Event()


def tell(hanging):
    print(hanging.method, hanging.line, hanging.trace.count('orders.py", line 13 in validate'))
    told.set()


def validate():
    return told.wait(60)


with telling_where(tell, seconds=0.01):
    assert validate()
"""


def test_an_inquiry_that_lasts_long_tells_which_line_of_the_plugin_it_is_in(tmp_path: Path) -> None:
    plugin = tmp_path / "orders.py"
    plugin.write_text(PLUGIN)
    said = subprocess.run([sys.executable, plugin], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.split() == ["<module>", "orders.py:13", "1"]
