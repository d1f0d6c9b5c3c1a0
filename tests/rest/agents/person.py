"""Whom the models are about that answers must be."""

from __future__ import annotations

from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str
    age: int


ANNA = Person(name="Anna", age=31)
# Left to itself, the demo model says that it does not know her.
WHO = "Who is Anna? Anna is 31."
# For what does not enforce a schema.
AS_JSON = "Extract name and age as JSON: Anna is 31."
