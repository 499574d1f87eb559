"""Folders of an SMB server: whose rights count, what is refused, what passes, and what the sink writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.testing import SinkTaskTestContext, SourceTaskTestContext, sink_records
from connectors.directory import DirectorySinkConfig, DirectorySinkTask
from connectors.directory.config import DirectoryTaskConfig
from connectors.directory.source import DirectorySourceTask
from equipment.servers.file_servers import Samba, running_samba

pytestmark = pytest.mark.integration
PARTITION = TopicPartition("test", 0)


@pytest.fixture
def samba(tmp_path: Path) -> Iterator[Samba]:
    try:
        with running_samba(tmp_path) as samba:
            (samba.server.folder / "in").mkdir()
            (samba.server.folder / "in" / "a.txt").write_text("1\n2\n")
            yield samba
    except ConnectError as error:
        pytest.skip(f"no Samba here: {error}")


class Source:
    """A task that reads the folder, and its context."""

    def __init__(self, samba: Samba, **props: str) -> None:
        own = {"path": f"{samba.server.url}/in", "topic": "rows", "settle.ms": "0"}
        self.task = DirectorySourceTask(
            DirectoryTaskConfig.parse({**own, **samba.server.props, **props}), SourceTaskTestContext()
        )
        self.task.start()

    def read(self) -> list[object]:
        """Return the values of all that is to be read now."""
        values: list[object] = []
        while (batch := self.task.poll()) is not None:
            values += [record.value for record in batch]
        return values

    def close(self) -> None:
        self.task.stop()


def test_each_signs_in_by_itself_also_where_another_has_signed_in(samba: Samba) -> None:
    with closing(Source(samba)) as right:
        assert right.read() == ["1", "2"]
        with (
            closing(Source(samba, **{"file.system.password": "another"})) as wrong,
            pytest.raises(ConnectError, match=r"refuses the user .*file\.system\.password") as refused,
        ):
            wrong.read()
        assert not isinstance(refused.value, RetriableError)
        (samba.server.folder / "in" / "b.txt").write_text("3\n")
        assert right.read() == ["3"]


def test_a_share_that_is_not_there_is_waited_for(samba: Samba) -> None:
    with (
        closing(Source(samba, path=samba.server.url.replace("/files", "/none/in"))) as source,
        pytest.raises(RetriableError, match="does not exist"),
    ):
        source.read()


def test_a_server_that_comes_back_is_read_on(samba: Samba) -> None:
    with closing(Source(samba)) as source:
        assert source.read() == ["1", "2"]
        samba.kill()
        with pytest.raises(RetriableError):
            source.read()
        (samba.server.folder / "in" / "b.txt").write_text("3\n")
        samba.start()
        assert source.read() == ["3"]


def test_the_sink_goes_on_after_the_files_of_a_run_that_was_killed(samba: Samba) -> None:
    props = {"path": f"{samba.server.url}/out", "rotate.interval.ms": "0", **samba.server.props}
    for values in (["a"], ["a", "b"]):
        task = DirectorySinkTask(DirectorySinkConfig.parse(props), SinkTaskTestContext([PARTITION]))
        task.start()
        task.open([PARTITION])
        for batch in SinkBatch.from_records(sink_records(values)):
            task.put(batch)
        assert task.pre_commit({PARTITION: len(values)}) == {PARTITION: len(values)}
        # A kill here: the first run's offset is not committed.
        task.stop()
    found = {path.name: path.read_bytes() for path in (samba.server.folder / "out").rglob("*") if path.is_file()}
    assert found == {
        "test+0+0000000000+0000000000.jsonl": b'"a"\n',
        "test+0+0000000001+0000000001.jsonl": b'"b"\n',
    }
