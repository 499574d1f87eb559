"""Requests a second of the HTTP connectors, beside a bare session: ``python bench/http.py``.

The work is in ``http_rates.py``: any script of this folder, this one too, finds this file where it means Python's own
package ``http``, so that as a module it has to be that package.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    importlib.import_module("http_rates").main()
else:
    folder = Path(__file__).resolve().parent
    places = list(sys.path)
    sys.path[:] = [place for place in places if Path(place or ".").resolve() != folder]
    del sys.modules[__name__]
    sys.modules[__name__] = importlib.import_module(__name__)
    sys.path[:] = places
