"""What a validation finds out by asking the cluster: everything that would fail later, with what repairs it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import quote

import orjson

from connect.config import ConfigRuleError
from connect.errors import ConfigError
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import HttpError, NoAnswerError, Request, Response
from connectors.elasticsearch.cluster import JSON, refusal
from connectors.elasticsearch.cluster_config import ClusterConfig
from connectors.elasticsearch.elasticsearch_config import ElasticsearchSinkConfig
from connectors.elasticsearch.opensearch_config import OpenSearchSinkConfig
from connectors.elasticsearch.reading import cursor_problem
from connectors.elasticsearch.resources import Resource
from connectors.elasticsearch.sink_config import SearchSinkConfig
from connectors.elasticsearch.source_config import SearchSourceConfig

__all__ = [
    "CheckedElasticsearchConfig",
    "CheckedOpenSearchConfig",
    "CheckedSourceConfig",
    "Problem",
    "problems",
]

_MOST_SECONDS: Final = 6.0
_TIMEOUTS_S: Final = (1.5, 3.0)
_URL: Final = "connection.url"
_OLDEST: Final = 7
_STREAMS_FROM: Final = (7, 9)
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_SINK_RIGHTS: Final = ("create_index", "write", "view_index_metadata")
_SOURCE_RIGHTS: Final = ("read", "view_index_metadata")
_BLOCKS: Final = ("index.blocks.write", "index.blocks.read_only", "index.blocks.read_only_allow_delete")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, at the key that it is shown at."""

    key: str
    told: str


class _OverError(Exception):
    """The checks end here: the cluster does not answer any more, or not in time."""


class _Cluster:
    """Asks the nodes of a cluster, the first that answers, until a time."""

    def __init__(self, config: ClusterConfig, client: HttpClient, until: float) -> None:
        self._nodes = list(config.nodes)
        self._client = client
        self._sign = config.signature()
        self._until = until

    def ask(self, method: str, path: str, body: object = None) -> Response:
        """Return the answer of a node. Raises ``NoAnswerError`` if none answers."""
        data = None if body is None else orjson.dumps(body)
        while True:
            if time.monotonic() > self._until:
                raise _OverError
            try:
                request = Request(method, self._nodes[0] + path, JSON if data is not None else {}, data)
                return self._client.send(self._sign(request))
            except NoAnswerError:
                if len(self._nodes) == 1:
                    raise
                del self._nodes[0]

    def told(self, path: str) -> Any:
        """Return the JSON of an answer; None if it is none, as for what is not there or this server does not know."""
        answer = self.ask("GET", path)
        try:
            return orjson.loads(answer.body) if answer.status == 200 else None
        except ValueError:
            return None


def problems(config: ClusterConfig) -> Sequence[Problem]:
    """Return what would fail when the connector runs, as far as the cluster tells within some seconds."""
    found: list[Problem] = []
    client = HttpClient(config.client_settings(1, timeouts=_TIMEOUTS_S, body_seconds=_MOST_SECONDS), config.credentials)
    # In a thread, since looking a name up takes as long as the resolver likes.
    thread = threading.Thread(target=_look, args=(config, client, found), name="search-checks", daemon=True)
    thread.start()
    thread.join(_MOST_SECONDS)
    client.abort()
    if thread.is_alive() and not found:
        return [Problem(_URL, f"The cluster did not answer within {_MOST_SECONDS:g} s: correct connection.url.")]
    return [Problem(each.key, client.hide(each.told)) for each in list(found)]


def _look(config: ClusterConfig, client: HttpClient, found: list[Problem]) -> None:
    cluster = _Cluster(config, client, time.monotonic() + _MOST_SECONDS)
    try:
        for problem in _of_cluster(config, cluster):
            found.append(problem)
            return
        found.extend(_of_sink(config, cluster) if isinstance(config, SearchSinkConfig) else _of_source(config, cluster))
    except (_OverError, NoAnswerError):
        # What was found by then is told; the connector itself retries.
        return
    except Exception as error:
        found.append(Problem(_URL, str(error)))


