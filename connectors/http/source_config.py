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
from connect.java.date_format import DateFormat
from connectors.http.client.client_config import TOKEN, ClientConfig, plain_url, statuses
from connectors.http.client.retries import StatusRanges, status_ranges
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
    """The parameters of ``a=1&b=2``; ``ValueError`` if one has no ``=``."""
    return _pairs(text, "&", "=")


def header_pairs(text: str) -> list[tuple[str, str]]:
    """The headers of ``Name: value,Other: value``, in which a comma is written as ``\\,``; ``ValueError`` otherwise."""
    pairs = _pairs(text.replace("\\,", "\0"), ",", ":")
    found = [(name, value.replace("\0", ",")) for name, value in pairs]
    for name, _ in found:
        if not TOKEN.fullmatch(name):
            raise ValueError(f"{name} is not the name of a header")
    return found


def named_pointers(text: str) -> list[tuple[str, str]]:
    """The pointers of ``id=/id,since=/updated``; ``ValueError`` otherwise."""
    found = _pairs(text, ",", "=")
    for name, _ in found:
        if not name.replace("_", "").isalnum():
            raise ValueError(f"{name} is not a name of letters, digits and underscores")
    return found


def _pairs(text: str, between_pairs: str, within: str) -> list[tuple[str, str]]:
    found = []
    for item in filter(None, (item.strip() for item in text.split(between_pairs))):
        name, separator, value = item.partition(within)
        if not separator or not name.strip():
            raise ValueError(f"an item has no {within} after its name")
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
    """What to ask a server for, where the records are in its answers, and how to go on from them."""

    kafka_topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish to.")
    http_request_url: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="URL to ask. It may have placeholders after the host: ${offset.NAME} is a field of the offset, "
        "${page.cursor}, ${page.number}, ${page.offset} and ${page.size} are the place of a page. Values are encoded.",
    )
    http_request_method: str = option(
        default="GET",
        importance=MEDIUM,
        validator=matches("[A-Z]{1,20}", "name of a method"),
        doc="Method to ask with.",
    )
    http_request_headers: str = option(
        default="",
        importance=MEDIUM,
        validator=_header_list,
        doc="Headers to send, as Name: value,Other: value, with placeholders; write a comma in a value as \\,. They go "
        "only to the host of http.request.url.",
    )
    http_request_params: str = option(
        default="",
        importance=MEDIUM,
        validator=_parameters,
        doc="Parameters to add to the URL, as a=1&b=${offset.id}. One whose placeholder has no value is left out.",
    )
    http_request_body: str = option(
        default="", importance=LOW, doc="Body to send, with placeholders that are encoded by the body's Content-Type."
    )
    http_offset_initial: str = option(
        default="",
        importance=HIGH,
        validator=_value_map,
        doc="Fields of the offset before anything is read, as id=0,timestamp=2024-01-01T00:00:00Z.",
    )
    http_response_type: str = option(
        default="json",
        importance=MEDIUM,
        validator=matches("json|text", "one of json, text"),
        doc="json: records are parts of the JSON of an answer. text: an answer, or the data of an event, is one text.",
    )
    http_response_list_pointer: str = option(
        default="/",
        importance=HIGH,
        validator=pointer_text,
        doc="Where the list of records is in an answer: a JSON pointer such as /data/items, or a JSON path such as "
        "$.data.items[*], for which the extra jsonpath is needed. / is the whole answer.",
    )
    http_response_record_pointer: str = option(
        default="/", importance=HIGH, validator=pointer_text, doc="Where the value of a record is in its list item."
    )
    http_response_record_key_pointer: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        validator=_pointer_list,
        doc="Where the key of a record is in its list item; of several the values are joined with +.",
    )
    http_response_record_timestamp_pointer: str | None = option(
        default=None, importance=MEDIUM, validator=pointer_text, doc="Where the timestamp is in a list item."
    )
    http_response_record_offset_pointer: str = option(
        default="",
        importance=MEDIUM,
        validator=_pointer_map,
        doc="Fields of the offset, as NAME=POINTER,...: ${offset.NAME} of the next requests, from the newest record.",
    )
    http_response_record_mapper: str | None = option(
        default=None,
        importance=LOW,
        doc="The form of records. JsonRecordMapper: the JSON value itself, without a schema. "
        "StringKvSourceRecordMapper: its text. SchemedKvSourceRecordMapper: structs with the text, the key and the "
        "timestamp. The default is the first; with the Java connector's class name, the last.",
    )
    http_response_record_timestamp_parser: str = option(
        default="EpochMillisOrDelegateTimestampParser",
        importance=LOW,
        doc="How timestamps are read: EpochMillisTimestampParser, EpochSecondsTimestampParser, "
        "DateTimeFormatterTimestampParser, or EpochMillisOrDelegateTimestampParser for milliseconds or a date.",
    )
    http_response_record_timestamp_parser_pattern: str = option(
        default=_ISO_PATTERN,
        importance=LOW,
        doc="Pattern of dates, as Java's SimpleDateFormat has them; by default any date and time of ISO 8601.",
    )
    http_response_record_timestamp_parser_zone: str = option(
        default="UTC", importance=LOW, doc="Time zone of dates that have none in them."
    )
    http_record_filter_factory: str = option(
        default="OffsetRecordFilterFactory",
        importance=LOW,
        doc="Which records of a list that is read again are published. OffsetRecordFilterFactory: those after the one "
        "that was the newest before, if there are offset fields. PassthroughRecordFilterFactory: all.",
    )
    http_response_list_order_direction: str = option(
        default="IMPLICIT",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)ASC|DESC|IMPLICIT", "one of ASC, DESC, IMPLICIT (in any case)"),
        doc="Whether the oldest record comes first in an answer (ASC) or the newest (DESC); IMPLICIT compares the "
        "timestamps of the first and the last.",
    )
    http_response_policy_codes_process: str = option(
        default="200..299", importance=HIGH, validator=statuses, doc="Statuses of answers that are read."
    )
    http_response_policy_codes_skip: str = option(
        default="300..399", importance=HIGH, validator=statuses, doc="Statuses of answers without records."
    )
    http_response_policy_codes_retry: str = option(
        default="408,425,429,500..599",
        importance=MEDIUM,
        validator=statuses,
        doc="Statuses after which the request is made again later; all others fail the task.",
    )
    http_timer_interval_millis: Long = option(
        default=60_000, importance=HIGH, validator=at_least(0), doc="Milliseconds between two readings of the list."
    )
    http_timer_catchup_interval_millis: Long = option(
        default=30_000,
        importance=HIGH,
        validator=at_least(0),
        doc="Milliseconds between two readings while the newest record is older than the interval.",
    )
    http_request_interval_millis: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Least milliseconds between two requests, for servers that limit their rate.",
    )
    http_paging: str = option(
        default="none",
        importance=HIGH,
        validator=matches(
            "none|next_link|link_header|cursor|offset|page", "one of none, next_link, link_header, cursor, offset, page"
        ),
        doc="How a list goes on: next_link (its URL at http.paging.next.pointer), link_header (a Link header with "
        "rel=next), cursor (at http.paging.next.pointer, sent as ${page.cursor}), offset (${page.offset}), page "
        "(${page.number}), or none.",
    )
    http_paging_next_pointer: str | None = option(
        default=None, importance=MEDIUM, validator=pointer_text, doc="Where the next link or cursor is in an answer."
    )
    http_paging_more_pointer: str | None = option(
        default=None,
        importance=LOW,
        validator=pointer_text,
        doc="Where an answer says whether there is more, such as /has_more; false ends the list.",
    )
    http_paging_total_pointer: str | None = option(
        default=None,
        importance=LOW,
        validator=pointer_text,
        doc="Where an answer says how many records the whole list has, such as /total. With engine=spark, and in "
        "PySpark, its pages are then read side by side.",
    )
    http_paging_total_header: str | None = option(
        default=None,
        importance=LOW,
        validator=non_empty,
        doc="The header in which an answer says how many records the whole list has, such as X-Total-Count.",
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
        doc="How many records a page has; with offset and page a page with fewer is the last one. Send it to the "
        "server as ${page.size}.",
    )
    http_paging_end: str = option(
        default="restart",
        importance=MEDIUM,
        validator=matches("restart|continue|stop", "one of restart, continue, stop"),
        doc="At the end of the list: restart reads it from its beginning after the interval, continue asks again at "
        "its end, stop is done.",
    )
    http_conditional: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to send ETag and Last-Modified back, so that an answer that is still the same is not sent again. "
        "Only for lists of one page, with GET.",
    )
    http_long_polling: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the server holds an answer back until there is something: the next request follows at once, and "
        "no answer within the read timeout is none.",
    )
    http_events: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the URL is a stream of server-sent events; each is a record. It is resumed with Last-Event-ID.",
    )
    http_event_max_bytes: int = option(
        default=1 << 20, importance=LOW, validator=between(1, 1 << 30), doc="The largest event, in bytes."
    )
    http_child_url: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="URL to ask for each record, with ${parent.NAME} for its fields. Its answer takes the record's place.",
    )
    http_child_list_pointer: str = option(
        default="/", importance=LOW, validator=pointer_text, doc="Where the records are in a child's answer."
    )
    http_child_field: str | None = option(
        default=None,
        importance=LOW,
        doc="Field of the record to put the child's answer into; without it the child's records are published instead.",
    )

    split_first: int | None = option(
        default=None, importance=LOW, internal=True, doc="The offset or page number at which a split begins."
    )
    split_end: int | None = option(
        default=None, importance=LOW, internal=True, doc="The offset or page number before which a split ends."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule over several options that is broken."""
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
        """The keys that have URLs, and the URLs."""
        yield from super().urls()
        yield "http.request.url", self.http_request_url
        if self.http_child_url is not None:
            yield "http.child.url", self.http_child_url

    @property
    def is_java(self) -> bool:
        """Whether the connector is named by the Java class it stands for."""
        return (self.originals.get("connector.class") or "").startswith(_JAVA_CLASS)

    @property
    def mapper(self) -> str:
        """The simple name of the form of records."""
        default = _MAPPERS[1] if self.is_java else _MAPPERS[0]
        return _simple(self.http_response_record_mapper or default)

    @property
    def record_filter(self) -> str:
        """The simple name of the filter of records."""
        return _simple(self.http_record_filter_factory)

    @property
    def timestamp_parser(self) -> str:
        """The simple name of the form of timestamps."""
        return _simple(self.http_response_record_timestamp_parser)

    @property
    def timestamp_pattern(self) -> str | None:
        """The pattern of dates; ``None`` for those of ISO 8601."""
        pattern = self.http_response_record_timestamp_parser_pattern
        return None if pattern == _ISO_PATTERN else pattern

    @property
    def process(self) -> StatusRanges:
        """The statuses of answers that are read."""
        return status_ranges(self.http_response_policy_codes_process)

    @property
    def skip(self) -> StatusRanges:
        """The statuses of answers without records."""
        return status_ranges(self.http_response_policy_codes_skip)

    @property
    def retry(self) -> StatusRanges:
        """The statuses after which a request is made again."""
        return status_ranges(self.http_response_policy_codes_retry)

    def url_template(self) -> Template:
        """The template of the URL."""
        return Template(self.http_request_url.strip(), Encoding.URL, _ROOTS)

    def child_template(self) -> Template | None:
        """The template of the URL of a record's child."""
        text = self.http_child_url
        return None if text is None else Template(text.strip(), Encoding.URL, _CHILD_ROOTS)

    def header_templates(self) -> list[tuple[str, Template]]:
        """The templates of the headers, by their names."""
        return [
            (name, Template(value, Encoding.HEADER, _ROOTS)) for name, value in header_pairs(self.http_request_headers)
        ]

    def parameter_templates(self) -> list[tuple[str, Template]]:
        """The templates of the parameters, by their names."""
        return [
            (name, Template(value, Encoding.TEXT, _ROOTS)) for name, value in parameter_pairs(self.http_request_params)
        ]

    def body_template(self) -> Template | None:
        """The template of the body; ``None`` if there is none."""
        if not self.http_request_body:
            return None
        return Template(self.http_request_body, body_encoding(self.content_type), _ROOTS)

    @property
    def content_type(self) -> str | None:
        """The type of the body, as the headers say it."""
        return next(
            (value for name, value in header_pairs(self.http_request_headers) if name.lower() == "content-type"), None
        )

    @property
    def uses_newest_record(self) -> bool:
        """Whether requests or the filter of records depend on what the newest record of the last reading was."""
        templates = (self.http_request_url, self.http_request_params, self.http_request_body, self.http_request_headers)
        return self.record_filter != EVERYTHING or "${offset." in "".join((*templates, self.http_child_url or ""))

    def initial_fields(self) -> dict[str, str]:
        """The fields of the offset before anything is read."""
        return dict(_pairs(self.http_offset_initial, ",", "="))

    def offset_selections(self) -> list[tuple[str, Selection]]:
        """The fields of the offset, and where each is in a list item."""
        key = "http.response.record.offset.pointer"
        return [(name, Selection(text, key)) for name, text in named_pointers(self.http_response_record_offset_pointer)]

    def key_selections(self) -> list[Selection]:
        """The parts of the key in a list item."""
        key = "http.response.record.key.pointer"
        return [Selection(text, key) for text in self.http_response_record_key_pointer]

    def timestamp_selection(self) -> Selection | None:
        """The timestamp in a list item."""
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
