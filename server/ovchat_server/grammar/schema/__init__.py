"""JSON Schemas as shapes: which values conform to a schema, one type of value at a time.

`reading` turns a schema into `shapes` and intersects them; `disjoint` tells whether no value
conforms to two of them. Patterns, formats, lengths and ranges of numbers become trees of
characters (`nodes`), which know no notation. `automata` intersects the strings of several trees,
by the `languages` of the trees.
"""
