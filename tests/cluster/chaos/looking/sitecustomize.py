"""Lets others look at this Python and at what it forks, where Linux (its Yama module) lets only their ancestors.

Python imports this when it starts, if this folder is on ``PYTHONPATH``.
"""

import ctypes
import os

_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)


def _let_look() -> None:
    # Where there is no such module this fails, and is not needed.
    ctypes.CDLL(None).prctl(_SET_PTRACER, _ANY, 0, 0, 0)


_let_look()
os.register_at_fork(after_in_child=_let_look)
