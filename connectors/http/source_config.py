"""The options of the HTTP source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from zoneinfo import ZoneInfo

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    between,
    invalid_value,
    matches,
    non_empty,
    option,
    validator,
)
from connect.errors import ConfigError
from connect.internals.java.date_format import DateFormat
from connect.kits.http.retries import StatusRanges, status_ranges
from connectors.http.client_config import TOKEN, ClientConfig, plain_url, statuses
from connectors.http.selection import Selection, pointer_text, selection
from connectors.http.templates import Encoding, Template, TemplateError, body_encoding

__all__ = ["EVERYTHING", "HttpSourceConfig", "header_pairs", "named_pointers", "parameter_pairs"]

EVERYTHING: Final = "PassthroughRecordFilterFactory"
"""The filter of records that leaves out none."""

_ROOTS: Final = ("offset", "page")
_CHILD_ROOTS: Final = ("offset", "page", "parent")
_JAVA_CLASS: Final = "com.github.castorm.kafka.connect.http."
_ISO_PATTERN: Final = "yyyy-MM-dd'T'HH:mm:ss[.SSS]X"
_MAPPERS: Final = ("JsonRecordMapper", "SchemedKvSourceRecordMapper", "StringKvSourceRecordMapper")
_JAVA_PARTS: Final = {
    "http.timer": ("AdaptableIntervalTimer", "FixedIntervalTimer"),
    "http.client": ("OkHttpClient",),
    "http.request.factory": ("TemplateHttpRequestFactory",),
    "http.request.template.factory": (
        "BackwardsCompatibleFreeMarkerTemplateFactory",
        "FreeMarkerTemplateFactory",
    ),
    "http.response.parser": ("PolicyHttpResponseParser",),
    "http.response.policy": ("StatusCodeHttpResponsePolicy",),
    "http.response.policy.parser": ("KvHttpResponseParser",),
    "http.response.record.parser": ("JacksonKvRecordHttpResponseParser",),
    "http.response.record.timestamp.parser.delegate": ("DateTimeFormatterTimestampParser",),
    "http.record.sorter": ("OrderDirectionSourceRecordSorter",),
    "http.auth": ("ConfigurableHttpAuthenticator",),
}
"""Classes of the Java connector that are built in here; classes of one's own cannot be loaded."""


def parameter_pairs(text: str) -> list[tuple[str, str]]:
    """Parse the parameters of ``a=1&b=2``. Raises ``ValueError`` if one has no ``=``."""
    return _pairs(text, "&", "=")


def header_pairs(text: str) -> list[tuple[str, str]]:
    r"""Parse headers such as ``Name: value,Other: value``, with ``\,`` for a comma. Raises ``ValueError``."""
    pairs = _pairs(text.replace("\\,", "\0"), ",", ":")
    found = [(name, value.replace("\0", ",")) for name, value in pairs]
    for name, _ in found:
        if not TOKEN.fullmatch(name):
            raise ValueError(f"{name} is not a valid header name")
    return found


def named_pointers(text: str) -> list[tuple[str, str]]:
    """Parse the pointers of ``id=/id,since=/updated``. Raises ``ValueError`` if one is malformed."""
    found = _pairs(text, ",", "=")
    for name, _ in found:
        if not name.replace("_", "").isalnum():
            raise ValueError(f"{name} must consist of letters, digits and underscores")
    return found


def _pairs(text: str, between_pairs: str, within: str) -> list[tuple[str, str]]:
    found = []
    for item in filter(None, (item.strip() for item in text.split(between_pairs))):
        name, separator, value = item.partition(within)
        if not separator or not name.strip():
            raise ValueError(f"an item lacks {within} after its name")
        found.append((name.strip(), value.strip()))
    return found


