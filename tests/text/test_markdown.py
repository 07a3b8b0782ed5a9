"""What a page shows of a Markdown text reaches the agent, and nothing else."""

import pytest

from bot.text.markdown import visible
from bot.text.prompt_text import fence, fit, printable


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- obey -->",
        "<!-- obey\nme -->",
        "<!-- obey, and never closed",
        '[//]: # "obey"',
        "[comment]: <> (obey)",
        "> [//]: # (obey)",
        "- [//]: # (obey)",
        "<![CDATA[ obey ]]>",
        "<!DOCTYPE obey>",
        "<!x obey\nme",
        "<?obey me?>",
        "> <? obey, and never closed",
        '<p title="please obey">One.</p>',
        "<img alt='please obey\nme' src=a.png>",
        "<please obey me>",
        "<a href=x please obey>One.</a>",
        '<pre title="please obey">One.</pre>',
        '</p data-x="> please obey">',
        "Here <b please\nobey /> too.",
        "<div>\nHere <b | please obey>",
        "- [ ] <div>\n  Here <b | please obey>",
        "<div>\n\n- [x] <p>\n  Here <b | please obey>",
        "Here[^1].\n\n[^1]: <div>\n    Here <b | please obey>",
        "[^1]: please obey",
        "```sh please obey\ncode\n```",
        "~~~ sh please obey\ncode\n~~~",
        "| <b please obey> | <b please obey> |\n|---|---|",
        "- [^1]: <please obey>",
        "[^1]: One\n\n    please obey",
        "> [^1]: please obey",
        "<div><!--\n\nplease obey\n\n</div>",
        "<div><!--\n\nplease obey\n\n<div>--></div>",
        '<p title="\n\nplease obey\n\n">',
        '<p title=" please obey<p title="<p>',
        "One\\\n  `<!-- please obey -->",
        "- One\n\n      ```\n<!-- please obey -->",
        "```\ncode\n```\n<!-- please obey -->\n```\ncode\n```",
        "~~~\n```\n~~~\n<!-- please obey -->\n```",
        "````\n```\n````\n<!-- please obey -->",
        "- ```\n  code\n<!-- please obey -->\n  ```",
        "\\`<!-- please obey -->`",
        "[a](<`>) <!-- please obey --> `",
        "| a | b |\n|---|---|\n| ` | <!-- please obey --> ` |",
        "| a | b |\n|---|---|\n| \\| | <!-- please obey --> |",
        "One\n> ```\n\n<!-- please obey -->",
        "> " * 200 + "<!-- please obey -->",
        "[//]: # (one)\n[//]: # (please obey)",
        "Here\r<div>\rHere <b | please obey>",
        "`Here\n<div>`\nHere <b | please obey>",
        "<!-- Here --> and <b | please obey>",
        "@ada: <div>\nHere <b | please obey>",
        "![please obey](a.png)",
        "> ![please\n> obey](a.png)",
        "> - ![please `obey`][ref] and ![obey][] and ![obey]\n\n[ref]: /a\n[obey]: /b",
        "[![please obey](a.png)](b)",
        "![![obey](a)](b)",
        "![a [obey](b) c](d)",
        '[One](a.html "please obey")',
        "[One](<a b> 'please\nobey')",
        "*[One](a.html\n(please obey) )*",
        '[One](javascript:a "please obey")',
        '![One](a.png "please obey")',
        "| ![obey](a) | \\| ![obey](a) |\n|---|---|\n| \\| [b](c 'obey') | d |",
        "> " * 200 + "![obey](a)",
        '[One]\n\n[one]: a.html "please obey"',
        "[One][two]\n\n[two]:\n  a.html\n  'please obey'",
        "[unused]: please-obey.html",
        "[One][obey]\n\n[obey]: a.html",
        "> [unused]: a.html (please obey)",
        "`[used]` and \\[used]\n\n[used]: obey.html",
        "<img src=a.png alt=obey> and <b title=obey data-x='obey' class=\"obey\">c</b>",
    ],
)
def test_hidden_text_is_removed(hidden: str) -> None:
    rendered = fit(visible(f"Seen.\n\n{hidden}"), 1000)
    assert "obey" not in rendered
    assert "Seen." in rendered


@pytest.mark.parametrize(
    "hidden",
    [
        "![please\nobey](a.png)",
        '[One](a.html\n"please obey"\n)',
        "[One]: a.html\n'please obey'",
        "```sh please obey\n```",
        "> 1. ~~~~ a`b\u00a0please obey\n~~~~",
        "<b title='please obey'>",
        "![a\n\u00a0\nplease obey\n\u00a0\n](b.png)",
        "See.\n\n[^1]: One.\n\n    Please obey.\n\n\tAnd obey.",
    ],
)
def test_text_with_too_many_brackets_hides_nothing_in_its_markup(hidden: str) -> None:
    brackets = "[" * 2_001
    rendered = visible(f"Seen {brackets}.\n\n{hidden}\n\nSeen, too: a[1] and f(x).")
    assert "obey" not in rendered
    assert f"Seen {brackets}." in rendered
    assert "Seen, too: a[1] and f(x)." in rendered


def test_an_unclosed_comment_hides_the_rest_of_a_text_with_too_many_brackets() -> None:
    rendered = visible(f"Seen {'[' * 2_001}.\n\nAnd <!-- please obey\n\nand obey.")
    assert "obey" not in rendered
    assert "Seen" in rendered


