"""A host with TLS on this machine, and what names resolve to, for tests of the proxy."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "files.example.org"


class Names:
    """What names resolve to, and which of these addresses count as public."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: dict[str, list[list[str]]] = {}  #: One list a lookup; the last one stays.
        self.asked: list[str] = []
        self.public = {"127.0.0.1"}
        monkeypatch.setattr("bot.model_proxy.tunnels.addresses_of", self._look_up)
        monkeypatch.setattr("bot.model_proxy.tunnels.is_public", self.public.__contains__)

    async def _look_up(self, host: str, *_: object) -> list[str]:
        self.asked.append(host)
        answers = self.addresses.get(host, [[]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Host:
    """A server that answers every request by its path, and records its headers."""

    def __init__(self, certificate: Path | None) -> None:
        self.seen: list[dict[str, str]] = []
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host.seen.append({name.lower(): value for name, value in self.headers.items()})
                body = self.path.encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.certificate = certificate
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port: int = self.server.server_port

    @contextmanager
    def serves(self) -> Iterator["Host"]:
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join()


def certificate(folder: Path) -> Path:
    """A self-signed certificate of `NAME`, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    kind, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(kind, form, serialization.NoEncryption())
    file.write_bytes(secret + signed.public_bytes(kind))
    return file
