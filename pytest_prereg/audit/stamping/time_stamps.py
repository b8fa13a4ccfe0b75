"""RFC 3161 time-stamps, asked for and checked without a network; the one place that knows their library.

What an authority signs is: these bytes, known by their SHA-256, existed at this time.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
import ssl
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_prereg.audit.stamping.certificate_order import in_order
from pytest_prereg.errors import AnchorError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampResponse

EXTRA = "pip install 'pytest-prereg[anchor]'"
ROOTS = "Who trusts this authority names its root certificate: --anchor-roots FILE"

_LIBRARY, _OLDEST = "rfc3161-client", "1.0.9"
"""Versions before let a token vouch for itself, by a root certificate that it brings along."""
_SHA256 = "2.16.840.1.101.3.4.2.1"
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_GRANTED = 0
_UNTRUSTED = "Verify error"


class Query(msgspec.Struct, kw_only=True, frozen=True):
    """A question to an authority."""

    body: bytes
    """DER, to be sent as ``application/timestamp-query``."""
    digest: str
    """SHA-256 of what the time-stamp shall be over, in hex."""
    nonce: int
    """Comes back in the answer, which so can't be an old one."""


class Stamp(msgspec.Struct, kw_only=True, frozen=True):
    """What an answer states; only with :func:`verify` is it known to be signed by anybody."""

    digest: str
    """SHA-256 of what it is over, in hex."""
    at: dt.datetime
    authority: str
    """By the certificate that signed."""
    nonce: int | None

    @property
    def statement(self) -> str:
        """What it says of what it is over: ``existed at 2026-08-02T12:00:00Z, says "NAME"``."""
        at = self.at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"existed at {at}, says {self.authority}"


def query(data: bytes) -> Query:
    """Return a question for a time-stamp over ``data``, which itself is not sent.

    Raises:
        AnchorError: The library is not installed (PR153).
    """
    library = _library()
    builder = library.TimestampRequestBuilder().data(data).hash_algorithm(library.HashAlgorithm.SHA256)
    asked = builder.nonce(nonce=True).cert_request(cert_request=True).build()
    assert asked.nonce is not None
    return Query(body=asked.as_bytes(), digest=hashlib.sha256(data).hexdigest(), nonce=asked.nonce)


def read(answer: bytes) -> Stamp:
    """Return what an authority's answer states.

    Raises:
        AnchorError: It is no time-stamp, or not one over a SHA-256; or the library is not installed (PR153).
    """
    found = _decoded(answer)
    if found.status != _GRANTED:
        said = _printable("; ".join(found.status_string))
        raise _refused(f"the authority granted no time-stamp{said and f': {said}'}")
    with _contained("the time-stamp can't be read"):
        info = found.tst_info
        imprint = info.message_imprint
        algorithm = imprint.hash_algorithm.dotted_string
        stamp = Stamp(
            digest=imprint.message.hex(), at=info.gen_time, authority=_authority(found), nonce=info.nonce
        )
    if algorithm != _SHA256:
        raise _refused(f'the time-stamp is over a digest of kind "{algorithm}", and not over a SHA-256')
    return stamp


def verify(answer: bytes, roots: Iterable[Certificate]) -> Stamp:
    """Return what an answer states, once that is known to be signed by an authority below one of the roots.

    Its certificates have to be valid, and for time-stamps, at the time that it states.

    Raises:
        AnchorError: As :func:`read`, or the signature does not hold (PR153).
    """
    stamp = read(answer)
    library = _library()
    with _contained(f"it says {stamp.authority}, and that can't be verified"):
        verifier = library.VerifierBuilder(roots=list(roots)).build()
        verifier.verify(_decoded(answer), bytes.fromhex(stamp.digest))
    return stamp


def roots_of(path: Path | None) -> list[Certificate]:
    """Return the certificates that signatures have to lead to: those of a PEM file, or of the system.

    Raises:
        AnchorError: There are none, or the file can't be read, or the library is not installed (PR153).
    """
    _library()
    if path is None:
        roots = _readable(_system())
        problem = Problem(code="PR153", message="this system trusts no certificates", advice=ROOTS)
    else:
        roots = _from_file(path)
        problem = Problem(code="PR153", message="there is no certificate in PEM form here", path=str(path))
    if not roots:
        raise AnchorError(problem)
    return roots


