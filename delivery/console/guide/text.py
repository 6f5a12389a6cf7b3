"""The text of a guide page: as HTML with an anchor at each heading, and as sections to search."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.template.loader import render_to_string
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

# HTML in a source text is shown as text, not rendered.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_LEAVES = ("inline", "fence", "code_block")
_OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")


@dataclass(frozen=True, slots=True)
class GuideSection:
    """The text below a heading; anchor and heading are empty for the text above the first."""

    anchor: str
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class GuideText:
    html: str
    sections: Sequence[GuideSection]


def guide_text(name: str) -> GuideText:
    tokens = _MARKDOWN.parse(render_to_string(f"guide/{name}.md"))
    _add_anchors(tokens)
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    # Wide tables scroll by themselves; the keyboard has to reach them.
    for tag in ("pre", "table"):
        html = html.replace(f"<{tag}>", f'<{tag} tabindex="0">')
    return GuideText(html=html, sections=list(_sections(tokens)))


def _inline_code(_renderer: Any, tokens: Sequence[Token], place: int, *_: Any) -> str:
    """Render code; on narrow screens an option such as `--name` keeps the hyphens."""
    code = _OPTION.sub(r'<span class="option">\g<0></span>', escapeHtml(tokens[place].content))
    return f"<code>{code}</code>"


_MARKDOWN.add_render_rule("code_inline", _inline_code)


def _add_anchors(tokens: Sequence[Token]) -> None:
    """Give each heading an id made from the text, with a number if the page repeats the heading."""
    counts: dict[str, int] = {}
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            slug = slugify(_plain(content))
            counts[slug] = counts.get(slug, 0) + 1
            opening.attrSet("id", slug if counts[slug] == 1 else f"{slug}-{counts[slug]}")


def _sections(tokens: Sequence[Token]) -> Iterator[GuideSection]:
    anchor, heading, texts = "", "", list[str]()
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.type == "heading_open":
            if heading or texts:
                yield GuideSection(anchor, heading, " ".join(texts))
            anchor, heading, texts = str(before.attrGet("id")), _plain(token), []
        elif token.type in _LEAVES:
            texts.append(_plain(token))
    yield GuideSection(anchor, heading, " ".join(texts))


def _plain(token: Token) -> str:
    parts = (
        [child.content or " " for child in token.children] if token.children else [token.content]
    )
    return " ".join("".join(parts).split())
