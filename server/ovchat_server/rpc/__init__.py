"""The gRPC door: servicers, conversion, interceptors, health, reflection."""