def _of_cluster(config: ClusterConfig, cluster: _Cluster) -> Iterator[Problem]:
    """Yield why nothing else can be asked."""
    try:
        answer = cluster.ask("GET", "/")
    except HttpError as error:
        yield Problem(_URL, f"The cluster cannot be reached: {error}")
        return
    if answer.status == 401:
        key = "connection.api.key" if config.connection_api_key is not None else "connection.username"
        yield Problem(key, f"The cluster does not know this user: {refusal(answer)}. Correct the credentials.")
        return
    kind, version = _version(answer)
    if kind == "elasticsearch" and version < (_OLDEST, 0):
        yield Problem(
            _URL, f"The cluster is Elasticsearch {version[0]}.{version[1]}, and {_OLDEST}.0 is the oldest supported."
        )
    elif kind == "elasticsearch" and version < _STREAMS_FROM and getattr(config, "writes_streams", False):
        yield Problem(_URL, f"Elasticsearch {version[0]}.{version[1]} has no data streams: 7.9 brought them.")


def _version(answer: Response) -> tuple[str, tuple[int, int]]:
    """Return the product and its version; of builds that do not tell, and of other servers, nothing."""
    try:
        told = orjson.loads(answer.body)["version"]
        match = _VERSION.match(told["number"])
    except (ValueError, KeyError, TypeError):
        return "", (0, 0)
    return (
        ("", (0, 0)) if match is None else (told.get("distribution", "elasticsearch"), (int(match[1]), int(match[2])))
    )


# -- sinks -------------------------------------------------------------------------------------------------------------


def _of_sink(config: SearchSinkConfig, cluster: _Cluster) -> Iterator[Problem]:
    resources = dict(config.writing.names.mapped)
    topics = [topic.strip() for topic in (config.originals.get("topics") or "").split(",") if topic.strip()]
    if not resources:
        now = int(time.time() * 1000)
        resources = {topic: config.writing.names.resource(topic, now) for topic in topics}
    elif unmapped := [topic for topic in topics if topic not in resources]:
        yield Problem(
            config.mapping_key, f"{config.mapping_key} lacks the topic {unmapped[0]}: add {unmapped[0]}:NAME."
        )
    for topic, resource in resources.items():
        yield from _of_resource(config, cluster, topic, resource)
    yield from _of_rights(cluster, [each.name for each in resources.values()], _SINK_RIGHTS)


def _of_resource(config: SearchSinkConfig, cluster: _Cluster, topic: str, resource: Resource) -> Iterator[Problem]:
    key = "topics" if resource.is_ours else config.mapping_key
    answer = cluster.ask("GET", f"/_resolve/index/{quote(resource.name, safe='')}")
    if answer.status == 403:
        yield Problem(
            "connection.username", f"{refusal(answer)}. Grant the right view_index_metadata on {resource.name}."
        )
        return
    told = orjson.loads(answer.body) if answer.status == 200 else {}
    kind = next((kind for kind in ("data_streams", "aliases", "indices") if told.get(kind)), "")
    if not kind:
        yield from _of_missing(config, cluster, topic, resource, key)
        return
    if kind == "aliases":
        yield from _of_alias(cluster, resource, key)
    is_stream = kind == "data_streams"
    if kind != "aliases" and is_stream != resource.is_data_stream:
        found, wanted = ("a data stream", "an index") if is_stream else ("an index", "a data stream")
        yield Problem(
            key,
            f"{resource.name}, to which the records of {topic} go, is {found}, and the configuration asks for {wanted}."
            f" {'Set' if is_stream else 'Remove'} the options of data streams, or write to another name.",
        )
        return
    yield from _of_blocks(cluster, resource, key)


def _of_missing(
    config: SearchSinkConfig, cluster: _Cluster, topic: str, resource: Resource, key: str
) -> Iterator[Problem]:
    if not resource.is_ours:
        yield Problem(key, f"{resource.name}, to which the records of {topic} go, does not exist: create it.")
        return
    if not resource.is_data_stream or config.makes_template:
        return
    told = cluster.told("/_index_template")
    if told is None or any(_makes_streams(each["index_template"], resource.name) for each in told["index_templates"]):
        return
    pattern = f"{resource.name.rpartition('-')[0] or resource.name}*"
    yield Problem(
        key,
        f"There is no data stream {resource.name}, and no index template by which it could be made. Run PUT "
        f'_index_template/{resource.name} {{"index_patterns": ["{pattern}"], "data_stream": {{}}, "priority": 200}}.',
    )


def _makes_streams(template: Mapping[str, Any], name: str) -> bool:
    patterns = template.get("index_patterns", ())
    return "data_stream" in template and any(fnmatchcase(name, pattern) for pattern in patterns)


