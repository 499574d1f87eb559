"""Requests that other workers of the cluster make, which are signed (KIP-507)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from worker.errors import ForbiddenError
from worker.herder.cluster.fencing import Fencing
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import Writes
from worker.herder.requests import Request, Requests, Steps, answered, asked
from worker.herder.settings import ClusterSettings
from worker.peers.leader import Publication
from worker.security.request_signatures import Nonces
from worker.security.session_keys import SignedRequest, verify
from worker.stores.config.store import ConfigStore, SessionKey

__all__ = ["Peers"]


class Peers:
    """Does, as the leader, what other workers ask for. Methods may be called from any thread.

    Signatures are checked if the workers of the ``cluster`` sign their requests.
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
        self._nonces = Nonces()

    @asked
    def put_task_configs(
        self,
        request: Request[None],
        name: str,
        configs: Sequence[Mapping[str, str]],
        signed: SignedRequest,
        publication: Publication | None = None,
    ) -> Steps[None]:
        """Store the task configs of a connector that another worker runs, unless a newer publication has arrived."""
        self._check_signature(signed)
        yield from self._writes.put_task_configs(request, name, configs, publication)

    @asked
    def fence(self, request: Request[None], name: str, signed: SignedRequest) -> Steps[None]:
        """Fence the producers of a connector's former tasks, for a worker that is about to start new ones."""
        self._check_signature(signed)
        self._connectors.entry(name)
        yield from self._fencing.fence(request, name)

    @answered
    def session_key(self) -> SessionKey | None:
        """Return the key with which this cluster's workers sign; ``None`` if there is none yet."""
        return self._configs.session_key()

    @answered
    def verify(self, signed: SignedRequest) -> None:
        """Check that a request comes from a worker of this cluster; fails like :func:`verify`."""
        if self._cluster is None or self._cluster.keys is None:
            raise ForbiddenError(
                "The workers of this cluster do not sign requests. Set connect.protocol=sessioned on every worker."
            )
        self._check_signature(signed)

    def _check_signature(self, signed: SignedRequest) -> None:
        if self._cluster is not None and self._cluster.keys is not None:
            accepted, now_ms = self._cluster.verification_algorithms, int(time.time() * 1000)
            verify(signed, self._configs.session_key(), accepted, self._nonces, now_ms)
