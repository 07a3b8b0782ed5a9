"""Parses GitHub-flavoured Markdown: the visible text, and the lines that address the bot.

The structure is parsed by markdown-it-py, which follows CommonMark. Tables, task lists and
footnotes are added in the way in which GitHub reads them.
https://github.github.com/gfm/
https://docs.github.com/en/get-started/writing-on-github
"""

import re
from bisect import bisect_right
from collections.abc import Container, Iterator
from functools import lru_cache
from html import unescape
from itertools import islice, pairwise
from typing import Any, NamedTuple

from markdown_it.token import Token
from msgspec import Struct

from bot.text.markdown_parser import column_of, parser
from lifecycle.model.names import NAME

#: The most characters that GitHub accepts in a body. A longer text is cut, which bounds the time
#: to parse a hostile text (measured: under two seconds on a busy core).
MAX_LENGTH = 65_536
#: A text with more of these signs takes the parser seconds, so it is not parsed: what looks like
#: HTML counts as hidden, and so does each paragraph with `_SUSPECT`. No line addresses the bot.
_MAX_SIGNS = {"[": 2_000, "|": 10_000, "<![": 1_000}

_MAX_ADDRESSES = 10
#: A text without any of these signs has no hidden parts.
_HIDING = ("<", "]:", "](", "&", "```", "~~~")
# The beginnings of lines in task lists and footnotes. GitHub reads a task's box and a footnote's
# label as part of the container: `[ ] <div>` begins an HTML block, and so does `[^1]: <div>`.
_TASK = re.compile(r"^((?:[ >]*(?:[-+*]|\d{1,9}[.)])[ ]+)++)\[[ xX]\][ ]+")
_FOOTNOTE = re.compile(r"^((?:[ ]{0,3}>)*+[ ]{0,4})\[\^([^\]\s]+)\]:[ \t]*(?=\S)")
#: Replaces a footnote's label, so that the parser takes the footnote for a list item. The text of
#: both is indented by four columns.
_AS_ITEM = "-   "
#: A quoted remark in a message to an agent: `@ada: ` precedes the Markdown of the remark.
_REMARK = re.compile(r"[ \t]*@\S{1,60}:[ \t]*<[A-Za-z/!?]")

