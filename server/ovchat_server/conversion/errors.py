"""Why a file does not become a model's folder."""


class ConversionError(Exception):
    """A file cannot be converted; the message says why, for the person who chose it."""
