"""Tables with predictions that were made elsewhere, read for a project that checks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real
from suffice.checks import Check
from suffice.checks.given_predictions import AnswerWay
from suffice.checks.made_elsewhere import GivenPredictions
from suffice.checks.prediction_check import RIGHT, WRONG, CheckDesign, PredictionCheck, PredictionResult
from suffice.checks.random_check import is_wrong
from suffice.errors import InvalidValueError
from suffice.files import digest_of
from suffice.numerics import Floats
from suffice.presentation.text_format import count
from suffice.project.create import require_empty, write_project
from suffice.project.events import LONGEST_CLASS, MOST_CLASSES
from suffice.project.items import ItemProgress, Items, no_progress
from suffice.project.labelling_project import Project
from suffice.project.prediction_columns import (
    class_codes,
    class_column,
    group_codes,
    predicted_column,
    probability_column,
)
from suffice.project.prediction_settings import GIVEN, CheckedPredictions, given_predictions
from suffice.project.read_items import ReadingOptions, TableSource, checked_classes, read_source
from suffice.project.settings import DEFAULT_INITIAL, FEWEST_OPINIONS, Settings, checked_conditions, default_rule
from suffice.tables.table import alike_notes, are_classes, folded_name, named_column
from suffice.tables.table_columns import Column, TableColumns, Texts, is_path

# With more different predictions than this, people say whether a prediction is right instead of labelling.
_MOST_BLIND: Final = 50
# Predictions of which this share is different are texts, not classes.
_LIKE_TEXTS: Final = 0.5
# A column that has the value of the prediction in this share of the rows tells people what is predicted.
_AGREEING: Final = 0.6
# Rows that are compared at a time.
_COMPARED: Final = 5000
_ELSEWHERE: Final = "use the file as it was, or make another project with --project FOLDER"


@dataclass(frozen=True)
class PredictionOptions:
    """Options for reading predictions.

    Attributes:
        columns: Columns of predictions.
        probability: Column with the confidence in each prediction, or None.
        group: Column of groups, or None.
        answer: How people answer; chosen by the predictions if None.
        numbers: Whether the predictions are numbers; determined from them if None.
        classes: Further classes that are not predicted.
        spans: Columns with the start and the end of a marked part of the text, or None.
        show: Columns that people see besides the text or image.
    """

    columns: tuple[str, ...]
    probability: str | None = None
    group: str | None = None
    answer: AnswerWay | None = None
    numbers: bool | None = None
    classes: tuple[str, ...] = ()
    spans: tuple[str, str] | None = None
    show: tuple[str, ...] = ()


def prediction_items(
    data: Any, reading: ReadingOptions, options: PredictionOptions, progress: ItemProgress = no_progress
) -> tuple[Items, CheckedPredictions]:
    """Read a table with predictions.

    Args:
        data: Path of a table, or a table in memory.
        reading: Which columns are the text, the image and the id, and which are left out.
        options: Which columns are predictions.
        progress: Receives the present activity.

    Raises:
        InvalidValueError: A column is missing, or its values cannot be used; the message gives a remedy.
    """
    _require_distinct(options)
    _require_shown(reading, options)
    source = read_source(data, reading, progress)
    if source.text in options.columns:
        # A prediction is not what people read to answer, however long it is.
        source = source._replace(text=None)
    file, path = source.file, source.path
    for name, option in _named(options):
        try:
            named_column(file, name, path)
        except InvalidValueError as error:
            raise InvalidValueError(f"{option}: {error}") from None
    found = {name: predicted_column(file, name, options.classes) for name in options.columns}
    answer = _answer_way(options, found)
    classes: tuple[str, ...] = ()
    numbers = answer == "blind" and _are_numbers(options, found)
    if answer == "verdict":
        classes = (RIGHT, WRONG)
        parts = [np.zeros(len(file))]
    elif numbers:
        parts = [np.asarray(values, dtype=np.float64) for values in found.values()]
    else:
        classes, parts = _coded(found, options.classes)
    if options.probability is not None:
        parts.append(probability_column(file, options.probability))
    groups: tuple[str, ...] = ()
    if options.group is not None:
        groups, codes = group_codes(file, options.group)
        parts.append(codes)
    concealed, notes = _concealed(source, reading, options, answer)
    notes += alike_notes(classes)
    checked = CheckedPredictions(
        options.columns,
        answer,
        options.probability,
        options.group,
        groups,
        _spans(file, options, source.text),
        concealed,
    )
    known = {"image": reading.image, "id": reading.id, "ignore": list(reading.ignore), "text": reading.text}
    known["show"] = list(options.show)
    if is_path(data):
        known["digest"] = digest_of(Path(data))
    made = source.items(X=np.column_stack(parts), task="regression" if numbers else "classification", classes=classes)
    return replace(made, notes=(*made.notes, *notes), reading={**(made.reading or {}), **known}), checked


def _concealed(
    source: TableSource, reading: ReadingOptions, options: PredictionOptions, answer: AnswerWay
) -> tuple[tuple[str, ...], list[str]]:
    """Columns besides those of the check that people do not see, and sentences about it."""
    predictions = set(options.columns) | ({options.probability} if answer == "blind" else set())
    others = [name for name in source.shown if name not in predictions]
    if reading.text or reading.image or options.show:
        seen = {source.text, source.image, *options.show, *options.columns, *(options.spans or ())}
        concealed = tuple(name for name in others if name not in seen)
        shown = [repr(name) for name in others if name in seen - {*options.columns, *(options.spans or ())}]
        if not concealed:
            return (), []
        return concealed, [f"people see {', '.join(shown)}, and no other column; --show COLUMN shows one more"]
    if answer == "verdict":
        return (), []
    found = [name for name in others if name != source.text and _like_predictions(source.file, name, options)]
    notes = [
        f"column {name!r} is not shown, because its values are like the predictions; --show {name} shows it"
        for name in found
    ]
    return tuple(found), notes


def _like_predictions(file: TableColumns, name: str, options: PredictionOptions) -> bool:
    """Whether a column may tell people what is predicted: it has the same classes, or mostly the same values."""
    levels, codes = class_codes(file[name])
    for column in options.columns:
        predicted, places = class_codes(file[column])
        if len(levels) > 1 and set(levels) <= set(predicted) and isinstance(file[column], Texts):
            return True
        same = {level: place for place, level in enumerate(predicted)}
        there = np.array([*(same.get(level, -2) for level in levels), -2], dtype=np.intp)[codes]
        if np.mean(there == places) >= _AGREEING:
            return True
    return False


def _named(options: PredictionOptions) -> list[tuple[str, str]]:
    """Columns with the option that names each."""
    named = [(name, "--prediction") for name in options.columns]
    named += [] if options.probability is None else [(options.probability, "--probability")]
    named += [] if options.group is None else [(options.group, "--group")]
    named += [(name, "--show") for name in options.show]
    return named + [(name, "--spans") for name in options.spans or ()]


def _require_distinct(options: PredictionOptions) -> None:
    if not options.columns:
        raise InvalidValueError("--prediction must name the column of predictions")
    if len(set(options.columns)) < len(options.columns):
        raise InvalidValueError("--prediction names a column twice; name each once")
    if options.probability in options.columns:
        raise InvalidValueError(f"column {options.probability!r} is given as --prediction and as --probability")
    if options.answer is not None and options.answer not in get_args(AnswerWay):
        raise InvalidValueError(f"--answer must be blind or verdict, not {options.answer!r}")
    if options.answer == "verdict" and len(options.columns) > 1:
        raise InvalidValueError("--answer verdict is about one column of predictions; compare several with blind")


def _require_shown(reading: ReadingOptions, options: PredictionOptions) -> None:
    """Raise an error if a prediction is used as something else, or left out."""
    for option, name in (("--text", reading.text), ("--image", reading.image), ("--id", reading.id)):
        if name in options.columns:
            raise InvalidValueError(f"column {name!r} is given as --prediction and as {option}; name another {option}")
    if needed := [name for name in (*options.columns, *(options.spans or ())) if name in reading.ignore]:
        raise InvalidValueError(f"--ignore names the column {needed[0]!r}, which is checked; leave it out of --ignore")
    for name in options.show:
        if name in reading.ignore:
            raise InvalidValueError(f"column {name!r} is given as --show and as --ignore; it can be one of them")
        if name in options.columns:
            raise InvalidValueError(
                f"--show names the column {name!r}, which is checked; with --answer verdict people see it anyway"
            )


def _answer_way(options: PredictionOptions, found: Mapping[str, Column]) -> AnswerWay:
    if options.answer is not None:
        return options.answer
    if options.spans is not None:
        return "verdict"
    if len(found) > 1 or _are_numbers(options, found):
        return "blind"
    (values,) = found.values()
    if isinstance(values, Texts) and _are_texts(values):
        return "verdict"
    return "blind"


def _are_texts(values: Texts) -> bool:
    """Whether predictions are texts rather than classes: too many or too long ones, or nearly all different."""
    distinct = len(values.levels)
    if distinct > _MOST_BLIND or max(map(len, values.levels)) > LONGEST_CLASS:
        return True
    return distinct > 10 and distinct > _LIKE_TEXTS * len(values)


def _are_numbers(options: PredictionOptions, found: Mapping[str, Column]) -> bool:
    if options.classes:
        return False
    texts = [name for name, values in found.items() if isinstance(values, Texts)]
    if options.numbers:
        if texts:
            raise InvalidValueError(
                f"--tolerance is for numbers, and column {texts[0]!r} has texts; leave --tolerance out"
            )
        return True
    return not texts and not all(are_classes(np.unique(values)) for values in found.values())  # type: ignore[arg-type]


def _coded(found: Mapping[str, Column], more: Sequence[str]) -> tuple[tuple[str, ...], list[Floats]]:
    """All classes, and each column as numbers of classes."""
    texts = {name: class_codes(values) for name, values in found.items()}
    names = dict.fromkeys(more)
    names |= dict.fromkeys(sorted(set().union(*(levels for levels, _ in texts.values()))))
    if len(names) > MOST_CLASSES:
        raise InvalidValueError(
            f"there are {count(len(names), 'different prediction')}, more than the {MOST_CLASSES} classes that people "
            "can choose from; give --answer verdict, so that they say whether a prediction is right"
        )
    classes = checked_classes(list(names))
    places = {name: place for place, name in enumerate(classes)}
    coded = []
    for levels, codes in texts.values():
        coded.append(np.array([places[level.strip()] for level in levels], dtype=np.float64)[codes])
    return classes, coded


def _spans(file: TableColumns, options: PredictionOptions, text: str | None) -> tuple[str, str] | None:
    if options.spans is None:
        return None
    if text is None:
        raise InvalidValueError("--spans marks a part of the text; name the column of the text with --text")
    for name in options.spans:
        if isinstance(file[name], Texts):
            raise InvalidValueError(f"--spans: column {name!r} has texts; it must have positions in the text")
    return options.spans


def require_same_rows(project: Project, path: Path, place: str) -> None:
    """Raise an error if a file has other rows or predictions than a project was made with.

    Args:
        project: A project that checks predictions made elsewhere.
        path: The file.
        place: The project, for the message.

    Raises:
        InvalidValueError: It does; the message says where.
    """
    made = project.made_with
    if made.get("digest") == digest_of(path):
        return
    settings, n = project.settings, project.n_items_made
    assert settings.checked is not None
    reading = ReadingOptions(
        text=made.get("text"), image=made.get("image"), id=made.get("id"), ignore=tuple(made["ignore"])
    )
    source = read_source(path, reading)
    fixed = "is fixed before the first answer"
    if len(source.ids) != n:
        raise InvalidValueError(
            f"{path} has {count(len(source.ids), 'row')}, and the project {place} was made with {n:,}, which {fixed}; "
            f"put new rows into a file of their own, and add them: suffice check {place} --add FILE"
        )
    if source.shown != settings.columns:
        raise InvalidValueError(f"{path} has other columns than the project {place}, which {fixed}; {_ELSEWHERE}")
    cells, _ = source.shown_cells()
    for start in range(0, n, _COMPARED):
        rows = project.rows(range(start, min(n, start + _COMPARED)))
        for k, ((name, *before), now) in enumerate(zip(rows, cells[start : start + _COMPARED], strict=True), start):
            if source.ids[k] != name or tuple(before) != tuple(now):
                raise InvalidValueError(
                    f"{path}, {source.file.place(k)}: the row {name!r} has changed since the project {place} was made, "
                    f"and what is checked {fixed}; {_ELSEWHERE}"
                )


def make_prediction_project(  # noqa: PLR0913 - options of a project, by keyword
    place: str | Path,
    data: Any,
    reading: ReadingOptions,
    options: PredictionOptions,
    *,
    target: Mapping[str, Any],
    guidelines: str = "",
    overlap: float = 0.0,
    opinions: int = FEWEST_OPINIONS,
    seed: int | None = None,
    person: str = "",
    first_check: Mapping[str, Any] | None = None,
    progress: ItemProgress = no_progress,
) -> Project:
    """Create a project that checks predictions made elsewhere.

    Args:
        place: Where the project is stored.
        data: Path of a table, or a table in memory.
        reading: Which columns are the text, the image and the id.
        options: Which columns are predictions.
        target: ``at_most``, ``expected`` and, as for :class:`suffice.project.create.CreationOptions`, ``of``,
            ``annotator_error``, ``correction_cost`` and ``tolerance``.
        guidelines: How to answer, in Markdown.
        overlap: Share of the items that several people answer.
        opinions: Number of people who answer such an item.
        seed: Seed of all randomness; checks are drawn anew without one.
        person: Who creates the project.
        first_check: Fields of :class:`suffice.checks.prediction_check.CheckDesign` for a check that starts afterwards;
            nothing is created if it cannot. None for none. A goal about all labels has no check at first; its
            ``confidence`` and ``earlier_checks`` are settings of the project, for the checks that start for the goal.
        progress: Receives the present activity.

    Raises:
        InvalidValueError: The data or an option cannot be used; nothing is left behind.
        ConflictError: There is a project already.
    """
    require_empty(place)
    items, checked = prediction_items(data, reading, options, progress)
    values = {"of": "rest", "annotator_error": 0.0, "correction_cost": 1.0, "tolerance": None, **target}
    if items.task == "regression" and values["tolerance"] is None:
        raise InvalidValueError(
            "the predictions are numbers; give --tolerance, the largest error that is not wrong, or --classes if they "
            "are classes"
        )
    if items.task == "classification" and values["tolerance"] is not None:
        raise InvalidValueError("--tolerance is for numbers, and the predictions are classes; leave it out")
    if values["of"] == "all" and len(checked.columns) > 1:
        raise InvalidValueError("--of all is for one column of predictions; give one --prediction")
    if values["of"] == "all" and values.get("at_most") is None:
        raise InvalidValueError("--of all needs --at-most, the share of wrong labels that is acceptable, such as 5%")
    if values.get("at_most") is not None:
        real(values["at_most"], "--at-most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    if first_check is not None and values["of"] == "all":
        values |= checked_conditions(first_check)
    elif first_check is not None:
        given = given_predictions(checked, items.classes, items.X)
        design = CheckDesign(**{"tolerance": values["tolerance"], **first_check})
        design.checked(given, answer=checked.answer, classes=items.classes).terms(given)
    source = Path(data).resolve().name if is_path(data) else "data"
    settings = Settings(
        name=source,
        task=items.task,
        classes=items.classes,
        target="label",
        shown=items.shown,
        columns=items.columns,
        main=items.main,
        model=GIVEN,
        rule=default_rule().state_dict(),
        seed=seed,
        initial=min(DEFAULT_INITIAL, len(items)),
        overlap=overlap,
        opinions=opinions,
        source=source,
        root="" if items.root is None else str(items.root),
        notes=items.notes,
        checked=checked,
        **values,
    )
    settings = settings.with_changes(settings.checked_changes({"guidelines": guidelines}))
    return write_project(place, settings, items, person=person, progress=progress)


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """Predictions with answers that are known already.

    Attributes:
        given: The predictions.
        truth: The answer for each row; None where there is none.
        answered: Rows with an answer.
        classes: Classes that are named or predicted.
        notes: Sentences about the answers.
    """

    given: GivenPredictions
    truth: list[Any]
    answered: NDArray[np.intp]
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all rows have an answer."""
        return len(self.answered) == len(self.given)

    def wrong(self, labels: Sequence[Any], tolerance: float | None) -> int:
        """Number of final labels that differ from the answers.

        Args:
            labels: The final label of each row.
            tolerance: For numbers: the largest error that is not wrong.
        """
        return sum(is_wrong(truth, label, tolerance) for truth, label in zip(self.truth, labels, strict=True))

    def sample_result(self, design: Mapping[str, Any]) -> PredictionResult:
        """The result if the rows with an answer were drawn at random.

        Args:
            design: Fields of :class:`suffice.checks.prediction_check.CheckDesign`.

        Raises:
            InvalidValueError: The design cannot be used.
        """
        if design.get("precision_of") is not None:
            raise InvalidValueError("--precision-of needs a sample of the rows of that class; leave the others out")
        design = {**design, "size": len(self.answered)}
        fixed = CheckDesign(**design).checked(self.given, classes=self.classes)
        labels = {int(row): self.truth[row] for row in self.answered}
        record = Check(tuple(labels), len(self.given), fixed.earlier_checks + 1, fixed.alpha, labels)
        return PredictionCheck.restored(self.given, fixed, record, "blind").result


