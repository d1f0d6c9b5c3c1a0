"""The server's side of engine processes: start, supervise, restart, queue and resume requests."""