def _from_file(path: Path) -> list[Certificate]:
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415

    try:
        texts = _PEM.findall(path.read_bytes())
    except OSError as error:
        message = f"the certificates can't be read: {error.strerror}"
        raise AnchorError(Problem(code="PR153", message=message, path=str(path))) from error
    with _contained(f"one of the certificates in {path} can't be read"):
        return [load_pem_x509_certificate(each) for each in texts]


def _system() -> Iterator[bytes]:
    """Yield the certificates that the system trusts, in PEM form."""
    places = ssl.get_default_verify_paths()
    files = [Path(places.cafile)] if places.cafile else []
    folder = Path(places.capath) if places.capath else None
    for path in files or (sorted(folder.glob("*.0")) if folder else []):
        with contextlib.suppress(OSError):
            yield from _PEM.findall(path.read_bytes())


def _readable(several: Iterable[bytes]) -> list[Certificate]:
    """Return certificates without those that are too odd to be read, which stand for nobody then."""
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415

    found = []
    for each in dict.fromkeys(several):
        with contextlib.suppress(AnchorError), _contained(""):
            found.append(load_pem_x509_certificate(each))
    return found


def _decoded(answer: bytes) -> TimeStampResponse:
    library = _library()
    try:
        found: TimeStampResponse = library.decode_timestamp_response(in_order(answer))
    except (ValueError, TypeError) as error:
        raise _refused("it is no RFC 3161 time-stamp") from error
    return found


def _authority(found: TimeStampResponse) -> str:
    """Return the name in the certificate that signed; what an answer calls its authority, anybody may write.

    Which certificate that is, is not signed, and neither are the others that come with it. So there must be
    one only that it can be: else one would be looked at, and another would have signed.

    Raises:
        AnchorError: There is none, or several (PR153).
    """
    from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    signed = found.signed_data
    signers = {one.serial_number for one in signed.signer_infos}
    several = [load_der_x509_certificate(each) for each in signed.certificates]
    candidates = [each for each in several if each.serial_number in signers]
    if len(candidates) != 1 or len(signers) != 1:
        raise _refused(f"{len(candidates)} of its certificates can be the one that signed it, and not one")
    common = candidates[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = common[0].value if common else candidates[0].subject.rfc4514_string()
    return f'"{_printable(str(name))}"'


@contextlib.contextmanager
def _contained(what: str) -> Iterator[None]:
    """Whatever the library makes of what others wrote is one refusal; what it only warns of is let be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except AnchorError:
        raise
    except Exception as error:  # each damaged byte may raise something else
        raise _refused(f"{what}: {_why(str(error))}", ROOTS if _UNTRUSTED in str(error) else None) from error


def _why(said: str) -> str:
    """Return the one reason among all that OpenSSL says."""
    reasons = re.findall(rf'{_UNTRUSTED}: ([^"]+)"', said) or re.findall(r'reason: "([^"]+)"', said)
    return _printable(reasons[-1] if reasons else said)


def _printable(text: str) -> str:
    """Text that others wrote, fit for a line of a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]


def _refused(message: str, advice: str | None = None) -> AnchorError:
    return AnchorError(Problem(code="PR153", message=message, advice=advice))


def _library() -> Any:
    """The optional library, loaded when it is used.

    Raises:
        AnchorError: It is not installed (PR153).
    """
    try:
        import rfc3161_client  # noqa: PLC0415
    except ImportError:
        message = "time-stamps need a library that is not installed"
        raise AnchorError(Problem(code="PR153", message=message, advice=EXTRA)) from None
    if _numbers(version(_LIBRARY)) < _numbers(_OLDEST):
        message = f"{_LIBRARY} {version(_LIBRARY)} takes a stranger's signature for good: {_OLDEST} does not"
        raise AnchorError(
            Problem(code="PR153", message=message, advice=f"pip install '{_LIBRARY}>={_OLDEST}'")
        )
    return rfc3161_client


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]
