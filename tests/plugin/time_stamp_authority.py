"""A time-stamp authority of one's own: certificates, ``openssl ts`` that signs, and a server that asks it."""

from __future__ import annotations

import contextlib
import datetime as dt
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Answer = Callable[[bytes], bytes]

TODAY = dt.datetime.now(dt.UTC).replace(microsecond=0)
WEEK = dt.timedelta(days=7)

TIME_STAMP = "1.2.840.113549.1.9.16.1.4"
GRANTED = bytes([2, 1, 0])
"""The integer 0."""

CONFIG = """\
[stamps]
serial = {folder}/serial
signer_cert = {folder}/signer.pem
certs = {folder}/ca.pem
signer_key = {folder}/signer.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha1, sha256, sha512
ordering = no
tsa_name = yes
ess_cert_id_chain = no
"""


class Authority:
    """Signs time-stamps with a certificate that its own root has signed."""

    def __init__(
        self,
        folder: Path,
        name: str = "Stamps of Test",
        *,
        until: dt.datetime = TODAY + WEEK,
        purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.TIME_STAMPING,
    ) -> None:
        folder.mkdir()
        self.folder = folder
        self.roots = folder / "ca.pem"
        self.signer = folder / "signer.pem"
        root_key, signer_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        root_name = named(f"Root of {name}")
        root = certificate(root_name, root_key, (root_name, root_key), TODAY + WEEK)
        root = root.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        signer = certificate(named(name), signer_key, (root_name, root_key), until)
        signer = signer.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
        for path, one in ((self.roots, root), (self.signer, signer)):
            path.write_bytes(one.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        (folder / "signer.key").write_bytes(
            signer_key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        (folder / "serial").write_text("01\n", encoding="ascii")
        (folder / "stamps.cnf").write_text(CONFIG.format(folder=folder), encoding="utf-8")

    def answer(self, question: bytes) -> bytes:
        """What ``openssl ts`` answers to a question."""
        asked, answered = self.folder / "asked.tsq", self.folder / "answered.tsr"
        asked.write_bytes(question)
        config = ["-config", str(self.folder / "stamps.cnf"), "-section", "stamps"]
        openssl("ts", "-reply", *config, "-queryfile", str(asked), "-out", str(answered))
        return answered.read_bytes()

    def stamp(self, data: bytes, *options: str) -> bytes:
        """A time-stamp over data, asked for by ``openssl ts`` as well."""
        content, asked = self.folder / "content", self.folder / "own.tsq"
        content.write_bytes(data)
        openssl("ts", "-query", "-data", str(content), "-cert", *options, "-out", str(asked))
        return self.answer(asked.read_bytes())

    def signed(self, statement: bytes, *beside: Path) -> bytes:
        """An answer with a statement as it is given, signed without asking whether one may.

        Args:
            statement: What is in a time-stamp, as :func:`statement_of` gives it.
            beside: Certificates to put into the answer with that of the signer.
        """
        content, signed = self.folder / "statement", self.folder / "signed"
        content.write_bytes(statement)
        others = self.folder / "beside.pem"
        others.write_bytes(b"".join(path.read_bytes() for path in (self.roots, *beside)))
        who = ["-signer", str(self.signer), "-inkey", str(self.folder / "signer.key")]
        kind = ["-econtent_type", TIME_STAMP, "-nodetach", "-binary", "-md", "sha256"]
        more = ["-certfile", str(others), "-in", str(content), "-outform", "DER", "-out", str(signed)]
        openssl("cms", "-sign", *who, *kind, *more)
        return sequence(sequence(GRANTED), signed.read_bytes())

    def forged_twin(self) -> Path:
        """A certificate for time-stamps with the signer's names and number, that nobody but a forger signed."""
        real = x509.load_pem_x509_certificate(self.signer.read_bytes())
        key = ec.generate_private_key(ec.SECP256R1())
        forged = (
            certificate(
                named("Most Trusted Stamps"), key, (real.issuer, key), TODAY + WEEK, real.serial_number
            )
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
            .sign(key, hashes.SHA256())
        )
        path = self.folder / "forged.pem"
        path.write_bytes(forged.public_bytes(serialization.Encoding.PEM))
        return path


def statement_of(answer: bytes, folder: Path) -> bytes:
    """What a time-stamp states, without the signature."""
    whole, token, statement = (folder / name for name in ("whole.tsr", "token", "stated"))
    whole.write_bytes(answer)
    openssl("ts", "-reply", "-in", str(whole), "-token_out", "-out", str(token))
    openssl("cms", "-verify", "-noverify", "-inform", "DER", "-in", str(token), "-out", str(statement))
    return statement.read_bytes()


def sequence(*parts: bytes) -> bytes:
    """DER of an ASN.1 sequence."""
    body = b"".join(parts)
    if len(body) < 128:
        return bytes([0x30, len(body)]) + body
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([0x30, 0x80 | len(size)]) + size + body


def openssl(*arguments: str) -> str:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey],
    until: dt.datetime,
    number: int | None = None,
) -> x509.CertificateBuilder:
    issuer_name, issuer_key = issuer
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(number or x509.random_serial_number())
        .not_valid_before(TODAY - 2 * WEEK)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )


@contextlib.contextmanager
def serving(answer: Answer, kind: str = "application/timestamp-reply", status: int = 200) -> Iterator[str]:
    """The address of a server that gives these answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/tsr"
        finally:
            server.shutdown()
            thread.join()
