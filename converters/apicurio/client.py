"""The client of Apicurio Registry, which speaks the versions 2 and 3 of its API, and the names of artifacts."""

from __future__ import annotations

import json
import logging
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from connect.config.url import HttpUrl
from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.http.client import HttpClient
from connect.kits.http.credentials import ClientCredentials, Credentials, TokenEndpoint, basic
from connect.kits.http.messages import BusyError, HttpError, NoAnswerError, RejectedError, Request, UntrustedError
from connect.kits.http.retries import retry_after, status_ranges
from connect.kits.http.settings import ClientSettings
from converters.apicurio.config import ApicurioConfig, IfExists, Strategy, UseId
from converters.registry.client import Cache

__all__ = ["ApicurioRegistry", "Artifact", "Found", "Ids", "artifact_of"]

logger = logging.getLogger(__name__)

_RETRIED: Final = status_ranges("408,425,429,500,502-504,506-")
_REFUSED: Final = frozenset({401, 403})
_OF_SCHEMA: Final = frozenset({400, 404, 409, 422})
_NOT_FOUND: Final = 404
_JSON: Final = "application/json"
_DEFAULT_GROUP: Final = "default"
_PATHS: Final = {UseId.GLOBAL_ID: "globalIds", UseId.CONTENT_ID: "contentIds"}
_OLD_NAMES: Final = {
    IfExists.CREATE_VERSION: IfExists.UPDATE,
    IfExists.FIND_OR_CREATE_VERSION: IfExists.RETURN_OR_UPDATE,
}
_NEW_NAMES: Final = {old: new for new, old in _OLD_NAMES.items()}
_MOST_LATEST: Final = 1_000
_TIMEOUT_SECONDS: Final = (10.0, 60.0)


