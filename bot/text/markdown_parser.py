"""A Markdown parser whose tokens know their positions in the source."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkLabel
from markdown_it.rules_inline import StateInline, image, link


class Shown(NamedTuple):
    """A part of a block's text, between two positions, and the `text` that pages show instead."""

    start: int
    end: int
    text: str


def parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables.

    It adds to the `meta` of tokens: for code spans, HTML and entities, a `span` (start and end in
    the block's text); for links and images, `edits` (those that show what pages show; see `Shown`).
    """
    # Emphasis hides no text: not parsing it saves time.
    made = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    made.disable(["emphasis", "balance_pairs", "fragments_join", "text_join"])
    made.validateLink = lambda url: True  # type: ignore[method-assign]
    inline = made.inline.ruler
    for name in ("backticks", "html_inline", "entity"):
        rule = next(one for one in inline.__rules__ if one.name == name).fn
        inline.at(name, _with_span(rule))
    inline.at("link", _link)
    inline.at("image", _image)
    return made


def _with_span(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Wrap a rule so that it also notes each token's position in the text of its block."""

    def noting(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.tokens)
        matched = rule(state, silent)
        if matched and len(state.tokens) > known:
            token = state.tokens[-1]
            if token.type in ("code_inline", "html_inline", "text_special"):
                token.meta["span"] = (start, state.pos)
        return matched

    return noting


def _link(state: StateInline, silent: bool) -> bool:
    """Parse a link, and note the parts that a page does not show."""
    start, known = state.pos, len(state.tokens)
    if not link(state, silent):
        return False
    if not silent:
        token = next(one for one in state.tokens[known:] if one.type == "link_open")
        label = parseLinkLabel(state, start, True)
        token.meta["edits"] = list(_edits(state, start + 1, label, label))
    return True


def _image(state: StateInline, silent: bool) -> bool:
    """Parse an image, and note the parts that a page does not show: alternative text and title."""
    start = state.pos
    # Silently, because the parser would call itself for images in the alternative.
    if not image(state, True):
        return False
    if not silent:
        label = parseLinkLabel(state, start + 1, False)
        token = state.push("image", "img", 0)
        token.meta["edits"] = list(_edits(state, start + 2, label, start + 2))
    return True


def _edits(state: StateInline, start: int, label: int, shown: int) -> Iterator[Shown]:
    """Yield edits that remove from a link or image what pages do not show.

    The link or image was just parsed. Its label is between the positions `start` and `label`, and
    the part of it before the position `shown` is kept: all of a link's label, nothing of an
    image's. A title is removed, and a reference is replaced by its URL.
    """
    end, source = state.pos, state.src
    if end > label + 1 and source[label + 1] == "(":
        yield Shown(shown, label, "")
        at = label + 2
        while source[at].isspace():
            at += 1
        address = parseLinkDestination(source, at, end)
        yield Shown(address.pos if address.ok else at, end - 1, "")
    else:
        name = source[label + 2 : end - 1] or source[start:label]
        reference = state.env["references"][normalizeReference(name)]
        yield Shown(shown, end, f"]({reference['href']})")


def column_of(source: str, line: str, part: str, after: int | None) -> int | None:
    """Return the offset in `line` at which the text `part` begins; None if it is not found.

    `part` is searched for in `source`, which is `line` as it was prepared for the parser. For a
    table cell, the search begins at the offset `after` in `source`; for other text, `after` is None
    and the last occurrence counts.
    """
    indent = len(part) - len(part.lstrip())
    part = part.strip()
    at = source.rfind(part) if after is None else source.find(part, after)
    return None if at < 0 else at + len(line) - len(source) - indent
