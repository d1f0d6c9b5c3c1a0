"""Engines: what is asked of them, the server's side, and what runs in their processes.

`contract` is what both sides share; `client` runs in the server and imports nothing of the
process's; `process` is the engine process, which runs the worker that its spec names. Of the one
that generates tokens, `scheduling` decides what runs in each step, and `genai` runs it.
"""