#: Hidden parts of HTML, and its tags. Lengths are bounded, so that hostile text takes linear time.
_HTML = re.compile(
    r"<!--[\s\S]*?(?P<closed>-->|\Z)"
    r"|<!\[CDATA\[[\s\S]*?(?:\]\]>|\Z)|<(?:![A-Za-z]|\?)[^>]*(?:>|\Z)"
    r"|(?P<tag><(?P<end>/?)(?P<name>[A-Za-z][\w-]*))"
    r"(?P<rest>(?:[\s/](?:\"[^\"]{0,4000}\"|'[^']{0,4000}'|[^\"'<>])*)?)>"
    r"|(?P<open></?[A-Za-z])"
)
#: The attributes that `visible` keeps, which contain URLs, and the slash of an empty element.
_ATTRIBUTE = re.compile(
    r"\s(?:href|src)=(?:\"[^\"\s]*\"|'[^'\s]*'|[^\s\"']+)|\s?/\Z", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
#: The alternative text of an image, in text that is not parsed; `hidden` is None without an end.
_ALTERNATIVE = re.compile(r"!\[(?:(?P<hidden>[^\]\n]*+)\]|[^\]\n]*+)")
#: Signs of images, links and code blocks that can hide text, up to the next blank line.
_SUSPECT = re.compile(r"(?m)!\[|\]\(|\]:|^[\t >*+.)\]\[xX\d-]*+[`~]{3}[`~\t\xa0 ]*+\S++[^\S\n]+\S")
#: The title of a link, in text that is not parsed.
_TITLE = re.compile(r"\]\([^\s()]{0,2000}(?P<hidden>\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\))\s*)\)")
#: HTML elements in which no line addresses the bot.
_QUOTING = frozenset({"blockquote", "code", "pre", "samp", "script", "style", "textarea"})


class Address(Struct, frozen=True):
    """A line that addresses the bot."""

    line: str  #: The rest of the line after the name, without hidden text.
    #: The text after the name up to the next blank line outside of code and HTML blocks, or up to
    #: the next address.
    paragraph: str
    #: The text after the name up to the next address, or to the end of the text.
    message: str
    mention: bool = False  #: Whether the name is written with `@`.


def visible(text: str) -> str:
    """Return Markdown without the text that GitHub does not show.

    These are removed: HTML comments, declarations, processing instructions, attributes without a
    URL, alternative texts of images, titles of links and images, footnotes without a reference,
    and words after the language of a code block. Link references are replaced by URLs, and entities
    by characters. Code is unchanged. The text is cut to `MAX_LENGTH`, and its line ends become
    newlines. A text with too much markup to parse (`_MAX_SIGNS`) loses all that may be hidden.
    """
    text = _newlines(text)
    return _Page(text).render() if any(sign in text for sign in _HIDING) else text


def addresses(text: str, slug: str = "") -> tuple[Address, ...]:
    """Find the lines that begin with `/mergewright` or `@mergewright`.

    If the App's name `slug` is `acme-bot`, `/acme-bot` and `@acme-bot` also address the bot. Names
    may end with `[bot]`; case is ignored. Lines in quotes, code and hidden comments do not count.
    Returns the first ten lines that count.
    """
    named, address = _patterns(slug)
    if named.search(text) is None:
        return ()  # Most texts do not name the bot; they need no parsing.
    return tuple(islice(_addresses(_Page(_newlines(text)), address), _MAX_ADDRESSES))


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")[:MAX_LENGTH]


@lru_cache(maxsize=8)
def _patterns(slug: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    names = "|".join(map(re.escape, filter(None, (NAME, slug))))
    return (
        re.compile(names, re.IGNORECASE),
        re.compile(rf"[ \t]*[/@](?:{names})(?:\[bot\])?(?![\w/-])[:,]?", re.IGNORECASE),
    )


def _addresses(page: "_Page", address: re.Pattern[str]) -> Iterator[Address]:
    found = {
        number: match
        for number in sorted(page.spoken)
        if (match := address.match(page.text, page.starts[number]))
        and not page.masked[match.end() - len(match[0].lstrip())]
    }
    for number, match in found.items():
        last = number + 1
        while last < len(page.lines) and last not in found and not page.ends_paragraph(last):
            last += 1
        yield Address(
            page.without_comments(match.end(), page.starts[number + 1]).strip(),
            page.without_comments(match.end(), page.starts[last]).strip(),
            page.without_comments(match.end(), page.starts[_next(found, number, page)]).strip(),
            match[0].lstrip().startswith("@"),
        )


def _next(found: Container[int], number: int, page: "_Page") -> int:
    """Return the first line number after `number` that is in `found`, or `len(page.lines)`."""
    lines = range(number + 1, len(page.lines))
    return next((line for line in lines if line in found), len(page.lines))


class _Edit(NamedTuple):
    """Puts `text` in place of a part of the source. `tag` says that the part is an HTML tag."""

    start: int
    end: int
    text: str = ""
    tag: bool = False


class _Page:
    """The structure of a Markdown text, with positions in its source."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        #: The position at which each line starts, and the length of the text.
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.starts[-1] = len(text)
        #: Numbers of the lines that can address the bot: text outside of quotes and code blocks.
        self.spoken = set[int]()
        self._blocks = set[int]()  # Lines of code and HTML blocks.
        #: 1 for each character of a code span, of markup, and of text that markup hides or quotes.
        self.masked = bytearray(len(text))
        self._edits = list[_Edit]()
        self._unknown = set[int]()  # The first lines of what was read by `_unparsed`.
        self._quoting = 0  # The open elements of `_QUOTING`, and where the first begins.
        self._quoting_from = 0
        self._hidden_from = -1  # The start of an unclosed comment or tag; -1 without one.
        self._footnotes = dict[int, str]()
        if any(text.count(sign) > most for sign, most in _MAX_SIGNS.items()):
            self._hide_suspects()
        else:
            self._read()
        if self._hidden_from >= 0:
            self._hide(self._hidden_from, len(self.text))
        self._edits.sort()

    def render(self) -> str:
        """Return the text without the parts that GitHub does not show."""
        return self._edited(0, len(self.text), self._edits)

    def without_comments(self, start: int, end: int) -> str:
        """Return the text from `start` to `end` without the parts that GitHub hides.

        HTML tags keep all their attributes.
        """
        return self._edited(start, end, [edit for edit in self._edits if not edit.tag])

    def ends_paragraph(self, number: int) -> bool:
        """Whether a line is blank. A blank line inside a code or HTML block does not count."""
        return not self.lines[number].strip() and number not in self._blocks

    def _edited(self, start: int, end: int, edits: list[_Edit]) -> str:
        parts, at = list[str](), start
        for edit in edits:
            if edit.end > at and edit.start < end:
                parts += [self.text[at : max(at, edit.start)], edit.text]
                at = min(edit.end, end)
        return "".join([*parts, self.text[at:end]])

    def _read(self) -> None:
        source = [self._as_container(number, line) for number, line in enumerate(self.lines)]
        env: dict[str, Any] = {}
        tokens = _PARSER.parse("\n".join(source), env)
        read = set[int]()
        quotes = 0
        cells = dict[int, int]()  # The column where the last table cell of a line ends.
        for before, token in pairwise([tokens[0], *tokens] if tokens else []):
            quotes += token.nesting if token.type.startswith("blockquote") else 0
            if token.map is None or token.type.endswith(("list_open", "item_open", "quote_open")):
                continue
            read.update(range(*token.map))
            if token.type == "html_block":
                self._html_block(token, quotes)
            elif token.type in ("fence", "code_block"):
                self._blocks.update(range(*token.map))
                self._info(token.map[0], token.info.strip())
            elif token.type == "inline":
                in_table = before.type in ("th_open", "td_open")
                self._inline(token, source, cells if in_table else None, quotes)
        for reference in (*env.get("references", {}).values(), *env.get("duplicate_refs", ())):
            first, last = reference["map"]
            read.update(range(first, last))
            self._hide(self.starts[first], self.starts[last])
        # Lines nested too deeply to be parsed: what could be hidden in them counts as hidden.
        for number in set(range(len(self.lines))) - read:
            self._unparsed(self.starts[number], self.starts[number + 1])
        self._unused_footnotes(tokens)
        if self._quoting:
            self._mask(self._quoting_from, len(self.text))

    def _hide_suspects(self) -> None:
        """Hide HTML, and each paragraph with a sign of other markup that can hide text."""
        self._html(0, len(self.text), closes=True)
        first, hides = 0, False
        for number, line in enumerate([*self.lines, ""]):
            if not line.strip(" \t"):
                part = "\n".join(self.lines[first:number])
                # An indented paragraph may belong to a footnote that begins before it.
                if hides := bool(_SUSPECT.search(part)) or (hides and part[:1] in " \t"):
                    self._hide(self.starts[first], self.starts[number])
                first = number + 1

    def _hide(self, start: int, end: int) -> None:
        self._edits.append(_Edit(start, end))
        self._mask(start, end)

    def _mask(self, start: int, end: int) -> None:
        self.masked[start:end] = b"\1" * (end - start)

    def _as_container(self, number: int, line: str) -> str:
        if footnote := _FOOTNOTE.match(line):
            self._footnotes[number] = footnote[2]
            return f"{footnote[1]}{_AS_ITEM}{line[footnote.end() :]}"
        return _TASK.sub(r"\1", line)

    def _info(self, number: int, info: str) -> None:
        """Hide the words after the language in the first line of a code block."""
        language = info.split(maxsplit=1)[0] if info else ""
        if language != info:
            start = self.starts[number] + self.lines[number].rfind(info) + len(language)
            self._hide(start, self.starts[number] + len(self.lines[number]))

    def _html_block(self, token: Token, quotes: int) -> None:
        first, last = token.map or (0, 0)
        self._blocks.update(range(first, last))
        self._html(self.starts[first], self.starts[last], closes=True)
        self._entities(self.starts[first], self.starts[last])
        if not quotes:
            self.spoken.update(range(first, last))

    def _inline(
        self, token: Token, source: list[str], cells: dict[int, int] | None, quotes: int
    ) -> None:
        first, last = token.map or (0, 0)
        if not quotes:
            self.spoken.update(range(first, last))
        content = token.content.split("\n")
        columns = list[int]()
        for number, part in enumerate(content, first):
            after = None if cells is None else cells.get(number, 0)
            column = column_of(source[number], self.lines[number], part, after)
            if column is None:  # A cell with escaped bars is not found as it is written.
                if first not in self._unknown:  # Once for all cells of a line.
                    self._unknown.add(first)
                    self._unparsed(self.starts[first], self.starts[last])
                return
            if cells is not None:
                removed = len(self.lines[number]) - len(source[number])
                cells[number] = column - removed + len(part)
            columns.append(self.starts[number] + column)
        offsets = [0]
        for part in content:
            offsets.append(offsets[-1] + len(part) + 1)

        def position(at: int) -> int:
            row = min(bisect_right(offsets, at), len(columns)) - 1
            return columns[row] + at - offsets[row]

        code = list[tuple[int, int]]()
        for child in token.children or ():
            for edit in child.meta.get("edits", ()):
                start, end = position(edit.start), position(edit.end)
                self._edits.append(_Edit(start, end, edit.text))
                self._mask(start, end)
            if span := child.meta.get("span"):
                start, end = map(position, span)
                if child.type == "text_special":
                    self._edits.append(_Edit(start, end, child.content))
                    continue
                self._mask(start, end)
                if child.type == "html_inline":
                    self._html(start, end, closes=True)
                else:
                    code.append((start, end))
        for start, part in zip(columns, content, strict=True):
            if _REMARK.match(part):
                self._html_between(start, self.starts[last], code)
                break

    def _unparsed(self, start: int, end: int) -> None:
        """Hide HTML, titles and alternative texts in a text that could not be parsed."""
        self._html(start, end)
        for pattern in (_ALTERNATIVE, _TITLE):
            for found in pattern.finditer(self.text, start, end):
                if found["hidden"] is not None:
                    self._hide(*found.span("hidden"))
        self._entities(start, end)

    def _entities(self, start: int, end: int) -> None:
        for found in _ENTITY.finditer(self.text, start, end):
            self._edits.append(_Edit(*found.span(), unescape(found[0])))

    def _html_between(self, start: int, end: int, code: list[tuple[int, int]]) -> None:
        """Read the tags between two positions as HTML, except in the code spans `code`."""
        for begins, ends in [*code, (end, end)]:
            if begins >= start:
                self._html(start, begins)
            start = max(start, ends)

    def _html(self, start: int, end: int, *, closes: bool = False) -> None:
        """Read the text as HTML. With `closes`, an unclosed comment or tag hides what follows."""
        if self._hidden_from >= 0:
            closed = self.text.find("-->", start, end) if closes else -1
            if closed < 0:
                return
            start = closed + len("-->")
            self._hide(self._hidden_from, start)
            self._hidden_from = -1
        for found in _HTML.finditer(self.text[start:end]):
            begins, ends = start + found.start(), start + found.end()
            if found["tag"]:
                self._edits.append(_Edit(begins, ends, _bare(found), tag=True))
                self._mask(begins, ends)
                if closes and found["name"].lower() in _QUOTING:
                    self._quote(begins, ends, opens=not found["end"])
            elif closes and (found["open"] or found["closed"] == ""):
                self._hidden_from = begins
                return
            elif not found["open"]:
                self._hide(begins, ends)

    def _quote(self, begins: int, ends: int, *, opens: bool) -> None:
        if opens:
            self._quoting_from = self._quoting_from if self._quoting else begins
            self._quoting += 1
        elif self._quoting:
            self._quoting -= 1
            if not self._quoting:
                self._mask(self._quoting_from, ends)

    def _unused_footnotes(self, tokens: list[Token]) -> None:
        """Hide footnotes to which nothing refers."""
        if not self._footnotes:
            return
        texts = [
            child.content for token in tokens for child in token.children or () if child.content
        ]
        for token in tokens:
            label = self._footnotes.get(token.map[0]) if token.map else None
            if label is None or token.map is None or token.type != "list_item_open":
                continue
            if not any(f"[^{label}]" in text for text in texts):
                first, last = token.map
                self._hide(self.starts[first], self.starts[last])


def _bare(tag: re.Match[str]) -> str:
    """Return an HTML tag without its attributes, except `href` and `src`."""
    return f"{tag['tag']}{''.join(_ATTRIBUTE.findall(tag['rest']))}>"


_PARSER = parser()
