"""Certificates: of this server, of its clients, and those for trying."""
