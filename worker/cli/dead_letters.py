"""The commands ``sluice dlq``: list, show, replay and edit the dead letters of a connector."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.groups import CommandGroup
from worker.cli.options import client_of, name_argument, refusals_shown, url_option
from worker.cli.output import Long, columns
from worker.cli.preview_text import record_text

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["dlq"]

_PAGE: Final = 200
_KINDS: Final = ("text", "json", "base64")
_PREAMBLE: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
"""The prefix of the errors of Kafka's JsonConverter, before the actual cause."""
_RECORD: Final = re.compile(r"(\d{1,9}):(\d{1,18})(?:-(\d{1,18}))?")


@click.group(cls=CommandGroup)
def dlq() -> None:
    """Inspect and replay dead letters, the records in the dead letter queues of connectors."""


@dlq.command("list")
@name_argument
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1), help="Maximum number of dead letters to list."
)
@click.option("--after", help="Continue after this dead letter, PARTITION:OFFSET.")
@url_option
def list_records(name: str, limit: int, after: str | None, url: str) -> None:
    """List the dead letters of the connector NAME."""
    client = client_of(url)
    rows: list[tuple[object, ...]] = []
    with refusals_shown(client, name):
        for page in _pages(client, name, limit, after):
            rows += [_row(record, page["replayed"]) for record in page["records"]]
    click.echo(columns(("RECORD", "REPLAYED", "FROM", "STAGE", "EXCEPTION", "MESSAGE"), rows, long=Long.CUT))
    if page["next"] is not None:
        click.echo(f"There are more: --after {page['next']}")


@dlq.command()
@name_argument
@click.argument("record")
@url_option
def show(name: str, record: str, url: str) -> None:
    """Show one dead letter of the connector NAME, RECORD (PARTITION:OFFSET), with its full error."""
    partition, offset, _ = _numbers(record)
    client = client_of(url)
    # The API lists the records after a position; the one before offset 0 is the end of the previous partition.
    place: dict[str, str | int] = {"limit": 1}
    if offset or partition:
        place["after"] = f"{partition}:{offset - 1}" if offset else f"{partition - 1}:{2**63 - 2}"
    with refusals_shown(client, name):
        records = client.get(client.connector_path(name, "dlq"), **place)["records"]
    if not records or (records[0]["partition"], records[0]["offset"]) != (partition, offset):
        raise click.ClickException(f"There is no record {record} in the dead letter queue of connector {name}.")
    click.echo(_detailed(records[0]))


_to_option: Final = click.option(
    "--to",
    type=click.Choice(["topic", "task"]),
    required=True,
    help="topic: the topic they come from, for all its readers; task: only this connector, which must be stopped.",
)


@dlq.command()
@name_argument
@_to_option
@click.option("everything", "--all", is_flag=True, help="All dead letters that were not replayed yet.")
@click.option("chosen", "--record", multiple=True, metavar="P:O[-O]", help="This dead letter, or this range.")
@click.option("--dry-run", is_flag=True, help="Only try what would be replayed, and what would fail again and why.")
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
                fails = "would fail again" if dry_run else "failed"
                click.echo(f"{item['partition']}:{item['offset']} {fails}: {item['error']}", err=True)
            absent -= {(item["partition"], item["offset"]) for item in (*done["replayed"], *done["failed"])}
            following = done["next"]
    for partition, offset in sorted(absent):
        click.echo(f"{partition}:{offset} is not in the dead letter queue of connector {name}.", err=True)
    if dry_run:
        click.echo(f"{replayed} would be replayed, {failed} would fail again.")
    else:
        click.echo(f"{replayed} replayed, {failed} failed.")
    if failed or absent:
        raise SystemExit(1)


@dlq.command()
@name_argument
@click.argument("record")
@_to_option
@click.option("--key", help="The new key.")
@click.option("--value", help="The new value.")
@click.option("--header", "headers", multiple=True, metavar="NAME=TEXT", help="A new header.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["text", "json", "base64", "hex"]),
    help="Format of key and value; json uses the connector's converter. By default as shown in the editor.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be delivered, and its way through the connector.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
def edit(
    name: str,
    record: str,
    to: str,
    key: str | None,
    value: str | None,
    headers: tuple[str, ...],
    kind: str | None,
    dry_run: bool,
    yes: bool,
    url: str,
) -> None:
    """Edit one dead letter of the sink NAME, RECORD (PARTITION:OFFSET), and deliver it again.

    Without --key, --value and --header, an editor opens with the value. The record in the queue is not changed.
    """
    client = client_of(url)
    path = client.connector_path(name, "dlq", record)
    with refusals_shown(client, name):
        forms = client.get(path)["forms"]
        given = {"key": key, "value": value}
        if key is None and value is None and not headers:
            given["value"] = _edited(forms["value"], kind)
        body: dict[str, Any] = {"to": to, "dry_run": True}
        body |= {part: {kind or _kind(forms[part]): text} for part, text in given.items() if text is not None}
        if headers:
            body["headers"] = _with_headers(forms["headers"], headers)
        _deliver(client, path, body, dry_run=dry_run, yes=yes)


def _deliver(client: RestClient, path: str, body: dict[str, Any], *, dry_run: bool, yes: bool) -> None:
    """Show the result of a dry run, and deliver the record if the user agrees."""
    done = client.post(f"{path}/repair", body)
    for change in done["changes"]:
        click.echo(f"{change['key']}: {_quoted(change['before'])} -> {_quoted(change['after'])}")
    click.echo(record_text(1, done["record"]))
    _stop_if_failed(done)
    destination = done["replayed"][0]["topic"] if body["to"] == "topic" else "the connector"
    if dry_run:
        click.echo(f"It would be delivered to {destination}.")
        return
    if not yes:
        click.confirm(f"Deliver it to {destination}?", abort=True)
    _stop_if_failed(client.post(f"{path}/repair", {**body, "dry_run": False}))
    click.echo(f"Delivered to {destination}.")


def _stop_if_failed(done: dict[str, Any]) -> None:
    for item in done["failed"]:
        raise click.ClickException(f"It would fail again: {item['error']}. Nothing was delivered.")


def _edited(forms: dict[str, str | None] | None, kind: str | None) -> str:
    """Open a part of a record in an editor and return the result."""
    shown = kind or _kind(forms)
    before = ("" if forms is None else forms.get(shown)) or ""
    after = click.edit(before, extension=".json" if shown == "json" else ".txt")
    if after is None:
        raise click.ClickException("The editor was closed without saving: nothing was delivered.")
    # Most editors add a final line break.
    return after if before.endswith("\n") else after.removesuffix("\n")


def _kind(forms: dict[str, str | None] | None) -> str:
    """Return the most readable format for a part of a record; a null has none."""
    return "text" if forms is None else next(kind for kind in _KINDS if forms[kind] is not None)


def _with_headers(present: list[dict[str, Any]], given: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the headers of a record, with the given ones replacing those of the same names."""
    wanted = [text.partition("=") for text in given]
    for name, equals, _ in wanted:
        if not (name and equals):
            raise click.BadParameter(f"{name!r} is not NAME=TEXT", param_hint="--header")
    names = {name for name, _, _ in wanted}
    kept = [header for header in present if header["key"] not in names]
    return [*kept, *({"key": name, "value": {"text": text}} for name, _, text in wanted)]


def _quoted(text: str | None) -> str:
    return "nothing" if text is None else json.dumps(text, ensure_ascii=False)


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
