"""``sluice token``: made once, listed without their secret, revoked."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from click.testing import CliRunner

from worker.cli.main import main
from worker.security.api_tokens import ApiTokens
from worker.security.principals import Principal


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["token", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_token_is_made_listed_and_revoked(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    at = ("--file", str(file))
    token = run("create", "deployer", *at, "--group", "ci", "--group", "ops", "--expires", "90d").strip()
    assert ApiTokens(file).principal(token) == Principal("deployer", "token", ("ci", "ops"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (listed,) = json.loads(run("list", *at, "-o", "json"))
    assert (listed["name"], listed["groups"], listed["expires"] - listed["created"]) == (
        "deployer",
        ["ci", "ops"],
        7776000,
    )
    assert token.split("_", 2)[2] not in run("list", *at) + file.read_text()
    run("revoke", listed["id"], *at)
    assert ApiTokens(file).principal(token) is None
    assert json.loads(run("list", *at, "-o", "json")) == []


def test_mistakes_are_told(tmp_path: Path) -> None:
    at = ("--file", str(tmp_path / "tokens.json"))
    missing = CliRunner().invoke(main, ["token", "revoke", "none", *at])
    assert (missing.exit_code, "There is no token with the id none" in missing.output) == (1, True)
    late = CliRunner().invoke(main, ["token", "create", "a", *at, "--expires", "soon"])
    assert (late.exit_code, "such as 90d" in late.output) == (2, True)
    (tmp_path / "tokens.json").write_text("{}")
    broken = CliRunner().invoke(main, ["token", "list", *at])
    assert (broken.exit_code, "is not a file that sluice token has written" in broken.output) == (1, True)
