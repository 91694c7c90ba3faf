from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from cubesched.local.pki import Authority, write_private


def _verify_server(authority: Authority, certificate: bytes, name: str) -> None:
    store = Store([x509.load_pem_x509_certificate(authority.certificate)])
    verifier = PolicyBuilder().store(store).build_server_verifier(x509.DNSName(name))
    verifier.verify(x509.load_pem_x509_certificate(certificate), [])


def test_the_servers_certificate_stands_for_loopback_names_only() -> None:
    authority = Authority()
    server = authority.issue_server()

    _verify_server(authority, server.certificate, "localhost")
    with pytest.raises(VerificationError):
        _verify_server(authority, server.certificate, "example.com")


def test_another_instances_authority_is_not_trusted() -> None:
    server = Authority().issue_server()

    with pytest.raises(VerificationError):
        _verify_server(Authority(), server.certificate, "localhost")


def test_a_client_is_its_common_name_and_its_organizations() -> None:
    credential = Authority().issue_client("cubesched:node:a", ["agents", "others"])

    subject = x509.load_pem_x509_certificate(credential.certificate).subject

    names = [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert names == ["cubesched:node:a"]
    assert groups == ["agents", "others"]


def test_a_private_file_is_readable_by_its_owner_alone_even_when_it_was_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)

    write_private(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
