"""The client of a Confluent-compatible schema registry, with caches, retries and failover."""

from __future__ import annotations

import json
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote
from uuid import UUID

from connect.config.url import HttpUrl
from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import BusyError, HttpError, InvalidUrlError, Request
from connect.kits.http.retries import Backoff, retry_after
from converters.registry.authentication import (
    RETRIED,
    client_settings,
    credentials,
    headers_for,
    is_untrusted,
    issuer_error,
)
from converters.registry.config import RegistryConfig
from converters.registry.schema import RegisteredSchema, SchemaReference, registered_schema, request_body, whole_member

__all__ = ["Cache", "RegistryClient", "RegistryError"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_JSON: Final = "application/vnd.schemaregistry.v1+json"
_REFUSED: Final = frozenset({401, 403})
_REFUSED_REQUEST: Final = frozenset({400, 404, 409, 410, 413, 422})
"""Statuses by which a registry refuses a single schema, subject or id, while other requests may still be allowed."""
_NO_SUCH_PATH: Final = 404
_READ_ONLY: Final = 42205
_UNKNOWN: Final = frozenset({40401, 40402, 40403})


class RegistryError(DataError):
    """The registry refused a request; ``code`` is its error code."""

    def __init__(self, message: str, status: int = 0, code: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def is_unknown(self) -> bool:
        """Whether the subject, version or schema does not exist."""
        return self.code in _UNKNOWN

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status, self.code)


@dataclass(slots=True)
class Cache:
    """Keeps the most recent answers: at most ``size``, each for ``seconds`` or indefinitely."""

    size: int
    seconds: float | None = None
    _kept: OrderedDict[Hashable, tuple[float, Any]] = field(default_factory=OrderedDict)

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return what is kept, or what asking returns, which is kept then."""
        kept = self._kept.get(key)
        if kept is not None and (self.seconds is None or time.monotonic() < kept[0] + self.seconds):
            self._kept.move_to_end(key)
            known: T = kept[1]
            return known
        answer = ask()
        self._kept[key] = (time.monotonic(), answer)
        self._kept.move_to_end(key)
        if len(self._kept) > self.size:
            self._kept.popitem(last=False)
        return answer


class RegistryClient:
    """Sends requests to a schema registry, and caches answers that cannot change. Used by one thread.

    While no URL responds, requests are retried with increasing waits; then a :class:`~connect.errors.RetriableError`
    makes the runtime try again. If the registry refuses a schema or subject, a :class:`RegistryError` is raised; a
    failure that affects every request, such as wrong credentials, is another :class:`~connect.errors.ConnectError`.
    Errors never show secrets.
    """

    def __init__(self, config: RegistryConfig, *, wait: Callable[[float], None] = time.sleep) -> None:
        self._config = config
        self._wait = wait
        self._urls = config.urls
        self._current = random.randrange(len(self._urls)) if config.schema_registry_url_randomize else 0  # noqa: S311
        self._http = HttpClient(client_settings(config), credentials(config))
        longest = config.retries_max_wait_ms / 1000
        self._backoff = Backoff(min(config.retries_wait_ms / 1000, longest), longest, jitter=1.0)
        self._normal = "?normalize=true" if config.normalize_schemas else ""
        self._by_key = Cache(config.max_schemas_per_subject)
        latest_seconds = None if config.latest_cache_ttl_sec < 0 else float(config.latest_cache_ttl_sec)
        self._latest = Cache(config.latest_cache_size, latest_seconds)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # -- requests -------------------------------------------------------------------------------------------

    def register(
        self, subject: str, text: str, kind: str = "AVRO", references: tuple[SchemaReference, ...] = ()
    ) -> int:
        """Return the id of a schema, after registering it under ``subject`` if necessary."""
        path = f"/subjects/{_quoted(subject)}/versions{self._normal}"
        what, body = f"register a schema under subject {subject}", request_body(text, kind, references)
        return self._by_key.get(
            ("register", subject, text, kind, references),
            lambda: whole_member(self._send("POST", path, body, what), "id"),
        )

    def look_up(
        self, subject: str, text: str, kind: str = "AVRO", references: tuple[SchemaReference, ...] = ()
    ) -> RegisteredSchema:
        """Return the registered schema with that text. Raises :class:`RegistryError` if there is none."""
        path, what = f"/subjects/{_quoted(subject)}{self._normal}", f"look for the schema under subject {subject}"
        return self._by_key.get(
            ("look up", subject, text, kind, references),
            partial(self._schema, "POST", path, request_body(text, kind, references), what),
        )

    def by_id(self, schema_id: int, subject: str | None = None) -> RegisteredSchema:
        """Return the schema with that id."""
        query = "?fetchMaxId=false" + (f"&subject={_quoted(subject)}" if subject else "")

        def ask() -> RegisteredSchema:
            answer = self._send("GET", f"/schemas/ids/{schema_id}{query}", None, f"get the schema with id {schema_id}")
            return registered_schema({**answer, "id": schema_id} if isinstance(answer, dict) else answer)

        return self._by_key.get(("id", schema_id), ask)

    def by_guid(self, guid: UUID) -> RegisteredSchema:
        """Return the schema with that GUID. Raises :class:`~connect.errors.DataError` if there is none."""

        def ask() -> RegisteredSchema:
            try:
                answer = self._send("GET", f"/schemas/guids/{guid}", None, f"get the schema with GUID {guid}")
            except _NoSuchPathError as error:
                raise DataError(
                    f"The message names its schema by the GUID {guid}, but this schema registry knows none: it takes "
                    "Confluent Platform 8.0 or later, or the message is damaged."
                ) from error
            named = {"id": 0, **answer, "guid": str(guid)} if isinstance(answer, dict) else answer
            return registered_schema(named)

        return self._by_key.get(("guid", guid), ask)

    def guid_of(self, subject: str, text: str, kind: str, references: tuple[SchemaReference, ...]) -> str:
        """Return the GUID of a registered schema. Raises :class:`~connect.errors.ConnectError` if it is not told."""
        guid = self.look_up(subject, text, kind, references).guid
        if guid is None:
            raise ConnectError(
                f"The schema registry tells no GUID of the schema under subject {subject}, so it cannot be named in a "
                "header: that takes Confluent Platform 8.0 or later; or leave out the schema.id.serializer keys."
            )
        return guid

    def version_of(self, schema_id: int, subject: str) -> int | None:
        """Return the version of a schema under ``subject``, or ``None`` if there is none or the id is unknown."""

        def ask() -> int | None:
            try:
                what = f"get the versions of the schema with id {schema_id}"
                answer = self._send("GET", f"/schemas/ids/{schema_id}/versions", None, what)
            except (_NoSuchPathError, RegistryError) as error:
                if isinstance(error, _NoSuchPathError) or error.status == 404:
                    return None
                raise
            if not isinstance(answer, list):
                raise ConnectError(
                    f"The schema registry answered without the versions of the schema with id {schema_id}."
                )
            versions = [each.get("version") for each in answer if _subject_of(each) == subject]
            return max((version for version in versions if isinstance(version, int)), default=None)

        return self._by_key.get(("version", schema_id, subject), ask)

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest schema of ``subject``."""
        path, what = f"/subjects/{_quoted(subject)}/versions/latest", f"get the latest schema of subject {subject}"
        return self._latest.get(subject, partial(self._schema, "GET", path, None, what))

    def newest(self, subject: str) -> RegisteredSchema | None:
        """Return the schema of ``subject`` that is the latest now; ``None`` if the subject has none."""
        path, what = f"/subjects/{_quoted(subject)}/versions/latest", f"get the latest schema of subject {subject}"
        try:
            return self._schema("GET", path, None, what)
        except RegistryError as error:
            if error.is_unknown:
                return None
            raise

    def referenced(self, schema: RegisteredSchema) -> list[str]:
        """Return the texts of all schemas that ``schema`` references, each after the schemas it references itself."""
        return list({text: None for _, text in self.references(schema)})

    def references(self, schema: RegisteredSchema) -> list[tuple[str, str]]:
        """Return all schemas that ``schema`` references, by name and text, each after the schemas it references itself.

        A schema that is referenced by several names comes under each of them.
        """
        found: dict[tuple[str, int], str] = {}
        names: dict[tuple[str, tuple[str, int]], None] = {}
        self._collect(schema.references, found, names, frozenset())
        return [(name, found[key]) for name, key in names]

    def _collect(
        self,
        references: Iterable[SchemaReference],
        found: dict[tuple[str, int], str],
        names: dict[tuple[str, tuple[str, int]], None],
        above: frozenset[tuple[str, int]],
    ) -> None:
        for reference in references:
            key = (reference.subject, reference.version)
            if key in above:
                raise DataError(f"The schema of subject {key[0]}, version {key[1]}, refers to itself in the registry.")
            if key not in found:
                schema = self._by_version(*key)
                self._collect(schema.references, found, names, above | {key})
                found[key] = schema.text
            names[(reference.name, key)] = None

    def _by_version(self, subject: str, version: int) -> RegisteredSchema:
        path, what = f"/subjects/{_quoted(subject)}/versions/{version}", f"get version {version} of subject {subject}"
        return self._by_key.get(("by version", subject, version), partial(self._schema, "GET", path, None, what))

    # -- sending -----------------------------------------------------------------------------------------

    def _schema(self, method: str, path: str, body: Mapping[str, Any] | None, what: str) -> RegisteredSchema:
        return registered_schema(self._send(method, path, body, what))

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, what: str) -> Any:
        """Send a request and return the JSON of the response. ``what`` completes "Cannot ..." in errors."""
        asked = 0.0
        for attempt in range(self._config.max_retries + 1):
            if attempt:
                self._wait(max(self._backoff.seconds(attempt), min(asked, self._backoff.longest)))
            failures: list[tuple[HttpUrl, HttpError]] = []
            for _ in self._urls:
                url = self._urls[self._current]
                try:
                    return self._ask(method, url, path, body, what)
                except HttpError as error:
                    if error.is_of_token:
                        raise issuer_error(self._config, error) from None
                    failures.append((url, error))
                self._current = (self._current + 1) % len(self._urls)
            if all(is_untrusted(error) for _, error in failures):
                raise ConnectError(
                    f"Cannot {what}, the schema registry is not trusted ({_joined(failures)}). Check the "
                    "schema.registry.ssl keys of the converter, and that schema.registry.url names the host as its "
                    "certificate does."
                )
            # One URL that is ready before the others is enough.
            asked = min(error.pause or 0.0 if isinstance(error, BusyError) else 0.0 for _, error in failures)
            if not attempt and self._config.max_retries:
                logger.warning("Cannot %s yet, the schema registry does not answer (%s)", what, _joined(failures))
        raise RetriableError(
            f"Cannot {what}, the schema registry does not answer ({_joined(failures)}).", asked or None
        )

    def _ask(self, method: str, url: HttpUrl, path: str, body: Mapping[str, Any] | None, what: str) -> Any:
        headers = {"Accept": f"{_JSON}, application/json", "Content-Type": _JSON, **headers_for(self._config, url)}
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        try:
            response = self._http.send(Request(method, url.address + path, headers, data))
        except InvalidUrlError as error:
            if error.is_of_token:
                raise
            # Retrying does not help, and the text of the original error adds nothing to this one.
            raise ConnectError(f"Cannot {what}: {url.address} names no host. Check schema.registry.url.") from None
        status = response.status
        if status in RETRIED:
            raise BusyError(status, retry_after(response.headers, time.time()))
        if status in _REFUSED:
            raise ConnectError(
                f"Cannot {what}: the schema registry at {url.address} refuses the client (HTTP status {status}). Check "
                "basic.auth.credentials.source and basic.auth.user.info, or the bearer.auth keys, of the converter."
            )
        if status != 200:
            raise _refusal(what, url, status, response.body)
        return _parsed(response.body, what, url)


