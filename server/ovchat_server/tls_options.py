"""The options of TLS; see `options`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ovchat_server.config_file import SettingError
from ovchat_server.option_types import ExistingFile, Setting
from ovchat_server.tls.errors import TlsError
from ovchat_server.tls.files import CERTIFICATE, CLIENT_CA, KEY, TlsFiles

if TYPE_CHECKING:
    from pathlib import Path

SECTION: Final = "TLS"
# In the order of --help.
TLS: Final = (
    Setting(
        CERTIFICATE,
        ExistingFile(),
        "File of the certificate (PEM) that both doors show: all ports then speak TLS alone. It is "
        "read again when it changes. By default there is no TLS.",
        section=SECTION,
    ),
    Setting(KEY, ExistingFile(), "File of its private key (PEM).", section=SECTION),
    Setting(
        CLIENT_CA,
        ExistingFile(),
        "File of authorities (PEM): clients must show a certificate that one of them signed.",
        section=SECTION,
    ),
)


def take_tls(options: dict[str, Any]) -> TlsFiles | None:
    """Take the options of TLS out of a command's options.

    Raises:
        SettingError: One is missing, or its file cannot be used.
    """
    paths: list[Path | None] = [options.pop(item.name or "") for item in TLS]
    certificate, key, client_ca = paths
    if certificate is None or key is None:
        given = [item.opts[0] for item, path in zip(TLS, paths, strict=True) if path]
        if not given:
            return None
        missing = " and ".join(
            item.opts[0] for item, path in zip(TLS[:2], paths, strict=False) if not path
        )
        raise SettingError(f"{given[0]} needs {missing}, too")
    if options.get("grpc_socket"):
        raise SettingError(f"{CERTIFICATE} is for --grpc-port: --grpc-socket has no TLS")
    files = TlsFiles(certificate, key, client_ca)
    try:
        files.read()
    except TlsError as error:
        raise SettingError(str(error)) from error
    return files
