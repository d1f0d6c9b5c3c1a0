"""Grammars: what a model's answer must follow, as the texts that the engine's compiler takes.

One way leads there from a JSON Schema: `schema` says which values follow it, as shapes; `values`
writes these in a `notation` (JSON, Python's literals, Gemma's), `text_values` as text between tags,
and `arguments` those of calls that name them one by one; `cache` keeps what was written. `formats`
makes of that and of other constraints the format of a whole answer. Nothing here knows an engine.
"""
