"""Requests of the other workers of the cluster, which are signed (KIP-507)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from worker.herder.cluster.fencing import Fencing
from worker.herder.cluster.publication import Publication
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import Writes
from worker.herder.inbox import Request, Requests
from worker.herder.settings import ClusterSettings
from worker.security.session_keys import SignedRequest, verify
from worker.stores.config.store import ConfigStore

__all__ = ["PeerRequests"]


class PeerRequests:
    """Has the herder do, as the leader, what other workers ask for. Any thread may make the requests.

    The signatures are checked if the workers of the ``cluster`` sign.
    """

    def __init__(
        self,
        requests: Requests,
        cluster: ClusterSettings | None,
        configs: ConfigStore,
        connectors: Connectors,
        writes: Writes,
        fencing: Fencing,
    ) -> None:
        self._requests = requests
        self._cluster = cluster
        self._configs = configs
        self._connectors = connectors
        self._writes = writes
        self._fencing = fencing

    def put_task_configs(
        self,
        name: str,
        configs: Sequence[Mapping[str, str]],
        signed: SignedRequest,
        publication: Publication | None = None,
    ) -> Request[None]:
        """Keep the task configs that another worker's connector wants, unless a newer publication has come."""

        def begin(request: Request[None]) -> None:
            self._check_signature(signed)
            self._writes.put_task_configs(request, name, configs, publication)

        return self._requests.begin(begin)

    def fence(self, name: str, signed: SignedRequest) -> Request[None]:
        """Fence the producers of a connector's former tasks, for a worker that is about to start the new ones."""

        def begin(request: Request[None]) -> None:
            self._check_signature(signed)
            self._connectors.entry(name)
            self._fencing.fence(request, name)

        return self._requests.begin(begin)

    def _check_signature(self, signed: SignedRequest) -> None:
        if self._cluster is not None and self._cluster.keys is not None:
            verify(signed, self._configs.session_key(), self._cluster.verification_algorithms)
