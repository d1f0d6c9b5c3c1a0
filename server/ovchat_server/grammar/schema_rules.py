"""Rules of schemas, each of them filled once it is known which others it refers to."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.rules import Rule, Rules, blocking, disambiguate, ending, grammar
from ovchat_server.grammar.schema.errors import SchemaError, TooLargeError
from ovchat_server.grammar.schema.nodes import PatternError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.grammar.places import Location
    from ovchat_server.grammar.relaxation import Relaxation
    from ovchat_server.grammar.rules import Alternative
    from ovchat_server.grammar.schema.reading import SchemaReader

    # Makes the alternatives of the values of a schema.
    Fill = Callable[[JsonValue], list[Alternative]]

# How often a schema that nothing follows is relaxed, one after the other.
MAX_ENDLESS = 100
# How many schemas that are too large to write may be of anything.
MAX_TOO_LARGE = 3


@dataclass(slots=True)
class _SchemaRule:
    """A rule of a schema.

    Attributes:
        schema: The schema, or what is left of it.
        place: Where it stands, for those who read of it.
        location: Where it stands, for the relaxation.
    """

    rule: Rule
    schema: JsonValue
    place: str
    location: Location | None
    fill: Fill

    @property
    def may_be(self) -> bool:
        """Whether the schema does not say by itself that no value follows it."""
        parts = self.schema.get("allOf") if isinstance(self.schema, dict) else [self.schema]
        return self.rule.number == 0 or not (isinstance(parts, list) and False in parts)

    def write(self, schema: JsonValue) -> None:
        """Fill the rule with the values of a schema."""
        with placed(self.place):
            self.rule.alternatives = disambiguate(self.fill(schema))


class SchemaRules(Rules):
    """Rules, some of which are of schemas."""

    def __init__(self, reader: SchemaReader, relaxation: Relaxation | None) -> None:
        """Start with none.

        Args:
            reader: Reads the schemas.
            relaxation: Relaxes what cannot be enforced; None: that is an error.
        """
        super().__init__()
        self._reader = reader
        self._spare = MAX_TOO_LARGE
        self._relaxation = relaxation
        self._known: dict[str, _SchemaRule] = {}
        self._open: list[_SchemaRule] = []

    def of_schema(
        self, key: str, schema: JsonValue, place: str, fill: Fill, at: Location | None = None
    ) -> Rule:
        """Return the rule of whatever `key` stands for; `fill` is asked later.

        Args:
            key: Each has one rule.
            schema: The schema that `fill` is asked for.
            place: Where it stands: a JSON pointer; "": the whole schema.
            fill: Makes the alternatives.
            at: Where what the schema was made of stands; None: the schema itself does.
        """
        at = at or self.location(schema, place)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _SchemaRule(self.new([]), schema, place, at, fill)
            self._open.append(known)
        elif self._relaxation and known.location and at:
            self._relaxation.places.alike(known.location, at)
        return known.rule

    def location(self, schema: JsonValue, pointer: str) -> Location | None:
        """Return where a schema stands; None where nothing is relaxed."""
        return self._relaxation.places.location(schema, pointer) if self._relaxation else None

    def written(self) -> str:
        """Return the grammar of the first rule; "" if it matches nothing.

        Raises:
            SchemaError: A schema cannot be enforced.
        """
        self._fill()
        for _ in range(MAX_ENDLESS):
            written = grammar(self.rules)
            if written or not self._relaxation:
                break
            # Where a schema is of no value at all, those that need one are at fault.
            named = {known.rule.number: known for known in self._known.values() if known.may_be}
            self._relax(named[blocking(self.rules, named)], self._relaxation, ends=True)
            self._fill()
        return written

    def _fill(self) -> None:
        while self._open:
            rule = self._open.pop()
            before = self._sizes()
            try:
                self._write(rule)
            except TooLargeError:
                # The first rule is of arguments, which cannot be anything.
                if not (self._relaxation and rule.location and rule.rule.number and self._spare):
                    raise
                self._spare -= 1
                self._reader.restart()
                self._forget(before)
                rule.schema = self._relaxation.anything(rule.location)
                rule.write(rule.schema)

    def _write(self, rule: _SchemaRule) -> None:
        before = self._sizes()
        try:
            rule.write(rule.schema)
        except TooLargeError:
            raise
        except SchemaError:
            if not self._relaxation:
                raise
            self._forget(before)
            self._relax(rule, self._relaxation)

    def _relax(self, rule: _SchemaRule, relaxation: Relaxation, *, ends: bool = False) -> None:
        """Relax the schema of a rule until it can be written, and ends where it is to."""
        assert rule.location is not None  # noqa: S101  there is a relaxation
        rule.schema = relaxation.relaxed(
            rule.schema, rule.location, lambda new: self._can_be(rule, new, ends=ends)
        )
        rule.write(rule.schema)

    def _can_be(self, rule: _SchemaRule, schema: JsonValue, *, ends: bool = False) -> bool:
        """Return whether a rule can be of a schema, and would match finite texts if it is to."""
        before = self._sizes()
        try:
            rule.write(schema)
            opened = [new.rule.number for new in self._open[before[2] :]]
            return not ends or rule.rule.number in ending(self.rules, opened)
        except TooLargeError:
            raise
        except SchemaError:
            return False
        finally:
            self._forget(before)

    def _sizes(self) -> tuple[int, int, int]:
        return len(self.rules), len(self._known), len(self._open)

    def _forget(self, sizes: tuple[int, int, int]) -> None:
        """Forget the rules that were made since; nobody refers to them."""
        rules, known, waiting = sizes
        while len(self._known) > known:
            self._known.popitem()
        del self.rules[rules:], self._open[waiting:]


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Tell of what cannot be enforced where it is.

    Args:
        place: A JSON pointer; "": the whole schema.
    """
    try:
        yield
    except (PatternError, RecursionError, SchemaError) as error:
        complaint = str(error)
        if isinstance(error, PatternError):
            complaint = f"uses a pattern that {error}"
        elif isinstance(error, RecursionError):
            complaint = "nests references too deeply"
        kind = TooLargeError if isinstance(error, TooLargeError) else SchemaError
        raise kind(complaint, place) from error
