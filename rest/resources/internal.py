"""Signed requests between the workers of a cluster (KIP-507); the herder verifies the signatures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import Blueprint, request

from rest.http.body import json_body
from rest.http.timeouts import Patience
from rest.peers.identities import current_request
from worker.errors import BadRequestError
from worker.herder.cluster.peers import Peers
from worker.peers.leader import PUBLICATION_HEADER, Publication
from worker.security.session_keys import ALGORITHM_HEADER, SIGNATURE_HEADER, SignedRequest

__all__ = ["internal"]


def internal(peers: Peers, patience: Patience) -> Blueprint:
    """Create the internal resources of distributed mode, below ``/connectors``."""
    blueprint = Blueprint("internal", __name__, url_prefix="/connectors")

    @blueprint.post("/<name:name>/tasks")
    def put_task_configs(name: str) -> tuple[str, int]:
        said = request.headers.get(PUBLICATION_HEADER)
        # A Kafka Connect worker does not number its publications.
        publication = Publication.parse(said) if said is not None else None
        patience.wait(peers.put_task_configs(name, _task_configs(json_body()), _signed(), publication))
        return "", 204

    @blueprint.put("/<name:name>/fence")
    def fence(name: str) -> tuple[str, int]:
        patience.wait(peers.fence(name, _signed()))
        return "", 204

    return blueprint


def _signed() -> SignedRequest:
    """Return what the sender has signed: the whole request for a Sluice worker, the body for a Kafka Connect worker."""
    return replace(
        current_request(),
        signature=request.headers.get(SIGNATURE_HEADER),
        algorithm=request.headers.get(ALGORITHM_HEADER),
    )


def _task_configs(document: Any) -> list[dict[str, str]]:
    is_right = isinstance(document, list) and all(
        isinstance(config, dict) and all(isinstance(value, str) for value in config.values()) for config in document
    )
    if not is_right:
        raise BadRequestError("Task configs must be an array of objects with string values.")
    return list(document)
