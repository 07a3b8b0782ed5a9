"""What people see of a text of others where they read it: an agent is told that, and no more."""

import re
import unicodedata

from lifecycle.model.names import UNSPOKEN
from lifecycle.model.text import plain as without_controls

# What a page does not show: comments, of which one that is never closed hides all that follows,
# and references that lead nowhere and are used as comments.
_HIDDEN = re.compile(
    r"<!--[\s\S]*?(?:-->|\Z)|<!\[CDATA\[[\s\S]*?(?:\]\]>|\Z)"
    r"|^[ >*+-]*\[[^\]\n]*\]:[ \t]*(?:#|<>)[ \t]*(?:[\"'(][^\n]*)?$",
    re.MULTILINE,
)
# Markup that a page shows as it stands only where it is code: declarations and instructions, of
# which nothing is seen, and tags, which are seen by what they do. Lengths are capped, so that a
# hostile text costs linear time.
_UNSHOWN = r"<(?:![A-Za-z]|\?)[^>]*>|^[ >*+-]*<(?:![A-Za-z]|\?)[^>]*\Z|(?P<tag></?[A-Za-z][\w-]*)"
_SPACE = r"(?:[ \t\v\f]|\n(?![ \t]*\n))"
_VALUE = r"(?:\"[^\"]{0,4000}\"|'[^']{0,4000}'|[^\s\"'=<>`]+)"
# In a sentence only what is well written is a tag: `Promise<string | undefined>` is shown.
_TAG = re.compile(
    rf"{_UNSHOWN}(?P<rest>(?:{_SPACE}++[A-Za-z_:][\w.:-]*+(?:{_SPACE}*+={_SPACE}*+{_VALUE})?+)*+"
    rf"{_SPACE}*+/?)>",
    re.MULTILINE,
)
# In HTML everything is one. That begins with a line, behind what quotes and lists begin with and
# who says it, or behind a comment, and where it is over is left open.
_HTML_TAG = re.compile(
    rf"{_UNSHOWN}(?P<rest>[\s/](?:\"[^\"]{{0,4000}}\"|'[^']{{0,4000}}'|[^\"'<>])*)>", re.MULTILINE
)
_HTML = re.compile(
    r"^(?:(?:@\S{1,60}:|\[[^\]\n]{0,40}\]|\d+[.)]|[^\w\n<`])*+<(?!!--)[A-Za-z/!?]|(?>.*?-->).*<)",
    re.MULTILINE,
)
# What of a tag may matter to somebody who reads it: values of one word, as addresses are.
_PLAIN_ATTRIBUTE = re.compile(r"\s[\w:-]+=(?:\"[^\"\s]*\"|'[^'\s]*'|[^\s\"']+)|\s?/\Z")
# Signs without a shape that Unicode does not count among the formatting ones: fillers, and the
# selectors of variants, in which whole texts can be hidden.
_SHAPELESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
_UNSEEN = ("Cc", "Cf", "Cs")
_TICKS = re.compile(r"`{3,}")
_LONGEST_FENCE = 8
_LINE = 200


def plain(text: str) -> str:
    """Text of others without what a person would not see: comments, invisible and control signs."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    visible = _SHAPELESS.sub("", _HIDDEN.sub("", without_controls(lines)))
    return "".join(
        sign for sign in visible if sign in "\n\t" or unicodedata.category(sign) not in _UNSEEN
    ).strip("\n")


def seen(text: str) -> str:
    """Markdown without what its markup hides; code shows all of it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    unfenced = UNSPOKEN.sub(lambda code: "`" * len(code[0]) if code["fence"] else code[0], text)
    html = _HTML.search(unfenced)
    begins = html.start() if html else len(text)
    return _without(_TAG, text[:begins]) + _without(_HTML_TAG, text[begins:])


def _without(markup: re.Pattern[str], text: str) -> str:
    """What is seen of this markup, and all of what is code."""
    parts, end = list[str](), 0
    for code in UNSPOKEN.finditer(text):
        if code["fence"] or code["ticks"]:
            parts += [markup.sub(_bare, text[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*parts, markup.sub(_bare, text[end:])])


def _bare(markup: re.Match[str]) -> str:
    """A tag with its plain attributes alone; nothing of what else there is."""
    if not markup["tag"]:
        return ""
    return f"{markup['tag']}{''.join(_PLAIN_ATTRIBUTE.findall(markup['rest']))}>"


def fit(text: str, most: int) -> str:
    """Plain text of at most `most` characters, without runs of backticks that make a fence long."""
    told = _TICKS.sub(lambda run: run[0][:_LONGEST_FENCE], plain(text))
    if len(told) <= most:
        return told
    return f"{told[:most]}\n[{len(told) - most} more characters are left out here]"


def one_line(text: str) -> str:
    """Text that stands outside a fence: it cannot begin a line of its own."""
    return " ".join(text.split())[:_LINE]


def fence(texts: list[str]) -> str:
    """A fence longer than any inside, so that no text can close it."""
    longest = max((len(found) for text in texts for found in _TICKS.findall(text)), default=2)
    return "`" * max(3, longest + 1)
