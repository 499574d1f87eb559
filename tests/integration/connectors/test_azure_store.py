"""A container of Azure is a store, and Spark and its executors write there: with Azurite."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connectors.spark.options.store import StoreOptions
from connectors.spark.stores.azure import AzureStore
from connectors.spark.stores.azure_blobs import AzureBlobs
from connectors.spark.stores.azure_parts import AzurePlace
from connectors.spark.stores.factory import open_store
from connectors.spark.stores.store import Store
from equipment.servers.azurite import AzureServer
from equipment.stores.contract import TABLE, StoreContract, unique_prefix

TP = TopicPartition("t", 0)


def config_of(server: AzureServer, url: str, **more: str) -> StoreOptions:
    return StoreOptions.parse({"store.url": url, **server.props, **more})


@pytest.fixture
def url(azure: AzureServer) -> str:
    return azure.url(f"{unique_prefix()}/lake")


@pytest.fixture
def blobs(azure: AzureServer, url: str) -> AzureBlobs:
    """What is below the store, in plain requests."""
    config = config_of(azure, url)
    return AzureBlobs(config.azure_account, azure.container, config.location.path)


def attempt_at(store: Store, folder: str, split: int, attempt: int, name: str, data: bytes) -> Any:
    """Write a file as the Python of an executor does, and do not end the attempt."""
    place = store.part_place(folder, TABLE, {})
    assert isinstance(place, AzurePlace)
    written = place.begin(split, attempt)
    stream = written.open(name)
    for start in range(0, len(data), 1 << 20):
        stream.write(data[start : start + (1 << 20)])
    stream.close()
    return written


class TestAzureStore(StoreContract):
    @pytest.fixture
    def store(self, azure: AzureServer, url: str) -> Iterator[Store]:
        yield open_store(config_of(azure, url), _no_spark)

    def stage(self, store: Store, folder: str, name: str, data: bytes, attempt: int = 0) -> None:
        """As the Python of executors does, with a split for each name."""
        attempt_at(store, folder, int.from_bytes(name.encode()[-3:]), attempt, name, data).finish()

    def test_what_is_lost_before_it_is_published_is_told(self, store: Store) -> None:
        """Nobody can give blocks up, so this asks for some that the service has never had."""
        staging, files = self.staged(store, self.opened(store), "x")
        (move,) = self.moves(staging, files)
        assert move.upload is not None
        with pytest.raises(FileNotFoundError):
            store.publish(move.source, move.target, replace(move.upload, id="0" * 32))

    def test_thousands_of_names_are_all_listed(self, store: Store, blobs: AzureBlobs) -> None:
        """In pages of a few, for the service has 5,000 in one."""
        for number in range(7):
            store.create(f"many/{number}/x", b"")
        blobs._container = _SmallPages(blobs._container)
        assert blobs.names("many") == [str(number) for number in range(7)]
        blobs.delete_tree("many")
        assert store.names("many") == []

    def test_a_container_itself_is_a_store(self, azure: AzureServer) -> None:
        store = open_store(config_of(azure, azure.url("", azure.make_container())), _no_spark)
        self.commit(store, self.opened(store), 1)
        assert list(store.files(TABLE)) == ["t+1"]
        assert store.names("") == ["_sluice", "topics"]

    def test_what_stands_for_folders_is_no_file_and_goes_with_them(
        self, store: Store, azure: AzureServer, url: str
    ) -> None:
        prefix = StoreOptions.parse({"store.url": url}).location.path
        for folder in ("f", "f/a", "f/a/b"):
            azure.client().upload_blob(f"{prefix}/{folder}", b"", metadata={"hdi_isfolder": "true"})
        store.create("f/a/x", b"-")
        assert (list(store.files("f")), store.size("f/a"), store.names("f/a")) == (["a/x"], None, ["b", "x"])
        store.remove_tree("f")
        assert list(azure.client().list_blobs(name_starts_with=f"{prefix}/f")) == []

    def test_executors_stage_what_counts_at_its_end(self, store: Store, blobs: AzureBlobs) -> None:
        """A file of several blocks; two attempts, of which the last counts; one that is given up while it writes."""
        ledger = self.opened(store)
        staging = ledger.new_staging()
        folder = f"{staging}/t-1/t"
        large = bytes(range(256)) * 4096 * 17
        for attempt in (1, 2):
            written = attempt_at(store, folder, 0, attempt, "x", large)
            assert [file.size for file in store.staged(folder)] == [len(large)] * (attempt - 1)
            written.finish()
            written.discard()
        given_up = attempt_at(store, folder, 1, 1, "y", large)
        given_up.discard()
        (file,) = store.staged(folder)
        assert list(blobs.below("topics")) == []
        ledger.commit(staging, self.moves(staging, {"x": file}), {TP: 1}, {})
        assert store.read(f"{TABLE}/x") == large
        # A task that outlives its load changes nothing.
        attempt_at(store, folder, 0, 3, "x", b"late").finish()
        assert store.read(f"{TABLE}/x") == large
        assert [path for path, _ in blobs.below("topics")] == [f"{TABLE}/x"]

    def test_what_java_has_written_is_staged_as_blocks(self, store: Store, blobs: AzureBlobs) -> None:
        ledger = self.opened(store)
        staging = ledger.new_staging()
        folder = f"{staging}/t-1/t"
        store.writer_options(folder, TABLE, {3: "partition=9"})
        contents = {
            "part-00003-mark.c000.orc": b"nine" * 1000,
            "k=v/part-00000-mark.c000.orc": b"zero",
            "_SUCCESS": b"",
        }
        for name, data in contents.items():
            store.create(f"{folder}/{name}", data)
        files = {(file.target or "").removeprefix(f"{TABLE}/"): file for file in store.staged(folder)}
        assert set(files) == {"partition=9/part-00003-mark.c000.orc", "k=v/part-00000-mark.c000.orc"}
        assert list(store.files("topics")) == []
        ledger.commit(staging, self.moves(staging, files), {TP: 1}, {})
        assert sorted(store.read(path) for path, _ in blobs.below("topics")) == [b"nine" * 1000, b"zero"]

    def test_a_file_of_somebody_else_is_not_replaced(self, store: Store) -> None:
        staging, files = self.staged(store, self.opened(store), "x")
        (move,) = self.moves(staging, files)
        _replace(store, move.target, b"theirs")
        with pytest.raises(FileExistsError):
            store.publish(move.source, move.target, move.upload)
        assert store.read(move.target) == b"theirs"

    def test_a_put_whose_answer_was_lost_succeeds(self, blobs: AzureBlobs) -> None:
        blobs._container = _Forgetful(blobs._container)
        blobs.put_if_absent("manifest", b"mine")
        assert blobs.get("manifest") == b"mine"

    @pytest.mark.parametrize("credential", ["token", "connection string"])
    def test_tokens_and_connection_strings_open_it_too(self, azure: AzureServer, url: str, credential: str) -> None:
        keys = {"azblob.endpoint": azure.endpoint, "azblob.sas.token": f"?{azure.token()}"}
        if credential == "connection string":
            keys = {"azblob.connection.string": azure.connection_string}
        store = open_store(StoreOptions.parse({"store.url": url, **keys}), _no_spark)
        self.commit(store, self.opened(store), 1)
        assert list(store.files(TABLE)) == ["t+1"]


def _replace(store: Store, path: str, data: bytes) -> None:
    """Put a blob as somebody does who does not look whether there is one."""
    assert isinstance(store, AzureStore)
    store._blobs._blob(path).upload_blob(data, overwrite=True)


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
    store = open_store(config_of(azure, azure.url("lake", "no-such-container")), _no_spark)
    for ask in (lambda: store.create("a", b""), lambda: store.names("a")):
        with pytest.raises(ConnectError, match="There is no container no-such-container of account devstoreaccount1"):
            ask()


def test_a_wrong_key_is_refused_and_not_told(azure: AzureServer, url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = "aHVzaC1odXNo"
    for keys in ({"azblob.account.key": key}, {"azblob.sas.token": f"sv=2021-06-08&ss=b&sig={key}"}):
        config = StoreOptions.parse({"store.url": url, "azblob.endpoint": azure.endpoint, **keys})
        assert key not in repr(config) + repr(config.azure_account)
        store = open_store(config, _no_spark)
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
    def store(refused: int, tries: int) -> AzureStore:
        config = StoreOptions.parse({"store.url": azure.url("x"), **azure.props, "azblob.endpoint": busy(refused)})
        return AzureStore(replace(config.azure_account, tries=tries), config.location)

    assert store(1, 2).names("a") == []
    with pytest.raises(RetriableError, match="ServerBusy"):
        store(2, 1).names("a")


def test_a_service_that_does_not_answer_is_tried_again(azure: AzureServer) -> None:
    config = config_of(azure, azure.url("x"), **{"azblob.endpoint": "http://127.0.0.1:1/devstoreaccount1"})
    with pytest.raises(RetriableError, match="cannot be reached"):
        AzureStore(replace(config.azure_account, tries=1), config.location).read("a")


def _no_spark() -> Any:
    raise AssertionError("an object store needs no Spark")
