"""The Jinja2 environment of chat templates, with what Hugging Face's transformers adds to it.

Templates come with models and are not trusted: the sandbox keeps them from private attributes
and from changing the values that they are given.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jinja2.nodes import Node
    from jinja2.parser import Parser
    from jinja2.runtime import Macro


def sandbox() -> jinja2.Environment:
    """Create the environment that chat templates are compiled in."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationTag]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    environment.globals["dict"] = TemplateDict()
    environment.globals["namespace"] = TemplateNamespace
    return environment


class _GenerationTag(Extension):
    """Renders the body of `{% generation %}`, which marks an assistant's message for training."""

    tags = {"generation"}  # noqa: RUF012  Jinja's own declaration

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        # A block of its own: what is set inside it is not set after it.
        return CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Macro) -> str:
        return caller()


def tojson(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002  templates call it so
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """Encode a value as JSON, without the HTML escapes of Jinja's own filter."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def raise_exception(message: str) -> NoReturn:
    """End the rendering, by which a template refuses a conversation."""
    raise jinja2.TemplateError(message)


def strftime_now(form: str) -> str:
    """Format the local time, without a time zone, as transformers does."""
    return datetime.now().astimezone().replace(tzinfo=None).strftime(form)


class TemplateDict:
    """Stands for `dict`, through whose methods a template could change the values it is given."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:  # noqa: ANN401  as dict's
        """Create a dictionary from anything that `dict` takes."""
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Iterable[Any], value: object = None) -> dict[Any, object]:
        """Create a dictionary with the same value for all keys."""
        return dict.fromkeys(keys, value)


class TemplateNamespace(Namespace):
    """A Jinja namespace that refuses names beginning with an underscore."""

    # Jinja's own trick, for a namespace may have an attribute `self`.
    def __init__(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401, D107
        self, items = args[0], dict(*args[1:], **kwargs)
        for name in items:
            _check_name(name)
        Namespace.__init__(self, items)

    def __setitem__(self, name: str, value: object) -> None:
        """Set an attribute, which templates do as `{% set ns.name = value %}`."""
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot have the attribute {name!r}")
