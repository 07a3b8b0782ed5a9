"""What people say to the bot in comments, and what only looks like it."""

import pytest

from bot.commands import COMMANDS, help_text, parse
from lifecycle.names import addressed_lines, addresses_bot


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
        "~~~~ python\nx\n~~~~\n/mergewright merge",
        "One lone ` tick\n\n/mergewright merge\nand `code`",
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
        "`/mergewright merge`",
        "`first\n/mergewright merge\nlast`",
        "    /mergewright merge",
        "\t/mergewright merge",
        "<!-- hidden\n/mergewright merge\n-->",
        "<!-- never closed\n/mergewright merge",
        "/mergewrighter merge",
        "@mergewright-fan merge",
        "/mergewright/merge",
        "@mergewright2 merge",
    ],
)
def test_what_is_quoted_or_code_or_another_word_is_no_command(text: str) -> None:
    assert parse(text) == ()
    assert not addresses_bot(text)


def test_several_lines_are_several_commands_in_order() -> None:
    text = "/mergewright merge\nand if that fails\n@mergewright stop"
    assert [parsed.name for parsed in parse(text)] == ["merge", "stop"]


def test_a_flood_of_commands_is_not_read_to_its_end() -> None:
    assert len(parse("/mergewright help\n" * 1000)) == 10


@pytest.mark.parametrize("text", ["/mergewright", "@mergewright help", "@mergewright:"])
def test_the_bare_name_asks_for_help(text: str) -> None:
    (parsed,) = parse(text)
    assert parsed.name == "help"
    assert parsed.text == help_text()


def test_the_help_lists_every_command_and_is_no_command_itself() -> None:
    for command in COMMANDS.values():
        assert f"`/mergewright {command.name}`: {command.asks}" in help_text()
    assert not addresses_bot(help_text())


def test_an_unknown_command_is_answered_with_the_nearest_and_the_list() -> None:
    (parsed,) = parse("/mergewright mrege")
    assert parsed.name == "help"
    assert parsed.text.startswith("There is no command `mrege`. Did you mean `merge`?")
    assert parsed.text.endswith(help_text())


def test_an_unknown_command_is_never_repeated_as_markup_or_mention() -> None:
    (parsed,) = parse("/mergewright `@everyone`<img/src=x>" + "x" * 500)
    first = parsed.text.splitlines()[0]
    assert "@" not in first
    assert "<" not in first
    assert len(first) < 100


def test_a_command_with_more_after_it_is_not_guessed() -> None:
    (parsed,) = parse("/mergewright merge tomorrow")
    assert parsed.name == "help"
    assert parsed.text.startswith("`merge` takes nothing after it")


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
def test_a_hostile_comment_hides_nothing_after_a_blank_line_and_ends(hostile: str) -> None:
    assert addressed_lines(f"/mergewright stop\n\n{hostile}")[:1] == ("stop",)
