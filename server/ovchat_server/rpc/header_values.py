"""Which values headers may have."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final

from ovchat_server.domain.errors import InvalidRequestError, shortened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.rpc.middleware import Context

# As HTTP has them (RFC 9110, 5.5), without the bytes that it calls obsolete, and gRPC, but for the
# tab. errors.lua refuses the same of REST's callers.
VALID: Final = re.compile(r"[\t\x20-\x7e]*")


@contextlib.asynccontextmanager
async def check_headers(
    context: Context,
    method: str,  # noqa: ARG001  the signature of every middleware
) -> AsyncIterator[None]:
    """Refuse a call with bytes in its headers that no header may have; `-bin` may have any."""
    for name, value in context.invocation_metadata() or ():
        if isinstance(value, str) and not VALID.fullmatch(value):
            raise InvalidRequestError(
                f"The header {shortened(str(name))!r} has other characters than visible ASCII and "
                "spaces: encode what it says, such as in base64."
            )
    yield
