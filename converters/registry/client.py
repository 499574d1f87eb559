"""The client of a Confluent-compatible schema registry, with caches, retries and failover."""

from __future__ import annotations

import json
import logging
import random
import ssl
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter

from connect.config.url import HttpUrl
from connect.errors import ConnectError, DataError, RetriableError
from converters.registry.authentication import authentication
from converters.registry.config import RegistryConfig
from converters.registry.schema import RegisteredSchema, SchemaReference, registered_schema, whole_member
from converters.registry.tls import has_trust_store, tls_context

__all__ = ["RegistryClient", "RegistryError"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_JSON: Final = "application/vnd.schemaregistry.v1+json"
_TRY_AGAIN: Final = frozenset({408, 425, 429})
_NEVER: Final = frozenset({501, 505})
_REFUSED: Final = frozenset({401, 403})
_REFUSED_REQUEST: Final = frozenset({400, 404, 409, 410, 413, 422})
"""Statuses by which a registry refuses a single schema, subject or id, while other requests may still be allowed."""
_NO_SUCH_PATH: Final = 404
_READ_ONLY: Final = 42205
_UNKNOWN: Final = frozenset({40401, 40402, 40403})
_LARGEST: Final = 64 << 20
_ANSWER_PART: Final = 1 << 16


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
class _Cache:
    """Keeps the most recent answers: at most ``size``, each for ``seconds`` or indefinitely."""

    size: int
    seconds: float | None = None
    _kept: OrderedDict[Hashable, tuple[float, Any]] = field(default_factory=OrderedDict)

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
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
        self._session = _session(config)
        self._timeouts = (config.http_connect_timeout_ms / 1000, config.http_read_timeout_ms / 1000)
        self._authentication = authentication(config, self._request_token)
        self._by_key = _Cache(config.max_schemas_per_subject)
        latest_seconds = None if config.latest_cache_ttl_sec < 0 else float(config.latest_cache_ttl_sec)
        self._latest = _Cache(config.latest_cache_size, latest_seconds)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    # -- requests -------------------------------------------------------------------------------------------

    def register(self, subject: str, text: str) -> int:
        """Return the id of a schema, after registering it under ``subject`` if necessary."""
        query = "?normalize=true" if self._config.normalize_schemas else ""

        def ask() -> int:
            path = f"/subjects/{_quoted(subject)}/versions{query}"
            return whole_member(
                self._send("POST", path, {"schema": text}, f"register a schema under subject {subject}"), "id"
            )

        return self._by_key.get(("register", subject, text), ask)

    def look_up(self, subject: str, text: str) -> RegisteredSchema:
        """Return the registered schema with that text. Raises :class:`RegistryError` if there is none."""
        query = "?normalize=true" if self._config.normalize_schemas else ""

        def ask() -> RegisteredSchema:
            path = f"/subjects/{_quoted(subject)}{query}"
            return registered_schema(
                self._send("POST", path, {"schema": text}, f"look for the schema under subject {subject}")
            )

        return self._by_key.get(("look up", subject, text), ask)

    def by_id(self, schema_id: int, subject: str | None = None) -> RegisteredSchema:
        """Return the schema with that id."""
        query = "?fetchMaxId=false" + (f"&subject={_quoted(subject)}" if subject else "")

        def ask() -> RegisteredSchema:
            answer = self._send("GET", f"/schemas/ids/{schema_id}{query}", None, f"get the schema with id {schema_id}")
            return registered_schema({**answer, "id": schema_id} if isinstance(answer, dict) else answer)

        return self._by_key.get(("id", schema_id), ask)

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
                raise DataError(f"The schema registry answered without the versions of the schema with id {schema_id}.")
            versions = [each.get("version") for each in answer if _subject_of(each) == subject]
            return max((version for version in versions if isinstance(version, int)), default=None)

        return self._by_key.get(("version", schema_id, subject), ask)

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest schema of ``subject``."""

        def ask() -> RegisteredSchema:
            path = f"/subjects/{_quoted(subject)}/versions/latest"
            return registered_schema(self._send("GET", path, None, f"get the latest schema of subject {subject}"))

        return self._latest.get(subject, ask)

    def referenced(self, schema: RegisteredSchema) -> list[str]:
        """Return the texts of all schemas that ``schema`` references, each after the schemas it references itself."""
        found: dict[tuple[str, int], str] = {}
        self._collect(schema.references, found, frozenset())
        return list(found.values())

    def _collect(
        self,
        references: Iterable[SchemaReference],
        found: dict[tuple[str, int], str],
        above: frozenset[tuple[str, int]],
    ) -> None:
        for reference in references:
            key = (reference.subject, reference.version)
            if key in above:
                raise DataError(f"The schema of subject {key[0]}, version {key[1]}, refers to itself in the registry.")
            if key not in found:
                schema = self._by_version(*key)
                self._collect(schema.references, found, above | {key})
                found[key] = schema.text

    def _by_version(self, subject: str, version: int) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            path = f"/subjects/{_quoted(subject)}/versions/{version}"
            return registered_schema(self._send("GET", path, None, f"get version {version} of subject {subject}"))

        return self._by_key.get(("by version", subject, version), ask)

    # -- sending -----------------------------------------------------------------------------------------

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, what: str) -> Any:
        """Send a request and return the JSON of the response. ``what`` completes "Cannot ..." in errors."""
        for attempt in range(self._config.max_retries + 1):
            if attempt:
                self._wait(self._pause(attempt))
            failures: list[_NoAnswer] = []
            for _ in self._urls:
                url = self._urls[self._current]
                answer = self._ask(method, url, path, body, what)
                if not isinstance(answer, _NoAnswer):
                    return answer.content
                failures.append(answer)
                self._current = (self._current + 1) % len(self._urls)
            if all(failure.is_untrusted for failure in failures):
                raise ConnectError(
                    f"Cannot {what}, the schema registry is not trusted ({_joined(failures)}). Check the "
                    "schema.registry.ssl keys of the converter, and that schema.registry.url names the host as its "
                    "certificate does."
                )
            if not attempt and self._config.max_retries:
                logger.warning("Cannot %s yet, the schema registry does not answer (%s)", what, _joined(failures))
        raise RetriableError(f"Cannot {what}, the schema registry does not answer ({_joined(failures)}).")

    def _pause(self, attempt: int) -> float:
        longest = min(self._config.retries_wait_ms * 2 ** (attempt - 1), self._config.retries_max_wait_ms)
        # Jitter, so that workers that lost the same registry do not all return at once.
        return random.uniform(0, longest) / 1000  # noqa: S311

    def _ask(
        self, method: str, url: HttpUrl, path: str, body: Mapping[str, Any] | None, what: str
    ) -> _Answer | _NoAnswer:
        headers = {"Accept": f"{_JSON}, application/json", "Content-Type": _JSON, **self._authentication.headers(url)}
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        handled = sys.exception()
        try:
            with self._session.request(
                method,
                url.address + path,
                data=data,
                headers=headers,
                timeout=self._timeouts,
                stream=True,
                allow_redirects=False,
            ) as response:
                status, content = response.status_code, _read(response)
        except (requests.exceptions.InvalidURL, UnicodeError):
            # Retrying does not help, and the text of the original error adds nothing to this one.
            raise ConnectError(f"Cannot {what}: {url.address} names no host. Check schema.registry.url.") from None
        except requests.RequestException as error:
            cause = _cause(error, handled)
            return _NoAnswer(url, _reason(error, cause), is_untrusted=_is_untrusted(cause))
        if _is_trouble(status):
            return _NoAnswer(url, f"HTTP status {status}")
        if status in _REFUSED:
            raise ConnectError(
                f"Cannot {what}: the schema registry at {url.address} refuses the client (HTTP status {status}). Check "
                "basic.auth.credentials.source and basic.auth.user.info, or the bearer.auth keys, of the converter."
            )
        if status != 200:
            raise _refusal(what, url, status, content)
        return _Answer(_parsed(content, what, url))

    def _request_token(self, url: HttpUrl, form: Mapping[str, str], credentials: str) -> Mapping[str, Any]:
        handled = sys.exception()
        try:
            response = self._session.post(
                url.full,
                data=form,
                headers={"Authorization": credentials},
                timeout=self._timeouts,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            cause = _cause(error, handled)
            reason = _reason(error, cause)
            if _is_untrusted(cause):
                raise ConnectError(
                    f"The issuer of tokens at {url.address} is not trusted: {reason}. Check the schema.registry.ssl "
                    "keys of the converter."
                ) from None
            # The error of requests shows the whole URL, whose query may contain a secret, so it is not chained.
            raise RetriableError(f"The issuer of tokens at {url.address} does not answer: {reason}.") from None
        if _is_trouble(response.status_code):
            raise RetriableError(f"The issuer of tokens at {url.address} answers HTTP status {response.status_code}.")
        if response.status_code != 200:
            raise ConnectError(
                f"The issuer of tokens at {url.address} refuses to issue one (HTTP status {response.status_code}): "
                "check bearer.auth.client.id, bearer.auth.client.secret and bearer.auth.scope."
            )
        answer = _parsed(response.content, "get a token", url)
        return answer if isinstance(answer, dict) else {}


@dataclass(frozen=True, slots=True)
class _Answer:
    content: Any


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    url: HttpUrl
    reason: str
    is_untrusted: bool = False


class _NoSuchPathError(ConnectError):
    """The server does not know the requested path."""


class _TooLargeError(requests.RequestException):
    """A response is larger than any legitimate response of a registry."""


class _TlsAdapter(HTTPAdapter):
    def __init__(self, context: ssl.SSLContext, *, only: bool) -> None:
        self._context = context
        self._only = only
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **self._tls(), **kwargs)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, **self._tls(), **kwargs)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Also trust the authorities bundled with requests, unless ``only`` those of the context are to be trusted."""
        if not self._only:
            super().cert_verify(conn, url, verify, cert)  # type: ignore[no-untyped-call]

    def _tls(self) -> dict[str, Any]:
        # urllib3 checks the host name itself if the context does not, unless told otherwise.
        unnamed = {} if self._context.check_hostname else {"assert_hostname": False}
        return {"ssl_context": self._context, **unnamed}


def _session(config: RegistryConfig) -> requests.Session:
    session = requests.Session()
    # Ignore ~/.netrc and proxies from the environment: Java does not use them, and they would have invisible effects.
    session.trust_env = False
    if any(url is not None and url.address.startswith("https:") for url in (*config.urls, config.issuer)):
        session.mount("https://", _TlsAdapter(tls_context(config), only=has_trust_store(config)))
    if config.proxy is not None:
        session.proxies = {"http": config.proxy, "https": config.proxy}
    return session


def _read(response: requests.Response) -> bytes:
    content = bytearray()
    for part in response.iter_content(_ANSWER_PART):
        content += part
        if len(content) > _LARGEST:
            raise _TooLargeError
    return bytes(content)


def _parsed(content: bytes, what: str, url: HttpUrl) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ConnectError(
            f"Cannot {what}: the answer of {url.address} is not JSON, so it is not a schema registry; check "
            "schema.registry.url."
        ) from error


def _is_trouble(status: int) -> bool:
    """Return whether the same request may succeed later."""
    return status in _TRY_AGAIN or (status >= 500 and status not in _NEVER)


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


def _joined(failures: Iterable[_NoAnswer]) -> str:
    return "; ".join(f"{failure.url.address}: {failure.reason}" for failure in failures)


def _reason(error: requests.RequestException, cause: BaseException) -> str:
    """Return the reason for a failure without any URL or header, which may contain a token."""
    if isinstance(error, _TooLargeError):
        return f"its answer is larger than {_LARGEST} bytes"
    if isinstance(error, requests.exceptions.SSLError):
        return f"TLS fails ({_short(cause)})"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return f"no connection ({_short(cause)})"
    return type(error).__name__


def _is_untrusted(cause: BaseException) -> bool:
    """Return whether the failure is an untrusted certificate, for which retrying does not help."""
    return isinstance(cause, ssl.SSLCertVerificationError)


def _short(cause: BaseException) -> str:
    return cause.strerror or type(cause).__name__ if isinstance(cause, OSError) else type(cause).__name__


def _cause(error: BaseException, handled: BaseException | None) -> BaseException:
    """Return the root cause of an error, stopping at ``handled``, to which Python chains what is raised meanwhile."""
    seen = error
    while (deeper := seen.__cause__ or seen.__context__ or getattr(seen, "reason", None)) is not None:
        if not isinstance(deeper, BaseException) or deeper is handled:
            break
        seen = deeper
    return seen
