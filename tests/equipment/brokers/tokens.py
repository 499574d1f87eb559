"""An identity provider that issues tokens for client secrets."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from equipment.brokers.certificates import Identity
from worker.embedded.ports import HOST

__all__ = ["AUDIENCE", "ISSUER", "TokenServer", "token_server", "write_keys"]

AUDIENCE: Final = "kafka"
ISSUER: Final = "https://id.example.com"
_KEY: Final = "tokens.pem"
_KEY_ID: Final = "of-the-tests"


@dataclass
class TokenServer:
    """Issues tokens for client credentials (RFC 6749, 4.4), with the client as the subject."""

    keys: Path
    clients: dict[str, str] = field(default_factory=dict)
    """The secret of each client."""
    seconds: int = 3600
    """The lifetime of a token in seconds."""
    url: str = ""
    trusted: Path | None = None
    """The authority's certificate, if the server has TLS."""
    asked: list[tuple[str, int]] = field(default_factory=list)
    """Each client that has requested a token, and the status of the answer."""

    def answer(self, authorization: str | None, body: str) -> tuple[int, dict[str, Any]]:
        """Answer one request."""
        client, secret = _credentials(authorization)
        if self.clients.get(client) != secret or not secret:
            status, document = 401, {"error": "invalid_client"}
        elif parse_qs(body).get("grant_type") != ["client_credentials"]:
            status, document = 400, {"error": "unsupported_grant_type"}
        else:
            status, document = 200, self._token(client)
        self.asked.append((client, status))
        return status, document

    def _token(self, client: str) -> dict[str, Any]:
        now = int(time.time())
        claims = {"sub": client, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + self.seconds}
        signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': _KEY_ID})}.{_encoded(claims)}"
        key: Any = serialization.load_pem_private_key((self.keys / _KEY).read_bytes(), None)
        signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return {"access_token": f"{signed}.{_base64(signature)}", "token_type": "Bearer", "expires_in": self.seconds}


def write_keys(folder: Path) -> None:
    """Make a key that signs tokens, and ``jwks.json``, with which a broker verifies them."""
    key = rsa.generate_private_key(65537, 2048)
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / _KEY).write_bytes(pem)
    numbers = key.public_key().public_numbers()
    public = {"n": _base64(_bytes(numbers.n)), "e": _base64(_bytes(numbers.e))}
    known = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, **public}
    (folder / "jwks.json").write_text(json.dumps({"keys": [known]}))


@contextmanager
def token_server(keys: Path, tls: tuple[Identity, Path] | None = None) -> Iterator[TokenServer]:
    """A running identity provider that signs with the key in a folder.

    With ``tls`` it has this identity, which is written to a file in that folder.
    """
    server = TokenServer(keys)
    listening = ThreadingHTTPServer((HOST, 0), _handler(server))
    if tls is not None:
        identity, folder = tls
        file = folder / "token-server.pem"
        file.write_text(identity.key_pem() + identity.certificate_pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    server.url = f"http{'s' if tls else ''}://{HOST}:{listening.server_port}/token"
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield server
    listening.shutdown()
    listening.server_close()
    thread.join()


def _handler(server: TokenServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            status, document = server.answer(self.headers.get("Authorization"), body)
            answer = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Do not log."""

    return Handler


def _credentials(authorization: str | None) -> tuple[str, str]:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme != "Basic":
        return "", ""
    client, _, secret = base64.b64decode(encoded).decode().partition(":")
    return client, secret


def _encoded(part: dict[str, Any]) -> str:
    return _base64(json.dumps(part).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
