"""Health as a bar chart: an SVG rendered on the server, red for failures."""

from collections.abc import Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.console.health.recent import RecentHealth, SettledCount
from delivery.console.shared.labels import milliseconds

_BAR, _GAP = 3, 1
# The least height of a bar with a count, so a small count beside large counts is visible.
_LEAST = 2.0


def sparkline(health: RecentHealth, *, height: int = 20) -> SafeString:
    """Return the bars of a day, with a text for screen readers and on hover."""
    return _drawn(health, height, SafeString(""))


def sparkline_in_detail(health: RecentHealth, *, height: int) -> SafeString:
    """Return the same chart, where each bar shows the counts on hover.

    `static/console/times.js` adds the reader's local time.
    """
    return _drawn(health, height, format_html_join("", _SPOT, _spots(health, height)))


def health_cell(health: RecentHealth) -> SafeString:
    """Return the cell of a list: the bars, and below them the success rate and the p95 duration."""
    summary = (
        f"{health.success}, p95 {milliseconds(health.p95_ms)}"
        if health.settled
        else "none delivered"
    )
    return format_html(
        '<span class="inturn-lines">{}<span class="inturn-second">{}</span></span>',
        sparkline(health),
        summary,
    )


def health_in_words(health: RecentHealth) -> str:
    if not health.settled:
        return "No deliveries or permanent failures in the last 24 hours."
    return f"Last 24 hours: {health.delivered:,} delivered, {health.failed:,} failed."


_SVG = (
    '<svg class="inturn-spark" viewBox="0 0 {} {}" preserveAspectRatio="none" '
    'role="img" aria-label="{}"><title>{}</title>'
    '<path class="inturn-spark-none" d="{}"/>'
    '<path class="inturn-spark-good" d="{}"/>'
    '<path class="inturn-spark-bad" d="{}"/>{}</svg>'
)
_SPOT = (
    '<rect class="inturn-spark-spot" x="{}" y="0" width="{}" height="{}" data-from="{}">'
    "<title>{}</title></rect>"
)


def _drawn(health: RecentHealth, height: int, above: SafeString) -> SafeString:
    # One path per colour: a list has a hundred charts, and an element per bar took most of the
    # time.
    none, good, bad = ("".join(path) for path in zip(*_boxes(health, height), strict=True))
    words = health_in_words(health)
    return format_html(
        _SVG, len(health.bars) * (_BAR + _GAP), height, words, words, none, good, bad, above
    )


def _boxes(health: RecentHealth, height: int) -> Iterator[tuple[str, str, str]]:
    """Yield each bar's part of the three paths: empty, delivered, and failed at the bottom."""
    highest = max(health.highest, 1)
    for number, bar in enumerate(health.bars):
        x = number * (_BAR + _GAP)
        bad = _height(bar.failed, highest, height)
        good = min(_height(bar.delivered, highest, height), height - bad)
        none = _box(x, height - 1, 1) if not good + bad else ""
        yield none, _box(x, height - bad - good, good), _box(x, height - bad, bad)


def _height(count: int, highest: int, height: int) -> float:
    return max(height * count / highest, _LEAST) if count else 0.0


def _box(x: int, top: float, height: float) -> str:
    return f"M{x} {top:.1f}h{_BAR}v{height:.1f}h-{_BAR}z" if height else ""


def _spots(health: RecentHealth, height: int) -> Iterator[tuple[object, ...]]:
    for number, bar in enumerate(health.bars):
        yield number * (_BAR + _GAP), _BAR + _GAP, height, bar.at.isoformat(), _bar_text(bar)


def _bar_text(bar: SettledCount) -> str:
    return f"from {bar.at:%H:%M} UTC: {bar.delivered:,} delivered, {bar.failed:,} failed"
