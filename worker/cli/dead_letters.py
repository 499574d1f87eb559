"""The commands ``sluice dlq``: list, show and replay the dead letters of a connector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.options import client_of, refusals_shown, url_option
from worker.cli.output import columns

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["dlq"]

_PAGE: Final = 200
_PREAMBLE: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
"""What Kafka's JsonConverter says before it says what is wrong."""
_RECORD: Final = re.compile(r"(\d{1,9}):(\d{1,18})(?:-(\d{1,18}))?")


@click.group()
def dlq() -> None:
    """Inspect and replay dead letters, the records in the dead letter queues of connectors."""


@dlq.command("list")
@click.argument("name")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="The most dead letters to list.")
@click.option("--after", help="Continue after this dead letter, PARTITION:OFFSET.")
@url_option
def list_records(name: str, limit: int, after: str | None, url: str) -> None:
    """List the dead letters of the connector NAME."""
    client = client_of(url)
    rows: list[tuple[object, ...]] = []
    with refusals_shown(client, name):
        for page in _pages(client, name, limit, after):
            rows += [_row(record, page["replayed"]) for record in page["records"]]
    click.echo(columns(("RECORD", "REPLAYED", "FROM", "STAGE", "EXCEPTION", "MESSAGE"), rows, cut=True))
    if page["next"] is not None:
        click.echo(f"There are more: --after {page['next']}")


@dlq.command()
@click.argument("name")
@click.argument("record")
@url_option
def show(name: str, record: str, url: str) -> None:
    """Show one dead letter of the connector NAME, RECORD (PARTITION:OFFSET), with its whole error."""
    partition, offset, _ = _numbers(record)
    client = client_of(url)
    # The API lists the records after a place; before offset 0 that is the end of the previous partition.
    place: dict[str, str | int] = {"limit": 1}
    if offset or partition:
        place["after"] = f"{partition}:{offset - 1}" if offset else f"{partition - 1}:{2**63 - 2}"
    with refusals_shown(client, name):
        records = client.get(client.connector_path(name, "dlq"), **place)["records"]
    if not records or (records[0]["partition"], records[0]["offset"]) != (partition, offset):
        raise click.ClickException(f"There is no record {record} in the dead letter queue of connector {name}.")
    click.echo(_detailed(records[0]))


@dlq.command()
@click.argument("name")
@click.option(
    "--to",
    type=click.Choice(["topic", "task"]),
    required=True,
    help="topic: the topic they come from, for all who read it; task: this connector only, which must be stopped.",
)
@click.option("everything", "--all", is_flag=True, help="All dead letters that were not replayed yet.")
@click.option("chosen", "--record", multiple=True, metavar="P:O[-O]", help="This dead letter, or this range.")
@click.option("--dry-run", is_flag=True, help="Only list what would be replayed.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
def replay(name: str, to: str, everything: bool, chosen: tuple[str, ...], dry_run: bool, yes: bool, url: str) -> None:
    """Replay dead letters of the sink NAME. Those that fail again stay in the queue."""
    if everything == bool(chosen):
        raise click.UsageError("Use either --all or --record.")
    if not (yes or dry_run):
        which = "all dead letters" if everything else ", ".join(chosen)
        click.confirm(f"Replay {which} to the {to} of connector {name}?", abort=True)
    following: dict[str, Any] | None = {
        "to": to,
        "selection": "all" if everything else [_selected(text) for text in chosen],
        "dry_run": dry_run,
    }
    client = client_of(url)
    replayed, failed = 0, 0
    absent = {numbers[:2] for numbers in map(_numbers, chosen) if numbers[2] is None}
    with refusals_shown(client, name):
        while following is not None:
            done = client.post(client.connector_path(name, "dlq", "replay"), following)
            replayed, failed = replayed + len(done["replayed"]), failed + len(done["failed"])
            for item in done["replayed"] if dry_run else ():
                click.echo(f"{item['partition']}:{item['offset']} to {item['topic']}")
            for item in done["failed"]:
                click.echo(f"{item['partition']}:{item['offset']} failed: {item['error']}", err=True)
            absent -= {(item["partition"], item["offset"]) for item in (*done["replayed"], *done["failed"])}
            following = done["next"]
    for partition, offset in sorted(absent):
        click.echo(f"{partition}:{offset} is not in the dead letter queue of connector {name}.", err=True)
    click.echo(f"{replayed} {'would be ' if dry_run else ''}replayed, {failed} failed.")
    if failed or absent:
        raise SystemExit(1)


def _pages(client: RestClient, name: str, limit: int, after: str | None) -> Iterator[dict[str, Any]]:
    while True:
        place = {} if after is None else {"after": after}
        page = client.get(client.connector_path(name, "dlq"), limit=min(limit, _PAGE), **place)
        yield page
        limit -= len(page["records"])
        after = page["next"]
        if after is None or limit <= 0:
            return


def _row(record: dict[str, Any], replayed: dict[str, int]) -> tuple[object, ...]:
    error = record["error"] or {}
    message = " ".join((error.get("message") or "").split()).removeprefix(_PREAMBLE)
    place = (error.get("topic"), error.get("partition"), error.get("offset"))
    return (
        f"{record['partition']}:{record['offset']}",
        "yes" if record["offset"] < replayed.get(str(record["partition"]), 0) else "no",
        ":".join(str(part) for part in place if part is not None) or None,
        error.get("stage"),
        (error.get("exception") or "").rpartition(".")[2] or None,
        message or None,
    )


def _detailed(record: dict[str, Any]) -> str:
    lines = [f"record     {record['partition']}:{record['offset']}"]
    lines += [f"{part:<10} {_text(record[part])}" for part in ("key", "value")]
    lines += [f"header     {header['key']}: {_text(header['value'])}" for header in record["headers"]]
    error = record["error"] or {}
    lines += [f"{field:<10} {error[field]}" for field in error if field != "stacktrace" and error[field] is not None]
    return "\n".join([*lines, *((error.get("stacktrace") or "").rstrip().splitlines())])


def _text(shown: dict[str, str] | None) -> str:
    if shown is None:
        return "null"
    return shown["text"] if "text" in shown else f"{shown['base64']} (base64)"


def _selected(text: str) -> dict[str, int]:
    partition, first, last = _numbers(text)
    return {"partition": partition, "offset": first} if last is None else _range(partition, first, last)


def _range(partition: int, first: int, last: int) -> dict[str, int]:
    return {"partition": partition, "from": first, "to": last}


def _numbers(text: str) -> tuple[int, int, int | None]:
    match = _RECORD.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not PARTITION:OFFSET or PARTITION:OFFSET-OFFSET", param_hint="RECORD")
    return int(match[1]), int(match[2]), None if match[3] is None else int(match[3])
