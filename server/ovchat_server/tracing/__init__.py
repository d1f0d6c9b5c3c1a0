"""Traces of requests, by OpenTelemetry."""
