"""TLS of the relay: a certificate that may be renewed under it, and whose clients it believes."""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cubesched.core.errors import UsageError

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files, as the command line names them."""

    certificate: Path
    key: Path
    client_authority: Path
    """Certificates of clients must be signed by one in here: the cluster's own authority."""


class Tls:
    """A server's TLS context that follows its files."""

    def __init__(self, files: TlsFiles) -> None:
        """Read the files; UsageError names the one that is unusable."""
        self._files = files
        try:
            self.context = ssl.create_default_context(
                ssl.Purpose.CLIENT_AUTH, cafile=str(files.client_authority)
            )
        except OSError as error:
            raise UsageError(f"--client-ca: {files.client_authority}: {error}") from error
        # Python 3.13 refuses many clusters' own authorities for want of a key identifier.
        self.context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        # Not REQUIRED: who shows none gets an answer that says so, instead of a broken handshake.
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self._stamp = self._look()
        self._load()

    def _look(self) -> tuple[int, ...]:
        files = (self._files.certificate, self._files.key)
        try:
            return tuple(file.stat().st_mtime_ns for file in files)
        except OSError as error:
            raise UsageError(f"--tls-cert, --tls-key: {error}") from error

    def _load(self) -> None:
        try:
            # With an empty password a key that needs one is an error, not a question to a terminal.
            self.context.load_cert_chain(self._files.certificate, self._files.key, password="")
        except OSError as error:
            raise UsageError(
                f"--tls-cert {self._files.certificate}, --tls-key {self._files.key}: {error}"
            ) from error

    def reload_if_changed(self) -> bool:
        """Use the files' newest certificate for new connections; tell whether it is another."""
        stamp = self._look()
        if stamp == self._stamp:
            return False
        self._load()
        self._stamp = stamp
        return True

    async def follow_files(self) -> None:
        """Look at the files now and then, for ever; while they are broken the old ones serve."""
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            try:
                if self.reload_if_changed():
                    log.info("serves the renewed certificate %s", self._files.certificate)
            except UsageError as error:
                log.warning("%s", error)
