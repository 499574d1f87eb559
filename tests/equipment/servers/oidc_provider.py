"""A third-party OpenID provider, the npm package ``oidc-provider``, in a Node process."""

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

from equipment.servers.node_packages import installed_package
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

__all__ = ["OidcProvider", "installed_provider", "running_provider"]

_FILES: Final = Path(__file__).with_name("oidc")
_READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class OidcProvider:
    """A provider on loopback. It is its own issuer."""

    issuer: str

    def token(self, client: str, secret: str, audience: str) -> str:
        """Request an access token with a client's own credentials."""
        asked = {"grant_type": "client_credentials", "resource": f"https://resources.example/{audience}"}
        answer = requests.post(f"{self.issuer}/token", data=asked, auth=(client, secret), timeout=30)
        assert answer.ok, answer.text
        return str(answer.json()["access_token"])


def installed_provider() -> Path:
    """The folder of the package. A ``ConnectError`` says why it cannot be installed."""
    return installed_package("oidc-provider", _FILES)


@contextmanager
def running_provider(
    folder: Path, port: int, keys: list[dict[str, Any]], clients: Mapping[str, str]
) -> Iterator[OidcProvider]:
    """A provider that signs with the first of ``keys``, while the ``with`` block runs; ``clients`` have secrets."""
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
