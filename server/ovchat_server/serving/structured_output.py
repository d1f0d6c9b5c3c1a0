"""The form of an answer: from what was asked for to a grammar that can be followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.api.errors import InvalidRequestError, Violation
from ovchat_server.engine.grammar import grammar_text

if TYPE_CHECKING:
    from ovchat_server.api.structured_output import Constraint
    from ovchat_server.engine.grammar import Reasoning
    from ovchat_server.serving.models import ServedModel


async def checked_grammar(
    model: ServedModel, constraint: Constraint | None, reasoning: Reasoning | None = None
) -> str:
    """The grammar for the engine; "" where the answer may have any form.

    Args:
        model: Who answers.
        constraint: The form of the answer.
        reasoning: What comes before the answer.

    Raises:
        InvalidRequestError: It cannot be followed; says the compiler's reason.
        UnavailableError: Nobody can tell now.
    """
    if constraint is None:
        return ""
    grammar = grammar_text(constraint, reasoning)
    if reason := await model.engine.check_grammar(grammar):
        complaint = f"{constraint.field} cannot be enforced: {reason}."
        raise InvalidRequestError.of([Violation(constraint.field, complaint)])
    return grammar
