"""``sluice migrate``: says what becomes of the connectors of a Java cluster, and takes over those that are ready."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from worker.cli.options import client_of, refusals_shown, url_option
from worker.cli.output import Output, columns, output_option, print_document

if TYPE_CHECKING:
    from rest.client import RestClient
    from worker.cli.migrate.move import Cluster
    from worker.cli.migrate.verdicts import Place, Verdicts

__all__ = ["migrate"]

_OURS: Final = "sluice-"
_JAVA: Final = "the Java cluster"
_HERE: Final = "this cluster"
_REFUSED: Final = 1


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--from", "java", required=True, metavar="URL", help="Address of a worker of the Java cluster.")
@click.option("--apply", is_flag=True, help="Take over the connectors that are ready, one by one.")
@click.option("--back", is_flag=True, help="Give connectors back to the Java cluster, with their offsets.")
@click.option(
    "--default",
    "defaults",
    multiple=True,
    metavar="KEY=VALUE",
    help="For connectors that do not set this key: what the file of the Java workers says, such as value.converter.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@url_option
@output_option
def migrate(
    names: tuple[str, ...],
    java: str,
    apply: bool,
    back: bool,
    defaults: tuple[str, ...],
    yes: bool,
    url: str,
    output: Output,
) -> None:
    """Say what becomes of the connectors of a running Java cluster here, and take over those that are ready.

    Without --apply nothing is changed. With it, each connector is stopped there, gets its offsets here, and runs here;
    there it stays, stopped. --back is the same the other way. NAMEs choose connectors; by default all. Both clusters
    must be of the same Kafka cluster, and the Java workers of version 3.5, for --back 3.6, or newer.

    \b
    Examples:
      sluice migrate --from http://java-connect:8083
      sluice migrate --from http://java-connect:8083 --default value.converter=JsonConverter orders --apply
      sluice migrate --from http://java-connect:8083 orders --back

    Exit status: 0 done, 1 something was refused or cannot be taken over, 2 wrong usage.
    """
    from worker.cli.connectors.configuration import parsed_changes  # noqa: PLC0415 - only this command needs it
    from worker.cli.migrate.move import Cluster  # noqa: PLC0415

    if apply and back:
        raise click.UsageError("Use either --apply or --back.")
    given = {key: str(value) for key, value in parsed_changes(defaults, ()).items()} if defaults else {}
    there, here = Cluster(client_of(java), _JAVA), Cluster(client_of(url), _HERE)
    with refusals_shown(there.client):
        _check_clusters(there.client, here.client)
        connectors = _places(there.client, names)
    if back:
        _give_back(there, here, sorted(connectors), yes=yes)
        return
    with refusals_shown(here.client):
        present = _places(here.client, ())
        verdicts = [
            _verdict(here.client, name, there_, present.get(name), given) for name, there_ in connectors.items()
        ]
    print_document([item.document() for item in verdicts], output, lambda: _table(verdicts))
    if apply:
        ready = {item.name: {**given, **connectors[item.name].config} for item in verdicts if item.is_ready}
        _take_over(there, here, ready, present, yes=yes)
    if any(not item.is_ready and item.verdict.value != "here" for item in verdicts):
        raise SystemExit(_REFUSED)


def _check_clusters(java: RestClient, ours: RestClient) -> None:
    there, here = java.get("/"), ours.get("/")
    if str(there.get("commit", "")).startswith(_OURS):
        raise click.ClickException(f"{java.url} is a Sluice worker: name one of the Java cluster with --from.")
    if not str(here.get("commit", "")).startswith(_OURS):
        raise click.ClickException(f"{ours.url} is not a Sluice worker: name one with --url.")
    if there["kafka_cluster_id"] != here["kafka_cluster_id"]:
        raise click.ClickException(
            f"The Java workers use the Kafka cluster {there['kafka_cluster_id']}, and those here "
            f"{here['kafka_cluster_id']}. Offsets mean nothing in another cluster: move its topics and groups with "
            "`sluice mirror`."
        )


def _places(client: RestClient, names: Iterable[str]) -> dict[str, Place]:
    from worker.cli.migrate.verdicts import Place  # noqa: PLC0415 - as above

    views: Mapping[str, Any] = client.get("/connectors?expand=info&expand=status")
    wanted = list(names) or sorted(views)
    if missing := [name for name in wanted if name not in views]:
        raise click.ClickException(f"{client.url} has no connector {missing[0]}; it has {', '.join(sorted(views))}.")
    return {
        name: Place(views[name]["info"]["config"], (views[name].get("status") or {}).get("connector", {}).get("state"))
        for name in wanted
        if "info" in views[name]
    }


def _verdict(here: RestClient, name: str, there: Place, present: Place | None, defaults: Mapping[str, str]) -> Verdicts:
    from rest.client import RestError  # noqa: PLC0415 - as above
    from rest.http.paths import escaped  # noqa: PLC0415
    from worker.cli.migrate.verdicts import Place, verdict_of  # noqa: PLC0415

    config = {**defaults, **there.config}
    given = config.get("connector.class", "")
    try:
        infos = here.put(f"/connector-plugins/{escaped(given)}/config/validate", config)
        becomes = _class_of(given)
    except RestError as error:
        if error.status is None:
            raise
        infos, becomes = None, None
    return verdict_of(name, Place(config, there.state), present, becomes, infos)


def _class_of(given: str) -> str:
    """Return the class that a name stands for; the name itself if only the worker has it."""
    from connect.errors import PluginError  # noqa: PLC0415 - as above
    from connect.internals.plugins import PluginKind, PluginRegistry  # noqa: PLC0415

    try:
        return PluginRegistry.discover().find(PluginKind.CONNECTOR, given).class_name
    except PluginError:
        return given


def _table(verdicts: Iterable[Verdicts]) -> str:
    rows = []
    for item in verdicts:
        first, *others = item.reasons or [""]
        rows.append((item.name, item.verdict.value, item.becomes or item.java_class, first or None))
        rows += [("", "", "", reason) for reason in others]
    return columns(("NAME", "VERDICT", "HERE IT IS", "WHY"), rows) if rows else "The Java cluster has no connectors."


def _take_over(
    there: Cluster,
    here: Cluster,
    configs: Mapping[str, Mapping[str, str]],
    present: Mapping[str, Place],
    *,
    yes: bool,
) -> None:
    def prepare(name: str) -> None:
        client, config = here.client, dict(configs[name])
        if name in present:
            client.put(client.connector_path(name, "config"), config)
        else:
            client.post("/connectors", {"name": name, "config": config, "initial_state": "STOPPED"})

    _move_all(sorted(configs), there, here, prepare, "Take over", yes=yes)


def _give_back(there: Cluster, here: Cluster, names: Iterable[str], *, yes: bool) -> None:
    with refusals_shown(here.client):
        running = {name for name, place in _places(here.client, ()).items() if not place.is_halted}
    _move_all([name for name in names if name in running], here, there, lambda _: None, "Give back", yes=yes)


def _move_all(names: list[str], source: Cluster, target: Cluster, prepare: Any, what: str, *, yes: bool) -> None:
    from worker.cli.migrate.move import move  # noqa: PLC0415 - as above
    from worker.cli.options import for_each  # noqa: PLC0415

    if not names:
        click.echo("There is nothing to move.")
        return
    if not yes:
        click.confirm(f"{what} {', '.join(names)}?", abort=True)

    def moved(name: str) -> str:
        with refusals_shown(source.client, name):
            if target.name == _JAVA and target.states(name)[0] != "STOPPED":
                raise click.ClickException(f"{name} is not stopped in {_JAVA}: it would run twice.")
            state = move(name, source, target, lambda: prepare(name))
        if state == "STOPPED":
            return f"{name} was stopped in {source.name}, and is so in {target.name}: sluice connectors resume {name}"
        return f"{name} is in {target.name}; in {source.name} it is stopped."

    for_each(names, moved)
