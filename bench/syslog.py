"""Measures how many syslog messages a second the source takes, beside a bare receiver: ``python bench/syslog.py``.

A sender in a process of its own sends datagrams at a rate, or a stream as fast as TCP takes it. The bare receiver takes
them in a loop of ``recvfrom`` or ``recv``. The source runs in ``sluice standalone`` on the embedded broker: each
message is parsed, written as JSON, and on the topic at the end. CPU is that of the receiving process, so that its
inverse is what one core manages.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    importlib.import_module("syslog_rates").main()
else:
    # Python's own module of this name, for which this file must not stand in: see http.py.
    folder = Path(__file__).resolve().parent
    places = list(sys.path)
    sys.path[:] = [place for place in places if Path(place or ".").resolve() != folder]
    del sys.modules[__name__]
    sys.modules[__name__] = importlib.import_module(__name__)
    sys.path[:] = places
