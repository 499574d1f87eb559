"""The broker of a measurement, which ends with it, also if that is ended by a signal, as ``timeout`` does."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from worker.embedded.broker.server import BrokerConfig, BrokerInfo, EmbeddedBroker

__all__ = ["own_broker"]


@contextmanager
def own_broker(config: BrokerConfig) -> Iterator[BrokerInfo]:
    """Run a broker while the ``with`` block runs."""
    # Without a handler the process ends at once, and the broker, which is detached, goes on for ever.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with EmbeddedBroker(config).lease() as broker:
        yield broker
