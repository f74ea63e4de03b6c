"""The parts of the terminal labeller: keys, words, pictures, and what is drawn at every size."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.console import Console

from suffice import ErrorStability, StabilizingPredictions
from suffice.cli.labeller import keyboard
from suffice.cli.labeller.keyboard import KeyDecoder
from suffice.cli.labeller.labeller import command_keys, direct_keys, typed_class
from suffice.cli.labeller.pictures import Picture, Pictures, drawn, read_picture
from suffice.cli.labeller.screen import last_top, rendered_screen
from suffice.cli.labeller.view import Counts, Given, LabellerView, Message, Mode
from suffice.cli.labeller.viewport import Viewport, one_line, visible, wrapped
from suffice.criteria import Verdict
from suffice.decision import Decision, ErrorNow, decide
from suffice.errors import InvalidValueError
from suffice.forecast import Forecast
from suffice.project.items import Item
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Point
from suffice.project.settings import Settings

SIZES = [(80, 24), (120, 40), (40, 24), (40, 12), (20, 8), (71, 10), (200, 60), (10, 4), (3, 2)]
EVIL = "\x1b]0;owned\x07\x1b[2J[bold]not bold[/bold] :snail: \u202etxet\u202c \x00\x7f\x9b31m"


def settings(**changes: Any) -> Settings:
    about = Settings(
        "mails.csv",
        "classification",
        ("ham", "spam"),
        "kind",
        "text",
        ("subject", "body"),
        "body",
        "logistic",
        ErrorStability(0.1).state_dict(),
    )
    return replace(about, **changes)


def learning_status(*, stop: bool = False, rule: str = "ErrorStability") -> LearningStatus:
    curve = tuple(Point(n, 9.0 / n, 0.1) for n in range(11, 100))
    reason = "the error ratio 0.09 is at most the threshold 0.1"
    verdict = Verdict(stop=stop, value=0.09, threshold=0.1, ready=True, reason=reason, rule=rule, n_labelled=99)
    forecast = None if stop else Forecast(34, 18, 70)
    errors = tuple(ErrorEstimate(n, 8.1 / n, 6.0 / n, 11.0 / n) for n in range(10, 100, 5))
    about = Decision(
        *("too early", 99, 898, True), error=ErrorNow(0.082, 0.06, 0.11, 24), since=90 if stop else None, baseline=0.4
    )
    found = decide(verdict, replace(about, forecast=forecast))
    return LearningStatus(99, 99, verdict, curve, forecast, errors, decision=found)


def view(**changes: Any) -> LabellerView:
    item = Item(16, "mail-17", (("subject", "a parcel"), ("body", "The quick brown fox. " * 60)))
    return replace(
        LabellerView(settings(), "ann", Counts(99, 3, 1000, (60, 39)), learning_status(), item=item, why="why"),
        **changes,
    )


def screen(
    shown: LabellerView, width: int = 80, height: int = 24, *, encoding: str = "utf-8", colours: bool = True
) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
    console = Console(file=stream, width=width, height=height, force_terminal=True, color_system=None)
    console.print(rendered_screen(shown, Viewport(width, height, encoding, colours)), height=height)
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_escape_sequences_letters_and_pastes_are_keys_however_they_are_cut() -> None:
    sent = "a\x1b[Aé🐌\r\x1bOB\x7f\x1b[5~\x1b[6~\x1b[1;5C\x1b[200~two\nlines\x1b[201~\x04\x1a\x15z".encode()
    expected = [
        "a",
        keyboard.UP,
        "é",
        "🐌",
        keyboard.ENTER,
        keyboard.DOWN,
        keyboard.BACKSPACE,
        keyboard.PAGE_UP,
        keyboard.PAGE_DOWN,
    ]
    expected += [f"{keyboard.PASTED}two lines", keyboard.END, keyboard.UNDO, keyboard.CLEAR, "z"]
    assert KeyDecoder().feed(sent) == expected
    for size in (1, 2, 3, 7):
        decoder = KeyDecoder()
        pieces = [decoder.feed(sent[at : at + size]) for at in range(0, len(sent), size)]
        assert [key for piece in pieces for key in piece] == expected
        assert not decoder.waiting


def test_the_escape_key_is_known_by_nothing_coming_after_it() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b") == []
    assert decoder.waiting
    assert decoder.flush() == [keyboard.ESCAPE]
    assert decoder.feed(b"\x1bq") == [keyboard.ESCAPE, "q"]
    assert decoder.feed(b"\xff") == ["\ufffd"]


@given(st.binary(max_size=200))
def test_whatever_a_terminal_sends_becomes_keys(sent: bytes) -> None:
    decoder = KeyDecoder()
    found = decoder.feed(sent) + decoder.flush()
    assert all(key.isprintable() and key for key in found)
    assert decoder.flush() == []


@given(st.text(max_size=200), st.sampled_from(["utf-8", "ascii", "latin-1", "cp437"]))
def test_no_text_can_give_an_order_to_a_terminal(text: str, encoding: str) -> None:
    shown = visible(text, encoding)
    assert shown.encode(encoding).decode(encoding) == shown
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in shown.replace("\n", ""))
    assert "\n" not in one_line(text, encoding)


def test_control_characters_are_seen() -> None:
    assert visible("\x1b[31m\x00\x7f\x9b") == "␛[31m␀␡\ufffd"
    assert visible("\u202eabc") == "\ufffdabc"
    assert visible("\ud800") == "\ufffd"


def test_classes_that_are_digits_are_their_own_keys() -> None:
    assert direct_keys([str(k) for k in range(10)]) == tuple("0123456789")
    assert direct_keys(["b", "a"]) == ("1", "2")
    assert direct_keys([f"class {k}" for k in range(10)]) == ()


def test_a_typed_class_is_a_name_a_number_or_a_beginning() -> None:
    birds = ["sparrow", "Starling", "great tit", "10 b"]
    assert [typed_class(text, birds) for text in ("STA", "3", " great tit ", "spa", "10")] == [
        "Starling",
        "great tit",
        "great tit",
        "sparrow",
        "10 b",
    ]
    with pytest.raises(InvalidValueError, match="'s' may be sparrow, Starling; type more of it"):
        typed_class("s", birds)
    for text in ("0", "5", "owl", "", "9" * 5000):
        with pytest.raises(InvalidValueError, match="is none of the classes"):
            typed_class(text, birds)
    # A class that is a number itself is never taken for the number of another.
    assert typed_class("2", ["1", "2", "3 or more"]) == "2"
    with pytest.raises(InvalidValueError, match="is none of"):
        typed_class("1", ["2", "x"])
    assert command_keys(birds) == {"skip": ":s", "undo": "u", "correct": "c", "help": "?", "quit": "q"}


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_view_fills_every_size_and_no_more(width: int, height: int) -> None:
    numbers = settings(task="regression", classes=(), shown="table", main=None, model="gp")
    birds = settings(classes=tuple(f"bird {k}" for k in range(30)), shown="table", main=None)
    given_labels = tuple(Given(k, f"mail-{k}", "text " * 30, "spam", "bob") for k in range(10))
    views = [
        view(),
        view(learning_status=LearningStatus()),
        view(learning_status=learning_status(stop=True)),
        view(item=None),
        view(top=10_000),
        view(mode=Mode.help),
        view(mode=Mode.pick, given=given_labels),
        view(mode=Mode.correct, message=Message("now it is ham; what should it be? " * 5, bad=True)),
        view(settings=numbers, typed="-12.5", counts=Counts(99, 0, 1000)),
        view(settings=birds, typed="bird 2", counts=Counts(99, 0, 1000, tuple(range(30)))),
        view(settings=settings(shown="image"), item=Item(0, "x.png", (("body", "x.png"),), "x.png")),
        view(item=Item(0, EVIL, (("subject", EVIL), ("body", EVIL * 40)))),
    ]
    for each in views:
        for encoding in ("utf-8", "ascii"):
            drawing = screen(each, width, height, encoding=encoding).removesuffix("\n")
            lines = drawing.split("\n")
            assert len(lines) == height
            assert all(len(line) <= width for line in lines if line.isascii())
            assert not any(ord(letter) < 32 for letter in drawing.replace("\n", ""))


def test_a_screen_says_what_there_is_to_know() -> None:
    text = screen(view(message=Message("mail-16 is ham")))
    for words in (
        "99 of 1,000 labelled, 3 skipped",
        "mail-17",
        "a parcel",
        "Keep labelling",
        "34 more labels",
        "ham 60",
    ):
        assert words in text
    for words in ("mail-16 is ham", "s skip", "u undo", "c correct", "q quit", "estimated error"):
        assert words in text
    wide = " ".join(screen(view(), 200, 40).split())
    assert "about 8\u00a0% of the 898 unlabelled" in wide.replace("8 %", "8\u00a0%")


def test_that_nothing_is_left_is_said() -> None:
    text = " ".join(screen(view(item=None), 120).split())
    assert "Nothing is left to label for you" in text
    assert "u undo c correct ? help q quit" in text
    assert "skip " not in text


def test_that_one_can_stop_is_said_at_every_size() -> None:
    for width, height in ((80, 24), (40, 24), (40, 9), (30, 6)):
        text = " ".join(screen(view(learning_status=learning_status(stop=True)), width, height).split())
        assert "You can stop now" in text
        assert "8 %" in text


def test_markup_and_emoji_codes_of_items_are_left_as_they_are() -> None:
    text = screen(view(item=Item(0, "[red]id[/red]", (("[b]", "x"), ("body", EVIL)))), 120, 40)
    assert "[red]id[/red]" in text
    assert "[b]" in text
    assert "[bold]not bold[/bold] :snail:" in text
    assert "␛]0;owned␇␛[2J" in text


def test_a_long_text_is_moved_through_to_its_end() -> None:
    body = "\n".join(f"line {k}" for k in range(100))
    long = view(item=Item(0, "x", (("body", body),)))
    lowest = last_top(long, Viewport(80, 24))
    assert "line 0 " in screen(long)
    assert "lines 1 to 18 of 100" in screen(long)
    end = screen(replace(long, top=lowest))
    assert "line 99" in end
    assert f"lines {lowest + 1} to 100 of 100" in end
    assert last_top(view(mode=Mode.help), Viewport(80, 24)) == 0


def test_ten_megabytes_are_cut() -> None:
    long = view(item=Item(0, "x", (("subject", "y" * 10_000_000), ("body", "z"))))
    assert "y" * 20 in screen(long)
    end = replace(long, top=last_top(long, Viewport(80, 24)))
    assert "10,000,000 characters; the rest is not shown" in " ".join(screen(end, 120, 24).split())


def test_another_rule_is_drawn_with_its_own_name() -> None:
    about = settings(rule=StabilizingPredictions().state_dict())
    found = learning_status(rule="StabilizingPredictions")
    assert "estimated error" in screen(view(settings=about, learning_status=found), 120, 40)
    # Without estimates there is still the curve of the rule.
    text = screen(view(settings=about, learning_status=replace(found, errors=())), 120, 40)
    assert "StabilizingPredictions" in text


def test_words_are_not_parted_where_they_belong_together() -> None:
    assert wrapped("at most 5\u00a0% of it", 10) == ("at most", "5 % of it")
    assert wrapped("abcdefghij", 4) == ("abcd", "efgh", "ij")


def image(name: str, colour: tuple[int, int, int] = (250, 20, 20), size: tuple[int, int] = (64, 32)) -> None:
    pixels = np.full((size[1], size[0], 3), colour, dtype=np.uint8)
    pixels[:, : size[0] // 2] = 0
    Image.fromarray(pixels).save(name)


def test_an_image_is_drawn_two_pixels_to_a_letter() -> None:
    image("x.png")
    picture = read_picture(Path("x.png"))
    assert picture.size == (64, 32)
    lines = drawn(picture, 16, 10, plain=False)
    assert (len(lines), {line.plain for line in lines}) == (4, {"▀" * 16})
    assert [str(lines[0].spans[at].style) for at in (0, -1)] == ["#000000 on #000000", "#fa1414 on #fa1414"]
    plain = drawn(picture, 16, 10, plain=True)
    assert plain[0].plain.isascii()
    assert plain[0].plain[0] != plain[0].plain[-1]
    assert drawn(Picture(), 10, 10, plain=False) == []


def test_what_is_no_image_is_said_and_nothing_outside_the_folder_is_read() -> None:
    Path("inside").mkdir()
    image("inside/x.png")
    image("outside.png")
    Path("inside/broken.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing more")
    Path("inside/link.png").symlink_to(Path("outside.png").absolute())
    pictures = Pictures(Path("inside"))

    def problem(name: str) -> str:
        found = pictures.get(name, 60.0)
        assert found is not None
        return found.problem

    assert problem("x.png") == ""
    assert problem("no.png") == "the file is not there"
    assert problem("broken.png").startswith("it cannot be read: ")
    for name in ("../outside.png", "link.png", "/etc/passwd"):
        assert problem(name) == "it is outside the folder of the images"
    assert problem("\x00") != ""
    pictures.close()
