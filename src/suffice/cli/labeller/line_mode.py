"""Labelling by lines, without a full screen."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console

from suffice.cli.labeller.labeller import COMMANDS, Labeller, shown_label, typed_class
from suffice.cli.labeller.visible_text import one_line, visible
from suffice.errors import InvalidValueError, SufficeError
from suffice.project.events import checked_label
from suffice.project.status_summary import learning_sentences

_LONGEST: Final = 2000
_LONGEST_LINE: Final = 1000


def label_by_lines(labeller: Labeller, console: Console, source: Iterable[str]) -> None:
    """Label until the lines end or one says so.

    Args:
        labeller: The person and their item.
        console: Where items and answers are printed.
        source: The lines: a class or its number, a number, or s (skip), u (undo), q (quit).
    """
    _say(console, _how(labeller))
    labeller.ask()
    _print_item(labeller, console)
    told = False
    for line in source:
        open_check = labeller.counts().checks.awaits_answers
        try:
            if not _done(labeller, console, line.strip()):
                return
        except SufficeError as error:
            _say(console, str(error))
            continue
        learning_status = labeller.background.learning_status
        stop = learning_status.decision is not None and learning_status.decision.stop
        if stop and not told:
            _say(console, learning_sentences(learning_status, labeller.project.settings, learning_status.n_labelled)[0])
        told = stop
        checks = labeller.counts().checks
        if open_check and not checks.awaits_answers:
            for sentence in checks.sentences():
                _say(console, sentence)
        if labeller.item is None:
            _say(console, "Nothing is left to label for you.")
            return
        _print_item(labeller, console)


def _how(labeller: Labeller) -> str:
    settings = labeller.project.settings
    if settings.task == "regression":
        answer = f"{settings.target}: a number"
    else:
        classes = [f"{name} ({k})" for k, name in enumerate(settings.classes, start=1)]
        answer = f"{settings.target}: {', '.join(classes[:20])}{', ...' if len(classes) > 20 else ''}"
    return f"{answer}; or s to skip, u to undo, q to quit"


def _done(labeller: Labeller, console: Console, line: str) -> bool:
    """Do what a line says; return whether to go on."""
    settings = labeller.project.settings
    if len(line) > _LONGEST_LINE:
        raise InvalidValueError(f"a line of {len(line)} characters is no label; at most {_LONGEST_LINE} are read")
    # A class may be called like a command, and is meant then; with a colon before it, it is a command.
    command = COMMANDS.get(line.removeprefix(":"), line) if line not in settings.classes else ""
    if command == "quit":
        return False
    if command == "undo":
        _say(console, labeller.undo())
    elif command == "skip":
        labeller.skip()
    elif command in ("help", "correct") or not line:
        raise InvalidValueError(_how(labeller))
    elif labeller.item is not None:
        label = (
            checked_label(settings, line)
            if settings.task == "regression"
            else typed_class(line, settings.classes, beginnings=False)
        )
        item = labeller.item
        labeller.label(label)
        _say(console, f"{item.id} is {shown_label(label)}")
    return True


def _print_item(labeller: Labeller, console: Console) -> None:
    item = labeller.item
    if item is None:
        return
    counts = labeller.counts()
    why = f"; {labeller.why}" if labeller.in_check else ""
    _say(console, f"\n{item.id} ({counts.labelled:,} of {counts.size:,} labelled{why})")
    for name, value in item.cells:
        text = visible(value[:_LONGEST], console.encoding) + (" ..." if len(value) > _LONGEST else "")
        _say(console, f"  {one_line(name)}: {text}")


def _say(console: Console, sentence: str) -> None:
    console.print(visible(sentence, console.encoding), markup=False, highlight=False, emoji=False, soft_wrap=True)
