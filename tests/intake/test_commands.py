"""Commands in comments."""

import pytest

from bot.intake.commands import COMMANDS, help_text, parse
from bot.text.markdown import addresses


@pytest.mark.parametrize(
    "text",
    [
        "/mergewright merge",
        "@mergewright merge",
        "  /mergewright merge  ",
        "/Mergewright MERGE",
        "@mergewright: merge",
        "@mergewright, merge",
        "Looks good to me.\r\n\r\n/mergewright merge\r\n",
        "> earlier words\n\n/mergewright merge",
        "```\nsome code\n```\n/mergewright merge",
        "```\r\nsome code\r\n```\r\n/mergewright merge",
        "- ```\n  some code\n\n  more\n  ```\n\n/mergewright merge",
        "~~~~ python\nx\n~~~~\n/mergewright merge",
        "One lone ` tick\n\n/mergewright merge\nand `code`",
        "~~~\n```\n~~~\n/mergewright merge\n```",
        "- ```\n  code\n\n/mergewright merge",
        "1. One\n\n   /mergewright merge",
        "<details>\n\n/mergewright merge\n\n</details>",
        "<!-- hidden --> shown\n/mergewright merge",
        "One \\` tick\n/mergewright merge\nand `code`",
        "```\ncode\n``` \n/mergewright merge",
        "[ref]: /x\n/mergewright merge",
    ],
)
def test_a_line_that_begins_with_the_name_is_a_command(text: str) -> None:
    assert [parsed.name for parsed in parse(text)] == ["merge"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "please /mergewright merge",
        "> /mergewright merge",
        "   > @mergewright merge",
        "```\n/mergewright merge\n```",
        "```\n/mergewright merge",
        "````\n```\n/mergewright merge\n````",
        "~~~\n/mergewright merge\n~~~",
        "- ```\n  code\n\n  /mergewright merge\n  ```",
        "1. ~~~\n   code\n\n   /mergewright merge\n   ~~~",
        "`/mergewright merge`",
        "`first\n/mergewright merge\nlast`",
        "    /mergewright merge",
        "\t/mergewright merge",
        "<!-- hidden\n/mergewright merge\n-->",
        "<!-- never closed\n/mergewright merge",
        "> quoted\n/mergewright merge",
        "> > quoted\n> /mergewright merge",
        "- > /mergewright merge",
        "- /mergewright merge",
        "# /mergewright merge",
        "```` \n```\n/mergewright merge\n```\n````",
        "```\ncode\n    ```\n/mergewright merge",
        "``` code\n~~~\n/mergewright merge",
        "- one\n\n      /mergewright merge",
        "[ref]: /x\n    /mergewright merge",
        "\\/mergewright merge",
        "&#47;mergewright merge",
        "*/mergewright merge*",
        "<blockquote>\n\n/mergewright merge\n\n</blockquote>",
        "<div><!--\n\n/mergewright merge",
        "one `code\n/mergewright merge` two",
        "a <b title='\n/mergewright merge'>b</b>",
        "/mergewrighter merge",
        "@mergewright-fan merge",
        "/mergewright/merge",
        "@mergewright2 merge",
    ],
)
def test_quotes_code_and_other_words_hold_no_command(text: str) -> None:
    assert parse(text) == ()
    assert not addresses(text)


@pytest.mark.parametrize(
    "text",
    [
        "@acme-bot merge",
        "@Acme-Bot: merge",
        "@acme-bot[bot] merge",
        "/acme-bot merge",
        "@mergewright merge",
        "@mergewright[bot] merge",
    ],
)
def test_the_apps_name_is_an_alias_of_the_bots_name(text: str) -> None:
    assert [parsed.name for parsed in parse(text, "acme-bot")] == ["merge"]
    assert addresses(text, "acme-bot")


@pytest.mark.parametrize(
    "text", ["@acme-botx merge", "@acme-bot-x merge", "@acme merge", "ask @acme-bot to merge"]
)
def test_names_similar_to_the_apps_name_are_ignored(text: str) -> None:
    assert parse(text, "acme-bot") == ()
    assert not addresses(text, "acme-bot")


def test_a_mention_of_the_app_ends_the_message_before_it() -> None:
    said = parse("@acme-bot tell go on\n@acme-bot[bot] merge", "acme-bot")
    assert [(one.name, one.text) for one in said] == [("tell", "go on"), ("merge", "")]


def test_the_help_shows_the_apps_name() -> None:
    (found,) = parse("@acme-bot help", "acme-bot")
    assert "(or with `@acme-bot` in place of `/mergewright`):" in found.text
    assert "@" not in help_text()


def test_several_lines_are_several_commands_in_order() -> None:
    text = "/mergewright merge\nand if that fails\n@mergewright stop"
    assert [parsed.name for parsed in parse(text)] == ["merge", "stop"]


def test_at_most_ten_commands_of_a_comment_are_read() -> None:
    assert len(parse("/mergewright help\n" * 1000)) == 10


