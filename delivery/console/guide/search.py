"""Search of the guide.

The texts are small (70 kB): each process reads them once and scans them for each search.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from delivery.console.guide.pages import GUIDE_PAGES, GuidePage
from delivery.console.guide.text import GuideSection, guide_text

MOST_WORDS = 8
MOST_HITS = 30
EXCERPT_CHARACTERS = 220


@dataclass(frozen=True, slots=True)
class GuideHit:
    """A section with every word of the search."""

    page: GuidePage
    anchor: str
    heading: str
    excerpt: SafeString


def search_guide(query: str) -> Sequence[GuideHit]:
    """Return the best sections first; a word also matches inside a longer word, in any case.

    A word in a heading counts ten times as much as in the text, and in the page's title five times.
    """
    words = query.casefold().split()[:MOST_WORDS]
    if not words:
        return []
    ranked = [
        (score, page, section)
        for page, section in _all_sections()
        if (score := _score(page, section, words))
    ]
    ranked.sort(key=lambda hit: -hit[0])
    return [_hit(page, section, words) for _, page, section in ranked[:MOST_HITS]]


@cache
def _all_sections() -> Sequence[tuple[GuidePage, GuideSection]]:
    return [
        (page, section)
        for name, page in GUIDE_PAGES.items()
        for section in guide_text(name).sections
    ]


def _score(page: GuidePage, section: GuideSection, words: Sequence[str]) -> int:
    """Return 0 if a word occurs neither in the section nor in the headings."""
    title, heading, text = (part.casefold() for part in (page.title, section.heading, section.text))
    scores = [
        10 * (word in heading) + 5 * (word in title) + min(text.count(word), 4) for word in words
    ]
    return sum(scores) if all(scores) else 0


def _hit(page: GuidePage, section: GuideSection, words: Sequence[str]) -> GuideHit:
    return GuideHit(
        page=page,
        anchor=section.anchor,
        heading=section.heading or page.title,
        excerpt=_excerpt(section.text, words),
    )


def _excerpt(text: str, words: Sequence[str]) -> SafeString:
    """Return the text around the first word found, with all found words marked."""
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, first.start() - EXCERPT_CHARACTERS // 3) if first else 0
    if start:
        start = text.find(" ", start) + 1
    end = start + EXCERPT_CHARACTERS
    shown = text[start:end].rpartition(" ")[0] if end < len(text) else text[start:]
    return format_html(
        "{}{}{}", "… " if start else "", _marked(shown, pattern), " …" if end < len(text) else ""
    )


def _marked(text: str, pattern: re.Pattern[str]) -> SafeString:
    position, parts = 0, list[str]()
    for match in pattern.finditer(text):
        parts.append(format_html("{}<mark>{}</mark>", text[position : match.start()], match[0]))
        position = match.end()
    # All parts are escaped.
    return mark_safe("".join([*parts, format_html("{}", text[position:])]))  # noqa: S308
