"""Measures the request rates of the HTTP connectors, compared with a bare session: ``python bench/http.py``.

The code is in ``http_rates.py``. Every script of this folder, this one included, imports this file in place of Python's
own package ``http``, so as a module it must stand in for that package.
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