@pytest.mark.parametrize("text", ["/mergewright", "@mergewright help", "/mergewright:"])
def test_the_bare_name_asks_for_help(text: str) -> None:
    (parsed,) = parse(text)
    assert parsed.name == "help"
    assert parsed.text == help_text()


@pytest.mark.parametrize("text", ["@mergewright", " @Mergewright:", "Please!\n@mergewright\n"])
def test_a_bare_mention_asks_for_an_agent(text: str) -> None:
    (parsed,) = parse(text)
    assert (parsed.name, parsed.text) == ("start", "")


def test_the_help_lists_every_command_and_contains_none() -> None:
    for command in COMMANDS.values():
        assert f"`{command.usage}`: {command.description}" in help_text()
    assert not addresses(help_text())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@mergewright can you also rename it?", "can you also rename it?"),
        ("@mergewright Please rename it.", "Please rename it."),
        (
            "@mergewright: keep `a`,\nand b.\n\nLike so:\n```\nb\n```",
            "keep `a`,\nand b.\n\nLike so:\n```\nb\n```",
        ),
        ("@mergewright no <!-- and delete it -->", "no"),
        ("@mergewright thanks!", "thanks!"),
        ("@mergewright stopping is wrong here", "stopping is wrong here"),
    ],
)
def test_free_text_after_a_mention_is_a_message_to_the_agent(text: str, message: str) -> None:
    assert [(one.name, one.text) for one in parse(f"Hm.\n\n{text}")] == [("tell", message)]


def test_a_command_ends_the_message_of_the_mention_before_it() -> None:
    said = parse("@mergewright rename it\n\nand move it\n\n/mergewright merge")
    assert [(one.name, one.text) for one in said] == [
        ("tell", "rename it\n\nand move it"),
        ("merge", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "merge.",
        "merge please",
        "please merge",
        "Merge, please!",
        "merge, thanks.",
        "merge thank you",
    ],
)
@pytest.mark.parametrize("name", ["/mergewright", "@mergewright"])
def test_a_command_may_be_polite_and_end_like_a_sentence(name: str, text: str) -> None:
    assert [(one.name, one.text) for one in parse(f"{name} {text}")] == [("merge", "")]


@pytest.mark.parametrize(
    ("text", "name", "given"),
    [
        ("why?", "why", ""),
        ("tell: use tabs.", "tell", "use tabs."),
        ("tell please use tabs, thanks.", "tell", "please use tabs, thanks."),
        ("merge squash, please", "merge", "squash"),
        ("please start codex.", "start", "codex"),
        ("budget +2.50.", "budget", "+2.50"),
    ],
)
def test_an_argument_may_be_polite_unless_it_is_a_message(text: str, name: str, given: str) -> None:
    assert [(one.name, one.text) for one in parse(f"@mergewright {text}")] == [(name, given)]


@pytest.mark.parametrize("text", ["merge?", "stop?", "stop doing that", "merge the two parsers"])
def test_a_mention_that_only_begins_with_a_command_is_refused_with_a_way_to_say_it(
    text: str,
) -> None:
    (parsed,) = parse(f"@mergewright {text}")
    assert parsed.name == "help"
    assert f"To send this to the agent, write `/mergewright tell {text}`." in parsed.text


@pytest.mark.parametrize("name", ["/mergewright", "@mergewright"])
def test_a_misspelled_command_is_answered_with_a_harmless_suggestion_and_the_list(
    name: str,
) -> None:
    (parsed,) = parse(f"{name} satus")
    assert parsed.name == "help"
    assert parsed.text.startswith("There is no command `satus`. Did you mean `status`?")
    assert parsed.text.endswith(help_text())


@pytest.mark.parametrize(
    "word", ["can", "mrege", "stat", "stopp", "restrat", "unfreez", "alow", "strt", "merges"]
)
def test_no_command_that_changes_anything_is_suggested(word: str) -> None:
    (parsed,) = parse(f"/mergewright {word}")
    assert parsed.text.startswith(f"There is no command `{word}`.\n")


def test_the_reply_to_an_unknown_command_repeats_no_markup_and_no_mention() -> None:
    (parsed,) = parse("/mergewright `@everyone`<img/src=x>" + "x" * 500)
    first = parsed.text.splitlines()[0]
    assert "@" not in first
    assert "<" not in first
    assert len(first) < 100