def _of_alias(cluster: _Cluster, resource: Resource, key: str) -> Iterator[Problem]:
    name = quote(resource.name, safe="")
    told = cluster.told(f"/_alias/{name}") or {}
    aliases = {index: each["aliases"].get(resource.name, {}) for index, each in told.items()}
    if len(aliases) > 1 and not any(each.get("is_write_index") for each in aliases.values()):
        first = min(aliases)
        yield Problem(
            key,
            f"{resource.name} is an alias of {', '.join(sorted(aliases))}, none of which is written to. Run POST "
            f'_aliases {{"actions": [{{"add": {{"index": "{first}", "alias": "{resource.name}", "is_write_index": '
            "true}}]}.",
        )


def _of_blocks(cluster: _Cluster, resource: Resource, key: str) -> Iterator[Problem]:
    told = cluster.told(f"/{quote(resource.name, safe='')}/_settings?flat_settings=true") or {}
    for index, each in told.items():
        for block in _BLOCKS:
            if str(each.get("settings", {}).get(block)).lower() == "true":
                yield Problem(key, f'Nothing can be written to {index}: run PUT {index}/_settings {{"{block}": null}}.')
                return


def _of_rights(cluster: _Cluster, names: Sequence[str], rights: Sequence[str]) -> Iterator[Problem]:
    """Yield the rights that the user lacks, where the cluster can tell (Elasticsearch with security)."""
    if not names:
        return
    body = {"index": [{"names": sorted(set(names)), "privileges": list(rights)}]}
    answer = cluster.ask("POST", "/_security/user/_has_privileges", body)
    if answer.status != 200:
        return
    told = orjson.loads(answer.body)
    for index, each in told.get("index", {}).items():
        if missing := sorted(right for right, has in each.items() if not has):
            user = told.get("username", "The user")
            yield Problem(
                "connection.username",
                f"{user} lacks rights on {index}: {', '.join(missing)}. Grant them to a role of the user.",
            )


# -- the source --------------------------------------------------------------------------------------------------------


def _of_source(config: ClusterConfig, cluster: _Cluster) -> Iterator[Problem]:
    assert isinstance(config, SearchSourceConfig)
    fields = ",".join(quote(name, safe="") for name in config.cursor_field)
    for name in config.index:
        answer = cluster.ask("GET", f"/{quote(name, safe='*')}/_field_caps?fields={fields}")
        if answer.status == 403:
            yield Problem("connection.username", f"{refusal(answer)}. Grant the rights {' and '.join(_SOURCE_RIGHTS)}.")
        elif answer.status == 404 and not config.selection.awaits_indexes:
            yield Problem("index", f"{name} does not exist: create it, or correct index.")
        elif answer.status == 200:
            told = orjson.loads(answer.body)
            for field in config.cursor_field:
                if problem := _of_cursor(cluster, name, field, told):
                    yield Problem("cursor.field", problem)
    yield from _of_rights(cluster, config.index, _SOURCE_RIGHTS)


def _of_cursor(cluster: _Cluster, name: str, field: str, told: Mapping[str, Any]) -> str | None:
    types = told.get("fields", {}).get(field, {})
    if not types:
        counted = cluster.told(f"/{quote(name, safe='*')}/_count") or {}
        if not counted.get("count"):
            return None
        return (
            f"No document of {name} has {field}, so none would be read. Name a field in cursor.field that all "
            "documents have."
        )
    if "*" in name and len(types) > 1:
        # Each index is read by itself, so that those of a pattern may differ.
        return None
    return cursor_problem(name, field, types)


# -- configs that ask --------------------------------------------------------------------------------------------------


def _errors(config: ClusterConfig) -> Iterator[ConfigError]:
    keys = {key.name for key in config.definitions()}
    for problem in problems(config):
        yield ConfigRuleError(problem.told, problem.key if problem.key in keys else _URL)


class CheckedElasticsearchConfig(ElasticsearchSinkConfig):
    """The options of the sink with Confluent's options, which are validated by asking the cluster too."""

    always_checks_system = True

    def check_system(self) -> Iterator[ConfigError]:
        """Ask the cluster, and yield an error for what would fail later."""
        yield from _errors(self)


class CheckedOpenSearchConfig(OpenSearchSinkConfig):
    """The options of the sink with Aiven's options, which are validated by asking the cluster too."""

    always_checks_system = True

    def check_system(self) -> Iterator[ConfigError]:
        """Ask the cluster, and yield an error for what would fail later."""
        yield from _errors(self)


class CheckedSourceConfig(SearchSourceConfig):
    """The options of the source, which are validated by asking the cluster too."""

    always_checks_system = True

    def check_system(self) -> Iterator[ConfigError]:
        """Ask the cluster, and yield an error for what would fail later."""
        yield from _errors(self)
