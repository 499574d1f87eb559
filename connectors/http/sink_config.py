"""The options of the HTTP sink: those of two Java connectors, distinguished by the key that holds the URL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    between,
    matches,
    option,
)
from connect.errors import ConfigError
from connect.kits.http.retries import Backoff, StatusRanges, status_ranges
from connectors.http.client_config import TOKEN, ClientConfig, plain_url, statuses
from connectors.http.templates import Encoding, Template, TemplateError, body_encoding

__all__ = ["HttpSinkConfig"]

_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
_REWRITING: Final = ("regex.patterns", "regex.replacements")


class HttpSinkConfig(ClientConfig):
    """Where and how to send records, and what to do with refused ones."""

    http_url: str | None = option(
        default=None,
        importance=HIGH,
        doc="URL to send records to. It may have placeholders after the host: ${topic}, ${key}, ${key.NAME}, "
        "${value.NAME}, ${headers.NAME}, ${partition}, ${offset}, ${timestamp}. Values are encoded.",
    )
    http_api_url: str | None = option(
        default=None,
        importance=HIGH,
        doc="Alternative to http.url, with the defaults of another Java connector: see the keys whose default is null.",
    )
    request_method: str = option(
        default="POST",
        importance=HIGH,
        ignore_case=True,
        validator=matches("(?i)POST|PUT|PATCH|DELETE", "one of POST, PUT, PATCH, DELETE (in any case)"),
        doc="HTTP method of the requests.",
    )
    behavior_on_null_values: str | None = option(
        default=None,
        importance=MEDIUM,
        ignore_case=True,
        validator=matches("(?i)fail|log|ignore|delete", "one of fail, log, ignore, delete (in any case)"),
        doc="What to do with a record without a value: delete sends DELETE without a body, fail gives the record up, "
        "log and ignore skip it. The default is fail with http.url, and ignore with http.api.url.",
    )
    request_body_format: str = option(
        default="string",
        importance=MEDIUM,
        ignore_case=True,
        validator=matches("(?i)string|json", "one of string, json (in any case)"),
        doc="string: strings and bytes are sent unchanged, everything else as JSON. json: strings are sent as JSON, "
        "too.",
    )
    http_request_body: str = option(
        default="",
        importance=MEDIUM,
        doc="Template of the body, in place of the value. Placeholders are encoded according to "
        "http.headers.content.type: JSON (the default), a form, XML, or plain text.",
    )
    http_authorization_type: str = option(
        default="none",
        importance=MEDIUM,
        ignore_case=True,
        validator=matches("(?i)none|oauth2|static", "one of none, oauth2, static (in any case)"),
        doc="Alternative to http.auth.type: static sends http.headers.authorization.",
    )
    auth_type_alias: str = option(
        name="auth.type",
        default="NONE",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)NONE|BASIC|OAUTH2", "one of NONE, BASIC, OAUTH2 (in any case)"),
        doc="Alternative to http.auth.type, with connection.user and connection.password.",
    )
    connection_user: str = option(default="", importance=LOW, doc="The user of auth.type=BASIC.")
    connection_password: Password = option(default=Password(""), importance=LOW, doc="The password of auth.type=BASIC.")
    http_headers_authorization: Password | None = option(
        default=None, importance=MEDIUM, doc="The Authorization header of http.authorization.type=static."
    )
    http_headers_content_type: str | None = option(
        default=None,
        importance=LOW,
        validator=matches(r"[\x20-\x7e]*\S[\x20-\x7e]*", "type such as application/json"),
        doc="The Content-Type header. By default application/json for JSON, and none for strings.",
    )
    http_headers_additional: tuple[str, ...] = option(
        default=(), importance=LOW, doc="Additional headers, as Name:value, with placeholders."
    )
    headers: str = option(
        default="",
        importance=LOW,
        doc="Additional headers, as Name:value, separated by header.separator, with placeholders.",
    )
    header_separator: str = option(default="|", importance=LOW, doc="The separator between headers.")
    batching_enabled: bool | None = option(
        default=None,
        importance=HIGH,
        doc="Whether to send several records per request. By default false with http.url; with http.api.url true if "
        "batch.max.size is greater than 1.",
    )
    batch_max_size: int | None = option(
        default=None,
        importance=MEDIUM,
        validator=between(1, 1_000_000),
        doc="Maximum number of records per request; by default 500 with http.url, and 1 with http.api.url. The "
        "records of a request have the same partition, URL, method and headers.",
    )
    batch_max_bytes: int = option(
        default=8 << 20,
        importance=LOW,
        validator=at_least(1),
        doc="Maximum size of a batch's body in bytes; a larger record is sent in a request of its own.",
    )
    batch_prefix: str = option(default="", importance=MEDIUM, doc="Text before the first record; \\n is a line break.")
    batch_suffix: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Text after the last record; by default a line break with http.url, and nothing with http.api.url.",
    )
    batch_separator: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Text between records; by default a line break with http.url, and a comma with http.api.url.",
    )
    batch_json_as_array: bool = option(
        default=False, importance=MEDIUM, doc="Whether a batch is a JSON array; replaces prefix, suffix and separator."
    )
    batch_key_pattern: str = option(
        default="",
        importance=LOW,
        doc="Template of a batch key: a record whose key differs from that of the record before it begins a new "
        "request.",
    )
    http_max_in_flight: int = option(
        default=4,
        importance=MEDIUM,
        validator=between(1, 256),
        doc="Maximum number of concurrent requests per task. Records with the same key are sent one after the other, "
        "and so are records without keys and batches of the same partition. 1 keeps the order of all records.",
    )
    http_timeout: int | None = option(
        default=None, importance=LOW, validator=at_least(1), doc="Timeout for an answer, in seconds."
    )
    http_request_timeout_ms: Long | None = option(
        default=None, importance=LOW, validator=at_least(1), doc="Timeout for an answer, in milliseconds."
    )
    http_connect_timeout_ms: Long | None = option(
        default=None, importance=LOW, validator=at_least(1), doc="Timeout for a connection, in milliseconds."
    )
    http_proxy_host: str | None = option(default=None, importance=LOW, doc="Alias of http.client.proxy.host.")
    http_proxy_port: int = option(
        default=-1, importance=LOW, validator=between(-1, 65535), doc="Alias of http.client.proxy.port."
    )
    http_proxy_user: str = option(default="", importance=LOW, doc="Alias of http.client.proxy.username.")
    http_proxy_password: Password | None = option(
        default=None, importance=LOW, doc="Alias of http.client.proxy.password."
    )
    retry_on_status_codes: str = option(
        default="408,425,429,500-",
        importance=MEDIUM,
        validator=statuses,
        doc="Statuses after which a request is retried. Other error statuses are final.",
    )
    retry_backoff_policy: str | None = option(
        default=None,
        importance=LOW,
        ignore_case=True,
        validator=matches(
            "(?i)CONSTANT_VALUE|EXPONENTIAL_WITH_JITTER", "one of CONSTANT_VALUE, EXPONENTIAL_WITH_JITTER (in any case)"
        ),
        doc="Whether every wait is retry.backoff.ms (the default with http.url), or the waits double (the default "
        "with http.api.url).",
    )
    kafka_retry_backoff_ms: Long | None = option(
        default=None,
        importance=LOW,
        validator=between(0, 86_400_000),
        doc="If set, a server that still does not answer after max.retries is given more time: the attempts start "
        "over after this many milliseconds.",
    )
    behavior_on_error: str = option(
        default="fail",
        importance=HIGH,
        ignore_case=True,
        validator=matches("(?i)fail|log|ignore", "one of fail, log, ignore (in any case)"),
        doc="What to do with a record that is given up. fail: errors.tolerance decides whether it fails the task or "
        "goes to the dead letter queue. log: it is logged and skipped. ignore: it counts as sent.",
    )
    decimal_format: str = option(
        default="BASE64",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)BASE64|NUMERIC", "one of BASE64, NUMERIC (in any case)"),
        doc="How to write decimals in JSON: as base64 of the unscaled value, or as numbers.",
    )
    reporter_result_topic_name: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Topic for the answers to successful requests; ${connector} is the connector's name.",
    )
    reporter_error_topic_name: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Topic for the answers to records that were given up; ${connector} is the connector's name.",
    )
    http_response_report_bytes: int = option(
        default=65_536,
        importance=LOW,
        validator=between(0, 1 << 24),
        doc="Maximum number of bytes of an answer to keep for topics, dead letters and errors.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        yield from self._url_errors()
        yield from self._header_errors()
        for key, make in (("http.request.body", self.body_template), ("batch.key.pattern", self.batch_key_template)):
            try:
                make()
            except TemplateError as error:
                yield ConfigRuleError(f"The template of {key} is malformed: {error}.", key)
        if self.http_authorization_type.lower() == "static" and self.http_headers_authorization is None:
            yield ConfigRuleError(
                "http.headers.authorization must be set with http.authorization.type=static.",
                "http.headers.authorization",
            )
        if self.request_method.upper() == "DELETE" and self.is_batching:
            yield ConfigRuleError("DELETE has no body for a batch: set batching.enabled=false.", "batching.enabled")
        for key in _REWRITING:
            if (self.originals.get(key) or "").strip():
                yield ConfigRuleError(
                    f"{key} is not supported: change the value with a transformation, or give http.request.body.", key
                )

    def urls(self) -> Iterable[tuple[str, str]]:
        """Yield the keys that hold URLs, and the URLs."""
        yield from super().urls()
        if self.http_url or self.http_api_url:
            yield self.url_key, self.http_url or self.http_api_url or ""

    @property
    def is_plain(self) -> bool:
        """Whether the URL is in ``http.url``, whose defaults then apply."""
        return self.http_url is not None

    @property
    def url_key(self) -> str:
        """The key that holds the URL."""
        return "http.url" if self.is_plain else "http.api.url"

    @property
    def auth_type(self) -> str:
        """NONE, BASIC, BEARER, API_KEY or OAUTH2."""
        if self.http_authorization_type.lower() == "oauth2" or self.auth_type_alias.upper() == "OAUTH2":
            return "OAUTH2"
        return "BASIC" if self.auth_type_alias.upper() == "BASIC" else super().auth_type

    @property
    def basic_user(self) -> str:
        """The user of basic authentication."""
        return self.connection_user if self.auth_type_alias.upper() == "BASIC" else super().basic_user

    @property
    def basic_password(self) -> Password:
        """The password of basic authentication."""
        return self.connection_password if self.auth_type_alias.upper() == "BASIC" else super().basic_password

    @property
    def configured_headers(self) -> dict[str, str]:
        """The secret header of static authorization."""
        secret = self.http_headers_authorization
        is_static = self.http_authorization_type.lower() == "static"
        return {"Authorization": secret.value} if is_static and secret is not None else {}

    @property
    def proxy_place(self) -> tuple[str, int]:
        """The host and the port of the proxy."""
        if not self.http_proxy_host:
            return super().proxy_place
        return self.http_proxy_host, self.http_proxy_port if self.http_proxy_port > 0 else 80

    @property
    def proxy_user(self) -> tuple[str, str]:
        """The user and password for the proxy."""
        if not self.http_proxy_user:
            return super().proxy_user
        return self.http_proxy_user, self.http_proxy_password.value if self.http_proxy_password else ""

    @property
    def timeouts(self) -> tuple[float, float]:
        """The seconds to wait for a connection, and for the next part of an answer."""
        connecting, reading = super().timeouts
        if self.http_connect_timeout_ms is not None:
            connecting = self.http_connect_timeout_ms / 1000
        if self.http_request_timeout_ms is not None:
            reading = self.http_request_timeout_ms / 1000
        return connecting, float(self.http_timeout) if self.http_timeout is not None else reading

    @property
    def most_retries(self) -> int:
        """How often to retry a request; -1 means forever."""
        if self.max_retries is not None:
            return self.max_retries
        return 1 if self.is_plain else 10

    @property
    def backoff(self) -> Backoff:
        """The waits between attempts."""
        policy = self.retry_backoff_policy
        constant = self.is_plain if policy is None else policy.upper() == "CONSTANT_VALUE"
        return Backoff(self.retry_backoff_ms / 1000, self.retry_backoff_max_ms / 1000, constant)

    @property
    def retry(self) -> StatusRanges:
        """The statuses after which a request is retried."""
        return status_ranges(self.retry_on_status_codes)

    @property
    def batch_size(self) -> int:
        """The maximum number of records per request."""
        if self.batch_max_size is not None:
            return self.batch_max_size
        return 500 if self.is_plain else 1

    @property
    def is_batching(self) -> bool:
        """Whether requests contain several records."""
        if self.batching_enabled is not None:
            return self.batching_enabled
        return not self.is_plain and self.batch_size > 1

    @property
    def on_null(self) -> str:
        """What to do with a record without a value."""
        return (self.behavior_on_null_values or ("fail" if self.is_plain else "ignore")).lower()

    @property
    def frame(self) -> tuple[str, str, str]:
        """The texts before, between and after the records of a batch."""
        if self.batch_json_as_array:
            return "[", ",", "]"
        suffix, separator = self.batch_suffix, self.batch_separator
        return (
            _unescaped(self.batch_prefix),
            _unescaped(("\\n" if self.is_plain else ",") if separator is None else separator),
            _unescaped(("\\n" if self.is_plain else "") if suffix is None else suffix),
        )

    @property
    def body_type(self) -> str | None:
        """The Content-Type to send; ``None`` if it depends on the record."""
        if self.http_headers_content_type is not None:
            return self.http_headers_content_type
        named = next((value for name, value in self.written_headers() if name.lower() == "content-type"), None)
        if named is None and (self.http_request_body or self.request_body_format.lower() == "json"):
            return "application/json"
        return named

    def url_template(self) -> Template:
        """Return the template of the URL."""
        return Template((self.http_url or self.http_api_url or "").strip(), Encoding.URL)

    def header_templates(self) -> list[tuple[str, Template]]:
        """Return the names and templates of the headers."""
        return [(name, Template(value, Encoding.HEADER)) for name, value in self.written_headers()]

    def body_template(self) -> Template | None:
        """Return the template of the body; ``None`` if the body is the value."""
        if not self.http_request_body:
            return None
        return Template(self.http_request_body, body_encoding(self.body_type))

    def batch_key_template(self) -> Template | None:
        """Return the template of the batch key."""
        return Template(self.batch_key_pattern, Encoding.TEXT) if self.batch_key_pattern else None

    def topic_of(self, name: str | None) -> str | None:
        """Return the name of a topic for answers from its pattern."""
        return name.replace("${connector}", self.originals.get("name") or "") if name else None

    def written_headers(self) -> list[tuple[str, str]]:
        """Return the names and values of the headers, in which records may fill in something."""
        items = [*self.http_headers_additional, *self.headers.split(self.header_separator or "|")]
        found = []
        for item in filter(None, (item.strip() for item in items)):
            name, separator, value = item.partition(":")
            if not separator or not TOKEN.fullmatch(name.strip()):
                raise ValueError("an item is not a header name, a colon and a value")
            found.append((name.strip(), value.strip()))
        return found

    def _header_errors(self) -> Iterable[ConfigError]:
        keys = ("http.headers.additional", "headers")
        key = keys[0] if self.http_headers_additional else keys[1]
        try:
            names = [name.lower() for name, _ in self.header_templates()]
        except ValueError as error:
            # The values of headers may be secret.
            yield ConfigRuleError(f"{key} is malformed: {error}.", key)
            return
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield ConfigRuleError(f"{key} has the header {twice[0]} twice: remove one of them.", key)

    def _url_errors(self) -> Iterable[ConfigError]:
        given = [key for key, url in (("http.url", self.http_url), ("http.api.url", self.http_api_url)) if url]
        if not given:
            yield ConfigRuleError('Missing required configuration "http.url" which has no default value.', "http.url")
            return
        if len(given) > 1:
            yield ConfigRuleError("http.url and http.api.url are alternatives: remove one of them.", *given)
            return
        try:
            template = self.url_template()
        except TemplateError as error:
            yield ConfigRuleError(f"The template of {given[0]} is malformed: {error}.", given[0])
            return
        try:
            plain_url(given[0], template.text.partition("${")[0])
        except ConfigError as error:
            yield error


def _unescaped(text: str) -> str:
    return re.sub(r"\\([nrt\\])", lambda match: _ESCAPES[match[1]], text)
