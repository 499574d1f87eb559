"""The secrets in the configuration of a Java connector, by the ``PASSWORD`` keys of its plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from connect.internals.chain.converters import converter_props
from connect.internals.chain.specs import predicate_specs, transformation_specs
from connect.internals.kafka.auth.jaas import client_secrets
from worker.errors import JavaError
from worker.runtime.assembly import Assembly
from worker.runtime.java.connect_runtime import JavaWorker, failures
from worker.runtime.java.settings import java_connector_props

__all__ = ["password_values"]

_HIDDEN_TYPE: Final = "PASSWORD"


def password_values(java: JavaWorker, assembly: Assembly) -> list[str]:
    """Return the values to hide: each plugin sees the keys of the others, and may log them (invariant I8)."""
    props = java_connector_props(assembly.props, assembly.plugins)
    found = [value for plugin, own in _plugins(props) for value in _passwords(java, plugin, own)]
    return [*found, *client_secrets(props)]


def _plugins(props: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield props["connector.class"], props
    for role in ("key", "value", "header"):
        if name := props.get(f"{role}.converter"):
            yield name, converter_props(props, role)
    yield from ((spec.type, spec.props) for spec in transformation_specs(props))
    yield from ((predicate.type, predicate.props) for predicate in predicate_specs(props))


def _passwords(java: JavaWorker, plugin: str, props: Mapping[str, str]) -> list[str]:
    # A plugin that cannot be found has no secrets, and is reported where it is used.
    with suppress(JavaError), failures(java.jvm):
        keys = java.jvm.to_python(java.herder.connectorPluginConfig(plugin))
        return [props[key["name"]] for key in keys if key["type"] == _HIDDEN_TYPE and props.get(key["name"])]
    return []
