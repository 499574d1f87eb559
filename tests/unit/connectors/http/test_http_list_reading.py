"""The reading of lists: what is asked for and what is published, against servers that are functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import SourceRecord
from connect.errors import ConnectError, DataError
from connect.kits.http.messages import NoAnswerError, Request, Response, TimedOutError
from connectors.http.exchange import body_excerpt
from connectors.http.list_reading import ListReading, response_content
from connectors.http.paging import Page, Paging, next_link
from connectors.http.places import Place, check_offset
from connectors.http.source_config import HttpSourceConfig
from connectors.http.steps import Ask, Malformed, Outcome, Publish, Rest, TryLater
from equipment.growth import assert_grows_evenly

URL = "https://api.example/items"
Server = Callable[[Request], Outcome]


def config_of(**props: str) -> HttpSourceConfig:
    given = {key.replace("_", "."): value for key, value in props.items()}
    return HttpSourceConfig.parse({"kafka.topic": "t", "http.request.url": URL, **given})


def answer(body: Any, status: int = 200, **headers: str) -> Response:
    return Response(status, {k.replace("_", "-"): v for k, v in headers.items()}, json.dumps(body).encode(), URL)


def query(request: Request) -> dict[str, str]:
    return {name: found[0] for name, found in parse_qs(urlsplit(request.url).query).items()}


@dataclass
class Life:
    """One life of a reader, until there are ``most`` records or the list was read ``readings`` times."""

    config: HttpSourceConfig
    server: Server
    offset: dict[str, Any] | None = None
    records: list[SourceRecord] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)
    failures: list[TryLater] = field(default_factory=list)

    def run(self, *, readings: int = 1, most: int | None = None, most_failures: int = 5) -> Life:
        initial = self.config.initial_fields()
        place = Place.from_offset(self.offset) if self.offset else Place(initial, initial)
        steps, outcome = ListReading(self.config, {"url": URL}).steps(place), None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration:
                return self
            outcome = None
            match step:
                case Ask(request):
                    self.requests.append(request)
                    outcome = self.server(request)
                case Publish(items):
                    for item in items:
                        if isinstance(item, Malformed):
                            self.malformed.append(item)
                            continue
                        self.records.append(item)
                        # As it is stored, and read again.
                        self.offset = json.loads(json.dumps(dict(item.source_offset)))
                        check_offset(self.offset)
                        if len(self.records) == most:
                            return self
                case Rest():
                    self.rests.append(step)
                    if sum(rest.is_end for rest in self.rests) == readings:
                        return self
                case TryLater():
                    self.failures.append(step)
                    if len(self.failures) == most_failures:
                        return self

    @property
    def values(self) -> list[Any]:
        return [record.value for record in self.records]


def pages(items: Sequence[Any], size: int) -> Server:
    """A list by offset."""

    def serve(request: Request) -> Response:
        start = int(query(request).get("offset", "0"))
        return answer(list(items[start : start + size]))

    return serve


@given(st.integers(0, 25), st.integers(1, 6), st.lists(st.integers(1, 9), max_size=8), st.booleans())
def test_kills_anywhere_lose_and_double_nothing(count: int, size: int, lives: list[int], by_link: bool) -> None:
    items = [{"id": number} for number in range(count)]
    if by_link:
        config = config_of(http_paging="link_header", http_paging_end="stop")

        def server(request: Request) -> Response:
            start = int(query(request).get("from", "0"))
            more = {"link": f'<?from={start + size}>; rel="next"'} if start + size < count else {}
            return Response(200, more, json.dumps(items[start : start + size]).encode(), request.url)

    else:
        config = config_of(
            http_paging="offset",
            http_paging_size=str(size),
            http_request_params="offset=${page.offset}",
            http_paging_end="continue",
        )
        server = pages(items, size)
    read, offset = [], None
    for most in [*lives, None]:
        life = Life(config, server, offset).run(most=most)
        read += life.values
        offset = life.offset
    assert read == items


def test_items_that_come_before_a_page_that_is_half_read_are_not_lost() -> None:
    """Reading goes on after the record that was read last, wherever it is now; if it is gone, the page comes again."""
    items = [{"id": number} for number in range(6)]
    config = config_of(http_paging_end="continue")
    first = Life(config, lambda _: answer(items)).run(most=3)
    moved = Life(config, lambda _: answer([{"id": 98}, {"id": 99}, *items]), first.offset).run()
    assert [value["id"] for value in moved.values] == [3, 4, 5]
    gone = Life(config, lambda _: answer([{"id": 0}, {"id": 7}, *items[3:]]), first.offset).run()
    assert [value["id"] for value in gone.values] == [0, 7, 3, 4, 5]


def test_the_newest_record_fills_in_the_next_reading() -> None:
    posts = [{"id": number, "at": f"2024-01-01T00:00:{number:02d}Z"} for number in range(1, 5)]

    def timeline(request: Request) -> Response:
        # The newest first, in pages of two, as timelines do.
        after, before = int(query(request).get("since", "0")), int(query(request).get("before", "99"))
        found = [post for post in posts[::-1] if after < post["id"] < before]
        part = found[:2]
        more = {}
        if len(found) > 2:
            more["link"] = f'<{URL}?since={after}&before={part[-1]["id"]}>; rel="next"'
        return answer(part, **more)

    config = config_of(
        http_paging="link_header",
        http_request_params="since=${offset.id}",
        http_response_record_offset_pointer="id=/id",
        http_response_record_timestamp_pointer="/at",
    )
    life = Life(config, timeline).run()
    assert [value["id"] for value in life.values] == [3, 4, 1, 2]
    assert "since" not in query(life.requests[0])
    posts.append({"id": 5, "at": "2024-01-01T00:00:05Z"})
    for offset in (life.offset, {"id": 4, "timestamp": "2024-01-01T00:00:04Z", "key": "x"}):
        # The second is as the Java connector has it.
        after = Life(config, timeline, offset).run()
        assert query(after.requests[0]) == {"since": "4"}
        assert [value["id"] for value in after.values] == [5]
    # A kill between the pages goes on with the next one, and with the newest of all afterwards.
    half = Life(config, timeline, None).run(most=2)
    rest = Life(config, timeline, half.offset).run(readings=2)
    assert [value["id"] for value in half.values + rest.values] == [4, 5, 2, 3, 1]
    assert query(rest.requests[-1]) == {"since": "5"}


def test_records_that_were_seen_are_left_out() -> None:
    """The server gives everything again, from the last one on and older."""
    items = [{"id": number, "at": 1000 * number} for number in range(1, 4)]
    config = config_of(http_response_record_timestamp_pointer="/at", http_response_record_key_pointer="/id")
    life = Life(config, lambda _: answer(items)).run(readings=2)
    assert [record.key for record in life.records] == ["1", "2", "3"]
    assert [record.timestamp for record in life.records] == [1000, 2000, 3000]
    items += [{"id": 9, "at": 3000}, {"id": 4, "at": 4000}]
    again = Life(config, lambda _: answer(items), life.offset).run()
    assert [record.key for record in again.records] == ["9", "4"]
    everything = config_of(
        http_response_record_key_pointer="/id", http_record_filter_factory="a.b.PassthroughRecordFilterFactory"
    )
    assert len(Life(everything, lambda _: answer(items)).run(readings=2).records) == 2 * len(items)


def test_a_single_object_that_has_changed_comes_again() -> None:
    weather = [{"city": "Oslo", "degrees": 1}]
    config = config_of(http_response_record_key_pointer="/city")
    life = Life(config, lambda _: answer(weather[0])).run(readings=2)
    assert life.values == [{"city": "Oslo", "degrees": 1}]
    weather[0] = {"city": "Oslo", "degrees": 2}
    assert Life(config, lambda _: answer(weather[0]), life.offset).run().values == [{"city": "Oslo", "degrees": 2}]


def test_what_has_not_changed_is_not_sent_again() -> None:
    def server(request: Request) -> Response:
        if request.headers.get("If-None-Match") == '"v1"':
            assert request.headers["If-Modified-Since"] == "yesterday"
            return answer("", 304)
        return answer([{"a": 1}], etag='"v1"', last_modified="yesterday")

    life = Life(config_of(), server).run(readings=3)
    assert len(life.records) == 1
    assert Life(config_of(), server, life.offset).run().records == []
    assert len(Life(config_of(http_conditional="false"), server, life.offset).run().records) == 1


def test_a_server_that_is_busy_is_asked_later() -> None:
    outcomes: list[Outcome] = [
        answer("slow down", 429, retry_after="7"),
        answer("limit", 403, x_ratelimit_remaining="0", x_ratelimit_reset="11"),
        NoAnswerError("it does not answer"),
        answer([1], x_ratelimit_remaining="0", x_ratelimit_reset="13"),
        answer([2]),
    ]
    life = Life(config_of(retry_backoff_ms="2000"), lambda _: outcomes.pop(0)).run(readings=2)
    assert [failure.seconds for failure in life.failures[:2]] == [7.0, 11.0]
    assert 4.0 <= life.failures[2].seconds <= 8.0
    assert life.values == [1, 2]
    assert 13.0 in [rest.seconds for rest in life.rests if not rest.is_end]
    assert "HTTP status 429: " in life.failures[0].reason


def test_a_server_that_refuses_fails_the_task_with_its_reason() -> None:
    with pytest.raises(
        ConnectError, match=r"GET https://api.example/items was answered with HTTP status 404: \"gone\""
    ):
        Life(config_of(http_request_params="key=secret"), lambda _: answer("gone", 404)).run()
    life = Life(config_of(http_response_policy_codes_skip="404"), lambda _: answer("gone", 404)).run(readings=2)
    assert life.records == []
    with pytest.raises(ConnectError, match="tried 3 times"):
        Life(config_of(max_retries="2"), lambda _: answer("", 503)).run()


@pytest.mark.parametrize("body", [b"{", b"<html>", b"[NaN]", b"[" * 100_000, b"\xff", b'{"a": "\xff"}'])
def test_a_body_that_is_no_json_is_asked_for_again_but_not_for_ever(body: bytes) -> None:
    with pytest.raises(ConnectError, match="The answer is not JSON"):
        Life(config_of(), lambda _: Response(200, {}, body, URL)).run()


def test_a_list_that_is_not_where_it_should_be_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    config = config_of(http_response_list_pointer="/itmes")
    assert Life(config, lambda _: answer({"items": [1]})).run(readings=3).records == []
    assert caplog.text.count("The answer has nothing at /itmes. Unless the list is empty, check") == 1
    caplog.clear()
    Life(config, lambda _: answer({"itmes": []})).run()
    assert caplog.text == ""


def test_long_polling_asks_again_at_once() -> None:
    outcomes: list[Outcome] = [TimedOutError("silence"), answer([1]), Response(204, {}, b"", URL), answer([2])]
    config = config_of(http_long_polling="true")
    life = Life(config, lambda _: outcomes.pop(0)).run(readings=4)
    assert life.values == [1, 2]
    assert [rest.seconds for rest in life.rests] == [0.0] * 4


def test_items_that_cannot_be_used_are_reported_with_their_place() -> None:
    items = [{"at": 1}, {"at": "yesterday"}, {"at": 3}]
    config = config_of(http_response_record_timestamp_pointer="/at")
    life = Life(config, lambda _: answer(items)).run()
    assert life.values == [items[0], items[2]]
    (malformed,) = life.malformed
    assert malformed.record.value == items[1]
    assert malformed.record.source_offset["page.index"] == 2
    assert "The timestamp 'yesterday' cannot be read" in str(malformed.error)


def test_children_take_the_place_of_their_parents() -> None:
    def server(request: Request) -> Response:
        number = urlsplit(request.url).path.rpartition("/")[2]
        return answer([{"id": "a/b"}, {"id": 2}]) if number == "items" else answer({"list": [f"{number}!", "x"]})

    config = config_of(http_child_url=f"{URL}/of/${{parent.id}}", http_child_list_pointer="/list")
    life = Life(config, server).run()
    assert life.values == ["a%2Fb!", "x", "2!", "x"]
    # Within the children of the first one.
    half = Life(config, server).run(most=1)
    assert Life(config, server, half.offset).run().values == ["x", "2!", "x"]
    joined = config_of(http_child_url=f"{URL}/of/${{parent.id}}", http_child_field="more")
    assert Life(joined, server).run().values[1] == {"id": 2, "more": {"list": ["2!", "x"]}}


@pytest.mark.parametrize(
    ("props", "content", "expected"),
    [
        ({"http_paging_next_pointer": "/next"}, {"next": "?page=2"}, f"{URL}?page=2"),
        ({"http_paging_next_pointer": "/next"}, {"next": "http://api.example/x"}, "https://api.example/x"),
        ({"http_paging_next_pointer": "/next"}, {"next": f"{URL}?k=secret&page=2"}, f"{URL}?page=2"),
        ({"http_paging_next_pointer": "/next"}, {"next": None}, None),
        ({"http_paging_next_pointer": "/next"}, {"next": ""}, None),
        (
            {"http_paging_next_pointer": "/next", "http_paging_more_pointer": "/more"},
            {"next": "/x", "more": False},
            None,
        ),
    ],
)
def test_links_of_next_pages(props: dict[str, str], content: Any, expected: str | None) -> None:
    key = {"http_auth_type": "API_KEY", "http_auth_api_key": "secret", "http_auth_api_key_in": "query"}
    paging = Paging(config_of(http_paging="next_link", http_auth_api_key_name="k", **key, **props))
    assert paging.after(None, Page(URL, {}, content, 1)) == expected


@pytest.mark.parametrize(
    "link",
    ["https://evil.example/", "http://api.example:8080/", "//evil.example", "file:///etc", "https://a@api.example/"],
)
def test_no_link_leads_to_another_host(link: str) -> None:
    paging = Paging(config_of(http_paging="next_link", http_paging_next_pointer="/next"))
    with pytest.raises(ConnectError, match=r"another host|not an HTTP URL"):
        paging.after(None, Page(URL, {}, {"next": link}, 1))


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ('<https://a/?p=2>; rel="next", <https://a/?p=9>; rel="last"', "https://a/?p=2"),
        ("<a>; rel=prev, <b>;title=\"x, <c>; rel=next\"; rel='x' , <d>; REL=Next", "d"),
        ('<a>; rel="last next"', "a"),
        ("<a>; rel=nextdoor", None),
        ("", None),
        ("<a", None),
    ],
)
def test_link_headers(header: str, target: str | None) -> None:
    assert next_link(header) == target


@given(st.text('<>;=", relnxt', max_size=60))
def test_any_text_is_a_link_header(text: str) -> None:
    next_link(text)


@pytest.mark.growth
@pytest.mark.parametrize("part", ["<a>,", "<a>;", "<", ";x=", '<a>; a="', "<a>; rel=prev, "])
def test_link_headers_take_even_time(part: str) -> None:
    assert_grows_evenly(next_link, lambda size: part * (size // len(part)), 4_000)


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"http_request_url": "ftp://x/"}, "http.request.url"),
        ({"http_request_url": "http://me:hush@x/"}, "http.request.url"),
        ({"http_request_url": "http://${offset.host}/"}, "http.request.url"),
        ({"http_request_url": "http://x/${unknown}"}, "http.request.url"),
        ({"http_request_params": "a"}, "http.request.params"),
        ({"http_request_headers": "X-Key hush"}, "http.request.headers"),
        ({"http_paging": "cursor", "http_request_params": "c=${page.cursor}"}, "http.paging.next.pointer"),
        ({"http_paging": "page"}, "http.paging"),
        ({"http_auth_type": "BEARER"}, "http.auth.token"),
        ({"http_auth_type": "OAUTH2"}, "oauth2.client.secret"),
        ({"http_events": "true", "http_long_polling": "true"}, "http.events"),
        ({"http_client": "com.example.MyClient"}, "http.client"),
        ({"http_response_record_timestamp_parser": "NattyTimestampParser"}, "http.response.record.timestamp.parser"),
        ({"http_response_list_pointer": "items"}, "http.response.list.pointer"),
        ({"http_response_policy_codes_process": "2xx"}, "http.response.policy.codes.process"),
    ],
)
def test_mistakes_are_told_at_their_keys(props: dict[str, str], key: str) -> None:
    given = {name.replace("_", "."): value for name, value in props.items()}
    found = HttpSourceConfig.validate({"kafka.topic": "t", "http.request.url": URL, **given})
    told = {value.name: value.errors for value in found if value.errors}
    assert key in told
    assert "hush" not in str(told.values())


def test_a_path_needs_its_library_only_if_it_is_one() -> None:
    items = {"data": [{"kind": "a", "n": 1}, {"kind": "b", "n": 2}]}
    pytest.importorskip("jsonpath")
    config = config_of(http_response_list_pointer="$.data[?(@.kind == 'b')]")
    assert Life(config, lambda _: answer(items)).run().values == [{"kind": "b", "n": 2}]


def capped(
    items: Sequence[Any], cap: int, *, total: Any = None, beyond: int = 200, start: int = 0, ignores: bool = False
) -> Server:
    """Return a server that gives at most ``cap`` items a page, and answers ``beyond`` after the last one."""

    def serve(request: Request) -> Response:
        asked = query(request)
        first = int(asked["offset"]) if "offset" in asked else (int(asked["page"]) - start) * cap
        found = list(items[:cap] if ignores else items[first : first + cap])
        body = {"items": found} | ({} if total is None else {"total": total})
        return answer(body, 200 if found or not first else beyond)

    return serve


BY_OFFSET = {"http_request_url": f"{URL}?limit=100&offset=${{page.offset}}", "http_paging": "offset"}
BY_PAGE = {"http_request_url": f"{URL}?limit=100&page=${{page.number}}", "http_paging": "page"}
CAPPED = {"http_paging_size": "100", "http_response_list_pointer": "/items", "http_paging_end": "stop"}


@pytest.mark.parametrize("mode", [BY_OFFSET, BY_PAGE])
@pytest.mark.parametrize("total", [None, 8, 50])
@pytest.mark.parametrize("beyond", [200, 404, 416])
def test_a_server_that_caps_its_pages_loses_nothing(mode: dict[str, str], total: int | None, beyond: int) -> None:
    start = 1 if mode is BY_PAGE else 0
    more = {} if total is None else {"http_paging_total_pointer": "/total"}
    server = capped(list(range(8)), 3, total=total, beyond=beyond, start=start)
    config = config_of(**mode, **CAPPED, **more)
    assert [record.value for record in Life(config, server).run().records] == list(range(8))


@pytest.mark.parametrize("mode", [BY_OFFSET, BY_PAGE])
def test_a_capped_list_goes_on_after_each_kill(mode: dict[str, str]) -> None:
    start = 1 if mode is BY_PAGE else 0
    config = config_of(**mode, **CAPPED, http_paging_total_pointer="/total")
    server = capped(list(range(8)), 3, total=8, beyond=404, start=start)
    for most in range(1, 8):
        first = Life(config, server).run(most=most)
        second = Life(config, server, first.offset).run()
        assert [record.value for record in (*first.records, *second.records)] == list(range(8))


@pytest.mark.parametrize("mode", [BY_OFFSET, BY_PAGE])
def test_a_total_saves_the_last_request_and_one_that_lies_ends(
    mode: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    start = 1 if mode is BY_PAGE else 0
    config = config_of(**mode, **CAPPED, http_paging_total_pointer="/total")
    honest = Life(config, capped(list(range(8)), 3, total=8, start=start)).run()
    assert len(honest.requests) == 3
    assert not caplog.messages
    Life(config, capped(list(range(8)), 3, total=1000, start=start)).run()
    assert "The list ended after 8 items, though the server reports a total of 1000." in caplog.text


@pytest.mark.parametrize("mode", [BY_OFFSET, BY_PAGE])
def test_a_server_that_knows_no_pages_is_read_once(mode: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    config = config_of(**mode, **CAPPED)
    life = Life(config, capped(list(range(5)), 5, ignores=True)).run()
    assert [record.value for record in life.records] == list(range(5))
    assert "has the same items as the page before it" in caplog.text


@pytest.mark.parametrize("told", ["false", "False", "0", "no", "", " ", "null", None, False, 0, [], {}])
def test_an_answer_that_denies_more_pages_is_the_last(told: Any) -> None:
    config = config_of(**BY_PAGE, **CAPPED, http_paging_more_pointer="/more")
    life = Life(config, lambda _: answer({"items": [1], "more": told})).run()
    assert len(life.requests) == 1


@pytest.mark.parametrize("told", ["true", "1", "yes", "/items?page=2", True, 1])
def test_an_answer_that_tells_of_more_pages_is_not(told: Any) -> None:
    config = config_of(**BY_PAGE, **CAPPED, http_paging_more_pointer="/more")
    life = Life(config, lambda r: answer({"items": [1], "more": told if query(r)["page"] == "1" else False})).run()
    assert len(life.requests) == 2


@pytest.mark.parametrize("length", [2, 3, 7, 50])
def test_a_circle_of_cursors_is_reported(length: int) -> None:
    config = config_of(
        http_request_url=f"{URL}?at=${{page.cursor!'0'}}",
        http_paging="cursor",
        http_paging_next_pointer="/next",
        http_response_list_pointer="/items",
    )

    def serve(request: Request) -> Response:
        at = int(query(request).get("at", "0"))
        return answer({"items": [at], "next": str(at % length + 1)})

    life = Life(config, serve)
    with pytest.raises(ConnectError, match="lead round in a circle"):
        life.run()
    assert len(life.requests) <= 4 * length


@pytest.mark.parametrize(
    ("charset", "codec"),
    [
        ("; charset=iso-8859-1", "latin-1"),
        ('; charset="ISO-8859-1"', "latin-1"),
        ("; Charset=windows-1252", "cp1252"),
        ("; charset=utf-16", "utf-16"),
        ("; charset=utf-8", "utf-8-sig"),
        ("", "utf-8"),
    ],
)
@pytest.mark.parametrize("kind", ["json", "text"])
def test_the_charset_of_an_answer_is_obeyed(charset: str, codec: str, kind: str) -> None:
    if kind == "text" and codec == "utf-8-sig":
        codec = "utf-8"
    text = json.dumps([{"city": "Köln"}], ensure_ascii=False)
    told = Response(200, {"content-type": f"application/json{charset}"}, text.encode(codec), URL)
    found = response_content(config_of(http_response_type=kind), told)
    assert found == (json.loads(text) if kind == "json" else text)


@pytest.mark.parametrize("kind", ["json", "text"])
def test_a_charset_that_is_unknown_or_wrong_is_named(kind: str) -> None:
    config = config_of(http_response_type=kind)
    for name in ("klingon", "base64", "unicode_escape"):
        with pytest.raises(DataError, match=f"charset '{name}', which is unknown"):
            response_content(config, Response(200, {"content-type": f"text/x; charset={name}"}, b"[1]", URL))
    with pytest.raises(DataError, match="is not ascii, as its Content-Type says"):
        response_content(config, Response(200, {"content-type": "text/x; charset=ascii"}, b'["\xf6"]', URL))


def test_the_excerpt_of_an_answer_is_in_its_charset() -> None:
    assert body_excerpt(Response(500, {"content-type": "text/plain; charset=latin-1"}, b"K\xf6ln", URL)) == ": Köln"


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400 + ".0", "NaN", "Infinity"])
def test_a_number_that_no_float_holds_is_refused(number: str) -> None:
    with pytest.raises(DataError, match="is not JSON"):
        response_content(config_of(), Response(200, {}, f'[{{"a": {number}}}]'.encode(), URL))
