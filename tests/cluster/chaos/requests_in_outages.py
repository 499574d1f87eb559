"""Requests while whoever is to answer them may be killed."""

from __future__ import annotations

from collections.abc import Mapping

import requests

from equipment.workers.cluster import Cluster

__all__ = ["put_config"]

_MAY_PASS = {409, 500, 503}


def put_config(cluster: Cluster, name: str, config: Mapping[str, str]) -> None:
    """Change a connector's configuration, or fail to; but nobody may answer that the request is wrong."""
    live = cluster.live
    if not live:
        return
    try:
        response = cluster.request("PUT", f"connectors/{name}/config", dict(config), live[0])
    except requests.RequestException:
        return
    assert response.ok or response.status_code in _MAY_PASS, response.text
