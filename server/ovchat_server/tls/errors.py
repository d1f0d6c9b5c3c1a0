"""What is wrong with the files of TLS."""


class TlsError(Exception):
    """A file cannot be used; the message names its option."""
