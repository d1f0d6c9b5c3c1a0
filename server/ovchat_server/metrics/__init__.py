"""What is counted of requests and engines, and how Prometheus reads it."""