@dataclass(frozen=True, slots=True)
class Artifact:
    """The name of an artifact, or of one of its versions."""

    id: str
    group: str | None = None
    version: str | None = None

    @property
    def path(self) -> str:
        """The path of the artifact in the API."""
        return f"/groups/{quote(self.group or _DEFAULT_GROUP, safe='')}/artifacts/{quote(self.id, safe='')}"

    def __str__(self) -> str:
        version = "" if self.version is None else f", version {self.version}"
        return f"{self.id} in the group {self.group or _DEFAULT_GROUP}{version}"


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of one version of an artifact."""

    global_id: int
    content_id: int

    def of(self, use: UseId) -> int:
        """Return the id of this kind."""
        return self.global_id if use is UseId.GLOBAL_ID else self.content_id


@dataclass(frozen=True, slots=True)
class Found:
    """A schema of the registry, and the schemas that it refers to, each after those that it refers to itself."""

    text: str
    references: tuple[str, ...] = ()
    ids: Ids | None = None


class ApicurioRegistry:
    """Finds and registers schemas. Used by one thread.

    While the registry does not answer, requests are repeated; then a :class:`~connect.errors.RetriableError` makes the
    runtime try again. What it does not have or refuses is a :class:`~connect.errors.DataError`; what fails every
    request, such as wrong credentials, another :class:`~connect.errors.ConnectError`.
    """

    def __init__(self, config: ApicurioConfig, *, wait: Callable[[float], None] = time.sleep) -> None:
        self._config = config
        self._wait = wait
        self._url = config.url
        self._http = HttpClient(_settings(config, self._url), _credentials(config, self._url))
        self._api: _Api = _Api2(self._send) if config.api == 2 else _Api3(self._send)
        self._latest = Cache(_MOST_LATEST, config.check_period_ms / 1000)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def by_id(self, use: UseId, number: int) -> Found:
        """Return the schema with that id."""
        text = self._send("GET", f"/ids/{_PATHS[use]}/{number}", f"get the schema with the {use.value} {number}")
        return Found(text.decode(), tuple(self._referenced(use, number, frozenset())))

    def registered(self, artifact: Artifact, text: str, kind: str) -> Ids:
        """Return the ids of a schema, after registering it under that artifact if necessary."""
        return self._api.create(artifact, text, kind, self._config.if_exists or IfExists.FIND_OR_CREATE_VERSION)

    def looked_up(self, artifact: Artifact, text: str, kind: str) -> Ids:
        """Return the ids of a schema that is registered under that artifact."""
        found = self._api.search(artifact, text, kind)
        if found is None:
            raise DataError(
                f"The registry has no such schema under the artifact {artifact}: {text} Register it, or set "
                "apicurio.registry.auto-register=true."
            )
        return found

    def chosen(self, artifact: Artifact) -> Found:
        """Return the version of an artifact, or its latest one if none is named."""
        return self._latest.get(artifact, lambda: self._read(artifact))

    def _read(self, artifact: Artifact) -> Found:
        ids = self._api.version(artifact)
        found = self.by_id(UseId.GLOBAL_ID, ids.global_id)
        return Found(found.text, found.references, ids)

    def _referenced(self, use: UseId, number: int, above: frozenset[int]) -> dict[str, None]:
        path, what = f"/ids/{_PATHS[use]}/{number}/references", f"get the references of the schema {number}"
        texts: dict[str, None] = {}
        for each in _parsed(self._send("GET", path, what), list, what):
            artifact = Artifact(str(each.get("artifactId")), each.get("groupId"), each.get("version"))
            inner = self._api.version(artifact).global_id
            if inner in above:
                raise DataError(f"The schema of the artifact {artifact} refers to itself in the registry.")
            texts |= self._referenced(UseId.GLOBAL_ID, inner, above | {inner})
            texts[self._send("GET", f"/ids/globalIds/{inner}", f"get the schema of {artifact}").decode()] = None
        return texts

    # -- requests ------------------------------------------------------------------------------------------------

    def _send(
        self, method: str, path: str, what: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send a request and return the body of the response. ``what`` completes "Cannot ..." in errors."""
        data = None if body is None else body.encode()
        request = Request(method, self._url.address + path, {"Content-Type": _JSON, **(headers or {})}, data)
        failure: HttpError | None = None
        for attempt in range(self._config.retry_count + 1):
            if attempt:
                self._wait(self._config.retry_backoff_ms / 1000)
            try:
                return self._answer(request, what)
            except NoAnswerError as error:
                failure = error
                if not attempt:
                    logger.warning("Cannot %s yet, the registry does not answer (%s)", what, error.reason)
            except HttpError as error:
                raise self._hopeless(error, what) from error
        reason = "" if failure is None else failure.reason
        pause = failure.pause if isinstance(failure, BusyError) else None
        raise RetriableError(f"Cannot {what}, the registry at {self._url.address} does not answer ({reason}).", pause)

    def _answer(self, request: Request, what: str) -> bytes:
        response = self._http.send(request)
        status = response.status
        if status in _RETRIED:
            raise BusyError(status, retry_after(response.headers, time.time()))
        if status == 200:
            return response.body
        if status in _REFUSED:
            raise ConnectError(
                f"Cannot {what}: the registry at {self._url.address} refuses the client (HTTP status {status}). Check "
                "the apicurio.registry.auth keys of the converter."
            )
        raise self._refusal(status, response.body, what)

    def _refusal(self, status: int, content: bytes, what: str) -> ConnectError:
        try:
            answer = json.loads(content)
            reason, name = str(answer.get("message") or answer["title"]), str(answer["name"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return ConnectError(
                f"Cannot {what}: {self._url.address} answers HTTP status {status}, but not as Apicurio Registry does. "
                "Check apicurio.registry.url."
            )
        if status not in _OF_SCHEMA:
            return ConnectError(f"Cannot {what}: {reason} ({name})")
        return (
            _NotFoundError(f"Cannot {what}: {reason}")
            if status == _NOT_FOUND
            else DataError(f"Cannot {what}: {reason} ({name})")
        )

    def _hopeless(self, error: HttpError, what: str) -> ConnectError:
        if error.is_of_token:
            return ConnectError(
                f"Cannot {what}: the issuer of tokens fails: {error} Check the apicurio.registry.auth keys."
            )
        if isinstance(error, UntrustedError) and not isinstance(error, RejectedError):
            return ConnectError(
                f"Cannot {what}: the registry at {self._url.address} is not trusted: {error.reason}. Check the "
                "apicurio.registry.request.ssl keys."
            )
        return ConnectError(f"Cannot {what}: {error} Check apicurio.registry.url.")


class _NotFoundError(DataError):
    """The registry does not have what was asked for."""


_Send = Callable[..., bytes]


class _Api(ABC):
    """One version of the registry's API."""

    def __init__(self, send: _Send) -> None:
        self._send = send

    @abstractmethod
    def create(self, artifact: Artifact, text: str, kind: str, if_exists: IfExists) -> Ids:
        """Register a schema."""

    @abstractmethod
    def search(self, artifact: Artifact, text: str, kind: str) -> Ids | None:
        """Look for a schema by its text."""

    @abstractmethod
    def version(self, artifact: Artifact) -> Ids:
        """Return the ids of a version, or of the latest one."""


class _Api2(_Api):
    """Version 2."""

    def create(self, artifact: Artifact, text: str, kind: str, if_exists: IfExists) -> Ids:
        path, what = artifact.path, f"register a schema under the artifact {artifact}"
        folder = path[: path.index("/artifacts/") + len("/artifacts")]
        headers = {"X-Registry-ArtifactId": artifact.id, "X-Registry-ArtifactType": kind}
        if artifact.version is not None:
            headers["X-Registry-Version"] = artifact.version
        action = _OLD_NAMES.get(if_exists, if_exists)
        return _ids(self._send("POST", f"{folder}?ifExists={action}", what, text, headers), what)

    def search(self, artifact: Artifact, text: str, kind: str) -> Ids | None:  # noqa: ARG002
        what = f"look for a schema under the artifact {artifact}"
        try:
            return _ids(self._send("POST", f"{artifact.path}/meta?canonical=true", what, text), what)
        except _NotFoundError:
            return None

    def version(self, artifact: Artifact) -> Ids:
        what = f"get the artifact {artifact}"
        version = "" if artifact.version is None else f"/versions/{quote(artifact.version, safe='')}"
        return _ids(self._send("GET", f"{artifact.path}{version}/meta", what), what)


class _Api3(_Api):
    """Version 3."""

    def create(self, artifact: Artifact, text: str, kind: str, if_exists: IfExists) -> Ids:
        path, what = artifact.path, f"register a schema under the artifact {artifact}"
        folder = path[: path.index("/artifacts/") + len("/artifacts")]
        first = {"content": {"content": text, "contentType": _JSON, "references": []}}
        if artifact.version is not None:
            first["version"] = artifact.version  # type: ignore[assignment]
        body = json.dumps({"artifactId": artifact.id, "artifactType": kind, "firstVersion": first})
        action = _NEW_NAMES.get(if_exists, if_exists)
        answer = self._send("POST", f"{folder}?ifExists={action}", what, body)
        return _ids(answer, what, "version")

    def search(self, artifact: Artifact, text: str, kind: str) -> Ids | None:
        what = f"look for a schema under the artifact {artifact}"
        named = {"groupId": artifact.group or _DEFAULT_GROUP, "artifactId": artifact.id, "artifactType": kind}
        for canonical in ("true", "false"):
            query = urlencode({**named, "canonical": canonical, "orderby": "globalId", "order": "desc"})
            found = _parsed(self._send("POST", f"/search/versions?{query}", what, text), dict, what)
            if found.get("versions"):
                return _checked_ids(found["versions"][0], what)
        return None

    def version(self, artifact: Artifact) -> Ids:
        what = f"get the artifact {artifact}"
        name = "branch=latest" if artifact.version is None else quote(artifact.version, safe="")
        return _ids(self._send("GET", f"{artifact.path}/versions/{name}", what), what)


def _ids(answer: bytes, what: str, member: str | None = None) -> Ids:
    found = _parsed(answer, dict, what)
    return _checked_ids(found if member is None else found.get(member), what)


def _checked_ids(found: Any, what: str) -> Ids:
    try:
        return Ids(int(found["globalId"]), int(found["contentId"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConnectError(f"Cannot {what}: the registry answered without the ids of the schema.") from error


def _parsed(content: bytes, kind: type, what: str) -> Any:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, kind):
        raise ConnectError(f"Cannot {what}: the answer is not that of Apicurio Registry. Check apicurio.registry.url.")
    return found


def artifact_of(config: ApicurioConfig, topic: str, record: str | None, *, is_key: bool) -> Artifact:
    """Return the artifact of the schemas of a topic's keys or values; ``record`` is the full name of their record.

    Raises :class:`~connect.errors.DataError` if the strategy takes a name and they have none.
    """
    group, name = _named(config.strategy, topic, record, is_key=is_key)
    return Artifact(config.artifact_id or name, config.group_id or group, config.artifact_version)


def _named(strategy: Strategy, topic: str, record: str | None, *, is_key: bool) -> tuple[str | None, str]:
    if strategy is Strategy.TOPIC_ID:
        return None, f"{topic}-{'key' if is_key else 'value'}"
    if strategy is Strategy.SIMPLE_TOPIC_ID:
        return None, topic
    if record is None:
        raise DataError(
            f"The message must only be an Avro record schema with {strategy}: give the "
            f"{'key' if is_key else 'value'} of topic {topic} a schema that is a struct, or use TopicIdStrategy."
        )
    if strategy is Strategy.QUALIFIED_RECORD_ID:
        return None, record
    namespace, _, name = record.rpartition(".")
    return namespace or None, f"{topic}-{name}" if strategy is Strategy.TOPIC_RECORD_ID else name


def _settings(config: ApicurioConfig, url: HttpUrl) -> ClientSettings:
    is_encrypted = any(each.startswith("https:") for each in (url.address, config.issuer or ""))
    return ClientSettings(
        config.host_rules,
        # Reading the system's authorities takes time, and is of no use without TLS.
        config.tls_context(trusts_bundle=True) if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        timeouts=_TIMEOUT_SECONDS,
        follows_redirects=False,
    )


def _credentials(config: ApicurioConfig, url: HttpUrl) -> Credentials:
    if config.issuer is not None:
        assert config.client is not None
        assert config.secret is not None
        endpoint = TokenEndpoint(
            url=config.issuer, client_id=config.client, client_secret=config.secret, scope=config.scope
        )
        return ClientCredentials(endpoint)
    if config.user is not None and config.user_password is not None:
        return basic(config.user, config.user_password.value)
    if url.user_info is not None:
        user, _, password = url.user_info.value.partition(":")
        return basic(user, password)
    return Credentials()
