"""Certificates of one instance: its own authority, the server's, and one for each client.

Elliptic curve keys, so a certificate takes a fraction of a millisecond. Everything is issued by
the instance's authority and means nothing to any other instance.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

_LIFETIME = dt.timedelta(days=365)
_CLOCK_SLACK = dt.timedelta(minutes=10)
_SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_SERVER_ADDRESSES = ("127.0.0.1", "10.0.0.1")


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """The certificate authority of one instance; its key stays in this process."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cubesched-local")])
        self._certificate = _sign(
            subject=self._name,
            issuer=self._name,
            public_key=self._key.public_key(),
            signing_key=self._key,
            extensions=[x509.BasicConstraints(ca=True, path_length=0), _usage(is_authority=True)],
        )
        self.certificate = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue_server(self, common_name: str = "kube-apiserver") -> Credential:
        """Issue the certificate of the API server or of another one, valid for loopback only."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in _SERVER_NAMES]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _SERVER_ADDRESSES]
        return self._issue(
            subject=[x509.NameAttribute(NameOID.COMMON_NAME, common_name)],
            purpose=ExtendedKeyUsageOID.SERVER_AUTH,
            extra=[x509.SubjectAlternativeName(names)],
        )

    def issue_client(self, user: str, groups: list[str]) -> Credential:
        """Issue a certificate that the API server reads as `user`, a member of `groups`."""
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._issue(subject=subject, purpose=ExtendedKeyUsageOID.CLIENT_AUTH, extra=[])

    def _issue(
        self,
        *,
        subject: list[x509.NameAttribute[str]],
        purpose: ObjectIdentifier,
        extra: list[x509.ExtensionType],
    ) -> Credential:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _sign(
            subject=x509.Name(subject),
            issuer=self._name,
            public_key=key.public_key(),
            signing_key=self._key,
            extensions=[
                x509.BasicConstraints(ca=False, path_length=None),
                _usage(is_authority=False),
                x509.ExtendedKeyUsage([purpose]),
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                *extra,
            ],
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return Credential(certificate=pem, key=_key_pem(key))


def service_account_keys() -> Credential:
    """Make the key pair that signs service account tokens; `certificate` is the public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Credential(certificate=public, key=_key_pem(key))


def write_private(path: Path, data: bytes) -> Path:
    """Write a file that only its owner can read, from its first byte on; return its path."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return path


def _sign(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    signing_key: ec.EllipticCurvePrivateKey,
    extensions: list[x509.ExtensionType],
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )
    for extension in extensions:
        is_critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(signing_key, hashes.SHA256())


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # SEC1, not PKCS#8: `openssl x509`-era readers and kubectl alike take it.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
