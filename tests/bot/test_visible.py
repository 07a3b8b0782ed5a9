"""Of a text of others all is told that people see on its page, and nothing that they do not."""

import pytest

from bot.text.markdown import fit, plain, seen


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
        "- [ ] <div>\n\nHere <b | please obey>",
        "[^1]: <div>\nHere <b | please obey>",
        "Here\r<div>\rHere <b | please obey>",
        "`Here\n<div>`\nHere <b | please obey>",
        "<!-- Here --> and <b | please obey>",
        "@ada: <div>\nHere <b | please obey>",
    ],
)
def test_what_a_page_does_not_show_is_taken_out(hidden: str) -> None:
    told = fit(seen(f"Seen.\n\n{hidden}"), 1000)
    assert "obey" not in told
    assert "Seen." in told


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
    ],
)
def test_what_a_page_shows_stays_as_it_stands(shown: str) -> None:
    assert fit(seen(shown), 1000) == shown


def test_a_hidden_comment_makes_no_html_of_what_follows_it() -> None:
    told = fit(seen("<!--\nWhat is wrong?\n-->\nIt is no Promise<string | undefined>."), 1000)
    assert told == "It is no Promise<string | undefined>."


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
    ],
)
def test_hostile_markup_is_done_with_soon(hostile: str) -> None:
    assert len(fit(seen(hostile), 20_000)) < 21_000


def test_a_reference_that_leads_somewhere_stays_and_so_does_what_follows_a_hidden_one() -> None:
    text = "[//]: # (hidden)\n[docs]: https://example.com (Docs)\nSeen."
    assert plain(text) == "[docs]: https://example.com (Docs)\nSeen."


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
def test_signs_nobody_sees_are_taken_out(signs: str) -> None:
    assert plain(f"one{signs}two") == "onetwo"


def test_a_carriage_return_ends_a_line() -> None:
    assert plain("one\rtwo\r\nthree") == "one\ntwo\nthree"


def test_a_short_text_is_told_as_it_is() -> None:
    assert fit("two\n\twords", 1000) == "two\n\twords"
