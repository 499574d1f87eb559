"""A change can be made only to the configuration that its author has read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from equipment.fakes.guarded_api import PLUGIN, small_herder
from rest.app import create_app

CONFIG = {"connector.class": PLUGIN, "topic": "orders"}
PATH = "/connectors/c/config"


@pytest.fixture
def client() -> Iterator[FlaskClient]:
    with small_herder() as herder:
        client = create_app(herder, "cluster").test_client()
        client.post("/connectors", json={"name": "c", "config": CONFIG, "initial_state": "STOPPED"})
        yield client


def test_the_tag_is_another_after_each_change_and_the_same_without(client: FlaskClient) -> None:
    first = client.get(PATH).headers["ETag"]
    client.put("/connectors/c/pause")
    assert client.get(PATH).headers["ETag"] == first, "its state is not its configuration"
    client.patch(PATH, json={"topic": "orders"})
    assert client.get(PATH).headers["ETag"] != first


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_change_of_what_was_changed_meanwhile_is_refused(client: FlaskClient, method: str) -> None:
    read = client.get(PATH).headers["ETag"]
    body = {**CONFIG, "topic": "mine"}
    assert client.open(PATH, method=method, json=body, headers={"If-Match": read}).status_code == 200
    again = client.open(PATH, method=method, json={**CONFIG, "topic": "again"}, headers={"If-Match": read})
    assert again.status_code == 412
    assert again.get_json()["message"] == (
        "The configuration of connector c has been changed since it was read. Read it again, and make your change to "
        "what is there now."
    )
    assert client.get(PATH).get_json()["topic"] == "mine"
    newer = client.get(PATH).headers["ETag"]
    assert client.open(PATH, method=method, json=body, headers={"If-Match": newer}).status_code == 200


def test_any_configuration_matches_a_star_and_none_is_there_to_match(client: FlaskClient) -> None:
    assert client.patch(PATH, json={"topic": "x"}, headers={"If-Match": "*"}).status_code == 200
    missing = client.put("/connectors/new/config", json=CONFIG, headers={"If-Match": '"1"'})
    assert (missing.status_code, missing.get_json()["message"]) == (404, "Connector new not found")


@pytest.mark.parametrize("tag", ["old", '"-1"', '"1", "2"', f'"{"1" * 30}"'])
def test_other_tags_are_mistakes(client: FlaskClient, tag: str) -> None:
    answer = client.patch(PATH, json={"topic": "x"}, headers={"If-Match": tag})
    assert answer.status_code == 400
    assert "use the ETag of GET /connectors/NAME/config" in answer.get_json()["message"]


def test_a_change_is_validated_as_what_it_makes(client: FlaskClient) -> None:
    path = f"/connector-plugins/{PLUGIN}/config/validate"
    assert client.put(path, json={"topic": None}, query_string={"connector": "c"}).status_code == 200
    unknown = client.put(path, json={"topic": "x"}, query_string={"connector": "none"})
    assert (unknown.status_code, unknown.get_json()["message"]) == (404, "Connector none not found")
