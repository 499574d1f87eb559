"""Writes the connectors of a flow as the file of flows defines them.

A worker that becomes the leader of its flow writes what the file says, as MirrorMaker does. So a changed file takes
effect with a restart, one node after the other, and two nodes with different files do not fight.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Final

from connect.errors import ConnectError, NotFoundError
from connectors.mirror.config.checkpoint import MirrorCheckpointConfig
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.heartbeat import MirrorHeartbeatConfig
from worker.config.connector import ConnectorConfig
from worker.config.security import SecurityConfig
from worker.config.worker import DistributedConfig
from worker.errors import BadRequestError, InvalidConnectorError, NotLeaderError
from worker.herder.herder import Herder

__all__ = ["FlowConnectors", "connector_keys", "worker_keys"]

logger = logging.getLogger(__name__)


def connector_keys() -> frozenset[str]:
    """Return the keys of the mirror connectors, with those that every connector has but not those of sources only."""
    kinds = (ConnectorConfig, MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig)
    return frozenset(key.name for kind in kinds for key in kind.definitions())


def worker_keys() -> frozenset[str]:
    """Return the keys of the worker of a flow."""
    return frozenset(key.name for kind in (DistributedConfig, SecurityConfig) for key in kind.definitions())


_PATIENCE_SECONDS: Final = 120.0
_AGAIN_SECONDS: Final = 1.0


class FlowConnectors:
    """Writes connectors whenever the herder becomes the leader, in a thread of its own.

    Refusals are passed to ``refused``. The connectors ``only_existing`` are written only if the cluster has them.
    """

    def __init__(
        self,
        herder: Herder,
        configs: Mapping[str, Mapping[str, str]],
        only_existing: frozenset[str],
        refused: Callable[[str], None],
    ) -> None:
        self._herder = herder
        self._configs = configs
        self._only_existing = only_existing
        self._refused = refused
        self._leads: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="flow-connectors", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()
        self._herder.when_leading(lambda: self._leads.put(None))

    def _loop(self) -> None:
        while True:
            self._leads.get()
            if not all(self._written(name) for name in self._configs):
                # A connector that could not be written is written later, unless another worker has become the leader.
                threading.Event().wait(_AGAIN_SECONDS)
                self._leads.put(None)

    def _written(self, name: str) -> bool:
        """Write a connector unless it is up to date; return whether nothing is left to do."""
        try:
            self._write(name)
        except NotLeaderError:
            pass
        except (BadRequestError, InvalidConnectorError) as error:
            self._refused(f"The connector {name} of this flow was refused: {error}")
        except (ConnectError, TimeoutError) as error:
            logger.warning("The connector %s could not be written and is tried again: %s", name, error)
            return False
        return True

    def _write(self, name: str) -> None:
        wanted = dict(self._configs[name])
        try:
            stored = dict(self._herder.connectors.config(name).result(_PATIENCE_SECONDS))
        except NotFoundError:
            stored = None
        if stored == wanted:
            logger.info("The connector %s matches the file of flows", name)
        elif stored is not None or name not in self._only_existing:
            self._herder.connectors.put_config(name, wanted).result(_PATIENCE_SECONDS)
            logger.info("The connector %s was written from the file of flows", name)
