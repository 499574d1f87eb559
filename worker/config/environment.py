"""Reads a worker's properties from variables of the environment, as the images of Kafka Connect do.

``CONNECT_BOOTSTRAP_SERVERS`` is ``bootstrap.servers``: the prefix goes; one underscore is a dot, two are a dash and
three are an underscore (the rule of Confluent's images). The few names without the prefix are those of Debezium's
images.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Final

from connect.errors import ConnectError

__all__ = ["take_worker_variables"]

_PREFIX: Final = "CONNECT_"
_UNDERSCORES: Final = re.compile("_+")
_SEPARATORS: Final = {"_": ".", "__": "-", "___": "_"}
_DEBEZIUM: Final = {
    "BOOTSTRAP_SERVERS": "bootstrap.servers",
    "GROUP_ID": "group.id",
    "CONFIG_STORAGE_TOPIC": "config.storage.topic",
    "OFFSET_STORAGE_TOPIC": "offset.storage.topic",
    "STATUS_STORAGE_TOPIC": "status.storage.topic",
    "KEY_CONVERTER": "key.converter",
    "VALUE_CONVERTER": "value.converter",
    "ADVERTISED_HOST_NAME": "rest.advertised.host.name",
    "ADVERTISED_PORT": "rest.advertised.port",
    "OFFSET_FLUSH_INTERVAL_MS": "offset.flush.interval.ms",
    "OFFSET_FLUSH_TIMEOUT_MS": "offset.flush.timeout.ms",
    "SHUTDOWN_TIMEOUT": "task.shutdown.graceful.timeout.ms",
}
_RENAMED: Final = {"log4j.root.loglevel": "log.level"}
"""What the images' own scripts make of a variable, rather than the worker."""


def take_worker_variables(environ: MutableMapping[str, str]) -> Mapping[str, str]:
    """Remove the variables that name properties of a worker, and return the properties.

    They are removed because processes that run plugins inherit the environment, and the variables may be secrets. A
    variable with the prefix goes before one without. Raises ConnectError if a name cannot be a property's.
    """
    plain = {key: environ.pop(name) for name, key in _DEBEZIUM.items() if name in environ}
    prefixed = [name for name in environ if name.startswith(_PREFIX) and name != _PREFIX]
    return plain | {_key_of(name): environ.pop(name) for name in prefixed}


def _key_of(name: str) -> str:
    key = _UNDERSCORES.sub(lambda found: _separator(name, found[0]), name.removeprefix(_PREFIX).lower())
    return _RENAMED.get(key, key)


def _separator(name: str, underscores: str) -> str:
    if (separator := _SEPARATORS.get(underscores)) is None:
        raise ConnectError(
            f"The variable {name} has {len(underscores)} underscores together, and names no property of a worker: one "
            "stands for a dot, two for a dash, three for an underscore. Rename it, or remove it."
        )
    return separator
