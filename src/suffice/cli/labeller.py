"""Labelling in the terminal: the state of one person, the keys of classes and commands, and labelling by lines.

Labelling on the whole screen is in :mod:`suffice.cli.label_app`, which needs Textual; nothing here does.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rich.console import Console

from suffice.checks.prediction_check import RIGHT, WRONG
from suffice.cli.terminal_display import Picture, Pictures, one_line, visible
from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.text_format import as_sentence, item_summary
from suffice.project.events import EventKind, Label, checked_label
from suffice.project.items import Item
from suffice.project.label_writer import OutsideRangeError
from suffice.project.status_summary import CheckStatus, check_status, decision_of, learning_sentences
from suffice.tables.table_columns import as_number

if TYPE_CHECKING:
    from suffice.project.background_learner import BackgroundLearner
    from suffice.project.labelling_project import Project
    from suffice.project.settings import Settings


#: The commands, by their letter.
COMMANDS: Final = {"s": "skip", "u": "undo", "c": "correct", "?": "help", "q": "quit"}
#: Styles of the tones of a decision in the terminal.
TONE_STYLES: Final = {"quiet": "bold", "on": "bold", "good": "bold green", "limit": "bold yellow"}
_MOST_KEYS: Final = 9
_NOTHING_LEFT: Final = "Nothing is left to label for you"
#: Of predictions made elsewhere, only the rows of a check are asked for; the others stay as they are.
_NOTHING_ASKED: Final = "No more rows are asked for"
_REACHED: Final = "Your goal is reached, and no more labels are needed. To label more, open the project again."


def direct_keys(classes: Sequence[str]) -> tuple[str, ...]:
    """One key for each class; empty if there are too many classes, which are then typed.

    Classes that are digits have themselves as keys: nobody should have to press 1 for 0.

    Examples:
        >>> direct_keys(["ham", "spam"]), direct_keys(["0", "1"]), direct_keys([str(k) for k in range(12)])
        (('1', '2'), ('0', '1'), ())
    """
    if classes and all(len(name) == 1 and name in "0123456789" for name in classes):
        return tuple(classes)
    return tuple(str(k) for k in range(1, len(classes) + 1)) if len(classes) <= _MOST_KEYS else ()


def command_keys(classes: Sequence[str]) -> dict[str, str]:
    """Key of each command: its letter, after a colon if a typed class begins with that letter.

    Args:
        classes: The classes that are typed; none where a class has a key, or labels are numbers.

    Examples:
        >>> command_keys([])["skip"], command_keys(["Snake", "cat"])["skip"]
        ('s', ':s')
    """
    taken = {name[:1].casefold() for name in classes}
    return {command: f":{letter}" if letter in taken else letter for letter, command in COMMANDS.items()}


def typed_class(text: str, classes: Sequence[str], *, beginnings: bool = True) -> str:
    """The class for a typed name, number, or beginning of a name.

    Args:
        text: What was typed.
        classes: All classes.
        beginnings: Whether the beginning of a name is enough.

    Raises:
        InvalidValueError: It may be none of them, or several.

    Examples:
        >>> typed_class("2", ["cat", "dog"]), typed_class("D", ["cat", "dog"]), typed_class("1", ["0", "1"])
        ('dog', 'dog', '1')
    """
    word = text.strip()
    if word in classes:
        return word
    folded = word.casefold()
    same = [name for name in classes if name.casefold() == folded]
    found = same or _numbered(word, classes) or (possible_classes(word, classes) if beginnings and word else [])
    if len(found) == 1:
        return found[0]
    some = ", ".join((found or list(classes))[:8]) + (", ..." if len(found or classes) > 8 else "")
    if found:
        raise InvalidValueError(f"{word[:40]!r} may be {some}; type more of it")
    raise InvalidValueError(f"{word[:40]!r} is none of the classes; they are {some}")


def possible_classes(text: str, classes: Sequence[str]) -> list[str]:
    """Classes whose name begins with the typed text, without regard to upper and lower case."""
    folded = text.strip().casefold()
    return [name for name in classes if name.casefold().startswith(folded)]


def _numbered(word: str, classes: Sequence[str]) -> list[str]:
    """The class of a number; empty if the name of a class is a number, because it would be ambiguous."""
    if not (word.isascii() and word.isdigit() and len(word) < 9) or any(name.strip().isdigit() for name in classes):
        return []
    return [classes[int(word) - 1]] if 1 <= int(word) <= len(classes) else []


def shown_label(label: Label) -> str:
    """A label in a sentence.

    Examples:
        >>> shown_label("spam"), shown_label(4.0)
        ('spam', '4')
    """
    return label if isinstance(label, str) else f"{label:.12g}"


@dataclass(frozen=True)
class Given:
    """A given label that can be corrected.

    Attributes:
        item: Position of the item.
        id: Its name.
        summary: The beginning of what it shows.
        label: The label.
        person: Who gave it.
    """

    item: int
    id: str
    summary: str
    label: Label
    person: str


@dataclass(frozen=True)
class Counts:
    """Progress of the labelling.

    Attributes:
        labelled: Items with a label.
        skipped: Items that were skipped.
        size: All items.
        classes: Labels of each class, in the order of the classes.
        checks: What the checks of the project come to.
    """

    labelled: int = 0
    skipped: int = 0
    size: int = 0
    classes: tuple[int, ...] = ()
    checks: CheckStatus = field(default_factory=CheckStatus)


# Seconds that a key waits for the model to learn from it, so that the next item is chosen with it; then it goes on,
# and sooner where the disk has taken longer than that already.
_LEARN: Final = 0.05
_ALL: Final = 0.1
# The same for a line, whose next item need not appear at once; so the advice is about all labels.
_LEARN_BY_LINE: Final = 1.0
_PICTURE: Final = 0.03
# Seconds between two looks at the progress of the model at the end, and between two lines about it.
_PROGRESS: Final = 0.5
_PROGRESS_LINE: Final = 10.0
# If no items are left, another person may return an item.
_ASK_AGAIN: Final = 2.0


class Labeller:
    """A person who labels: the shown item, and the actions so far.

    Whatever is done is on the disk when a method returns. What could not be written raises, and the item stays.

    Args:
        project: The project.
        background: Learns in the background.
        person: Who labels.
        most: Number of labels at most; no limit if None.
        patience: Seconds that an answer waits for the model to learn from it.

    Attributes:
        item: The item to label, or None where nothing is left.
        why: Why it is this one.
        in_check: Whether it is an item of a random check.
        labels: Labels given here.
        goal_reached: Whether nothing is asked because the goal of predictions made elsewhere is reached. A person who
            opens a project with a reached goal is asked all the same.
    """

    def __init__(
        self,
        project: "Project",
        background: "BackgroundLearner",
        person: str,
        most: int | None = None,
        *,
        patience: float = _LEARN,
    ) -> None:
        self._patience = patience
        self.project, self.background, self.person, self.most = project, background, person, most
        self.item: Item | None = None
        self.why = ""
        self.in_check = False
        self.labels = 0
        self.goal_reached = False
        self._to_goal = self._for_given and project.reached_goal() is None
        self._asked = -_ASK_AGAIN
        # The last label outside of the plausible range, with its item.
        self._implausible: tuple[int, Label] | None = None
        self._request = uuid4().hex
        self._pictures = Pictures(Path(project.settings.root)) if project.settings.shown == "image" else None

    def close(self) -> None:
        """Close the pictures."""
        if self._pictures is not None:
            self._pictures.close()

    def ask(self) -> None:
        """Ask for the next item."""
        self.item, self._asked = None, time.monotonic()
        if self.most is not None and self.labels >= self.most:
            return
        self.goal_reached = self._to_goal and self.project.reached_goal() is not None
        if self.goal_reached:
            return
        if self._for_given:
            self._start_check_if_due()
        asked = self.project.next(self.person, queue=self.background.learning_status.queue)
        if asked:
            self._show(asked[0].position, asked[0].why, in_check=asked[0].check)

    @property
    def _for_given(self) -> bool:
        """Whether the project has a goal for all labels of predictions made elsewhere."""
        return self.project.settings.checked is not None and self.project.settings.goal is not None

    def nothing_left(self, more: str = "") -> str:
        """Why there is no item to label, in a sentence.

        Args:
            more: What is said besides if every item is taken.
        """
        if self.goal_reached:
            return _REACHED
        return f"{_NOTHING_LEFT if self.project.settings.checked is None else _NOTHING_ASKED}{more}."

    def _start_check_if_due(self) -> None:
        """Start the check for the goal about all labels, when the plan says so."""
        self.caught_up(_ALL)
        learning_status, settings = self.background.learning_status, self.project.settings
        counts = self.counts()
        decision = decision_of(
            learning_status, settings, counts.labelled, size=counts.size - counts.skipped, checks=counts.checks
        )
        if counts.checks.awaits_answers or decision.finish is None or not decision.finish.check_now:
            return
        self.project.start_check(of="all", person=self.person, predict=self.background.predictions_after)

    def ask_again(self) -> None:
        """If nothing was left, ask again from time to time."""
        if self.item is None and time.monotonic() - self._asked >= _ASK_AGAIN:
            self.ask()

    @property
    def verdicts(self) -> bool:
        """Whether people say if a prediction made elsewhere is right."""
        checked = self.project.settings.checked
        return checked is not None and checked.answer == "verdict"

    def label(self, label: Label, correction: str = "") -> None:
        """Label the item, and continue with the next.

        Args:
            label: The label.
            correction: What is right in place of a wrong prediction, if people judge predictions.
        """
        begun, item = time.monotonic(), self._item()
        with self._past_conflicts(), self._asking_again(item.position, label) as confirmed:
            self.project.label(
                item.position,
                label,
                person=self.person,
                request=self._request,
                correction=correction,
                outside_range=confirmed,
            )
        self.labels += 1
        self._done(begun)
        self._go_on()

    def skip(self) -> None:
        """Skip the item, and continue with the next."""
        begun, item = time.monotonic(), self._item()
        with self._past_conflicts():
            self.project.skip(item.position, person=self.person, request=self._request)
        self._done(begun)
        self._go_on()

    def correct(self, position: int, label: Label) -> None:
        """Change the label of another item; the item to label stays the same."""
        begun = time.monotonic()
        with self._asking_again(position, label) as confirmed:
            self.project.correct(position, label, person=self.person, request=self._request, outside_range=confirmed)
        self._done(begun)

    @contextmanager
    def _asking_again(self, position: int, label: Label) -> Iterator[bool]:
        """Whether a label outside of the plausible range is confirmed: the same number, given a second time."""
        try:
            yield self._implausible == (position, label)
        except OutsideRangeError as error:
            self._implausible = position, label
            sentence = str(error).partition("; if it is right")[0]
            raise OutsideRangeError(f"{sentence}; if it is right, give it again") from None
        self._implausible = None

    def undo(self) -> str:
        """Undo the last action, show its item again if it must be labelled again, and return what was undone."""
        from suffice.project.assignment import IN_CHECK

        begun = time.monotonic()
        with self.project.lock:
            act = self.project.state().acts.newest_of(self.person)
        receipt = self.project.undo(person=self.person, request=self._request)
        kind = EventKind.labelled if act is None else act.kind
        position = receipt.position
        self._done(begun)
        if position is None:
            return "undone"
        if kind is EventKind.corrected:
            return f"the correction of {self.project.item(position).id} is undone"
        # Labels of earlier sessions can be undone too.
        self.labels = max(0, self.labels - (kind is EventKind.labelled))
        with self.project.lock:
            in_check = position in self.project.state().checks.pending()
        item = self._show(position, f"undone: label it again{f'; {IN_CHECK}' * in_check}", in_check=in_check)
        return f"{'the skip' if kind is EventKind.skipped else 'the label'} of {item.id} is undone"

    def picture(self, item: Item | None) -> Picture | None:
        """The picture of an item, if it is loaded."""
        if self._pictures is None or item is None or item.image is None:
            return None
        return self._pictures.get(item.image, _PICTURE)

    def counts(self) -> Counts:
        """Progress of the labelling, including other people."""
        with self.project.lock:
            state = self.project.state()
            counts = state.counts()
            classes = tuple(counts.get(name, 0) for name in self.project.settings.classes)
            checks = check_status(state, self.project.settings)
            return Counts(state.n_labelled, state.n_skipped, self.project.size, classes, checks)

    def status_sentences(self, counts: Counts) -> list[str]:
        """The status of the project in sentences, the most important first.

        Args:
            counts: The progress.
        """
        return learning_sentences(
            self.background.learning_status,
            self.project.settings,
            counts.labelled,
            size=counts.size - counts.skipped,
            checks=counts.checks,
        )

    def newest(self, most: int) -> tuple[Given, ...]:
        """The labels that were given last, the newest first."""
        with self.project.lock:
            labelled = sorted(self.project.state().labelled(), key=lambda each: each.at)[: -most - 1 : -1]
        items = self.project.items([each.item for each in labelled])
        return tuple(
            Given(
                each.item,
                item.id,
                one_line(item_summary(item.cells, self.project.settings.main)),
                each.label,
                each.person,
            )
            for each, item in zip(labelled, items, strict=True)
        )

    def caught_up(self, timeout: float) -> bool:
        """Wait until the model has learned everything, with a limit in seconds."""
        return self.background.wait_settled(timeout)

    def unlearned_at_end(self, timeout: float) -> Iterator[int]:
        """Wait until the model has learned everything, also for missing features if it has enough labels.

        Args:
            timeout: Limit in seconds.

        Yields:
            The number of answers that it has not learned yet, twice a second; nothing once it has learned all answers,
            or cannot learn them.
        """
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0.0:
            step, waits = min(_PROGRESS, left), self._waits_for_features()
            if waits:
                time.sleep(step)
            elif self.background.wait_ended(step):
                return
            n_learned = max(self.background.learner.n_answers, self.background.learning_status.n_answers)
            # At first the saved state is read.
            if waits or n_learned:
                with self.project.lock:
                    yield max(0, len(self.project.state().learned()) - n_learned)

    def _waits_for_features(self) -> bool:
        """Whether there are enough labels for a model, and the features of the items are being computed."""
        return (
            self.project.features_missing
            and not self.background.learning_status.problem
            and self.counts().labelled >= self.project.settings.initial
        )

    @contextmanager
    def _past_conflicts(self) -> Iterator[None]:
        """Leave an item behind that was answered elsewhere meanwhile, in another window of the same person."""
        from suffice.project.labelling_project import ConflictError

        try:
            yield
        except ConflictError:
            self._request = uuid4().hex
            self.ask()
            raise

    def _go_on(self) -> None:
        try:
            self.ask()
        except SufficeError as error:
            raise SufficeError(f"your answer is saved, but the next item could not be requested: {error}") from None

    def _item(self) -> Item:
        if self.item is None:
            raise SufficeError("there is no item to label now")
        return self.item

    def _done(self, begun: float) -> None:
        # A new name for what comes next; while something could not be written its name stays, so that it is not
        # written twice if it was written after all.
        self._request = uuid4().hex
        self.background.wake()
        self.caught_up(max(0.0, min(self._patience, begun + 2.0 * self._patience - time.monotonic())))

    def _show(self, position: int, why: str, *, in_check: bool) -> Item:
        self.item, self.why, self.in_check = self.project.item(position), why, in_check
        return self.item


@contextmanager
def opened_labeller(
    project: "Project", person: str, most: int | None = None, *, by_keys: bool = True
) -> Iterator[Labeller]:
    """A labeller for a project, with a background learner that runs until this is left.

    Args:
        project: The project.
        person: Who labels.
        most: Number of labels at most; no limit if None.
        by_keys: Whether the person answers by keys; a line may wait longer for the model.
    """
    from suffice.project.background_learner import BackgroundLearner

    if not project.features_missing:
        # Loaded before the first key, which would otherwise wait for it.
        _ = project.X
    with BackgroundLearner(project, project.learned_files) as background:
        patience = _LEARN if by_keys else _LEARN_BY_LINE
        labeller = Labeller(project, background, person, most, patience=patience)
        try:
            yield labeller
        finally:
            labeller.close()


_LONGEST: Final = 2000
_LONGEST_LINE: Final = 1000


def label_by_lines(labeller: Labeller, console: Console, source: Iterable[str]) -> None:
    """Label until the input ends or a line asks to leave.

    Args:
        labeller: The person and their item.
        console: Where items and answers are printed.
        source: The lines: a class or its number, a number, or s (skip), u (undo), q (quit).
    """
    _say(console, _how(labeller))
    labeller.ask()
    _print_item(labeller, console)
    said, headline = 0, _headline(_progress(labeller))
    for line in source:
        open_check = labeller.counts().checks.awaits_answers
        try:
            if not _done(labeller, console, line.strip()):
                return
        except SufficeError as error:
            _say(console, str(error))
            continue
        checks = labeller.counts().checks
        # What a check of predictions made elsewhere has shown is stated by the command, for all of its rows.
        if open_check and not checks.awaits_answers and not _stated_later(labeller):
            _say(console, *checks.sentences())
            said, headline = labeller.labels, _headline(_progress(labeller))
        progress = _progress(labeller)
        if _headline(progress) != headline or labeller.labels >= said + _STATED_EVERY:
            said, headline = labeller.labels, _headline(progress)
            _say(console, *progress)
        if labeller.item is None:
            _say(console, labeller.nothing_left())
            return
        _print_item(labeller, console)


def learn_last_answers(labeller: Labeller, console: Console, timeout: float) -> None:
    """Wait until the model has learned the last answers, with its progress.

    Args:
        labeller: The person who has labelled.
        console: Where the progress is printed: on a terminal in one line that changes, otherwise in lines.
        timeout: Limit in seconds.
    """
    total, stated_at, shown = 0, 0.0, None
    in_place = console.is_terminal and not console.is_dumb_terminal
    with ExitStack() as stack:
        for unlearned in labeller.unlearned_at_end(timeout):
            now = time.monotonic()
            first = not total
            total = max(total, unlearned)
            if not total or not (in_place or first or now - stated_at >= _PROGRESS_LINE):
                continue
            stated_at, sentence = now, _unlearned_sentence(unlearned, total, whole=first or in_place)
            if not in_place:
                _say(console, sentence)
            elif shown is None:
                shown = stack.enter_context(console.status(sentence, spinner="line"))
            else:
                shown.update(sentence)


def _unlearned_sentence(unlearned: int, total: int, *, whole: bool) -> str:
    """The progress of the model with the last answers.

    Args:
        unlearned: Number of answers that it has not learned.
        total: Their number at the first of these sentences.
        whole: Whether the sentence says what is happening, and how to end it.

    Examples:
        >>> _unlearned_sentence(3, 7, whole=False)
        '4 of the last 7 answers are learned.'
    """
    progress = f"{total - unlearned:,} of the last {total:,} answers are learned"
    if total == 1:
        progress = "the last answer is being learned"
    if not whole:
        return as_sentence(progress)
    return (
        f"The model is learning: {progress}. All answers are saved. Ctrl-C ends this; the model learns the others when "
        "the project is opened again."
    )


# By lines, progress is stated when the advice changes, and after this number of labels.
_STATED_EVERY: Final = 10


def _stated_later(labeller: Labeller) -> bool:
    """Whether a command states what a check of predictions made elsewhere has shown."""
    settings = labeller.project.settings
    return settings.checked is not None and settings.goal is None


def _progress(labeller: Labeller) -> list[str]:
    """The status of the project in sentences; none while a check is answered, which has its own progress."""
    counts = labeller.counts()
    return [] if counts.checks.awaits_answers or _stated_later(labeller) else labeller.status_sentences(counts)


def _headline(progress: Sequence[str]) -> str:
    """The advice in a few words, with which the first sentence begins."""
    return progress[0].partition(":")[0] if progress else ""


def _how(labeller: Labeller) -> str:
    settings = labeller.project.settings
    if settings.task == "regression":
        answer = f"{settings.target}: a number"
    else:
        classes = [f"{name} ({k})" for k, name in enumerate(settings.classes, start=1)]
        answer = f"{settings.target}: {', '.join(classes[:20])}{', ...' if len(classes) > 20 else ''}"
    if labeller.verdicts:
        answer = "is the prediction right? y (right), n (wrong), or = and what is right instead"
    return f"{answer}; or s to skip, u to undo, q to quit"


def _done(labeller: Labeller, console: Console, line: str) -> bool:
    """Carry out a line; return whether to continue."""
    settings, correction = labeller.project.settings, ""
    if labeller.verdicts:
        line, correction = _verdict(line)
    if len(line) > _LONGEST_LINE:
        raise InvalidValueError(f"a label has at most {_LONGEST_LINE} characters, not {len(line)}")
    # A class with the name of a command takes precedence; with a colon it is the command.
    command = COMMANDS.get(line.removeprefix(":"), line) if line not in settings.classes else ""
    if command == "quit":
        return False
    if command == "undo":
        _say(console, labeller.undo())
    elif command == "skip":
        skipped = labeller.item
        labeller.skip()
        if skipped is not None:
            _say(console, f"{skipped.id} is skipped")
    elif command in ("help", "correct") or not line:
        raise InvalidValueError(_how(labeller))
    elif labeller.item is not None:
        label = (
            checked_label(settings, line)
            if settings.task == "regression"
            else typed_class(line, settings.classes, beginnings=False)
        )
        item = labeller.item
        labeller.label(label, correction)
        instead = f": {correction}" if correction else ""
        _say(console, f"{item.id} is {shown_label(label)}{instead}")
    return True


def _verdict(line: str) -> tuple[str, str]:
    """The answer of a line about a prediction, and what is right in its place.

    Examples:
        >>> _verdict("y"), _verdict("N"), _verdict("= 12 May"), _verdict("u")
        (('right', ''), ('wrong', ''), ('wrong', '12 May'), ('u', ''))
    """
    if line.startswith("="):
        if not line[1:].strip():
            raise InvalidValueError("= is followed by what is right, as in = 12 May")
        return WRONG, line[1:].strip()
    return {"y": RIGHT, "yes": RIGHT, "n": WRONG, "no": WRONG}.get(line.casefold(), line), ""


def _marked(item: Item, settings: "Settings") -> list[tuple[str, str]]:
    """The cells of an item; the part of the text between its positions is in double brackets."""
    cells, checked = dict(item.cells), settings.checked
    if checked is None or checked.spans is None or settings.main not in cells:
        return list(item.cells)
    text = cells[settings.main]
    start, end = (as_number(cells.get(name, "")) for name in checked.spans)
    if start is None or end is None or not 0 <= start < end <= len(text):
        # Positions outside the text are shown as they are.
        return list(item.cells)
    first, last = int(start), int(end)
    cells[settings.main] = f"{text[:first]}[[{text[first:last]}]]{text[last:]}"
    return [(name, value) for name, value in cells.items() if name not in checked.spans]


def _print_item(labeller: Labeller, console: Console) -> None:
    item = labeller.item
    if item is None:
        return
    counts = labeller.counts()
    why = f"; {labeller.why}" if labeller.in_check else ""
    if labeller.in_check and counts.checks.check is not None and counts.checks.check["sentence"]:
        _say(console, f"\n{counts.checks.check['sentence']}")
    _say(console, f"\n{item.id} ({counts.labelled:,} of {counts.size:,} labelled{why})")
    for name, value in _marked(item, labeller.project.settings):
        text = visible(value[:_LONGEST], console.encoding) + (" ..." if len(value) > _LONGEST else "")
        _say(console, f"  {one_line(name)}: {text}".replace("\n", "\n    "))


def _say(console: Console, *sentences: str) -> None:
    for sentence in sentences:
        console.print(visible(sentence, console.encoding), markup=False, highlight=False, emoji=False, soft_wrap=True)
