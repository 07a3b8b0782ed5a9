"""Terminal text with its colours."""

import pytest

from bot.show.ansi import Piece, pieces

ESC = "\x1b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain <b>", [("plain <b>", "")]),
        (f"{ESC}[31mred{ESC}[0m not", [("red", "fg1"), (" not", "")]),
        (
            f"{ESC}[1;4;92;41mall{ESC}[22;24;39mless",
            [("all", "bg1 bold fg10 underline"), ("less", "bg1")],
        ),
        (f"{ESC}[38;5;9mbright{ESC}[49m", [("bright", "fg9")]),
        (f"{ESC}[38;5;196mcube{ESC}[48;5;232mgrey", [("cube", "fg9"), ("grey", "bg0 fg9")]),
        (f"{ESC}[38;2;0;0;230mtrue", [("true", "fg4")]),
        (f"{ESC}[38:2:0:0:230mcolons", [("colons", "fg4")]),
        (f"{ESC}[1m{ESC}[38:2::0:0:230mcolour space", [("colour space", "bold fg4")]),
        (f"{ESC}[48:5:9mof 256", [("of 256", "bg9")]),
        (f"{ESC}[58;5;1;3mof underlines", [("of underlines", "italic")]),
        (f"{ESC}[1;4:3mwavy{ESC}[4:0mnone", [("wavy", "bold underline"), ("none", "bold")]),
        (f"{ESC}[mempty{ESC}[7minverse{ESC}[27m", [("empty", ""), ("inverse", "inverse")]),
        (f"a{ESC}[31m{ESC}[39mb", [("ab", "")]),
    ],
)
def test_colours_and_weights_become_classes(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.text, one.classes) for one in pieces(text)] == expected


@pytest.mark.parametrize(
    "hostile",
    [
        f"{ESC}]52;c;aGk=\x07x",
        f"{ESC}]8;;javascript:alert(1)\x07x{ESC}]8;;\x07",
        f"{ESC}[2J{ESC}[10;10Hx",
        f"{ESC}[38;5mx",
        f"{ESC}[38;5;99999999999999999999mx",
        f"{ESC}[38:2:1;48:;:;1:2:3;4:mx",
        f"{ESC}[38;5:196mx",
        f"{ESC}[38;2;1:2;:mx",
        f"{ESC}[38:{'9:' * 10_000}1mx",
        f"{ESC}[{'9;' * 10_000}1mx",
        f"{ESC}[38;2;1mx{ESC}[",
        "\x00\x08x\u202e",
    ],
)
def test_other_sequences_are_removed(hostile: str) -> None:
    text = "".join(one.text for one in pieces(hostile))
    assert text.replace("[", "") == "x"


def test_classes_are_only_those_of_the_style_sheet() -> None:
    for number in range(256):
        for base in (38, 48):
            (one,) = pieces(f"{ESC}[{base};5;{number}mx")
            assert one == Piece("x", f"{'fg' if base == 38 else 'bg'}{one.classes[2:]}")
            assert 0 <= int(one.classes[2:]) <= 15