def known_answers(data: Any, reading: ReadingOptions, options: PredictionOptions, truth: str) -> KnownAnswers:
    """Read predictions together with answers that are known already.

    Args:
        data: Path of a table, or a table in memory.
        reading: Which columns are the text, the image and the id.
        options: Which columns are predictions.
        truth: Column of the answers; empty cells are rows without an answer.

    Raises:
        InvalidValueError: A column is missing, or a value cannot be used; the message gives a remedy.
    """
    _require_distinct(options)
    _require_shown(reading, options)
    used = {"--text": reading.text, "--image": reading.image, "--id": reading.id}
    for name, option in [*_named(options), *((name, option) for option, name in used.items())]:
        if name == truth:
            why = "; groups must be known before the check, and the answers are not" if option == "--group" else ""
            raise InvalidValueError(f"column {truth!r} is given as {option} and as --truth{why}")
    source = read_source(data, reading)
    file, path = source.file, source.path
    for name, option in [*_named(options), (truth, "--truth")]:
        try:
            named_column(file, name, path)
        except InvalidValueError as error:
            raise InvalidValueError(f"{option}: {error}") from None
    found = {name: predicted_column(file, name, options.classes) for name in options.columns}
    numbers = _are_numbers(options, found)
    columns: dict[str, NDArray[Any]] = {}
    for name, values in found.items():
        levels, codes = class_codes(values)
        columns[name] = np.asarray(values) if numbers else np.array(levels, dtype=object)[codes]
    probability = None if options.probability is None else probability_column(file, options.probability)
    groups = None
    if options.group is not None:
        names, places = group_codes(file, options.group)
        groups = np.array(names, dtype=object)[places.astype(np.intp)]
    given = GivenPredictions(columns, probability, groups, numbers)
    classes = tuple(dict.fromkeys((*options.classes, *given.classes)))
    answers, notes = _answers(file, truth, given, options)
    answered = np.array([row for row, answer in enumerate(answers) if answer is not None], dtype=np.intp)
    if not len(answered):
        raise InvalidValueError(f"--truth: column {truth!r} has no answer in any row; fill in those that are known")
    return KnownAnswers(given, answers, answered, classes, (*notes, *alike_notes(classes)))


