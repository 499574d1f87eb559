"""The REST API as a Flask application over the herder."""

from __future__ import annotations

import importlib.metadata

from flask import Flask

from rest.errors import register_errors
from rest.resources.connectors import connectors
from rest.resources.root import root
from worker.herder.herder import Herder

__all__ = ["create_app"]


def create_app(herder: Herder, cluster_id: str) -> Flask:
    """The application of one worker; ``cluster_id`` is the Kafka cluster it works with."""
    app = Flask("sluice", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.url_map.strict_slashes = False
    app.register_blueprint(root(importlib.metadata.version("sluice"), cluster_id))
    app.register_blueprint(connectors(herder))
    register_errors(app)
    return app