@pytest.mark.parametrize(
    ("text", "name", "given"),
    [
        ("start", "start", ""),
        ("start codex", "start", "codex"),
        ("start ada  codex", "start", "ada codex"),
        ("start permission-mode=confirm", "start", "permission-mode=confirm"),
        ("start ada codex permission-mode=AUTO, please", "start", "ada codex permission-mode=auto"),
        ("agent ada permission-mode=reject", "agent", "ada permission-mode=reject"),
        ("restart permission-mode=reject", "restart", "permission-mode=reject"),
        ("restart", "restart", ""),
        ("merge squash", "merge", "squash"),
        ("merge REBASE", "merge", "rebase"),
        ("allow ABCDEF1", "allow", "abcdef1"),
        ("budget +5", "budget", "+5"),
        ("budget 2.50", "budget", "+2.50"),
        ("budget +$10", "budget", "+10"),
        ("budget 3 USD", "budget", "+3"),
        ("pause", "pause", ""),
        ("Unfreeze", "unfreeze", ""),
        ("tell use the other parser", "tell", "use the other parser"),
        ("Tell  keep *this*\nand that\n\nnot this", "tell", "keep *this*\nand that"),
        ("answer\nYes.", "answer", "Yes."),
        ("tell call `parse()`, not `read`", "tell", "call `parse()`, not `read`"),
        ("tell this:\n```\na\n\nb\n```\nend", "tell", "this:\n```\na\n\nb\n```\nend"),
        ("tell go <!-- and delete\nit --> on", "tell", "go  on"),
        ("tell go <!-- and shown\n\nit --> on", "tell", "go <!-- and shown"),
        ("tell this:\n- ```\n  a\n\n  b\n  ```\n\nend", "tell", "this:\n- ```\n  a\n\n  b\n  ```"),
        ("tell keep `<!-- this -->`", "tell", "keep `<!-- this -->`"),
        ("tell one\n/mergewright@", "tell", "one"),
    ],
)
def test_the_argument_follows_the_command(text: str, name: str, given: str) -> None:
    parsed = parse(f"/mergewright {text}")[0]
    assert (parsed.name, parsed.text) == (name, given)


def test_the_next_command_ends_the_message_before_it() -> None:
    text = "/mergewright tell try again\nwith care\n@mergewright budget +1\nplease"
    assert [(one.name, one.text) for one in parse(text)] == [
        ("tell", "try again\nwith care"),
        ("budget", "+1"),
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("merge tomorrow", "`merge` takes at most one of merge, squash, rebase."),
        ("merge squish", "(did you mean `squash`?). Nothing was done."),
        ("stop now", "`stop` takes no argument. Nothing was done."),
        ("tell", "`tell` needs a text after it."),
        ("answer\n\nYes.", "`answer` needs a text"),
        ("budget", "`budget` needs an amount in US dollars, such as `+5`."),
        ("allow", "`allow` needs a commit"),
        ("allow abcdef", "`allow` needs a commit"),
        ("allow everything", "`allow` needs a commit"),
        ("budget lots", "`budget` needs an amount"),
        ("budget -5", "`budget` needs an amount"),
        ("budget +0", "`budget` needs an amount"),
        ("budget +nan", "`budget` needs an amount"),
        ("budget +1e9", "`budget` needs an amount"),
        ("agent permission-mode=auto", "`agent` needs the name of an agent"),
        ("start permission-mode=yolo", "`start` takes one of `permission-mode=auto`, `permission"),
        ("start permission-mode=auto ada", "`start` takes one of `permission-mode=auto`"),
        ("restart ada permission-mode=auto", "`restart` takes no argument"),
        ("review ada permission-mode=auto", "`review` takes at most the name of one agent"),
        ("start one of three", "`start` takes at most the name of one agent and one of its types"),
        ("start `@everyone`", "`start` takes at most the name of one agent"),
    ],
)
def test_an_invalid_argument_is_refused_with_the_usage(text: str, wrong: str) -> None:
    (parsed,) = parse(f"/mergewright {text}")
    assert parsed.name == "help"
    assert wrong in parsed.text.splitlines()[0]
    assert f"Usage: `/mergewright {text.split(maxsplit=1)[0]}" in parsed.text
    assert parsed.text.endswith(help_text())


@pytest.mark.parametrize(
    "hostile",
    [
        " ".join("`" * n for n in range(1, 360)),
        "` `` " * 13_000,
        "`a\n" * 20_000,
        "".join("~" * n + "x\n" for n in range(3, 360)),
        "<!--" * 16_000,
    ],
)
def test_a_hostile_comment_is_parsed_in_linear_time(hostile: str) -> None:
    assert addresses(f"/mergewright stop\n\n{hostile}")[0].paragraph == "stop"


@pytest.mark.parametrize("blank", ["\t", "\N{NO-BREAK SPACE}", "  "])
def test_any_white_space_separates_a_command_from_its_argument(blank: str) -> None:
    (found,) = parse(f"/mergewright{blank}tell{blank}use tabs")
    assert (found.name, found.text) == ("tell", "use tabs")


@pytest.mark.parametrize(
    "code", ["<pre>\n/mergewright stop\n</pre>", "<PRE lang=sh>\n/mergewright stop"]
)
def test_code_in_html_tags_holds_no_command(code: str) -> None:
    assert parse(code) == ()
    assert [one.name for one in parse(f"<prefix>\n/mergewright stop\n\n{code}")] == ["stop"]


def test_an_amount_in_other_than_ascii_digits_is_refused() -> None:
    (found,) = parse("/mergewright budget +\N{ARABIC-INDIC DIGIT FIVE}")
    assert found.name == "help"
