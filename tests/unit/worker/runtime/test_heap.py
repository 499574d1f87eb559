"""The heap of a process that many units share."""

from __future__ import annotations

import subprocess
import sys

import pytest

ARENAS = """
import ctypes, sys, threading
from worker.runtime.usage import give_back, share_arenas

if sys.argv[1] == "shared":
    share_arenas()
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
all_there = threading.Barrier(12)

def take():
    all_there.wait()
    c.malloc(1000)
    all_there.wait()

threads = [threading.Thread(target=take) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
give_back()
c.malloc_info(0, ctypes.c_void_p.in_dll(c, "stdout"))
c.fflush(None)
"""


@pytest.mark.parametrize(("kind", "at_most"), [("shared", 2), ("own", 100)])
def test_threads_share_two_arenas(kind: str, at_most: int) -> None:
    told = subprocess.run([sys.executable, "-c", ARENAS, kind], capture_output=True, text=True, check=True).stdout
    arenas = told.count("<heap nr=")
    assert arenas <= at_most
    assert kind == "shared" or arenas > 2
