"""The parts of the terminal labeller: words, pictures, and what is drawn at every size."""

import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.text import Text
from textual.geometry import Size

from suffice import ErrorStability, StabilizingPredictions
from suffice.cli.label_app import Standing, _plain_letters, class_lines, header_line, progress_lines
from suffice.cli.labeller import Counts, Given, command_keys, direct_keys, typed_class
from suffice.cli.terminal_display import Picture, Pictures, drawn, one_line, read_picture, visible, wrapped
from suffice.criteria import Verdict
from suffice.errors import InvalidValueError
from suffice.forecast import Forecast
from suffice.project.items import Item
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Point
from suffice.project.settings import Settings
from suffice.session.decision import DecisionNumbers, ErrorNow
from tests.cli.label_screen import LabelScreen

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
    numbers = DecisionNumbers(
        *(99, 898, True), error=ErrorNow(0.082, 0.06, 0.11, 24), since=90 if stop else None, baseline=0.4
    )
    return LearningStatus(99, 99, verdict, curve, forecast, errors, numbers=replace(numbers, forecast=forecast))


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


def mail(body: str = "The quick brown fox. " * 60) -> Item:
    return Item(16, "mail-17", (("subject", "a parcel"), ("body", body)))


COUNTS = Counts(99, 3, 1000, (60, 39))


@dataclass
class Shown:
    """A labeller that has nothing behind it."""

    settings: Settings = field(default_factory=settings)
    item: Item | None = field(default_factory=mail)
    learning_status: LearningStatus = field(default_factory=learning_status)
    numbers: Counts = COUNTS
    image: Picture | None = None
    person: str = "ann"
    why: str = "why"

    def __post_init__(self) -> None:
        # The application asks its project and its background learner for these.
        self.project = self.background = self

    def ask_again(self) -> None:
        """There is nobody to ask."""

    def nothing_left(self, more: str = "") -> str:
        return f"Nothing is left to label. {more}"

    def counts(self) -> Counts:
        return self.numbers

    def picture(self, item: Item | None) -> Picture | None:
        return self.image if item else None

    def newest(self, most: int) -> tuple[Given, ...]:
        return tuple(Given(k, f"mail-{k}", "text " * 30, "spam", "bob") for k in range(most))

    def standing(self) -> Standing:
        return Standing(self.settings, self.person, self.numbers, self.learning_status)


def screen(shown: Shown, width: int = 80, height: int = 24, *, plain: bool = False) -> LabelScreen:
    return LabelScreen(shown, width, height, plain=plain)  # type: ignore[arg-type]


