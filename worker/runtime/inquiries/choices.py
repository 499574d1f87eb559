"""Asks a connector's system what a key can name, such as the tables of a database; of sinks, the brokers for topics.

The configuration may be unfinished: only the options that are read for it have to be valid.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.config.option import RefusedOptionError
from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import ADMIN
from connect.internals.kafka.clients.librdkafka import listed_topics
from worker.errors import BadRequestError
from worker.kafka.clients import roles
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.security.redaction import Redaction

__all__ = ["choices_in", "find_choices"]

_TOPICS: Final = "topics"
_MOST_VALUES: Final = 10_000
_MOST_SECONDS: Final = 30.0


def choices_in(assembly: Assembly) -> dict[str, str]:
    """Return the keys that can be asked for, each with what its values are."""
    of_brokers = {} if assembly.is_source else {_TOPICS: "topics"}
    if assembly.is_java:
        return of_brokers
    return {**of_brokers, **assembly.connector_class.config_class.choices}


def find_choices(
    inquiry: messages.FindChoices, redaction: Redaction, most_seconds: float = _MOST_SECONDS
) -> messages.ChoicesFound:
    """Return what the key can name, in order.

    Raises :class:`~connect.errors.ConnectError` if the system does not answer, and its :class:`BadRequestError` if an
    option that is needed to ask it is not valid.
    """
    # The ids of Kafka clients have the connector's name, which may not be typed yet.
    given = {**inquiry.config, "name": inquiry.config.get("name") or "choices"}
    assembly = Assembly.resolve(inquiry.worker, given, redaction)
    choices = choices_in(assembly)
    if inquiry.key not in choices:
        named = f"; there are choices for {', '.join(choices)}" if choices else ""
        raise BadRequestError(f"What {inquiry.key} can name is not known{named}.")
    found = sorted({*_within(most_seconds, _Search(assembly, inquiry.key))})
    return messages.ChoicesFound(found[:_MOST_VALUES], len(found))


class _Search(threading.Thread):
    """Asks the system, in a thread that is left behind if it takes too long: it ends with the process."""

    def __init__(self, assembly: Assembly, key: str) -> None:
        super().__init__(name="choices", daemon=True)
        self._assembly = assembly
        self._key = key
        self.found: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.found = list(self._values())
        except Exception as error:
            self.failure = error

    def _values(self) -> Iterable[str]:
        assembly = self._assembly
        config_class = None if assembly.is_java else assembly.connector_class.config_class
        if config_class is None or self._key not in config_class.choices:
            return _topics(assembly)
        assembly.hide_secrets()
        assembly.check_spark()
        props: Mapping[str, Any] = assembly.with_worker_keys(config_class, assembly.props)
        try:
            return list(config_class.parse_valid(props).choices_of(self._key))
        except RefusedOptionError as error:
            raise BadRequestError(f"Enter a valid {error.key} first: it is needed to ask the system.") from error


def _within(seconds: float, search: _Search) -> list[str]:
    search.start()
    search.join(seconds)
    if search.is_alive():
        raise ConnectError(f"The connector's system did not answer within {seconds:g} s.")
    match search.failure:
        case None:
            return search.found
        case ConnectError() as error:
            raise error
        case error:
            raise ConnectError(f"The connector's system could not be asked: {error}") from error


def _topics(assembly: Assembly) -> Iterable[str]:
    """Return the topics that the connector's user may see, without internal ones."""
    listed = listed_topics(roles.admin_properties(assembly.worker_props, assembly.props), ADMIN)
    return [topic for topic in listed if not assembly.internal_topics.has(topic)]