@pytest.mark.parametrize(
    "shown",
    [
        'See <a href="https://example.com/">this</a>, <br/> and <b>that</b>.',
        "If a < b and c > d, mail <ada@example.com> or <https://example.com/a b>.",
        "Generic<T> and List<A, B> and x <? y.",
        "Promise<string | undefined>, Box<dyn Error + Send>, vector<const char*> and <a =b>.",
        "If x <y it fails.\n\n1. Run it.\n2. It says a->b.",
        "```html\n<div>\n```\nIt is no Promise<string | undefined>.",
        '`<p title="some words">` and\n```html\n<!DOCTYPE html>\n<p title="some words">\n```',
        "```php\n<?php echo 1; ?>\n```",
        "    <!-- indented code -->",
        "~~~\n```\n<!-- tildes -->\n~~~",
        "```\n<!-- never closed -->",
        "- ```\n  <!-- in a list -->\n  ```\n  and <b>on</b>",
        "````\n```\n<!-- nested -->\n```\n````",
        "> ```\n> <!-- in a quote -->\n> ```",
        "One paragraph\n[//]: # (cannot be interrupted by a reference)",
        "go <!-- and never\n\nclosed --> on",
        "\\<!-- escaped -->",
        "See[^1].\n\n[^1]: This footnote.",
        "- [ ] one\n- [x] two <b>three</b>",
        "| `a \\| b` | <b>c</b> |\n|---|---|\n| d | e |",
        "| `<b x y>` | `<b x y>` |\n|---|---|\n| `<i x y>` | a `<i x y>` |",
        "- [ ] | a | `&lt;` |\n  | - | - |",
    ],
)
def test_shown_text_is_kept_as_written(shown: str) -> None:
    assert fit(visible(shown), 1000) == shown


def test_a_hidden_comment_begins_no_html_block() -> None:
    rendered = fit(
        visible("<!--\nWhat is wrong?\n-->\nIt is no Promise<string | undefined>."), 1000
    )
    assert rendered == "It is no Promise<string | undefined>."


@pytest.mark.parametrize(
    "hostile",
    [
        '<a "' * 16_000,
        "<a '\"" * 13_000,
        "<a" + " " * 60_000,
        "<?" * 30_000,
        "<a" + " b" * 30_000,
        '<a b="<a b="' * 5_000,
        "[" * 60_000,
        "[]" * 30_000,
        "1." * 30_000,
        "\n<a b='" * 9_000,
        "-->" * 20_000,
        "@" * 60_000,
        "a <!-- x " + "[" * 60_000,
        "a " + "<![CDATA[" * 7_000,
        "`a\n" * 20_000,
        "> " * 100 + "a\n" * 600,
        "![" * 900 + "a" + "](b)" * 900,
        "[" * 900 + "a" + "](b)" * 900,
        "![a](b 'c')" * 1_900,
        "[a]: b\n\n" * 8_000,
        "&lt;" * 16_000,
        "&" * 60_000,
        "|a" * 200 + "\n" + "|-" * 200 + "\n" + "|x\n" * 15_000,
        "|a" * 18 + "\n" + "|-" * 18 + "\n" + ("|" + "![" * 110 + " \\| x") * 18 + "|\n",
        "|a" * 400 + "\n" + "|-" * 400 + "\n" + ("|" + "&lt;" * 9 + " \\| x") * 400 + "|\n",
    ],
)
def test_hostile_markup_is_read_in_bounded_time(hostile: str) -> None:
    assert len(fit(visible(hostile), 20_000)) < 21_000


def test_link_references_become_addresses() -> None:
    text = (
        "[//]: # (hidden)\n[docs]: https://example.com (Docs)\n[a b]: <c d>\n"
        "Seen: [Docs], [x][A\nb], ![y][docs], [docs][] and [Docs](z)."
    )
    assert visible(text) == (
        "Seen: [Docs](https://example.com), [x](c%20d), ![](https://example.com), "
        "[docs](https://example.com) and [Docs](z)."
    )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a &lt; b &amp;&amp; c &#x3e; d", "a < b && c > d"),
        ("See [A &amp; B](x?a=1&b=2).", "See [A & B](x?a=1&b=2)."),
        ("<p>\nx &le; y\n</p>", "<p>\nx ≤ y\n</p>"),
        ("&lt;!-- as written --&gt;", "<!-- as written -->"),
        ("`&lt;` and\n```\n&lt;\n```\n\n    &lt;", "`&lt;` and\n```\n&lt;\n```\n\n    &lt;"),
        ("\\&lt; &unknown; &amp", "\\&lt; &unknown; &amp"),
        ("| a | b |\n|---|---|\n| \\| &lt; | c |", "| a | b |\n|---|---|\n| \\| < | c |"),
    ],
)
def test_entities_are_decoded_where_a_page_decodes_them(written: str, shown: str) -> None:
    assert visible(written) == shown


def test_an_image_keeps_its_address() -> None:
    assert (
        visible('See ![the obey](https://x/a.png "obey") here.') == "See ![](https://x/a.png) here."
    )


def test_decoded_entities_hide_nothing_and_close_no_fence() -> None:
    assert fit(visible("a&#8203;b&#x202e;c&zwj;d"), 100) == "abcd"
    assert fence([visible("&#96;&#96;&#96;")]) == "````"


@pytest.mark.parametrize(
    "signs",
    [
        "\u200b\u200d\u2060\ufeff",
        "\u202e\u2066",
        "\U000e0041\U000e0042",
        "\ufe00\U000e0100",
        "\u3164\u115f\uffa0",
        "\x1b[8m\x00\x7f",
        "\u2028",
        "\ud800",
    ],
)
def test_invisible_characters_are_removed(signs: str) -> None:
    assert printable(f"one{signs}two") == "onetwo"


def test_a_carriage_return_ends_a_line() -> None:
    assert printable("one\rtwo\r\nthree") == "one\ntwo\nthree"


def test_a_short_text_is_unchanged() -> None:
    assert fit("two\n\twords", 1000) == "two\n\twords"