NUMBERS = settings(task="regression", classes=(), shown="table", main=None, model="gp")
BIRDS = settings(classes=tuple(f"bird {k}" for k in range(30)), shown="table", main=None)
SHOWN = {
    "mail": Shown(),
    "early": Shown(learning_status=LearningStatus()),
    "stop": Shown(learning_status=learning_status(stop=True)),
    "nothing": Shown(item=None),
    "number": Shown(NUMBERS, numbers=Counts(99, 0, 1000)),
    "bird": Shown(BIRDS, numbers=Counts(99, 0, 1000, tuple(range(30)))),
    "image": Shown(settings(shown="image"), Item(0, "x.png", (("body", "x.png"),), "x.png")),
    "evil": Shown(item=Item(0, EVIL, (("subject", EVIL), ("body", EVIL * 40)))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_everything_fits_into_every_size(name: str) -> None:
    with screen(SHOWN[name], *SIZES[0]) as made:
        for width, height in SIZES:
            made.resize(width, height)
            lines = made.lines()
            assert len(lines) == height
            assert {Text(line).cell_len for line in lines} == {width}
            assert all(letter.isprintable() for line in lines for letter in line)


def test_keys_are_answered_in_a_small_window() -> None:
    with screen(Shown(), 40, 12) as made:
        assert "keys" in made.press("?")
        assert "which label is to be" in made.press("escape", "c")
        assert "1  spam" in made.text()
        assert "(bob)" in made.resize(250, 30)


def test_a_screen_says_what_there_is_to_know() -> None:
    with screen(Shown()) as made:
        text = made.text()
        for words in (
            "99 of 1,000 labelled, 3 skipped",
            "mail-17",
            "a parcel",
            "Keep labelling",
            "34 more labels",
            "ham 60",
            "estimated error",
        ):
            assert words in text
        assert "s skip u undo c correct ? help q quit" in made.words()
        made.resize(200, 40)
        assert "about 8 % of the 898 unlabelled" in made.words()


def test_that_one_can_stop_is_said_at_every_size() -> None:
    with screen(SHOWN["stop"]) as made:
        assert "q to stop, or continue" in made.text()
        for width, height in ((80, 24), (40, 24), (40, 9), (30, 6)):
            made.resize(width, height)
            assert "You can stop now" in made.words()
            assert "8 %" in made.words()


def test_the_decision_is_never_cut_in_a_sentence() -> None:
    standing = SHOWN["stop"].standing()
    sentences = [" ".join(sentence.split()) for sentence in standing.sentences()]
    for width in (30, 50, 100):
        for height in range(1, 40):
            lines = progress_lines(standing, Size(width, height))
            said = " ".join(" ".join(line.plain for line in lines).split())
            assert said.startswith(sentences[0])
            assert sum(sentence in said for sentence in sentences) == sum(
                sentence[:20] in said for sentence in sentences
            )
            assert len(lines) <= max(height, len(wrapped(standing.sentences()[0], width)))


@given(st.integers(1, 200), st.booleans())
def test_a_header_has_the_width_of_the_screen(width: int, stop: bool) -> None:
    standing = SHOWN["stop" if stop else "mail"].standing()
    assert header_line(standing, width).cell_len <= width


@given(st.integers(8, 200), st.integers(1, 10), st.text(max_size=4))
def test_classes_fit_or_it_is_said_how_many_do_not(width: int, height: int, typed: str) -> None:
    lines = class_lines(SHOWN["bird"].standing(), typed, Size(width, height))
    assert 1 <= len(lines) <= height
    assert all(line.cell_len <= max(width, 32) for line in lines)
    shown = sum(line.plain.count("bird") for line in lines)
    assert shown >= 29 or f"{lines[-1].plain}".endswith(" more")


def test_markup_and_emoji_codes_of_items_are_left_as_they_are() -> None:
    item = Item(0, "[red]id[/red]", (("[b]", "x"), ("body", EVIL)))
    with screen(Shown(settings(name="[i]name"), item, person="[u]ann"), 120, 40) as made:
        text = made.text()
    for words in ("[red]id[/red]", "[b]", "[i]name", "[u]ann", "[bold]not bold[/bold] :snail:", "␛]0;owned␇␛[2J"):
        assert words in text


@pytest.mark.slow
def test_a_long_text_is_moved_through_to_its_end() -> None:
    body = "\n".join(f"line {k}" for k in range(100))
    with screen(Shown(item=Item(0, "x", (("body", body),)))) as made:
        assert "line 0 " in made.text()
        assert "lines 1 to 18 of 100; why" in made.text()
        assert "lines 2 to 19 of 100" in made.press("down")
        assert "lines 12 to 29 of 100" in made.press("pagedown")
        assert "lines 11 to 28 of 100" in made.press("k")
        text = made.press(*["pagedown"] * 10)
        assert "line 99" in text
        assert "lines 83 to 100 of 100" in text
        assert "lines 73 to 90 of 100" in made.press("pageup")
        # What does not fit any more is said anew in a larger window.
        text = made.resize(80, 60)
        assert "lines 47 to 100 of 100" in text


@pytest.mark.slow
def test_ten_megabytes_are_cut() -> None:
    with screen(Shown(item=Item(0, "x", (("subject", "y" * 10_000_000), ("body", "z")))), 120) as made:
        assert "y" * 20 in made.text()
        made.press(*["pagedown"] * 40)
        assert "10,000,000 characters; the rest is not shown" in made.words()


def test_another_rule_is_drawn_with_its_own_name() -> None:
    about = settings(rule=StabilizingPredictions().state_dict())
    found = learning_status(rule="StabilizingPredictions")
    size = Size(50, 40)

    def text(status: LearningStatus) -> str:
        return "\n".join(line.plain for line in progress_lines(Shown(about, learning_status=status).standing(), size))

    assert "estimated error" in text(found)
    # Without estimates there is still the curve of the rule.
    assert "StabilizingPredictions" in text(replace(found, errors=()))


def test_without_colours_and_in_ascii_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    pixels = np.zeros((8, 8, 3), dtype=np.uint8)
    shown = replace(SHOWN["image"], image=Picture((8, 8), pixels), learning_status=learning_status(stop=True))
    with screen(shown, plain=True) as made:
        assert made.app.no_color
        text = made.text()
    assert "8 x 8 pixels" in text
    assert "▀" not in text
    assert "You can stop now" in text


def test_a_terminal_without_some_letters_gets_others_in_as_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr("sys.__stderr__", stream)
    with _plain_letters() as plain:
        assert plain
        stream.write("╭─ é 🐌 … ·╮ ab")
    stream.write("é")
    stream.flush()
    assert raw.getvalue() == b"+- ? ?? . -+ ab\\xe9"
    monkeypatch.setattr("sys.__stderr__", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    with _plain_letters() as plain:
        assert not plain


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
