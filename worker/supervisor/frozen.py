"""Imported last by the fork server, never by anything else: what was imported before it is set apart for good.

The garbage collector would write into every object that children share with the fork server, and so give each child
a copy of its own: some 7 MB. Children make batches of thousands of small dicts, none of them in cycles, so they are
also looked through less often than after every 700.
"""

import gc

__all__: list[str] = []

_MADE = 10_000
_ROUNDS = 20

gc.collect()
gc.freeze()
gc.set_threshold(_MADE, _ROUNDS, _ROUNDS)
