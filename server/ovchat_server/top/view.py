"""Figures as tables and lines in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.console import Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from ovchat_server.top.figures import Figures, ModelFigures

_UNKNOWN: Final = "-"
# More than any table takes.
WIDE: Final = 10_000


class _Column(NamedTuple):
    head: str
    cell: Callable[[ModelFigures], str]


def _state(model: ModelFigures) -> str:
    if model.ready == model.servers:
        return "ready"
    return f"{model.ready} of {model.servers} ready" if model.ready else "not ready"


def _percent(part: float | None) -> str:
    return _UNKNOWN if part is None else f"{part:.0%}"


def _rate(rate: float | None) -> str:
    if rate is None:
        return _UNKNOWN
    digits = ".2g" if rate < 1 else ".1f" if rate < 100 else ".0f"  # noqa: PLR2004
    return f"{rate:{digits}}"


def _seconds(*values: float | None) -> str:
    """Return seconds in the unit of the last one, the largest."""
    largest = values[-1]
    if largest is None:
        return _UNKNOWN
    factor, unit = (1, "s") if largest >= 1 else (1000, "ms")
    shown = [factor * (value or 0.0) for value in values]
    texts = (f"{value:.1f}" if value < 10 else f"{value:.0f}" for value in shown)  # noqa: PLR2004
    return f"{' / '.join(texts)} {unit}"


# In a narrow terminal the last ones are left out.
_COLUMNS: Final = (
    _Column("model", lambda of: _printable(of.name)),
    _Column("state", _state),
    _Column("running", lambda of: str(of.running)),
    _Column("waiting", lambda of: str(of.waiting)),
    _Column("KV\ncache", lambda of: _percent(of.kv_cache)),
    _Column("generated\ntokens/s", lambda of: _rate(of.generated_tokens)),
    _Column("TTFT\np50 / p95", lambda of: _seconds(*of.first_token)),
    _Column("ITL\np50 / p95", lambda of: _seconds(*of.between_tokens)),
    _Column("prompt\ntokens/s", lambda of: _rate(of.prompt_tokens)),
    _Column("requests/s", lambda of: _rate(of.requests)),
    _Column("prefix\nhits", lambda of: _percent(of.prefix_hits)),
    _Column("preemptions", lambda of: str(of.preemptions)),
    _Column("restarts", lambda of: str(of.restarts)),
)


@dataclass(frozen=True, slots=True)
class _Models:
    """The table of models, with as many columns as there is room for."""

    models: Sequence[ModelFigures]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table; see rich's protocol."""
        unbound = options.update(width=WIDE)
        columns = len(_COLUMNS)
        while (
            columns > 1
            and Measurement.get(console, unbound, self._table(columns)).maximum > options.max_width
        ):
            columns -= 1
        yield self._table(columns)
        if left_out := [column.head.replace("\n", " ") for column in _COLUMNS[columns:]]:
            yield Text(f"A wider terminal has: {', '.join(left_out)}", "dim")

    def _table(self, columns: int) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for number, column in enumerate(_COLUMNS[:columns]):
            # After a name and a word there are numbers.
            left = number < 2  # noqa: PLR2004
            table.add_column(
                Text(column.head), justify="left" if left else "right", vertical="bottom"
            )
        for model in self.models:
            style = "" if model.ready == model.servers else "yellow"
            cells = (column.cell(model) for column in _COLUMNS[:columns])
            table.add_row(*map(Text, cells), style=style)
        return table


def view(address: str, figures: Figures, trouble: str = "") -> RenderableType:
    """Return what is drawn.

    Args:
        address: Who was asked.
        figures: What is known.
        trouble: Why it is not what is now; "" if it is.
    """
    parts: list[RenderableType] = [Text(_head(address, figures), "bold")]
    if figures.replicas:
        parts += ["", _Models(figures.models), "", Text(_errors(figures))]
        parts.append(Text(f"event loop lag p95: {_seconds(figures.lag)}"))
    if figures.lost:
        numbers = ", ".join(map(str, figures.lost))
        parts += ["", Text(f"lost: server {numbers}, which is not counted above", "yellow")]
    if trouble:
        parts += ["", Text(_printable(trouble), "red")]
    return Group(*parts)


def _head(address: str, figures: Figures) -> str:
    if not figures.replicas:
        return address
    lacking = figures.servers < figures.replicas
    servers = f"{figures.servers} of {figures.replicas}" if lacking else f"{figures.servers}"
    parts = [
        address,
        f"ovchat {_printable(', '.join(figures.versions))}",
        f"up {timedelta(seconds=int(figures.uptime))}",
        f"servers {servers}",
        f"running {figures.running}",
        f"waiting {figures.waiting}",
    ]
    return "   ".join(parts)


def _errors(figures: Figures) -> str:
    if figures.errors is None:
        return f"errors/s: {_UNKNOWN}"
    # The most frequent ones first.
    ordered = sorted(figures.errors.items(), key=lambda item: -item[1])
    return "errors/s: " + (
        ", ".join(f"{_printable(code)} {_rate(rate)}" for code, rate in ordered) or "none"
    )


def _printable(text: str) -> str:
    """Return what a server told without what a terminal would obey."""
    return "".join(character if character.isprintable() else "?" for character in text)
