"""Dialects: how families of models write tool calls and reasoning, one family in a file.

Each has a parser, which reads the text of an answer as it arrives (`source`, `markup` and the
`read_...` functions are what parsers share), and a call format, which says how calls are written
for grammars that hold a model to it. `registry` lists the dialects and chooses a model's.
"""
