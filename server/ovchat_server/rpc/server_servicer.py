"""The typed service about the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ovchat.v1 import server_service_pb2, server_service_pb2_grpc

if TYPE_CHECKING:
    import grpc.aio

    from ovchat_server.serving.versions import Versions

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class ServerServicer(server_service_pb2_grpc.ServerServiceServicer):
    """ovchat.v1.ServerService."""

    def __init__(self, versions: Versions) -> None:
        """Report `versions`."""
        self._versions = versions

    async def GetVersion(
        self, request: server_service_pb2.GetVersionRequest, context: Context
    ) -> server_service_pb2.GetVersionResponse:
        """Send which versions run."""
        return server_service_pb2.GetVersionResponse(
            version=self._versions.ovchat,
            openvino=self._versions.openvino,
            openvino_genai=self._versions.openvino_genai,
        )
