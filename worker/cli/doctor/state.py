"""The commands ``sluice state``: write all that a cluster of workers keeps to a file, and bring it back.

The file holds the last record of each key of the internal topics as it is, so also what no REST call shows: secrets,
versions, and offsets of connectors that were deleted.

Crash points of a restore: records are produced in the file's order, and whoever runs it again produces the same ones
once more, of which compaction keeps the last. So a restore that was killed is simply repeated.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.groups import CommandGroup

if TYPE_CHECKING:
    from worker.config.worker import DistributedConfig
    from worker.kafka.topics.kept_records import KeptRecord

__all__ = ["state"]

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_WORKER: Final = click.option(
    "--worker",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="The properties file of a worker of the cluster.",
)
_FORMAT: Final = "sluice-state-1"
_SECONDS: Final = 30.0
_PRIVATE: Final = 0o600


@click.group(cls=CommandGroup)
def state() -> None:
    """Back up and restore what a cluster keeps: configurations, offsets, states and versions."""


@state.command()
@click.argument("file", type=_FILE)
@_WORKER
def backup(file: Path, worker: Path) -> None:
    """Write all that a cluster keeps to FILE: configurations with their secrets, offsets, states and versions.

    The workers may run; what they write meanwhile may be missing. Only your user may read the file, and it should stay
    so.

    \b
    Example:
      sluice state backup connect.backup --worker worker.properties
    """
    props, config = _cluster(worker)
    topics = _topics(config)
    kept = {role: _read(props, role, topic) for role, topic in topics.items()}
    lines = [{"format": _FORMAT, "group": config.group_id, "topics": topics}]
    lines += [asdict(record) for records in kept.values() for record in records]
    _write(file, "".join(json.dumps(line) + "\n" for line in lines))
    counts = ", ".join(f"{len(records)} of {topics[role]}" for role, records in kept.items())
    click.echo(f"Wrote {sum(map(len, kept.values()))} records to {file}: {counts}.")


@state.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_WORKER
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def restore(file: Path, worker: Path, yes: bool) -> None:
    """Write what is in FILE to the internal topics of a cluster none of whose workers runs.

    Missing topics are created. A topic with records that are not in FILE is refused, so that nothing is mixed up: name
    other topics in the worker's file. A restore that was interrupted may be repeated.

    \b
    Example:
      sluice state restore connect.backup --worker worker.properties
    """
    props, config = _cluster(worker)
    kept = _parsed(file)
    _refuse_running(props, config)
    topics = _topics(config)
    for role, topic in topics.items():
        _create(props, config, role)
        _refuse_others(topic, _read(props, role, topic), [record for record in kept if record.role == role])
    if not yes:
        click.confirm(f"Write {len(kept)} records to {', '.join(topics.values())}?", abort=True)
    _produce(props, topics, kept)
    click.echo(f"Restored {len(kept)} records. Start the workers.")


def _cluster(file: Path) -> tuple[Mapping[str, str], DistributedConfig]:
    import logging  # noqa: PLC0415 - only these commands need them

    from connect.errors import ConnectError  # noqa: PLC0415
    from worker.app.worker import WorkerProperties, parsed  # noqa: PLC0415
    from worker.config.worker import DistributedConfig  # noqa: PLC0415
    from worker.log import configure_logging  # noqa: PLC0415

    configure_logging(logging.WARNING)
    try:
        props = WorkerProperties.read(file)
        if not props.resolved.get("group.id"):
            raise click.ClickException(
                f"{file} is of a standalone worker, whose state is in files: copy those of "
                "offset.storage.file.filename and config.history.file while it does not run."
            )
        return props.resolved, parsed(DistributedConfig, props)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error


def _topics(config: DistributedConfig) -> dict[str, str]:
    from worker.cli.doctor.brokers import internal_topics  # noqa: PLC0415 - as above

    return {topic.key: topic.name for topic in internal_topics(config)}


def _read(props: Mapping[str, str], role: str, topic: str) -> list[KeptRecord]:
    from connect.errors import ConnectError  # noqa: PLC0415 - as above
    from connect.internals.kafka.settings.client import ClientKind  # noqa: PLC0415
    from worker.kafka.clients.roles import internal_properties  # noqa: PLC0415
    from worker.kafka.topics.kept_records import read_kept  # noqa: PLC0415

    try:
        return read_kept(internal_properties(props, ClientKind.CONSUMER, "state"), role, topic)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error


def _write(file: Path, text: str) -> None:
    """Write a file that only this user may read, whole or not at all."""
    folder = file.absolute().parent
    try:
        descriptor, beside = tempfile.mkstemp(dir=folder, prefix=f".{file.name}.")
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(beside).chmod(_PRIVATE)
        Path(beside).replace(file)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error


def _parsed(file: Path) -> list[KeptRecord]:
    from worker.kafka.topics.kept_records import KeptRecord  # noqa: PLC0415 - as above

    try:
        first, *others = (json.loads(line) for line in file.read_text().splitlines())
        if first["format"] != _FORMAT:
            raise ValueError(f"its format is {first['format']}")
        return [KeptRecord(**{**line, "headers": [tuple(pair) for pair in line["headers"]]}) for line in others]
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{file} is not a file that `sluice state backup` wrote: {error}") from error


def _refuse_running(props: Mapping[str, str], config: DistributedConfig) -> None:
    from connect.errors import ConnectError  # noqa: PLC0415 - as above
    from connect.internals.kafka.settings.client import ClientKind  # noqa: PLC0415
    from worker.kafka.clients.roles import internal_properties  # noqa: PLC0415
    from worker.kafka.groups.coordinator_requests import has_members  # noqa: PLC0415

    try:
        are_running = has_members(internal_properties(props, ClientKind.ADMIN, "state"), config.group_id, _SECONDS)
    except ConnectError as error:
        raise click.ClickException(f"Whether workers run cannot be found out: {error}") from error
    if are_running:
        raise click.ClickException(f"Workers of the group {config.group_id} run. Stop them, and repeat this command.")


def _create(props: Mapping[str, str], config: DistributedConfig, role: str) -> None:
    from connect.errors import ConnectError  # noqa: PLC0415 - as above
    from worker.kafka.topics.internal import ensure_internal_topic  # noqa: PLC0415

    prefix = role.removesuffix("topic")
    partitions, factor, purpose = {
        "config.storage.": (1, config.config_storage_replication_factor, "connector configurations"),
        "config.history.": (1, config.config_storage_replication_factor, "versions of configurations"),
        "offset.storage.": (
            config.offset_storage_partitions,
            config.offset_storage_replication_factor,
            "source offsets",
        ),
        "status.storage.": (config.status_storage_partitions, config.status_storage_replication_factor, "states"),
    }[prefix]
    try:
        ensure_internal_topic(
            {**props, role: _topics(config)[role]},
            prefix,
            partitions=partitions,
            replication_factor=factor,
            purpose=purpose,
        )
    except ConnectError as error:
        raise click.ClickException(str(error)) from error


def _refuse_others(topic: str, present: list[KeptRecord], wanted: list[KeptRecord]) -> None:
    known = {(record.key, record.value) for record in wanted}
    others = [record for record in present if (record.key, record.value) not in known]
    if others:
        raise click.ClickException(
            f"{topic} has {len(others)} records that are not in the file. Nothing was written. Name other topics in "
            "the worker's file, which are created, or delete this one."
        )


def _produce(props: Mapping[str, str], topics: Mapping[str, str], kept: list[KeptRecord]) -> None:
    from connect.errors import ConnectError  # noqa: PLC0415 - as above
    from connect.internals.kafka.settings.client import ClientKind  # noqa: PLC0415
    from worker.kafka.clients.roles import internal_properties  # noqa: PLC0415
    from worker.kafka.topics.kept_records import write_kept  # noqa: PLC0415

    properties = internal_properties(props, ClientKind.PRODUCER, "state")
    try:
        for role, topic in topics.items():
            write_kept(properties, topic, [record for record in kept if record.role == role])
    except ConnectError as error:
        raise click.ClickException(str(error)) from error
