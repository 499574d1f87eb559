"""Making and changing connectors by the form."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from equipment.workers.page_worker import SECRET, PageWorker

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page


@pytest.fixture
def edited(worker: PageWorker) -> Iterator[str]:
    """A connector to change, which has a secret."""
    name = "to-edit"
    config = {
        "connector.class": "JdbcSource",
        "connection.url": "sqlite:////tmp/none.db",
        "connection.password": SECRET,
        "mode": "bulk",
        "topic.prefix": "x-",
    }
    worker.client.post("/connectors", {"name": name, "config": config, "initial_state": "STOPPED"})
    yield name
    worker.client.delete(worker.client.connector_path(name))


def config_of(worker: PageWorker, name: str) -> dict[str, str]:
    return dict(worker.client.get(worker.client.connector_path(name, "config")))


def test_a_mistake_is_told_at_its_key_while_typing(open_page: Callable[..., Page]) -> None:
    page = open_page("new/FileStreamSource")
    page.get_by_text("still needed: ").wait_for()
    tasks = page.locator('[data-field="tasks.max"] input')
    tasks.fill("many")
    error = page.locator('[data-field="tasks.max"] .error')
    error.wait_for()
    assert "many" in error.inner_text()
    assert tasks.get_attribute("aria-invalid") == "true"
    assert "key-tasks.max-error" in str(tasks.get_attribute("aria-describedby"))
    tasks.fill("2")
    error.wait_for(state="hidden")


def test_a_connector_is_made(open_page: Callable[..., Page], worker: PageWorker) -> None:
    page = open_page("new/FileStreamSource")
    page.locator(".field").first.wait_for()
    page.get_by_label("Connector name").fill("made/here")
    page.locator('[data-field="file"] input').fill("/tmp/in.txt")
    page.locator('[data-field="topic"] input').fill("lines")
    page.get_by_label("Initial state").select_option("STOPPED")
    page.get_by_text("No errors").wait_for()
    page.get_by_role("button", name="Create").click()
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    page.wait_for_url("**/ui/connectors/made%2Fhere")
    try:
        expected = {"connector.class": "FileStreamSource", "file": "/tmp/in.txt", "name": "made/here", "topic": "lines"}
        assert config_of(worker, "made/here") == expected
    finally:
        worker.client.delete(worker.client.connector_path("made/here"))


def test_a_new_connector_is_tried_before_it_is_made(open_page: Callable[..., Page]) -> None:
    page = open_page("new/FileStreamSink")
    page.locator(".field").first.wait_for()
    tried = page.locator("#tried")
    page.get_by_role("button", name="Preview").click()
    tried.get_by_text("The configuration has no name").wait_for()
    page.get_by_label("Connector name").fill("tried")
    page.locator('[data-field="topics"] input').fill("orders")
    page.get_by_role("button", name="Preview").click()
    tried.get_by_role("heading", name="Record 1").wait_for()
    assert "<b>no table</b>" in tried.inner_text(), "as text"
    assert tried.locator("p.hint").first.inner_text() == "1 record: that is all there is"
    assert "\nnull\n" not in tried.inner_text().split("Table")[0]


def test_only_what_is_changed_is_sent_and_secrets_stay(
    open_page: Callable[..., Page], worker: PageWorker, edited: str
) -> None:
    page = open_page(f"connectors/{edited}/edit")
    page.get_by_text("No errors").wait_for()
    page.locator('[data-field="topic.prefix"] input').fill("y-")
    page.get_by_role("button", name="Show changes").click()
    dialog = page.get_by_role("dialog")
    assert dialog.locator("tbody td").all_inner_texts() == ["topic.prefix", "x-", "y-"]
    assert "stays stopped; the new configuration counts when it is resumed" in dialog.inner_text()
    assert SECRET not in page.content()
    dialog.get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/ui/connectors/{edited}")
    after = config_of(worker, edited)
    assert (after["topic.prefix"], after["connection.password"]) == ("y-", SECRET)


def test_a_secret_can_be_changed_and_is_not_shown(
    open_page: Callable[..., Page], worker: PageWorker, edited: str
) -> None:
    page = open_page(f"connectors/{edited}/edit")
    page.get_by_text("No errors").wait_for()
    page.locator('[data-field="connection.password"] input').fill("brand-new-secret")
    page.get_by_text("No errors").wait_for()
    assert "brand-new-secret" not in page.get_by_label("The configuration as text").input_value()
    page.get_by_role("button", name="Show changes").click()
    cells = page.get_by_role("dialog").locator("tbody td").all_inner_texts()
    assert cells == ["connection.password", "[hidden]", "[hidden] (new value)"]
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/ui/connectors/{edited}")
    assert config_of(worker, edited)["connection.password"] == "brand-new-secret"


def test_json_and_form_are_one(open_page: Callable[..., Page]) -> None:
    page = open_page("new/FileStreamSource")
    page.locator(".field").first.wait_for()
    text = page.get_by_label("The configuration as text")
    text.fill('{"connector.class": "FileStreamSource", "name": "as-text", "file": "/tmp/f", "topic": 5}')
    page.get_by_text("No errors").wait_for()
    assert page.get_by_label("Connector name").input_value() == "as-text"
    text.fill('{"connector.class": ')
    page.get_by_text("Not applied").wait_for()
    page.locator("#form-of").select_option("properties")
    assert "topic=5" in text.input_value().splitlines()


def test_two_people_are_told_of_each_other(open_page: Callable[..., Page], worker: PageWorker, edited: str) -> None:
    page = open_page(f"connectors/{edited}/edit")
    page.get_by_text("No errors").wait_for()
    page.locator('[data-field="topic.prefix"] input').fill("mine-")
    worker.client.patch(worker.client.connector_path(edited, "config"), {"topic.prefix": "theirs-", "mode": "bulk"})
    page.get_by_role("alert").get_by_text("Somebody else has changed").wait_for()
    page.get_by_role("button", name="Show changes").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_role("dialog").get_by_text("has been changed since it was read").wait_for()
    assert config_of(worker, edited)["topic.prefix"] == "theirs-", "nothing is overwritten unseen"
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Show their changes").click()
    page.get_by_text("you changed it, too: your value is kept").wait_for()
    page.get_by_text("No errors").wait_for()
    page.get_by_role("button", name="Show changes").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/ui/connectors/{edited}")
    assert config_of(worker, edited)["topic.prefix"] == "mine-"


def test_an_earlier_version_is_restored_after_a_look_at_what_that_changes(
    open_page: Callable[..., Page], worker: PageWorker, edited: str
) -> None:
    path = worker.client.connector_path("to-restore", "config")
    worker.client.put(path, config_of(worker, edited) | {"name": "to-restore"})
    before = config_of(worker, "to-restore")
    worker.client.patch(path, {"topic.prefix": "y-", "connection.password": "another"})
    page = open_page("connectors/to-restore/versions", viewport={"width": 320, "height": 640})
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, "nothing makes people scroll sideways"
    page.get_by_role("button", name="Restore version 1").click()
    dialog = page.get_by_role("dialog")
    rows = dialog.locator("tbody tr").all_inner_texts()
    assert rows == ["connection.password\t[hidden]\t[hidden] (another value)", "topic.prefix\ty-\tx-"]
    dialog.get_by_role("button", name="Restore").click()
    page.get_by_text("3 versions, the newest first").wait_for()
    assert config_of(worker, "to-restore") == before
    assert SECRET not in page.content()
    worker.client.delete(worker.client.connector_path("to-restore"))


def test_text_that_is_no_configuration_for_a_moment_is_kept(open_page: Callable[..., Page], edited: str) -> None:
    page = open_page(f"connectors/{edited}/edit")
    page.get_by_text("No errors").wait_for()
    text = page.get_by_label("The configuration as text")
    typed = text.input_value().replace('"bulk"', '"bulk')
    text.fill(typed)
    page.locator("#importance").focus()
    save = page.get_by_role("button", name="Show changes")
    assert (text.input_value(), save.is_disabled()) == (typed, True)
    assert text.get_attribute("aria-invalid") == "true"
    page.get_by_text("Not applied: ").wait_for()
    page.locator('[data-field="topic.prefix"] input').fill("y-")
    page.get_by_text("No errors").wait_for()
    assert (text.input_value(), save.is_disabled()) == (typed, True), "whatever else changes"
    page.locator("#form-of").select_option("properties")
    assert "mode=bulk" in text.input_value().splitlines()
    page.locator("#form-of").select_option("json")
    assert text.input_value() == typed
    text.fill(typed.replace('"bulk', '"bulk"'))
    page.locator("#save:not([disabled])").wait_for()
    text.fill("{")
    page.get_by_role("button", name="Discard this text").click()
    page.locator("#save:not([disabled])").wait_for()
    assert '"mode": "bulk"' in text.input_value()


def test_a_reader_is_asked_before_changes_are_lost(open_page: Callable[..., Page], edited: str) -> None:
    page = open_page(f"connectors/{edited}/edit")
    asked: list[str] = []

    def note(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", note)
    page.get_by_text("No errors").wait_for()
    page.get_by_role("link", name="Preview").click()
    page.wait_for_url("**/preview")
    assert asked == [], "nothing was changed"
    page.go_back()
    page.get_by_text("No errors").wait_for()
    page.locator('[data-field="topic.prefix"] input').fill("y-")
    page.get_by_role("link", name="Preview").click()
    page.wait_for_url("**/preview")
    assert asked == ["beforeunload"]
    page.go_back()
    page.get_by_text("No errors").wait_for()
    page.locator('[data-field="topic.prefix"] input').fill("y-")
    page.get_by_role("button", name="Show changes").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/ui/connectors/{edited}")
    assert asked == ["beforeunload"], "what is saved is not lost"
    page.remove_listener("dialog", note)


def test_an_unknown_key_is_a_warning_at_its_field(open_page: Callable[..., Page], edited: str) -> None:
    page = open_page(f"connectors/{edited}/edit")
    page.get_by_text("No errors").wait_for()
    text = page.get_by_label("The configuration as text")
    text.fill(text.input_value().replace('"mode"', '"poll.intervall.ms": "5", "mode"'))
    page.get_by_text("No errors, 1 warning").wait_for()
    warning = page.locator('[data-field="poll.intervall.ms"] .warning')
    assert warning.inner_text() == "The key poll.intervall.ms is unknown. Did you mean poll.interval.ms?"


def test_another_name_is_refused_with_what_to_do(open_page: Callable[..., Page], edited: str) -> None:
    page = open_page(f"connectors/{edited}/edit")
    page.get_by_text("No errors").wait_for()
    text = page.get_by_label("The configuration as text")
    text.fill(text.input_value().replace(f'"{edited}"', '"other"'))
    page.get_by_role("button", name="Show changes").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_text("doesn't match connector name in the URL").wait_for()
    assert "Leave the key name as it is: a connector keeps its name." in dialog.inner_text()


def test_text_areas_have_a_monospaced_font(open_page: Callable[..., Page], edited: str) -> None:
    page = open_page(f"connectors/{edited}/edit")
    fonts = page.locator("#text").evaluate("area => getComputedStyle(area).fontFamily")
    assert "monospace" in fonts


def test_nothing_is_red_before_it_is_typed_and_a_mistake_is_told_once(open_page: Callable[..., Page]) -> None:
    page = open_page("new/FileStreamSink")
    said = page.locator("#mistakes")
    page.get_by_text("still needed: name, topics, topics.regex").wait_for()
    errors, red = page.locator(".field .error:visible"), page.locator('[aria-invalid="true"]')
    assert (errors.count(), red.count()) == (0, 0)
    topics = page.locator('[data-field="topics"] input')
    topics.focus()
    topics.blur()
    errors.first.wait_for()
    assert said.inner_text() == "1 error, still needed: name"
    page.locator('[data-field="topics.regex"] input').focus()
    page.locator('[data-field="topics.regex"] input').blur()
    page.locator('[data-field="topics.regex"] [aria-invalid="true"]').wait_for()
    assert (errors.count(), red.count()) == (1, 2), "one sentence for both keys"
    topics.fill("orders")
    page.get_by_text("still needed: name", exact=True).wait_for()
    assert (errors.count(), red.count()) == (0, 0)


def test_the_options_of_the_class_come_first_and_all_are_searched(open_page: Callable[..., Page]) -> None:
    page = open_page("new/JdbcSource")
    page.locator(".field").first.wait_for()
    assert page.get_by_text("Reads tables of SQL databases, or a query").is_visible()
    assert page.locator("fieldset legend:visible").all_inner_texts()[:3] == [
        "Name and class",
        "Options of this class",
        "Common",
    ]
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("dead letter topic")
    names = page.locator(".field:visible").evaluate_all("fields => fields.map((field) => field.dataset.field)")
    assert "errors.deadletterqueue.topic.name" in names
    assert "connection.url" not in names
    page.get_by_label("Search").fill("")
    page.locator('[data-field="connection.url"]:visible').wait_for()


def test_a_connection_is_tested(open_page: Callable[..., Page], edited: str, tmp_path: Path) -> None:
    page = open_page("new/JdbcSource")
    page.locator(".field").first.wait_for()
    outcome = page.locator("#connection")
    page.get_by_role("button", name="Test connection").click()
    outcome.get_by_text("The configuration has mistakes.").wait_for()
    page.locator('[data-field="connection.url"] .error').wait_for()
    database = tmp_path / "orders.db"
    with sqlite3.connect(database) as made:
        made.execute("create table orders (id integer primary key)")
    made.close()
    name, url = page.get_by_label("Connector name"), page.locator('[data-field="connection.url"] input')
    name.fill("tested")
    url.fill(f"jdbc:sqlite:{database}")
    page.locator('[data-field="mode"] input').fill("bulk")
    page.locator('[data-field="topic.prefix"] input').fill("t-")
    page.get_by_text("No errors").wait_for()
    page.get_by_role("button", name="Test connection").click()
    outcome.get_by_text("The system answers, and nothing was found that would fail.").wait_for()
    url.fill(f"jdbc:sqlite:{tmp_path}/none/orders.db")
    page.get_by_role("button", name="Test connection").click()
    outcome.get_by_text("none/orders.db does not exist. Correct connection.url").wait_for()
    url.fill("")
    name.fill("")  # nothing to keep
    page = open_page(f"connectors/{edited}/edit")
    page.get_by_text("No errors").wait_for()
    page.get_by_role("button", name="Test connection").click()
    page.locator("#connection p").wait_for()
    assert SECRET not in page.content()


def test_tables_are_chosen_among_those_of_the_database(
    open_page: Callable[..., Page], tmp_path: Path, violations: Callable[..., list[tuple[str, str]]]
) -> None:
    database = tmp_path / "shop.db"
    with closing(sqlite3.connect(database)) as made:
        for table in ("orders", "customers", "payments"):
            made.execute(f"create table {table} (id integer primary key)")
    page = open_page("new/JdbcSource")
    page.locator(".field").first.wait_for()
    dialog, tables = page.get_by_role("dialog"), page.locator('[data-field="table.whitelist"] input')
    page.locator("#search").fill("table.whitelist")
    page.get_by_role("button", name="Choose tables for table.whitelist").click()
    dialog.get_by_text("Enter a valid connection.url first").wait_for()
    dialog.get_by_role("button", name="Cancel").click()
    page.locator("#search").fill("")
    page.locator('[data-field="connection.url"] input').fill(f"jdbc:sqlite:{database}")
    page.locator("#search").fill("table.whitelist")
    tables.fill("gone")
    page.get_by_role("button", name="Choose tables for table.whitelist").click()
    dialog.get_by_text("1 of 4 chosen.").wait_for()
    assert violations(page) == []
    dialog.get_by_label("Search").fill("pay")
    dialog.get_by_text("1 found").wait_for()
    assert dialog.locator("li").all_inner_texts() == ["payments"]
    dialog.get_by_label("payments").check()
    dialog.get_by_label("Search").fill("")
    dialog.get_by_label("orders").check()
    dialog.get_by_label("gone (not a name that the system has)").uncheck()
    dialog.get_by_role("button", name="Use these").click()
    assert tables.input_value() == "orders,payments"
    assert '"table.whitelist": "orders,payments"' in page.get_by_label("The configuration as text").input_value()
    page.locator("#search").fill("incrementing.column.name")
    page.get_by_role("button", name="Choose columns for incrementing.column.name").click()
    dialog.get_by_label("id").check()
    dialog.get_by_role("button", name="Use this").click()
    assert page.locator('[data-field="incrementing.column.name"] input').input_value() == "id"


def test_a_system_that_is_slow_to_answer_does_not_block_the_form(open_page: Callable[..., Page]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        page = open_page("new/JdbcSource")
        page.locator(".field").first.wait_for()
        page.locator('[data-field="connection.url"] input').fill(
            f"jdbc:postgresql://127.0.0.1:{silent.getsockname()[1]}/shop"
        )
        page.locator("#search").fill("table.whitelist")
        page.get_by_role("button", name="Choose tables for table.whitelist").click()
        page.get_by_role("dialog").get_by_text("Asking the system of the connector").wait_for()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        page.locator('[data-field="table.whitelist"] input').fill("typed")
        page.locator("#search").fill("batch.max.rows")
        page.locator('[data-field="batch.max.rows"] input').fill("many")
        page.locator('[data-field="batch.max.rows"] .error').wait_for()
        assert '"table.whitelist": "typed"' in page.get_by_label("The configuration as text").input_value()


def test_a_class_is_found_by_its_java_name(open_page: Callable[..., Page]) -> None:
    page = open_page("new")
    page.get_by_label("Search").fill("io.debezium postgres")
    page.get_by_text(" of ").first.wait_for()
    assert page.locator(".choice:visible h3").all_inner_texts() == ["PostgresConnector"]
    assert page.get_by_text("Captures the changes of a PostgreSQL database").is_visible()


LACKING = """
from connect.config import HIGH, Config, ConfigRuleError, option
from connect.internals.extras import missing_extra
from connect.sink import SinkConnector, SinkTask


class LackingConfig(Config):
    url: str = option(doc="Where it is.", importance=HIGH)

    def check(self):
        if missing := missing_extra("lacking", "no_such_module_of_a_test"):
            yield ConfigRuleError(missing, "url")


class LackingTask(SinkTask[LackingConfig]):
    def put(self, records):
        pass


class LackingSinkConnector(SinkConnector[LackingConfig]):
    task_class = LackingTask
"""


def test_what_is_not_installed_is_told_at_once(open_page: Callable[..., Page], tmp_path: Path) -> None:
    (tmp_path / "lacking_extra.py").write_text(LACKING)
    (tmp_path / "plugins.toml").write_text(
        '[[connector]]\nclass = "lacking_extra.LackingSinkConnector"\ntype = "sink"\n'
    )
    worker = PageWorker(plugins=[tmp_path])
    try:
        page = open_page("new/LackingSinkConnector", at=worker.url)
        absent = page.locator("#absent")
        absent.get_by_text("pip install 'sluice-connect[lacking]'").wait_for()
        assert absent.inner_text().startswith("It needs no_such_module_of_a_test, which this worker does not have")
        assert page.locator(".field .error:visible").count() == 0
    finally:
        worker.close()
