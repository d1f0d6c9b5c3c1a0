"""Scheduling: which sequences run in each step, by the KV blocks there are. Knows no library."""
