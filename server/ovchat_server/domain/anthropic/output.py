"""Reading how much effort the model is to make, and what form its answer must have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import ErrorText
from ovchat_server.domain.generation_request import refuse_with_constraint
from ovchat_server.domain.grammar_limits import refuse_beyond_limits
from ovchat_server.domain.structured_output import Constraint, ConstraintKind

if TYPE_CHECKING:
    from ovchat_server.domain.reader import Reader

EFFORTS = ("low", "medium", "high", "xhigh", "max")
OUTPUT_KEYS = frozenset({"effort", "format"})
FORMATS = {"json_schema": frozenset({"type", "schema"})}


def read_output(reader: Reader, other: Constraint | None) -> tuple[str | None, Constraint | None]:
    """Read the effort and the form; what is wrong is noted in the reader.

    Args:
        reader: The request.
        other: The form that vLLM's field asks for.
    """
    config = reader.object("output_config", OUTPUT_KEYS)
    effort = config.choice("effort", EFFORTS) if config else None
    # The older name stands at the top.
    places = ((config, "format"), (reader, "output_format"))
    forms = [place.object(name, FORMATS) for place, name in places if place]
    found = [form for form in map(_read_format, filter(None, forms)) if form]
    for constraint in found:
        refuse_with_constraint(reader, constraint.field, None)
    found += [other] if other else []
    for constraint in found[1:]:
        reader.refuse(constraint.field, ErrorText.of("cannot be combined with ", found[0].field))
    return effort, found[0] if found else None


def _read_format(form: Reader) -> Constraint | None:
    if form.require("type"):
        form.choice("type", FORMATS)
    schema = form.json_object("schema") if form.require("schema") else None
    if schema is None or not refuse_beyond_limits(form, "schema", schema):
        return None
    return Constraint(ConstraintKind.JSON_SCHEMA, schema, form.path("schema"))
