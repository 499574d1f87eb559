"""Operations on the pages of connectors that exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from equipment.waiting import wait_until
from equipment.workers.page_worker import BEYOND_DOUBLES, PageWorker

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from conftest import Watched

SINK = {"connector.class": "FileStreamSink", "file": "/tmp/out", "topics": "orders"}
WITH_QUEUE = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "orders-dlq"}


@pytest.fixture
def made(worker: PageWorker) -> Iterator[Callable[..., str]]:
    """Makes a sink that goes when the test ends."""
    names: list[str] = []

    def make(name: str, state: str = "RUNNING", **config: str) -> str:
        worker.client.post("/connectors", {"name": name, "config": {**SINK, **config}, "initial_state": state})
        names.append(name)
        return name

    yield make
    for name in names:
        if name in worker.client.get("/connectors"):
            worker.client.delete(worker.client.connector_path(name))


@pytest.fixture
def flow(worker: PageWorker) -> Iterator[str]:
    """The path of a flow of a mirror, which goes when the test ends."""
    path = "/mirror/flows/A-%3EB"
    clusters = {f"{cluster}.cluster.bootstrap.servers": "127.0.0.1:9" for cluster in ("source", "target")}
    worker.client.put(path, {"topics": "orders", **clusters})
    yield path
    worker.client.delete(path)


def state(worker: PageWorker, name: str) -> str:
    return str(worker.client.get(worker.client.connector_path(name, "status"))["connector"]["state"])


def test_progress_is_shown_where_the_whole_is_known(open_page: Callable[..., Page], made: Callable[..., str]) -> None:
    made("under-way", **{"test.rows": "25 of 1000", "tasks.max": "2"})
    made("without-end")
    page = open_page()
    bar = page.get_by_role("progressbar", name="Progress of under-way")
    bar.wait_for()
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("1950", "2000")
    assert page.locator('tr[data-key="under-way"]').get_by_text("97 % of 2,000 rows").is_visible()
    assert page.locator('tr[data-key="without-end"] progress').count() == 0
    page = open_page("connectors/under-way")
    page.get_by_role("progressbar", name="Progress").wait_for()
    assert page.locator("dl.facts").first.get_by_text("97 % of 2,000 rows").is_visible()


def test_what_failed_comes_first_and_counters_filter(open_page: Callable[..., Page]) -> None:
    page = open_page()
    assert page.locator("tbody tr").first.get_attribute("data-key") == "<script>alert(1)</script>"
    page.get_by_role("link", name="Paused").click()
    page.wait_for_url("**show=*")
    assert shown(page) == ["a/b"]


def shown(page: Page) -> list[str]:
    """The connectors of a list, as it is now."""
    return list(page.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.dataset.key)"))


def test_the_search_follows_what_is_typed(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_label("Search").fill("jdbc")
    page.get_by_text("1 of ").wait_for()
    assert shown(page) == ["customers"]
    assert "q=jdbc" in page.url


def test_many_are_paused_at_once_after_a_list_of_what_will_happen(
    open_page: Callable[..., Page], worker: PageWorker, made: Callable[..., str]
) -> None:
    for name in ("bulk-one", "bulk-two"):
        made(name)
        wait_until("it runs", lambda name=name: state(worker, name) == "RUNNING")
    page = open_page("?q=bulk-")
    page.get_by_label("Select all shown").check()
    page.get_by_role("button", name="Pause").click()
    listed = page.get_by_role("dialog").locator("li").all_inner_texts()
    assert listed == [
        "bulk-one: pauses (1 task); its tasks process nothing but keep their partitions",
        "bulk-two: pauses (1 task); its tasks process nothing but keep their partitions",
    ]
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_text("Done.").wait_for()
    for name in ("bulk-one", "bulk-two"):
        wait_until("it is paused", lambda name=name: state(worker, name) == "PAUSED")


def test_a_connector_is_deleted_only_when_its_name_is_typed(
    open_page: Callable[..., Page], worker: PageWorker, made: Callable[..., str]
) -> None:
    made("to/delete")
    page = open_page("connectors/to%2Fdelete")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    go = dialog.get_by_role("button", name="Delete")
    assert go.is_disabled()
    dialog.get_by_label("Type to/delete to confirm").fill("to/delete")
    go.click()
    page.wait_for_url("**/ui")
    assert "to/delete" not in worker.client.get("/connectors")


def test_a_page_follows_its_connector_and_leaves_open_what_is_open(
    open_page: Callable[..., Page], worker: PageWorker, made: Callable[..., str]
) -> None:
    made("followed")
    page = open_page("connectors/followed")
    page.get_by_role("button", name="Resume").wait_for(state="detached")
    page.get_by_text("Metrics").click()
    worker.client.put(worker.client.connector_path("followed", "pause"))
    page.get_by_role("button", name="Resume").wait_for()
    assert page.locator("details[open]").count() == 1


def test_a_move_is_shown_before_it_is_made(open_page: Callable[..., Page], made: Callable[..., str]) -> None:
    made("moved", "STOPPED")
    page = open_page("connectors/moved/offsets")
    page.get_by_role("button", name="Show changes").click()
    row = page.locator("#outcome tbody tr")
    row.wait_for()
    assert row.locator("td").all_inner_texts() == ["orders", "0", str(BEYOND_DOUBLES), "0"], "not one digit is lost"
    page.get_by_role("button", name="Move").click()
    page.get_by_role("dialog").get_by_label("Type moved to confirm").fill("moved")
    with page.expect_navigation():
        page.get_by_role("dialog").get_by_role("button", name="Move").click()


def test_offsets_of_a_running_connector_are_not_moved(open_page: Callable[..., Page]) -> None:
    page = open_page("connectors/orders-sink/offsets")
    page.get_by_label("this offset", exact=True).first.check()
    page.get_by_role("textbox", name="this offset").fill("5")
    page.get_by_role("button", name="Show changes").click()
    page.locator("#outcome tbody tr").wait_for()
    assert page.get_by_role("button", name="Move").is_disabled()
    assert page.get_by_role("button", name="Delete all offsets").is_disabled()


def test_dead_letters_are_tried_and_replayed(open_page: Callable[..., Page], made: Callable[..., str]) -> None:
    made("letters", **WITH_QUEUE)
    page = open_page("connectors/letters/dlq")
    page.get_by_text("Key and value").first.click()
    assert page.get_by_text("<b>not JSON</b>").first.is_visible()
    page.get_by_label("Select 0:1").check()
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("would be delivered to orders").wait_for()
    page.get_by_role("button", name="Replay selected").click()
    page.get_by_role("dialog").get_by_role("button", name="Replay").click()
    page.get_by_role("dialog").get_by_text("1 delivered, 1 failed again").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    assert page.get_by_text("failed: still not JSON").is_visible()
    assert page.locator(".mark").all_inner_texts() == ["replayed", "failed again", ""]


def test_a_dead_letter_is_edited_tried_and_delivered(open_page: Callable[..., Page], made: Callable[..., str]) -> None:
    made("edited", **WITH_QUEUE)
    page = open_page("connectors/edited/dlq")
    page.get_by_role("link", name="0:1").click()
    value, deliver = page.get_by_label("Value", exact=True), page.get_by_role("button", name="Deliver")
    page.get_by_role("button", name="Remove header").wait_for()  # the script has filled the form
    assert value.input_value() == "<b>not JSON</b>"
    value.fill("worse")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("it would fail again: VALUE_CONVERTER").wait_for()
    assert deliver.is_disabled()
    value.fill('{"id": 1}')
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("would be delivered to orders").wait_for()
    row = page.get_by_role("table", name="Changes").locator("tbody td")
    assert row.all_inner_texts() == ["value", "<b>not JSON</b>", '{"id": 1}']
    assert deliver.is_enabled()
    value.fill('{"id": 2}')
    assert deliver.is_disabled(), "what was typed since was not tried"
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("would be delivered to orders").wait_for()
    deliver.click()
    page.get_by_role("dialog").get_by_role("button", name="Deliver").click()
    page.get_by_role("dialog").get_by_text("delivered to orders").wait_for()


def test_a_dead_letter_is_shown_in_each_of_its_forms(open_page: Callable[..., Page]) -> None:
    page = open_page("connectors/orders-sink/dlq/0:0")
    value = page.get_by_role("group", name="Value").get_by_role("combobox")
    shown = page.get_by_label("Value", exact=True)
    value.select_option("hex")
    assert bytes.fromhex(shown.input_value()) == b"<b>not JSON</b>"
    value.select_option("null")
    assert shown.is_disabled()
    value.select_option("base64")
    assert shown.input_value() == "PGI+bm90IEpTT048L2I+"
    page.get_by_role("button", name="Add header").click()
    page.get_by_role("button", name="Remove").nth(1).click()
    assert page.get_by_role("button", name="Remove").count() == 1


def test_a_deleted_connector_is_made_again_from_its_history(
    open_page: Callable[..., Page], worker: PageWorker, made: Callable[..., str]
) -> None:
    made("gone/again")
    worker.client.delete(worker.client.connector_path("gone/again"))
    page = open_page("connectors/gone%2Fagain")
    page.get_by_role("link", name="History of gone/again").click()
    page.wait_for_url("**/versions")  # and its scripts, without which a click does nothing
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    page.get_by_role("navigation", name="Connector").wait_for()
    assert "gone/again" in worker.client.get("/connectors")


def test_the_level_of_a_log_is_set_beside_it(open_page: Callable[..., Page], worker: PageWorker) -> None:
    page = open_page("connectors/orders-sink/logs")
    page.locator("#level").select_option("DEBUG")
    page.get_by_text("connectors.file logs at level DEBUG").wait_for()
    assert worker.client.get("/admin/loggers/connectors.file")["level"] == "DEBUG"
    page.locator("#level").select_option("INFO")
    page.get_by_text("connectors.file logs at level INFO").wait_for()


def test_everything_can_be_done_by_keyboard(open_page: Callable[..., Page], made: Callable[..., str]) -> None:
    made("by-keyboard")
    page = open_page("connectors/by-keyboard")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.get_by_role("button", name="Stop").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Cancel"
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.textContent") == "Stop"


def test_a_preview_shows_each_step_and_what_it_changed(open_page: Callable[..., Page]) -> None:
    page = open_page("connectors/orders-sink/preview")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("heading", name="Record 1").wait_for()
    assert page.locator(".step h3").all_inner_texts() == ["consumed", "converted", "hide ReplaceField$Value", "put"]
    assert page.locator(".step").nth(2).locator("dt").first.inner_text() == "value (changed)"
    assert page.get_by_text(str(BEYOND_DOUBLES)).is_visible()
    assert page.locator(".refusal").inner_text() == "<b>no table</b>\nthe task fails (errors.tolerance=none)"
    assert page.get_by_role("table").locator("tbody td").all_inner_texts() == ["1", "null"]


def test_a_flow_of_a_mirror_is_seen_and_paused_as_a_whole(
    open_page: Callable[..., Page],
    worker: PageWorker,
    flow: str,
    violations: Callable[..., list[tuple[str, str]]],
    watched: Watched,
) -> None:
    wait_until("it is measured", lambda: worker.client.get(flow)["verified"] and worker.client.get(flow)["failover"])
    page = open_page(color_scheme="light")
    page.get_by_role("link", name="Mirror flows").click()
    row = page.locator("tr", has_text="A->B")
    told = row.inner_text()
    # Each of its three connectors measures the same here.
    assert all(
        text in told for text in ("4,321", "12 ms", "7 records again", "1 partition unknown", "1 partition differs")
    )
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page) == [], "in dark colours"
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    row.get_by_role("button", name="Pause A->B").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_text("Done.").wait_for()
    wait_until("it is paused", lambda: worker.client.get(flow)["state"] == "PAUSED")
    page.get_by_role("button", name="Close").click()
    row.get_by_text("Paused").first.wait_for()
    assert (watched.said, watched.foreign) == ([], [])


def test_lost_records_and_waiting_stand_above_what_runs(
    open_page: Callable[..., Page], made: Callable[..., str]
) -> None:
    made("losing", **WITH_QUEUE, **{"test.skips": "134"})
    made("waiting", **{"test.waits": "Topic ordres does not exist; the sink waits until it does."})
    page = open_page()
    page.locator('tr[data-key="losing"] .state-losing').wait_for()
    page.locator('tr[data-key="waiting"] .state-waiting').wait_for()
    names = shown(page)
    assert names.index("losing") < names.index("waiting") < names.index("lines")
    row = page.locator('tr[data-key="losing"]').inner_text()
    assert "Losing records" in row
    assert "134 dead letters, the last " in row
    assert "the data is not valid <b>JSON</b>" in row
    assert "Task 0: Topic ordres does not exist" in page.locator('tr[data-key="waiting"]').inner_text()
    page.get_by_role("link", name="Losing records").click()
    page.wait_for_url("**show=losing**")
    assert shown(page) == ["losing"]
    page.get_by_role("link", name="losing", exact=True).click()
    page.get_by_role("link", name="Dead letters (134)").wait_for()
    why = page.get_by_role("heading", name="Why the last record was skipped").locator("..")
    assert why.locator(".said").inner_text() == "the data is not valid <b>JSON</b>"


def test_a_restart_or_resume_that_changes_nothing_is_not_offered(
    open_page: Callable[..., Page], made: Callable[..., str]
) -> None:
    made("healthy")
    page = open_page("connectors/healthy")
    page.get_by_role("button", name="Restart failed").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("nothing has failed: nothing is restarted").wait_for()
    assert dialog.get_by_role("button", name="Restart").is_disabled()
    page = open_page()
    page.get_by_label("Select <script>").check()
    page.get_by_role("button", name="Resume").click()
    dialog.get_by_text("of 1 failed, and resuming does not restart").wait_for()
    assert dialog.get_by_role("button", name="Resume").is_disabled()


WHOLE = f"{'The table orders cannot be written to, and this is said at length. ' * 6}Grant the right INSERT."


@pytest.mark.parametrize(
    ("name", "config", "title", "said", "listed"),
    [
        ("why-failed", {"test.fails": WHOLE, "tasks.max": "2"}, "Why tasks 0 and 1 failed", WHOLE, WHOLE),
        ("why-hangs", {"test.hangs": "sink.py:41"}, "Where task 0 hangs", "It is at sink.py:41.", "at sink.py:41"),
        ("why-waits", {"test.waits": WHOLE}, "What task 0 waits for", WHOLE, WHOLE),
    ],
)
def test_the_reason_is_whole_and_on_top_of_a_phone(
    open_page: Callable[..., Page],
    made: Callable[..., str],
    violations: Callable[..., list[tuple[str, str]]],
    name: str,
    config: dict[str, str],
    title: str,
    said: str,
    listed: str,
) -> None:
    made(name, **config)
    page = open_page(f"connectors/{name}", viewport={"width": 390, "height": 844})
    why = page.locator(".why")
    why.get_by_role("heading", name=title).wait_for()
    assert said in why.locator(".said").inner_text()
    below = page.locator(".actions").first.bounding_box()
    box = why.bounding_box()
    assert box is not None
    assert below is not None
    assert box["y"] + box["height"] <= below["y"], "before anything else"
    assert box["y"] < 300, "without scrolling"
    assert violations(page) == []
    page.goto(page.url.partition("/connectors")[0])
    reason = page.locator(f'tr[data-key="{name}"] .reason')
    shown = reason.bounding_box()
    assert shown is not None
    assert shown["height"] < 4 * 18, "three lines in the list"
    assert listed in str(reason.get_attribute("title")), "the rest is under the pointer"


def test_dead_letters_are_counted_by_error_searched_and_paged(
    open_page: Callable[..., Page], made: Callable[..., str], violations: Callable[..., list[tuple[str, str]]]
) -> None:
    made("many-letters", **WITH_QUEUE, **{"test.letters": "1500"})
    page = open_page("connectors/many-letters/dlq")
    assert page.locator("dl.facts dd").all_inner_texts()[:3] == ["orders-dlq", "1,500", "1,499"]
    rows, groups = page.locator("tbody tr"), page.get_by_role("navigation", name="Filter by error")
    assert (rows.count(), rows.first.locator(".mark").inner_text()) == (100, "replayed")
    assert rows.nth(9).locator(".excerpt").inner_text() == '{"order": 9}'
    assert [text.split(None, 1) for text in groups.get_by_role("link").all_inner_texts()] == [
        ["1,000", "read"],
        ["900", "the value is not JSON"],
        ["100", "field 'id9' is missing"],
    ]
    page.get_by_role("link", name="Next page").click()
    page.wait_for_url("**after=0%3A99")
    assert rows.first.get_attribute("data-offset") == "100"
    page.get_by_role("link", name="First page").click()
    groups.get_by_role("link", name="is missing").click()
    page.wait_for_url("**error=*")
    assert rows.evaluate_all("rows => rows.slice(0, 2).map((row) => row.dataset.offset)") == ["9", "19"]
    page.get_by_label("Search").fill("1499")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**q=1499")
    assert rows.evaluate_all("rows => rows.map((row) => row.dataset.offset)") == ["1499"], "also beyond the first 1,000"
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    box = rows.first.locator(".excerpt").bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    page.get_by_role("link", name="0:1499").click()
    page.get_by_role("link", name="Dead letters from here on").click()
    page.wait_for_url("**after=0%3A1498")
    assert rows.first.get_attribute("data-offset") == "1499"


def test_a_timeline_tells_what_has_happened_and_a_dialog_what_became_of_an_action(
    open_page: Callable[..., Page], made: Callable[..., str], violations: Callable[..., list[tuple[str, str]]]
) -> None:
    made("followed", **{"test.skips": "3"})
    page = open_page("connectors/followed")
    events = page.locator(".timeline li")
    events.filter(has_text="lost records").get_by_text("the data is not valid <b>JSON</b>").wait_for()
    events.filter(has_text="Created").wait_for()
    assert page.locator(".timeline time").last.inner_text().split()[-1] in ("now", "ago")
    page.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Pause").click()
    dialog.get_by_text("The connector is paused; tasks: 1 paused.").wait_for()
    dialog.get_by_role("button", name="Close").click()
    events.filter(has_text="Task 0 paused").wait_for()
    page.get_by_role("button", name="Restart connector and tasks").click()
    dialog.get_by_role("button", name="Restart").click()
    dialog.get_by_text("The connector is paused").wait_for()
    dialog.get_by_role("button", name="Close").click()
    assert violations(page) == []


def test_a_graph_says_its_value_under_the_pointer(open_page: Callable[..., Page]) -> None:
    page = open_page("connectors/orders-sink")
    rate = page.locator('.graph[data-unit="records/s"]')
    rate.locator(".axis").get_by_text("5,000").wait_for()
    chart = rate.locator("svg")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    rate.locator(".at").get_by_text("2,469 records/s at").wait_for()
    page.mouse.move(0, 0)
    assert rate.locator(".at").inner_text() == ""
    chart.focus()
    chart.press("ArrowLeft")
    rate.locator(".at").get_by_text("records/s at").wait_for()
    page.get_by_role("link", name="24 hours").click()
    page.wait_for_url("**last=86400")
    page.get_by_role("heading", name="The last 24 hours").wait_for()


def test_the_topology_leads_from_sources_over_topics_to_sinks(
    open_page: Callable[..., Page],
    worker: PageWorker,
    made: Callable[..., str],
    violations: Callable[..., list[tuple[str, str]]],
) -> None:
    made("drawn-sink", topics="orders,drawn-topic")
    page = open_page("topology")
    page.locator("svg.topology text", has_text="drawn-topic").wait_for()
    page.get_by_label("Search").fill("drawn")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**q=drawn")
    assert page.locator("svg.topology > path.line").count() == 3, "with the other sinks of the same topics"
    page.get_by_text("As a table").click()
    assert page.locator("tbody tr").filter(has_text="drawn-topic").inner_text().split() == [
        "drawn-sink",
        "reads",
        "drawn-topic",
    ]
    assert violations(page) == []
    page.locator("svg.topology text", has_text="drawn-sink").click()
    page.wait_for_url("**/ui/connectors/drawn-sink")
