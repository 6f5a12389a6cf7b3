"""Plots of a benchmark as small SVG files: rates and times, in two panels side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 300
LEFT, TOP, PANEL_WIDTH, PANEL_HEIGHT, BETWEEN = 60, 50, 270, 180, 70
LINES = 4
COLOURS = ("#0f766e", "#b45309", "#4338ca")
# Readable in a dark page, too: the picture has a background.
GROUND, TEXT, GRID = "#ffffff", "#374151", "#d1d5db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines by name, each with a value per step; the title has the unit."""

    title: str
    lines: Mapping[str, Sequence[float]]


def write(path: Path, panels: tuple[Panel, Panel], *, steps: Sequence[str], steps_are: str) -> None:
    """Write the file; every step has the same width."""
    drawn = [
        _panel(panel, LEFT + number * (PANEL_WIDTH + BETWEEN), steps, steps_are)
        for number, panel in enumerate(panels)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="sans-serif" font-size="12" fill="{TEXT}">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{GROUND}"/>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _panel(panel: Panel, left: int, steps: Sequence[str], steps_are: str) -> str:
    top_value = ceiling(max(value for line in panel.lines.values() for value in line))
    middle = left + PANEL_WIDTH / 2
    parts = [
        f'<text x="{left}" y="{TOP - 30}" font-weight="bold">{escape(panel.title)}</text>',
        *(_grid_line(left, top_value, number) for number in range(LINES + 1)),
        *(
            f'<text x="{_x(left, place, len(steps)):.1f}" y="{TOP + PANEL_HEIGHT + 18}"'
            f' text-anchor="middle">{escape(step)}</text>'
            for place, step in enumerate(steps)
        ),
        (
            f'<text x="{middle}" y="{TOP + PANEL_HEIGHT + 38}" '
            f'text-anchor="middle">{escape(steps_are)}</text>'
        ),
        *(
            _line(left, name, [value / top_value for value in values], number=number)
            for number, (name, values) in enumerate(panel.lines.items())
        ),
    ]
    return "\n".join(parts)


def _grid_line(left: int, top_value: float, number: int) -> str:
    y = TOP + PANEL_HEIGHT * (1 - number / LINES)
    value = (
        f"{top_value * number / LINES:,.4g}"
        if top_value < 1000
        else f"{top_value * number / LINES:,.0f}"
    )
    return (
        f'<line x1="{left}" x2="{left + PANEL_WIDTH}" y1="{y}" y2="{y}" stroke="{GRID}"/>'
        f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{value}</text>'
    )


def _line(left: int, name: str, heights: Sequence[float], *, number: int) -> str:
    """Draw a line; heights are fractions of the panel's."""
    points = [
        (_x(left, place, len(heights)), TOP + PANEL_HEIGHT * (1 - height))
        for place, height in enumerate(heights)
    ]
    colour = COLOURS[number % len(COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
    label = (
        f'<text x="{left + number * 90}" y="{TOP - 12}" fill="{colour}">— {escape(name)}</text>'
        if name
        else ""
    )
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}{label}'
    )


def _x(left: int, place: int, count: int) -> float:
    return left + PANEL_WIDTH * (place + 0.5) / count


def ceiling(value: float) -> float:
    """Return the smallest of 1, 2, 4, 5 or 8 times a power of ten not below the value."""
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 0.1
    return next(factor * power for factor in (1, 2, 4, 5, 8, 10, 20) if factor * power >= value)
