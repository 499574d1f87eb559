"""A container of Azure is a store of objects: with Azurite."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from connect.errors import ConnectError, RetriableError
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.location import parse_location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.store import ObjectStore, open_store
from equipment.servers.azurite import AzureServer
from equipment.stores.objects import ObjectContract, unique_prefix


def opened(server: AzureServer, url: str) -> ObjectStore:
    return open_store(parse_location(url), ObjectOptions.parse(server.props))


def impatient(server: AzureServer, endpoint: str, tries: int) -> AzureBlobs:
    """A store that gives up after so many tries."""
    options, place = ObjectOptions.parse({**server.props, "azblob.endpoint": endpoint}), parse_location(server.url("x"))
    return AzureBlobs(replace(options.azure_account_of(place), tries=tries), place.container, place.path)


@pytest.mark.thorough
class TestAzureBlobs(ObjectContract):
    @pytest.fixture
    def store(self, azure: AzureServer) -> ObjectStore:
        return opened(azure, azure.url(f"{unique_prefix()}/lake"))

    def test_thousands_of_names_are_all_listed(self, store: ObjectStore) -> None:
        """In pages of a few, for the service has 5,000 in one."""
        assert isinstance(store, AzureBlobs)
        for number in range(7):
            store.create(f"many/{number}/x", b"")
        store._container = _SmallPages(store._container)
        assert store.names("many") == [str(number) for number in range(7)]
        store.remove_tree("many")
        assert store.names("many") == []

    def test_a_put_whose_answer_was_lost_succeeds(self, store: ObjectStore) -> None:
        assert isinstance(store, AzureBlobs)
        store._container = _Forgetful(store._container)
        store.create("manifest", b"mine")
        assert store.read("manifest") == b"mine"


class _SmallPages:
    """A container whose lists come in pages of two."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)

    def list_blobs(self, **request: Any) -> Any:
        return self._container.list_blobs(**request, results_per_page=2)

    def walk_blobs(self, **request: Any) -> Any:
        return self._container.walk_blobs(**request, results_per_page=2)


class _Forgetful:
    """A container to which each upload arrives twice, as when its answer is lost and the library tries again."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def get_blob_client(self, name: str) -> Any:
        blob = self._container.get_blob_client(name)
        upload = blob.upload_blob

        def twice(*args: Any, **request: Any) -> None:
            upload(*args, **request)
            upload(*args, **request)

        blob.upload_blob = twice
        return blob


# -- errors ------------------------------------------------------------------------------------------------------


def test_a_container_that_is_not_there_is_named(azure: AzureServer) -> None:
    store = opened(azure, azure.url("lake", "no-such-container"))
    for ask in (lambda: store.create("a", b""), lambda: store.names("a")):
        with pytest.raises(ConnectError, match="There is no container no-such-container of account devstoreaccount1"):
            ask()


def test_a_wrong_key_is_refused_and_not_told(azure: AzureServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key, url = "aHVzaC1odXNo", azure.url("lake")
    for keys in ({"azblob.account.key": key}, {"azblob.sas.token": f"sv=2021-06-08&ss=b&sig={key}"}):
        options, place = ObjectOptions.parse({"azblob.endpoint": azure.endpoint, **keys}), parse_location(url)
        assert key not in repr(options) + repr(options.azure_account_of(place))
        store = open_store(place, options)
        for ask in (store.names, store.read):
            with pytest.raises(ConnectError, match="refuses") as caught:
                ask("a")
            assert key not in repr(caught.value) and caught.value.__suppress_context__
    assert key not in caplog.text


@pytest.fixture
def busy(azure: AzureServer) -> Iterator[Callable[[int], str]]:
    """Starts services that are too busy for so many requests and then have an empty list; their endpoint."""
    servers: list[ThreadingHTTPServer] = []

    def start(refused: int) -> str:
        left = iter(range(refused))

        class Busy(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_busy = next(left, None) is not None
                body = b"" if is_busy else b"<EnumerationResults><Blobs/></EnumerationResults>"
                self.send_response(503 if is_busy else 200)
                self.send_header("x-ms-error-code", "ServerBusy")
                self.send_header("Content-Type", "application/xml")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_request(self, *_: object) -> None:
                """Nothing."""

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Busy))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/{azure.account}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_service_that_is_too_busy_is_asked_again(azure: AzureServer, busy: Callable[[int], str]) -> None:
    def store(refused: int, tries: int) -> AzureBlobs:
        return impatient(azure, busy(refused), tries)

    assert store(1, 2).names("a") == []
    with pytest.raises(RetriableError, match="ServerBusy"):
        store(2, 1).names("a")


def test_a_service_that_does_not_answer_is_tried_again(azure: AzureServer) -> None:
    with pytest.raises(RetriableError, match="cannot be reached"):
        impatient(azure, "http://127.0.0.1:1/devstoreaccount1", 1).read("a")
