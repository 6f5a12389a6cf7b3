"""Moments in a form that people read."""

from datetime import UTC, datetime, timedelta

from delivery.console.shared import times

NOW = datetime(2026, 8, 2, 10, 15, 0, 123456, tzinfo=UTC)


def test_the_exact_moment_is_shown_on_hover() -> None:
    shown = times.ago(NOW - timedelta(minutes=3), now=NOW)
    assert 'title="2026-08-02 10:12:00.123 UTC"' in shown
    assert ">3 min ago<" in shown


def test_a_future_moment_is_never_ago() -> None:
    assert ">in 12 s<" in times.due(NOW + timedelta(seconds=12), now=NOW)
    assert ">now<" in times.due(NOW - timedelta(seconds=12), now=NOW)
    assert times.ago(None, now=NOW) == "–"


def test_an_absolute_time_has_a_place_for_the_local_one() -> None:
    assert times.minute(NOW) == (
        '<time datetime="2026-08-02T10:15:00.123456+00:00" title="2026-08-02 10:15:00.123 UTC" '
        'class="inturn-time" data-local>2026-08-02 10:15 UTC</time>'
    )
    assert times.stamp(NOW).endswith(">2026-08-02 10:15:00.123 UTC</time>")
    assert "data-local" not in times.ago(NOW, now=NOW)


def test_the_times_in_a_text_are_marked_and_the_rest_is_escaped() -> None:
    text = "<b> is HELD until 2026-08-02 10:15 UTC, not 2026-13-02 10:15 UTC."
    marked = times.with_times(text)
    assert marked.startswith('&lt;b&gt; is HELD until <time datetime="2026-08-02T10:15:00+00:00" ')
    assert marked.endswith(">2026-08-02 10:15 UTC</time>, not 2026-13-02 10:15 UTC.")
    assert times.with_times(marked) is marked


def test_a_typed_time_has_a_place_for_the_local_one() -> None:
    assert times.marked_up_time("2026-08-02T10:15").startswith(
        '<time datetime="2026-08-02T10:15:00+00:00" '
    )
    assert times.marked_up_time("2026-08-02T10:15").endswith(" data-local>2026-08-02T10:15</time>")
    assert 'datetime="2026-08-02T08:15:00+00:00"' in times.marked_up_time("2026-08-02T10:15+02:00")
    for text in ("1h", "20260802", "0001-01-01T00:00+02:00"):
        assert times.marked_up_time(text) == text
