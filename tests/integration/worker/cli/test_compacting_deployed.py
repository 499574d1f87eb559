"""``sluice compact`` of a deployed connector."""

from __future__ import annotations

from click.testing import CliRunner

from equipment.fakes.http_api import Answer, serving_api
from worker.cli.main import main


def test_a_deployed_connector_has_to_be_stopped_first() -> None:
    with serving_api() as api:
        api.route("/connectors/lake/status", Answer(body={"connector": {"state": "RUNNING"}, "tasks": []}))
        done = CliRunner().invoke(main, ["compact", "lake", "--url", api.url])
        assert done.exit_code == 1
        assert "Connector lake is RUNNING: stop it first (`sluice connectors stop lake`)" in done.output
        api.route("/connectors/lake/status", Answer(body={"connector": {"state": "STOPPED"}, "tasks": []}))
        api.route("/connectors/lake/config", Answer(body={"connector.class": "FileStreamSink", "topics": "t"}))
        done = CliRunner().invoke(main, ["compact", "lake", "--url", api.url])
        assert (done.exit_code, done.stdout) == (1, "")
        assert "nothing to compact" in done.output
