"""The form of an answer: from what was asked for to a grammar that can be followed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.api.errors import InvalidRequestError
from ovchat_server.grammar.formats import form_of, grammar_text

if TYPE_CHECKING:
    from ovchat_server.api.field_path import FieldPath
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.api.structured_output import Constraint
    from ovchat_server.engine.contract.generation import Resumption
    from ovchat_server.serving.models import ServedModel
    from ovchat_server.serving.worker_pool import WorkerPool


@dataclass(frozen=True, slots=True)
class Grammar:
    """What the engine is to follow; see engine.contract.generation.GenerationRequest.

    Attributes:
        text: "": nothing.
    """

    text: str = ""
    closed: bool = False
    resumptions: tuple[Resumption, ...] = ()


NO_GRAMMAR = Grammar()


async def constrained(
    model: ServedModel, constraint: Constraint | None, workers: WorkerPool
) -> Grammar:
    """The grammar of a whole answer.

    Raises:
        InvalidRequestError: It cannot be followed; says the compiler's reason.
        UnavailableError: Nobody can tell now.
    """
    if constraint is None:
        return NO_GRAMMAR
    form = await workers.run(partial(form_of, constraint))
    text = await checked(model, form, constraint.field)
    return Grammar(text, constraint.closed)


async def checked(model: ServedModel, form: JsonObject, field: FieldPath) -> str:
    """The text of a grammar of answers of a form, which `field` asks for.

    Raises:
        InvalidRequestError: It cannot be followed; says the compiler's reason.
        UnavailableError: Nobody can tell now.
    """
    grammar = grammar_text(form)
    if reason := await model.engine.check_grammar(grammar):
        raise InvalidRequestError.about(field, f"cannot be enforced: {reason}.")
    return grammar
