"""What can be pressed, and what was said about the last key: the lines at the bottom of the screen."""

from typing import Final

from rich.cells import cell_len
from rich.text import Text

from suffice.cli.labeller.answers import command_keys, direct_keys, possible_classes
from suffice.cli.labeller.paper import Viewport, wrapped
from suffice.cli.labeller.view import LabellerView, Mode

_LONGEST_CLASS: Final = 24
_GAP: Final = 3
_MOST_LINES: Final = 3


def footer(view: LabellerView, viewport: Viewport) -> list[Text]:
    """The classes and their keys, the line where something is typed, and the commands.

    Args:
        view: What is shown.
        viewport: The area; the classes take what the other two lines leave, as far as they need it.
    """
    answering = view.mode in (Mode.label, Mode.correct) and view.item is not None
    prompt = _prompt(view, viewport, answering=answering)
    chips = _fitted(_chips(view, viewport), viewport, max(1, viewport.height - 1 - len(prompt))) if answering else []
    return [*chips, *prompt, _commands(view, viewport)]


def typed_classes(view: LabellerView) -> tuple[str, ...]:
    """The classes of a project whose classes are typed; none where they have keys, or labels are numbers."""
    return () if direct_keys(view.settings.classes) else view.settings.classes


def _chips(view: LabellerView, viewport: Viewport) -> list[Text]:
    """One piece for each class: its key or number, its name, and how often it was given."""
    classes = view.settings.classes
    keys = direct_keys(classes)
    counts = view.counts.classes or (0,) * len(classes)
    possible = set(possible_classes(view.typed, classes)) if view.typed and not view.typed.isdigit() else set(classes)
    chips: list[tuple[bool, Text]] = []
    for k, (name, count) in enumerate(zip(classes, counts, strict=True)):
        style = "" if name in possible else "dim"
        chip = Text(no_wrap=True).append(f" {keys[k] if keys else k + 1} ", "reverse" if not style else "dim")
        # A class that is its own key need not be said twice.
        if not keys or keys[k] != name:
            chip.append(f" {viewport.cut(name, _LONGEST_CLASS)}", style)
        chips.append((name not in possible, chip.append(f" {count:,}", "dim")))
    # Those that may be meant come first, for there may not be space for all.
    return [chip for _, chip in sorted(chips, key=lambda each: each[0])]


def _fitted(chips: list[Text], viewport: Viewport, most: int) -> list[Text]:
    """Pieces side by side on as many lines as they need, or say how many do not fit."""
    lines: list[Text] = []
    for at, chip in enumerate(chips):
        if lines and lines[-1].cell_len + _GAP + chip.cell_len <= viewport.width:
            lines[-1] = Text.assemble(lines[-1], " " * _GAP, chip, no_wrap=True)
        elif len(lines) < most:
            lines.append(Text.assemble(" ", chip, no_wrap=True))
        else:
            more = f" and {len(chips) - at} more"
            lines[-1].truncate(max(0, viewport.width - len(more)))
            lines[-1].append(more, "dim")
            break
    return lines


def _prompt(view: LabellerView, viewport: Viewport, *, answering: bool) -> list[Text]:
    """What is being typed, with the answer to it beside; or below, where it is long."""
    line = Text(no_wrap=True)
    numbers = view.settings.task == "regression"
    if answering and (numbers or typed_classes(view)):
        name = viewport.cut(view.settings.target or "label", max(8, viewport.width // 3))
        line.append(f" {name}: ", "bold").append(viewport.text(view.typed)).append(" ", "reverse")
        if not view.typed and not view.message.text:
            hint = "a number, then Enter" if numbers else "number or beginning, then Enter"
            line.append(viewport.cut(hint, max(0, viewport.width - line.cell_len - 1)), "dim")
    style = "bold red" if view.message.bad else "dim"
    said = Text(viewport.cut(view.message.text, len(view.message.text)), style)
    if line.cell_len + 1 + said.cell_len <= viewport.width:
        return [line.append(" ").append(said)]
    below = [Text(f" {each}", style, no_wrap=True) for each in wrapped(said.plain, viewport.width - 2)[:_MOST_LINES]]
    return [line, *below] if line else below


def _commands(view: LabellerView, viewport: Viewport) -> Text:
    if view.mode is Mode.help:
        return Text(" any key goes back", "dim")
    keys = command_keys(typed_classes(view))
    if view.mode is Mode.label:
        names = list(keys) if view.item is not None else ["undo", "correct", "help", "quit"]
    else:
        names = []
    line = Text(no_wrap=True)
    if view.mode is not Mode.label:
        line.append(" Esc", "bold").append(" back", "dim")
    needed = sum(cell_len(f" {keys[name]} {name}") for name in names)
    gap = " " if needed + len(names) <= viewport.width else ""
    for name in names:
        line.append(f" {keys[name]}", "bold").append(f" {name}{gap}", "dim")
    return line