def _answers(
    file: TableColumns, name: str, given: GivenPredictions, options: PredictionOptions
) -> tuple[list[Any], list[str]]:
    """The answer for each row, None where it is missing; and notes."""
    values = class_column(file, name, options.classes)
    if given.numbers:
        if isinstance(values, Texts):
            raise InvalidValueError(f"--truth: column {name!r} has texts, and the predictions are numbers")
        return [None if np.isnan(value) else float(value) for value in values], []
    levels, codes = class_codes(values)
    known = {*given.classes, *options.classes}
    unknown = [place for place, level in enumerate(levels) if level not in known]
    answers = [None if code < 0 else levels[code] for code in codes.tolist()]
    same = {folded_name(level): level for level in known}
    alike = [place for place in unknown if folded_name(levels[place]) in same]
    # Free texts are compared as they are; classes must be known.
    if unknown and len(known) <= _MOST_BLIND:
        first = (alike or unknown)[0]
        row = int(np.flatnonzero(codes == first)[0])
        some = ", ".join(sorted(known)[:20])
        like = (
            f"; only upper and lower case or spaces differ from {same[folded_name(levels[first])]!r}" if alike else ""
        )
        raise InvalidValueError(
            f"--truth: {file.place(row)} has {levels[first]!r} in column {name!r}, which is none of the predicted "
            f"classes {some}{like}; correct it, or name all classes with --classes"
        )
    if not alike:
        return answers, []
    number = int(np.isin(codes, alike).sum())
    return answers, [
        f"{count(number, 'answer')} {'differs' if number == 1 else 'differ'} from a prediction in upper and lower "
        f"case or spaces only, such as {levels[alike[0]]!r}; {'it is' if number == 1 else 'they are'} counted as "
        "different"
    ]
