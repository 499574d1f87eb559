"""Watches which consumer groups of the source are to be translated."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.source import SourceConnectorContext
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.checkpoint import MirrorCheckpointConfig
from connectors.mirror.groups import Groups
from connectors.mirror.internal_topics import create_compacted
from connectors.mirror.offset_topics import patience_with
from connectors.mirror.patience import StoppedError
from connectors.mirror.policies import replication_policy
from connectors.mirror.selection import GroupSelection

__all__ = ["GroupMonitor", "translated_text"]

logger = logging.getLogger(__name__)

_JOIN_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
_REPLICAS: Final = "checkpoints.topic.replication.factor"


class GroupMonitor:
    """Creates the checkpoints topic, and lists the groups repeatedly in a thread of its own.

    When the groups change, it requests new task configs. A cluster that is unreachable is asked again each second.
    """

    def __init__(self, config: MirrorCheckpointConfig, context: SourceConnectorContext) -> None:
        self._config = config
        self._context = context
        self._stopped = threading.Event()
        self._answered = threading.Event()
        """Set once the groups have been listed, or cannot be."""
        self._has_topic = False
        self._groups: tuple[str, ...] | None = None
        self._thread = threading.Thread(target=self._run, name="mirror-groups", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; one that waits for a cluster ends with its process."""
        self._stopped.set()
        self._answered.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def groups(self, seconds: float) -> Sequence[str]:
        """Return the groups, or none if they are not known within ``seconds``."""
        self._answered.wait(seconds)
        return self._groups or ()

    def _run(self) -> None:
        try:
            clients = Clients(self._config.originals)
            waiting = patience_with(self._config, Cluster.SOURCE, self._wait)
            groups = Groups(lambda: clients.admin(Cluster.SOURCE, "checkpoint-source-admin"), waiting)
            while not self._stopped.is_set():
                self._look(clients, groups)
                if self._groups is None:
                    self._stopped.wait(_RETRY_SECONDS)
                elif self._config.refresh_groups_enabled:
                    self._stopped.wait(self._config.refresh_groups_interval_seconds)
                else:
                    return
        except StoppedError:
            return
        except Exception as error:
            self._context.raise_error(error)
            self._answered.set()

    def _look(self, clients: Clients, groups: Groups) -> None:
        """List the groups once; show a cluster that does not answer."""
        try:
            self._create_topic(clients)
            self._note(tuple(self._found(groups)))
        except RetriableError as error:
            self._context.show_wait(f"{error}; asking again, while tasks keep their current groups.")
        else:
            self._context.show_wait(None)

    def _create_topic(self, clients: Clients) -> None:
        if self._has_topic:
            return
        config = self._config
        topic = replication_policy(config.originals).checkpoints_topic(config.source_cluster_alias)
        admin = clients.admin(Cluster.TARGET, "checkpoint-target-admin")
        waiting = patience_with(config, Cluster.TARGET, self._wait)
        create_compacted(admin, waiting, topic, _REPLICAS, config.checkpoints_topic_replication_factor)
        self._has_topic = True

    def _found(self, groups: Groups) -> list[str]:
        selection = GroupSelection.configured(self._config.originals)
        chosen = [name for name in groups.names() if selection.filter.should_replicate_group(name)]
        found = []
        for name, committed in groups.committed(chosen).items():
            if isinstance(committed, RetriableError):
                raise committed
            if isinstance(committed, ConnectError):
                logger.warning("The offsets of group %s are not translated: %s", name, committed)
            elif selection.left_out(name, {place.topic for place in committed}) is None:
                found.append(name)
        return found

    def _note(self, found: tuple[str, ...]) -> None:
        before, self._groups = self._groups, found
        self._answered.set()
        if found == before or (before is None and not found):
            return
        logger.info("%s", translated_text(found))
        self._context.request_task_reconfiguration()

    def _wait(self, seconds: float) -> bool:
        return not self._stopped.wait(seconds)


def translated_text(groups: Sequence[str]) -> str:
    """Return the log line about the groups that are translated from now on."""
    if not groups:
        return "There is no group left to translate offsets of"
    counted = "1 group" if len(groups) == 1 else f"{len(groups)} groups"
    return f"Translating the offsets of {counted}: {', '.join(groups)}"
