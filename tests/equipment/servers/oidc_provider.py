"""An OpenID provider of another make, the package ``oidc-provider`` of npm, in a process of Node."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import requests

from connect.errors import ConnectError
from connect.jvm.home import file_lock, sluice_home
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

__all__ = ["OidcProvider", "installed_provider", "running_provider"]

_FILES: Final = Path(__file__).with_name("oidc")
_INSTALL_SECONDS: Final = 120
_READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class OidcProvider:
    """A provider on loopback. It is its own issuer."""

    issuer: str

    def token(self, client: str, secret: str, audience: str) -> str:
        """The access token that a client gets for itself."""
        asked = {"grant_type": "client_credentials", "resource": f"https://resources.example/{audience}"}
        answer = requests.post(f"{self.issuer}/token", data=asked, auth=(client, secret), timeout=30)
        assert answer.ok, answer.text
        return str(answer.json()["access_token"])


def installed_provider() -> Path:
    """The folder in which the package is, below Sluice's home. A ``ConnectError`` says why it cannot be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise ConnectError("there is no npm and node; install them (apt-get install --no-install-recommends npm)")
    folder = sluice_home() / "packages" / "oidc-provider"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (_FILES / "package-lock.json").read_bytes()
    done = folder / "installed.json"
    with file_lock(folder.with_name("oidc-provider.lock")):
        if not (done.is_file() and done.read_bytes() == wanted):
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_FILES / name, folder)
            _install(npm, folder)
            done.write_bytes(wanted)
    return folder


def _install(npm: str, folder: Path) -> None:
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        raise ConnectError(f"npm cannot install oidc-provider: {error.stderr.decode(errors='replace')}") from error
    except subprocess.TimeoutExpired as error:
        raise ConnectError(f"npm did not install oidc-provider within {_INSTALL_SECONDS} s") from error


@contextmanager
def running_provider(
    folder: Path, port: int, keys: list[dict[str, Any]], clients: Mapping[str, str]
) -> Iterator[OidcProvider]:
    """A provider that signs by the first of ``keys``, while the ``with`` block runs; ``clients`` have secrets."""
    shutil.copy(_FILES / "provider.mjs", folder)
    command = ["node", "provider.mjs", str(port), json.dumps(keys), json.dumps(list(clients.items()))]
    provider = OidcProvider(f"http://{HOST}:{port}")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            wait_until("the provider answers", lambda: _answers(process, provider), _READY_SECONDS)
            yield provider
        finally:
            process.kill()
            process.wait()


def _answers(process: subprocess.Popen[bytes], provider: OidcProvider) -> bool:
    assert process.poll() is None
    try:
        return requests.get(f"{provider.issuer}/jwks", timeout=5).ok
    except requests.ConnectionError:
        return False
