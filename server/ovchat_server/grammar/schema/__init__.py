"""JSON Schemas as shapes: which values follow a schema, one kind of value at a time.

`reading` takes a schema apart, `shapes` says what two shapes are together and `apart` whether no
value has both. Patterns, formats, lengths and ranges of numbers become trees of characters
(`nodes`), which know no notation. What strings several trees have in common, `automata` finds out,
by the `languages` of the trees.
"""