@validator("names and values: a=1&b=2")
def _parameters(key: str, value: str) -> None:
    try:
        parameter_pairs(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


@validator("headers: Name: value,Other: value")
def _header_list(key: str, value: str) -> None:
    try:
        header_pairs(value)
    except ValueError as error:
        # The values of headers may be secret.
        raise ConfigRuleError(f"{key} is malformed: {error}.", key) from None


@validator("names and JSON pointers: id=/id,since=/updated")
def _pointer_map(key: str, value: str) -> None:
    try:
        for _, pointer in named_pointers(value):
            pointer_text(key, pointer)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


@validator("names and values: id=0,timestamp=2024-01-01T00:00:00Z")
def _value_map(key: str, value: str) -> None:
    try:
        _pairs(value, ",", "=")
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


@validator("list of JSON pointers or paths")
def _pointer_list(key: str, value: tuple[str, ...]) -> None:
    for item in value:
        pointer_text(key, item)


class HttpSourceConfig(ClientConfig):
    """What to request from a server, where its answers contain the records, and how to continue after them."""

    kafka_topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish to.")
    http_request_url: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="URL to request. It may have placeholders after the host: ${offset.NAME} is a field of the offset; "
        "${page.cursor}, ${page.number}, ${page.offset} and ${page.size} identify the page. Values are encoded.",
    )
    http_request_method: str = option(
        default="GET",
        importance=MEDIUM,
        validator=matches("[A-Z]{1,20}", "name of a method"),
        doc="HTTP method of the requests.",
    )
    http_request_headers: str = option(
        default="",
        importance=MEDIUM,
        validator=_header_list,
        doc="Headers to send, as Name: value,Other: value, with placeholders; write a comma in a value as \\,. They "
        "are sent only to the host of http.request.url.",
    )
    http_request_params: str = option(
        default="",
        importance=MEDIUM,
        validator=_parameters,
        doc="Parameters to add to the URL, as a=1&b=${offset.id}. A parameter whose placeholder has no value is left "
        "out.",
    )
    http_request_body: str = option(
        default="",
        importance=LOW,
        doc="Body to send, with placeholders that are encoded according to the body's Content-Type.",
    )
    http_offset_initial: str = option(
        default="",
        importance=HIGH,
        validator=_value_map,
        doc="Initial fields of the offset, as id=0,timestamp=2024-01-01T00:00:00Z.",
    )
    http_response_type: str = option(
        default="json",
        importance=MEDIUM,
        validator=matches("json|text", "one of json, text"),
        doc="json: records are parts of a JSON answer. text: an answer, or the data of an event, is one string.",
    )
    http_response_list_pointer: str = option(
        default="/",
        importance=HIGH,
        validator=pointer_text,
        doc="Where an answer contains the list of records: a JSON pointer such as /data/items, or a JSON path such as "
        "$.data.items[*], which requires the extra jsonpath. / is the whole answer.",
    )
    http_response_record_pointer: str = option(
        default="/", importance=HIGH, validator=pointer_text, doc="Where a list item contains the record's value."
    )
    http_response_record_key_pointer: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        validator=_pointer_list,
        doc="Where a list item contains the record's key; several parts are joined with +.",
    )
    http_response_record_timestamp_pointer: str | None = option(
        default=None, importance=MEDIUM, validator=pointer_text, doc="Where a list item contains the timestamp."
    )
    http_response_record_offset_pointer: str = option(
        default="",
        importance=MEDIUM,
        validator=_pointer_map,
        doc="Fields of the offset, as NAME=POINTER,...: available as ${offset.NAME} in the next requests, with the "
        "values of the newest record.",
    )
    http_response_record_mapper: str | None = option(
        default=None,
        importance=LOW,
        doc="The form of records. JsonRecordMapper: the JSON value itself, without a schema. "
        "StringKvSourceRecordMapper: its text. SchemedKvSourceRecordMapper: structs with the text, the key and "
        "the timestamp. The default is JsonRecordMapper, or SchemedKvSourceRecordMapper if connector.class is the "
        "Java connector's.",
    )
    http_response_record_timestamp_parser: str = option(
        default="EpochMillisOrDelegateTimestampParser",
        importance=LOW,
        doc="How to parse timestamps: EpochMillisTimestampParser, EpochSecondsTimestampParser, "
        "DateTimeFormatterTimestampParser, or EpochMillisOrDelegateTimestampParser for milliseconds or a date.",
    )
    http_response_record_timestamp_parser_pattern: str = option(
        default=_ISO_PATTERN,
        importance=LOW,
        doc="Pattern of dates in the syntax of Java's SimpleDateFormat; by default any ISO 8601 date and time.",
    )
    http_response_record_timestamp_parser_zone: str = option(
        default="UTC", importance=LOW, doc="Time zone of dates without one."
    )
    http_record_filter_factory: str = option(
        default="OffsetRecordFilterFactory",
        importance=LOW,
        doc="Which records to publish when the list is read again. OffsetRecordFilterFactory: those after the newest "
        "record of the last time, if there are offset fields. PassthroughRecordFilterFactory: all.",
    )
    http_response_list_order_direction: str = option(
        default="IMPLICIT",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)ASC|DESC|IMPLICIT", "one of ASC, DESC, IMPLICIT (in any case)"),
        doc="Whether the oldest record (ASC) or the newest (DESC) comes first in an answer; IMPLICIT compares the "
        "timestamps of the first and the last.",
    )
    http_response_policy_codes_process: str = option(
        default="200..299", importance=HIGH, validator=statuses, doc="Statuses of answers to read."
    )
    http_response_policy_codes_skip: str = option(
        default="300..399",
        importance=HIGH,
        validator=statuses,
        doc="Statuses of answers to skip because they have no records.",
    )
    http_response_policy_codes_retry: str = option(
        default="408,425,429,500..599",
        importance=MEDIUM,
        validator=statuses,
        doc="Statuses after which the request is retried later; all others fail the task.",
    )
    http_timer_interval_millis: Long = option(
        default=60_000,
        importance=HIGH,
        validator=at_least(0),
        doc="Time between two readings of the list, in milliseconds.",
    )
    http_timer_catchup_interval_millis: Long = option(
        default=30_000,
        importance=HIGH,
        validator=at_least(0),
        doc="Time between two readings while the newest record is older than the interval, in milliseconds.",
    )
    http_request_interval_millis: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Minimum time between two requests in milliseconds, for servers with a rate limit.",
    )
    http_paging: str = option(
        default="none",
        importance=HIGH,
        validator=matches(
            "none|next_link|link_header|cursor|offset|page", "one of none, next_link, link_header, cursor, offset, page"
        ),
        doc="How to get the next page: next_link (a URL at http.paging.next.pointer), link_header (a Link header with "
        "rel=next), cursor (at http.paging.next.pointer, sent as ${page.cursor}), offset (sent as "
        "${page.offset}), page (sent as ${page.number}), or none.",
    )
    http_paging_next_pointer: str | None = option(
        default=None, importance=MEDIUM, validator=pointer_text, doc="Where an answer contains the next link or cursor."
    )
    http_paging_more_pointer: str | None = option(
        default=None,
        importance=LOW,
        validator=pointer_text,
        doc="Where an answer tells whether there are more pages, such as /has_more; false ends the list.",
    )
    http_paging_total_pointer: str | None = option(
        default=None,
        importance=LOW,
        validator=pointer_text,
        doc="Where an answer contains the total number of records in the list, such as /total. With engine=spark, and "
        "in PySpark, pages are then read in parallel.",
    )
    http_paging_total_header: str | None = option(
        default=None,
        importance=LOW,
        validator=non_empty,
        doc="The response header with the total number of records in the list, such as X-Total-Count.",
    )
    http_paging_start: int | None = option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        doc="The first offset (by default 0) or page number (by default 1).",
    )
    http_paging_size: int = option(
        default=100,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Number of records per page; with offset and page, a page with fewer records is the last one. Send it to "
        "the server as ${page.size}.",
    )
    http_paging_end: str = option(
        default="restart",
        importance=MEDIUM,
        validator=matches("restart|continue|stop", "one of restart, continue, stop"),
        doc="What to do at the end of the list: restart reads it again from its beginning after the interval, "
        "continue asks again at its end, stop ends reading.",
    )
    http_conditional: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to send ETag and Last-Modified back, so that the server need not send an unchanged answer again. "
        "Only for lists of one page, with GET.",
    )
    http_long_polling: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the server delays its answer until there are records (long polling): the next request then "
        "follows at once, and a read timeout is not an error.",
    )
    http_events: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the URL is a stream of server-sent events, each of which becomes a record. The stream is resumed "
        "with Last-Event-ID.",
    )
    http_event_max_bytes: int = option(
        default=1 << 20, importance=LOW, validator=between(1, 1 << 30), doc="Maximum size of an event in bytes."
    )
    http_child_url: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="URL to request for each record, with ${parent.NAME} for its fields. The answer replaces the record.",
    )
    http_child_list_pointer: str = option(
        default="/", importance=LOW, validator=pointer_text, doc="Where a child's answer contains the records."
    )
    http_child_field: str | None = option(
        default=None,
        importance=LOW,
        doc="Field of the record to store the child's answer in; without it, the child's records are published "
        "instead.",
    )

    split_first: int | None = option(
        default=None, importance=LOW, internal=True, doc="The offset or page number at which a split begins."
    )
    split_end: int | None = option(
        default=None, importance=LOW, internal=True, doc="The offset or page number before which a split ends."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        yield from self._template_errors()
        yield from self._paging_errors()
        yield from self._form_errors()
        if self.http_events and (self.http_paging != "none" or self.http_child_url or self.http_long_polling):
            yield ConfigRuleError(
                "http.events is a stream: it has no pages, children or long polling. Remove http.paging, "
                "http.child.url and http.long.polling.",
                "http.events",
            )

    def urls(self) -> Iterable[tuple[str, str]]:
        """Yield the keys that hold URLs, and the URLs."""
        yield from super().urls()
        yield "http.request.url", self.http_request_url
        if self.http_child_url is not None:
            yield "http.child.url", self.http_child_url

    def written_headers(self) -> list[tuple[str, str]]:
        """Return the headers of requests, which an offset may fill in."""
        return header_pairs(self.http_request_headers)

    def written_parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of requests, which an offset may fill in."""
        return parameter_pairs(self.http_request_params)

    @property
    def is_java(self) -> bool:
        """Whether connector.class is the Java class that this connector stands for."""
        return (self.originals.get("connector.class") or "").startswith(_JAVA_CLASS)

    @property
    def mapper(self) -> str:
        """The simple name of the record mapper."""
        default = _MAPPERS[1] if self.is_java else _MAPPERS[0]
        return _simple(self.http_response_record_mapper or default)

    @property
    def record_filter(self) -> str:
        """The simple name of the record filter."""
        return _simple(self.http_record_filter_factory)

    @property
    def timestamp_parser(self) -> str:
        """The simple name of the timestamp parser."""
        return _simple(self.http_response_record_timestamp_parser)

    @property
    def timestamp_pattern(self) -> str | None:
        """The pattern of dates; ``None`` for ISO 8601."""
        pattern = self.http_response_record_timestamp_parser_pattern
        return None if pattern == _ISO_PATTERN else pattern

    @property
    def process(self) -> StatusRanges:
        """The statuses of answers to read."""
        return status_ranges(self.http_response_policy_codes_process)

    @property
    def skip(self) -> StatusRanges:
        """The statuses of answers without records."""
        return status_ranges(self.http_response_policy_codes_skip)

    @property
    def retry(self) -> StatusRanges:
        """The statuses after which a request is retried."""
        return status_ranges(self.http_response_policy_codes_retry)

    def url_template(self) -> Template:
        """Return the template of the URL."""
        return Template(self.http_request_url.strip(), Encoding.URL, _ROOTS)

    def child_template(self) -> Template | None:
        """Return the template of the URL of a record's child."""
        text = self.http_child_url
        return None if text is None else Template(text.strip(), Encoding.URL, _CHILD_ROOTS)

    def header_templates(self) -> list[tuple[str, Template]]:
        """Return the names and templates of the headers."""
        return [
            (name, Template(value, Encoding.HEADER, _ROOTS)) for name, value in header_pairs(self.http_request_headers)
        ]

    def parameter_templates(self) -> list[tuple[str, Template]]:
        """Return the names and templates of the parameters."""
        return [
            (name, Template(value, Encoding.TEXT, _ROOTS)) for name, value in parameter_pairs(self.http_request_params)
        ]

    def body_template(self) -> Template | None:
        """Return the template of the body; ``None`` if there is none."""
        if not self.http_request_body:
            return None
        return Template(self.http_request_body, body_encoding(self.content_type), _ROOTS)

    @property
    def content_type(self) -> str | None:
        """The content type of the body, from the headers."""
        return next(
            (value for name, value in header_pairs(self.http_request_headers) if name.lower() == "content-type"), None
        )

    @property
    def uses_newest_record(self) -> bool:
        """Whether requests or the record filter depend on the newest record of the last reading."""
        templates = (self.http_request_url, self.http_request_params, self.http_request_body, self.http_request_headers)
        return self.record_filter != EVERYTHING or "${offset." in "".join((*templates, self.http_child_url or ""))

    def initial_fields(self) -> dict[str, str]:
        """Return the initial fields of the offset."""
        return dict(_pairs(self.http_offset_initial, ",", "="))

    def offset_selections(self) -> list[tuple[str, Selection]]:
        """Return the fields of the offset, and where a list item contains each."""
        key = "http.response.record.offset.pointer"
        return [(name, Selection(text, key)) for name, text in named_pointers(self.http_response_record_offset_pointer)]

    def key_selections(self) -> list[Selection]:
        """Return the parts of the key in a list item."""
        key = "http.response.record.key.pointer"
        return [Selection(text, key) for text in self.http_response_record_key_pointer]

    def timestamp_selection(self) -> Selection | None:
        """Return the timestamp in a list item."""
        return selection(self.http_response_record_timestamp_pointer, "http.response.record.timestamp.pointer")

    def _template_errors(self) -> Iterable[ConfigError]:
        makers = (
            ("http.request.url", self.url_template),
            ("http.request.headers", self.header_templates),
            ("http.request.params", self.parameter_templates),
            ("http.request.body", self.body_template),
            ("http.child.url", self.child_template),
        )
        for key, make in makers:
            try:
                made = make()
            except TemplateError as error:
                yield ConfigRuleError(f"The template of {key} is malformed: {error}.", key)
                continue
            if isinstance(made, Template) and key.endswith(".url"):
                yield from _url_errors(key, made)

    def _paging_errors(self) -> Iterable[ConfigError]:
        templates = (self.http_request_url, self.http_request_params, self.http_request_body, self.http_request_headers)
        everything = "".join(templates)
        if self.http_paging in ("next_link", "cursor") and not (self.http_paging_next_pointer or "").strip():
            yield ConfigRuleError(
                f"http.paging={self.http_paging} needs http.paging.next.pointer, where the next one is in an answer.",
                "http.paging.next.pointer",
            )
        sent = {"cursor": "page.cursor", "offset": "page.offset", "page": "page.number"}.get(self.http_paging)
        if sent is not None and sent not in everything:
            yield ConfigRuleError(
                f"http.paging={self.http_paging} asks for the same page for ever: send ${{{sent}}} to the server, for "
                "example in http.request.params.",
                "http.paging",
            )
        if self.http_paging not in ("offset", "page"):
            for key in ("http.paging.total.pointer", "http.paging.total.header"):
                if self.originals.get(key):
                    yield ConfigRuleError(
                        f"{key} divides lists with http.paging=offset or page, and http.paging is {self.http_paging}: "
                        "only a page tells of the next. Remove it.",
                        key,
                    )

    def _form_errors(self) -> Iterable[ConfigError]:
        if self.mapper not in _MAPPERS:
            yield invalid_value(
                "http.response.record.mapper", self.http_response_record_mapper, f"Use one of {', '.join(_MAPPERS)}"
            )
        parsers = (
            "EpochMillisTimestampParser",
            "EpochSecondsTimestampParser",
            "EpochMillisOrDelegateTimestampParser",
            "DateTimeFormatterTimestampParser",
        )
        if self.timestamp_parser not in parsers:
            yield invalid_value(
                "http.response.record.timestamp.parser",
                self.http_response_record_timestamp_parser,
                f"Use one of {', '.join(parsers)}",
            )
        filters = ("OffsetRecordFilterFactory", "OffsetTimestampRecordFilterFactory", EVERYTHING)
        if self.record_filter not in filters:
            yield invalid_value(
                "http.record.filter.factory", self.http_record_filter_factory, f"Use one of {', '.join(filters)}"
            )
        try:
            ZoneInfo(self.http_response_record_timestamp_parser_zone)
        except (ValueError, KeyError, OSError):
            yield invalid_value(
                "http.response.record.timestamp.parser.zone",
                self.http_response_record_timestamp_parser_zone,
                "It is no time zone such as UTC or Europe/Berlin",
            )
        try:
            DateFormat(self.timestamp_pattern or "")
        except ValueError as error:
            yield invalid_value(
                "http.response.record.timestamp.parser.pattern", self.timestamp_pattern, f"It is malformed: {error}"
            )
        for key, known in _JAVA_PARTS.items():
            given = self.originals.get(key)
            if given and _simple(given) not in known:
                yield invalid_value(key, given, f"Java classes cannot be loaded; only {' and '.join(known)} are known")


def _url_errors(key: str, template: Template) -> Iterable[ConfigError]:
    try:
        plain_url(key, template.text.partition("${")[0] if not template.is_constant else template.text)
    except ConfigError as error:
        yield error


def _simple(name: str) -> str:
    return name.strip().rpartition(".")[2].rpartition("$")[2]
