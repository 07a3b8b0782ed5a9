"""Finds comments, strings, numbers and keywords in a line of code, in any common language.

The code is written by agents and may be hostile. The patterns of a full highlighter can take
minutes on a hostile line, and no other thread runs while Python matches a pattern. So this module
uses one simple pattern, which needs linear time.
"""

import re
from typing import Final

from msgspec import Struct

_HASH = ("bash", "cfg", "conf", "ini", "pl", "py", "pyi", "r", "rb", "sh", "toml", "yaml", "yml")
_SLASHES = (
    *("c", "cc", "cpp", "cs", "cts", "dart", "go", "h", "hpp", "java", "js", "jsx", "kt", "mjs"),
    *("php", "proto", "rs", "scala", "scss", "swift", "ts", "tsx", "zig"),
)
_DASHES = ("elm", "hs", "lua", "sql")
#: The sign that begins a comment up to the end of the line, by file extension.
_COMMENTS: Final = {
    **dict.fromkeys(_HASH, "#"),
    **dict.fromkeys(_SLASHES, "//"),
    **dict.fromkeys(_DASHES, "--"),
}
#: Files without an extension whose comments begin with `#`.
_NAMES: Final = ("Dockerfile", "Makefile", "Justfile", "Gemfile", "Rakefile")
_KEYWORDS: Final = frozenset(
    [
        "abstract",
        "and",
        "as",
        "assert",
        "async",
        "await",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "continue",
        "def",
        "default",
        "defer",
        "del",
        "do",
        "double",
        "elif",
        "else",
        "end",
        "enum",
        "except",
        "export",
        "extends",
        "extern",
        "false",
        "False",
        "final",
        "finally",
        "float",
        "fn",
        "for",
        "foreach",
        "from",
        "func",
        "function",
        "global",
        "go",
        "goto",
        "if",
        "impl",
        "implements",
        "import",
        "in",
        "include",
        "instanceof",
        "int",
        "interface",
        "is",
        "lambda",
        "let",
        "long",
        "loop",
        "match",
        "mod",
        "module",
        "mut",
        "namespace",
        "new",
        "nil",
        "None",
        "nonlocal",
        "not",
        "null",
        "or",
        "override",
        "package",
        "pass",
        "private",
        "protected",
        "pub",
        "public",
        "raise",
        "require",
        "return",
        "self",
        "select",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "super",
        "switch",
        "template",
        "then",
        "this",
        "throw",
        "throws",
        "trait",
        "true",
        "True",
        "try",
        "type",
        "typedef",
        "typeof",
        "union",
        "unsafe",
        "unsigned",
        "use",
        "using",
        "var",
        "virtual",
        "void",
        "where",
        "while",
        "with",
        "yield",
    ]
)
# An unclosed string extends to the end of the line, so that no part is matched twice.
_TOKEN: Final = {
    mark: re.compile(
        rf"(?P<comment>{mark}.*)"
        r"|(?P<string>\"(?:[^\"\\]|\\.)*(?:\"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$)|`[^`]*(?:`|$))"
        r"|(?P<number>\b\d[\w.]*)|(?P<word>[A-Za-z_]\w*)"
    )
    for mark in ("#", "//", "--")
}


class Token(Struct, frozen=True):
    """A part of a line of code."""

    text: str
    kind: str = ""  #: `comment`, `string`, `number` or `keyword`; if empty, none of these.


def comment_mark(path: str) -> str | None:
    """Return what begins a comment in a file; None if the file is not code in a known language."""
    name = path.rpartition("/")[2]
    extension = name.rpartition(".")[2].lower()
    return "#" if name in _NAMES else _COMMENTS.get(extension)


def tokens(line: str, mark: str) -> list[Token]:
    """Split a line of code by kind of token.

    `mark` is the result of `comment_mark` for its file.
    """
    found: list[Token] = []
    end = 0
    for match in _TOKEN[mark].finditer(line):
        kind = match.lastgroup or ""
        if kind == "word":
            kind = "keyword" if match[0] in _KEYWORDS else ""
        if kind:
            if end < match.start():
                found.append(Token(line[end : match.start()]))
            found.append(Token(match[0], kind))
            end = match.end()
    if end < len(line):
        found.append(Token(line[end:]))
    return found
