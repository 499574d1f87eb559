"""The commands ``sluice offsets``: show, reset, export and import the offsets of a connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any, Final

import click

from worker.cli.groups import CommandGroup
from worker.cli.options import client_of, name_argument, refusals_shown, url_option
from worker.cli.output import columns

__all__ = ["offsets"]

_EARLY: Final = "not committed yet"


@click.group(cls=CommandGroup)
def offsets() -> None:
    """Show and change the offsets of connectors."""


@offsets.command()
@name_argument
@url_option
def show(name: str, url: str) -> None:
    """Show the offsets of the connector NAME, and its lag."""
    client = client_of(url)
    with refusals_shown(client, name):
        lag = client.get(client.connector_path(name, "lag"))
        kept = client.get(client.connector_path(name, "offsets"))["offsets"] if lag["type"] != "sink" else []
    if lag["type"] == "sink":
        is_early = lag.get("not_committed_yet", False)
        rows = [_partition_row(partition, is_early=is_early) for partition in lag["partitions"]]
        click.echo(columns(("TOPIC", "PARTITION", "OFFSET", "END", "LAG"), rows))
        shown = (lambda _: _EARLY) if is_early else _known
        tasks = [[task["id"], shown(task["lag"]), task["records_per_second"]] for task in lag["tasks"]]
        header = ("TASK", "LAG", "RECORDS/S")
    else:
        kept_rows = [(json.dumps(item["partition"]), json.dumps(item["offset"])) for item in kept]
        click.echo(columns(("SOURCE PARTITION", "OFFSET"), kept_rows))
        tasks = [[task["id"], _known(_amounts(task["remaining"])), task["records_per_second"]] for task in lag["tasks"]]
        header = ("TASK", "REMAINING", "RECORDS/S")
    if tasks:
        click.echo()
        click.echo(columns(header, tasks))


@offsets.command()
@name_argument
@click.option("--to", "named", type=click.Choice(["earliest", "latest", "current"]), help="Move to this position.")
@click.option("--to-offset", type=click.IntRange(0), help="Move to this offset in each partition.")
@click.option("--shift-by", type=int, help="Move forward by this many records, or back if negative.")
@click.option("--to-datetime", help="Move to the first record at or after this time: 2026-01-31T08:00:00Z.")
@click.option("--by-duration", help="Move back from now by this duration: P1DT2H.")
@click.option("topics", "--topic", multiple=True, metavar="TOPIC[:P,P]", help="Only this topic, or these partitions.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
def reset(
    name: str,
    named: str | None,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    topics: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    url: str,
) -> None:
    """Reset the offsets of the stopped sink NAME. An offset that no longer exists becomes the nearest one."""
    ways = {
        "to": named,
        "to_offset": to_offset,
        "shift_by": shift_by,
        "to_datetime": to_datetime,
        "by_duration": by_duration,
    }
    body: dict[str, Any] = {way: value for way, value in ways.items() if value is not None}
    if len(body) != 1:
        raise click.UsageError("Use exactly one of --to, --to-offset, --shift-by, --to-datetime and --by-duration.")
    if topics:
        body["topics"] = _topics(topics)
    client = client_of(url)
    with refusals_shown(client, name):
        planned = client.post(client.connector_path(name, "offsets", "reset"), body, dry_run="true")
        click.echo(_changes(planned))
        if dry_run:
            return
        if not yes:
            click.confirm(f"Move connector {name} to these offsets?", abort=True)
        done = client.post(client.connector_path(name, "offsets", "reset"), body)
    if done != planned:
        click.echo("The topics have changed meanwhile; the offsets are now:")
        click.echo(_changes(done))
    click.echo("Done.")


@offsets.command("export")
@name_argument
@click.option("--file", type=click.File("w"), default="-", help="File to write. [default: standard output]")
@url_option
def export_offsets(name: str, file: IO[str], url: str) -> None:
    """Write the offsets of the connector NAME as JSON, for ``import`` or PATCH."""
    client = client_of(url)
    with refusals_shown(client, name):
        kept = client.get(client.connector_path(name, "offsets"))
    file.write(json.dumps(kept, indent=2) + "\n")


@offsets.command("import")
@name_argument
@click.argument("file", type=click.File("r"))
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
def import_offsets(name: str, file: IO[str], yes: bool, url: str) -> None:
    """Set the offsets of the connector NAME, which must be stopped, to those in FILE. Others stay unchanged."""
    try:
        document = json.load(file)
    except ValueError as error:
        raise click.ClickException(f"{file.name} is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("offsets"), list):
        raise click.ClickException(f"{file.name} has no offsets: use a file that `sluice offsets export` wrote.")
    if not yes:
        click.confirm(f"Set {len(document['offsets'])} offsets of connector {name}?", abort=True)
    client = client_of(url)
    with refusals_shown(client, name):
        click.echo(client.patch(client.connector_path(name, "offsets"), {"offsets": document["offsets"]})["message"])


@offsets.command("set")
@name_argument
@click.option("--partition", required=True, metavar="JSON", help="The source partition.")
@click.option("--offset", required=True, metavar="JSON", help="Its offset.")
@url_option
def set_offset(name: str, partition: str, offset: str, url: str) -> None:
    """Set the offset of one partition of the connector NAME, which must be stopped. Others stay unchanged.

    `sluice offsets export` shows what partitions and offsets of a connector look like.

    \b
    Example:
      sluice offsets set lines --partition '{"filename": "/tmp/in.txt"}' --offset '{"position": 0}'
    """
    item = {"partition": _object("--partition", partition), "offset": _object("--offset", offset)}
    client = client_of(url)
    with refusals_shown(client, name):
        click.echo(client.patch(client.connector_path(name, "offsets"), {"offsets": [item]})["message"])


@offsets.command("delete")
@name_argument
@click.option("--partition", multiple=True, metavar="JSON", help="Only the offset of this partition.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
def delete_offsets(name: str, partition: tuple[str, ...], yes: bool, url: str) -> None:
    """Delete the offsets of the connector NAME, which must be stopped, so that it begins anew.

    \b
    Examples:
      sluice offsets delete lines
      sluice offsets delete lines --partition '{"filename": "/tmp/in.txt"}'
    """
    items = [{"partition": _object("--partition", text), "offset": None} for text in partition]
    if not yes:
        what = f"{len(items)} offsets" if items else "all offsets"
        click.confirm(f"Delete {what} of connector {name}?", abort=True)
    client = client_of(url)
    path = client.connector_path(name, "offsets")
    with refusals_shown(client, name):
        click.echo((client.patch(path, {"offsets": items}) if items else client.delete(path))["message"])


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"{text} is not JSON: {error}", param_hint=option) from error
    if not isinstance(given, dict):
        raise click.BadParameter(f"{text} is not a JSON object", param_hint=option)
    return given


def _partition_row(partition: Mapping[str, Any], *, is_early: bool) -> list[Any]:
    """Return the row of a partition; before the first commit its lag says nothing."""
    row = _row(partition, ("topic", "partition", "offset", "end_offset", "lag"))
    return [*row[:2], _EARLY, row[3], _EARLY] if is_early and partition["offset"] is None else row


def _row(item: Mapping[str, Any], fields: tuple[str, ...]) -> list[Any]:
    return [item[field] for field in fields]


def _known(value: int | str | None) -> int | str:
    return "unknown" if value is None else value


def _amounts(remaining: Mapping[str, int] | None) -> str | None:
    return ", ".join(f"{amount} {unit}" for unit, amount in remaining.items()) if remaining else None


def _changes(reset_offsets: list[dict[str, Any]]) -> str:
    rows = [_row(item, ("topic", "partition", "before", "after")) for item in reset_offsets]
    return columns(("TOPIC", "PARTITION", "BEFORE", "AFTER"), rows)


def _topics(given: tuple[str, ...]) -> list[str] | dict[str, list[int]]:
    """Parse ``t`` and ``t:0,1``: the REST API takes either whole topics or partitions of each."""
    split = [text.rpartition(":") if ":" in text else (text, "", "") for text in given]
    if all(not colon for _, colon, _ in split):
        return [topic for topic, _, _ in split]
    if not all(colon and _are_numbers(numbers) for _, colon, numbers in split):
        raise click.BadParameter("give partitions as TOPIC:0,1 for every topic or for none", param_hint="--topic")
    chosen: dict[str, list[int]] = {}
    for topic, _, numbers in split:
        chosen.setdefault(topic, []).extend(int(number) for number in numbers.split(","))
    return chosen


def _are_numbers(text: str) -> bool:
    return all(part.isascii() and part.isdigit() for part in text.split(","))
