"""`ovchat up`: the gRPC server and Envoy in front of it, as one command."""
