"""``sluice validate``: reports every mistake in connector files at once, without a broker or a worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.output import Output, output_option, print_document

if TYPE_CHECKING:
    from worker.cli.offline_worker import OfflineWorker

__all__ = ["validate"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_INVALID: Final = 1
_UNREADABLE: Final = 2


@click.command()
@click.argument("connectors", type=_FILE, nargs=-1, required=True)
@click.option("--worker", type=_FILE, help="The worker's properties file. [default: a worker with JSON converters]")
@click.option("--connect", is_flag=True, help="Also ask the connectors' own systems what would fail later.")
@output_option
def validate(connectors: tuple[Path, ...], worker: Path | None, output: Output, *, connect: bool) -> None:
    """Check the files of CONNECTORS (properties or JSON) and report every mistake with its remedy.

    The plugins are imported and asked in separate processes; no broker is needed. What depends on the worker, such as
    its converters and override policy, is checked against --worker. With --connect each connector signs in to its
    database, service or store and looks for what would fail later; it changes nothing there.

    Exit status: 0 no mistakes, 1 mistakes, 2 a file cannot be read or the worker's is wrong.
    """
    from worker.cli.offline_worker import OfflineWorker  # noqa: PLC0415 - only this command needs it

    given = OfflineWorker.read(worker)
    documents = [_validated(given, file, connect=connect) for file in connectors]
    print_document(documents, output, lambda: "\n".join(map(_text, documents)))
    if any(document.get("unreadable") for document in documents):
        raise SystemExit(_UNREADABLE)
    if any(document["mistakes"] for document in documents):
        raise SystemExit(_INVALID)


def _validated(worker: OfflineWorker, file: Path, *, connect: bool) -> dict[str, Any]:
    """Return the result for one connector."""
    from connect.errors import ConnectError  # noqa: PLC0415 - see above
    from worker.cli.mistakes import Mistake  # noqa: PLC0415
    from worker.config.connector_files import connector_of, read_document  # noqa: PLC0415
    from worker.security.redaction import Redaction  # noqa: PLC0415

    try:
        connector = connector_of(file, read_document(file))
    except ConnectError as error:
        mistake = Mistake((), Redaction().redacted(str(error)))
        return {"file": str(file), "name": None, "mistakes": [mistake.document()], "warnings": [], "unreadable": True}
    found = worker.validated(connector, str(file), connect=connect)
    return {
        "file": str(file),
        "name": connector.name or None,
        "mistakes": [mistake.document() for mistake in found.mistakes],
        "warnings": found.warnings,
        **({"connection": found.connection} if found.connection is not None else {}),
    }


def _text(document: dict[str, Any]) -> str:
    from worker.cli.mistakes import Mistake, mistakes_text  # noqa: PLC0415 - see above

    found = [Mistake(tuple(item["keys"]), item["error"], item["remedy"]) for item in document["mistakes"]]
    name = f" ({document['name']})" if document["name"] else ""
    count = f"{len(found)} {'mistake' if len(found) == 1 else 'mistakes'}" if found else "no mistakes"
    lines = [f"{document['file']}{name}: {count}"]
    lines += [mistakes_text(found)] if found else []
    lines += [f"  Warning: {warning}" for warning in document["warnings"]]
    if (connection := document.get("connection")) is not None:
        asked = "its system was asked" if connection["checked"] else f"its system was not asked: {connection['reason']}"
        lines.append(f"  {asked[0].upper()}{asked[1:]}")
    return "\n".join(lines)