class _NoSuchPathError(ConnectError):
    """The server does not know the requested path."""


def _parsed(content: bytes, what: str, url: HttpUrl) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConnectError(
            f"Cannot {what}: the answer of {url.address} is not JSON, so it is not a schema registry; check "
            "schema.registry.url."
        ) from error


def _refusal(what: str, url: HttpUrl, status: int, content: bytes) -> Exception:
    try:
        answer = json.loads(content)
        code, message = int(answer["error_code"]), str(answer["message"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        code, message = 0, ""
    if code == _NO_SUCH_PATH or (status == _NO_SUCH_PATH and not code):
        return _NoSuchPathError(
            f"Cannot {what}: {url.address} has no such path and does not answer as a schema registry does (HTTP status "
            f"{status}). Check schema.registry.url, its path included."
        )
    if code == _READ_ONLY:
        return ConnectError(
            f"Cannot {what}: {message} (error code {code}). Set the mode of the registry or the subject to READWRITE, "
            "or auto.register.schemas=false."
        )
    if not code or status not in _REFUSED_REQUEST:
        return ConnectError(
            f"Cannot {what}: {url.address} answers HTTP status {status}, but not as a schema registry does. Check "
            "schema.registry.url, its path included, and proxy.host."
        )
    return RegistryError(f"Cannot {what}: {message}{_remedy(code)} (error code {code})", status, code)


def _remedy(code: int) -> str:
    if code in (409, 40901):
        return "; change the schema compatibly, or the compatibility level of the subject"
    if code in (40401, 40403):
        return "; it must be registered first, or set auto.register.schemas=true"
    return ""


def _subject_of(version: Any) -> str | None:
    subject = version.get("subject") if isinstance(version, dict) else None
    return subject if isinstance(subject, str) else None


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _joined(failures: list[tuple[HttpUrl, HttpError]]) -> str:
    return "; ".join(f"{url.address}: {failure.reason}" for url, failure in failures)
