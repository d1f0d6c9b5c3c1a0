"""The files that --tls-cert, --tls-key and --tls-client-ca name, and what they hold now."""

from __future__ import annotations

import contextlib
import logging
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ovchat_server.tls.errors import TlsError

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.tls.material import Material

CERTIFICATE: Final = "--tls-cert"
KEY: Final = "--tls-key"
CLIENT_CA: Final = "--tls-client-ca"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where they are.

    Attributes:
        certificate: The server's certificate, and those between it and its authority's.
        key: Its private key.
        client_ca: The authorities one of which must have signed a client's certificate; None: no
            client is asked for one.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> Material:
        """Return what they hold.

        Raises:
            TlsError: One cannot be read or used, or the key is another certificate's.
        """
        found = self.load()
        self.check(found)
        return found

    def load(self) -> Material:
        """Return what they hold, whatever it is.

        Raises:
            TlsError: One cannot be read.
        """
        # Only who has TLS loads the library.
        from ovchat_server.tls.material import Material  # noqa: PLC0415

        clients = _read(CLIENT_CA, self.client_ca) if self.client_ca else None
        return Material(_read(CERTIFICATE, self.certificate), _read(KEY, self.key), clients)

    def check(self, found: Material) -> None:
        """Check that what they hold can be used.

        Raises:
            TlsError: It cannot.
        """
        paths = {CERTIFICATE: self.certificate, KEY: self.key, CLIENT_CA: self.client_ca}
        found.check(*(f"{option} {path}" for option, path in paths.items()))

    def warnings(self) -> list[str]:
        """Return what is no obstacle to start, but a mistake most likely."""
        found = []
        # What cannot be read by now is told by who needs it.
        with contextlib.suppress(TlsError, OSError):
            if fault := self.read().validity_fault():
                found.append(f"{CERTIFICATE} {self.certificate}: {fault}")
            if self.key.stat().st_mode & stat.S_IROTH:
                found.append(f"{KEY} {self.key} can be read by every user: chmod o= protects it")
        return found


class CurrentTls:
    """What the files hold, or held when they could last be used."""

    def __init__(self, files: TlsFiles, ports: str) -> None:
        """Read the files.

        Args:
            files: The files.
            ports: The word for the ports that need them, for the log.

        Raises:
            TlsError: They cannot be used.
        """
        self.files, self._ports = files, ports
        self.material = files.read()
        self._refused: Material | None = None
        self._fault = ""

    def reload(self) -> bool:
        """Read the files again, and return whether they have changed, and can be used again.

        What cannot be used, such as a key that was replaced before its certificate, is logged once,
        and what was there before stays.
        """
        try:
            found = self.files.load()
            if found == self.material:
                # Who was started meanwhile has read what could not be used.
                repaired = bool(self._fault)
                self._refused, self._fault = None, ""
                return repaired
            # Checking a key takes some time.
            if found == self._refused:
                return False
            self._refused = found
            self.files.check(found)
        except TlsError as error:
            if self._fault != (fault := str(error)):
                self._fault = fault
                kept = f"{self._ports} keeps the certificate that it has"
                logger.error("%s: %s", fault, kept)  # noqa: TRY400  a message
            return False
        self.material, self._refused, self._fault = found, None, ""
        if fault := found.validity_fault():
            logger.warning("%s has a new certificate: %s", self._ports, fault)
        else:
            logger.info("%s has a new certificate, until %s", self._ports, found.valid_until())
        return True


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{option} {path} cannot be read: {error.strerror}") from error
