"""Settings of a labelling project, stored in its journal."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal
from unicodedata import category

from suffice.acquisition import RANDOM_SHARES
from suffice.arguments import real, whole
from suffice.criteria import Criterion, LabelWorth, criterion_from_dict
from suffice.errors import InvalidValueError, upgrade_advice
from suffice.models.factory import MODEL_FAMILIES, chooses_components, make_model, model_description, model_names
from suffice.project.prediction_settings import GIVEN, CheckedPredictions
from suffice.session.goals import Goal, TargetOf, checked_goal
from suffice.session.standing_stop import classes_that_may_be_missed, require_known

Task = Literal["classification", "regression"]
Shown = Literal["table", "text", "image"]

#: Default error ratio at which :class:`~suffice.ErrorStability` stops, within the range of the paper.
DEFAULT_THRESHOLDS: Final = {
    **{"gp": 0.05, "ridge": 0.02, "logistic": 0.1, "kernel": 0.1},
    **{"components": 0.1, "dropout": 0.2},
}
#: Least and default number of people who label an item of the overlap, and the largest.
FEWEST_OPINIONS: Final = 2
MOST_OPINIONS: Final = 100
#: Default number of random labels before the model chooses.
DEFAULT_INITIAL: Final = 10
#: Default share of the positive class that a screening must find.
DEFAULT_RECALL: Final = 0.95
#: Maximal number of characters of the guidelines, of the description of a class, and of the name of a project.
LONGEST_GUIDELINES: Final = 20_000
LONGEST_DESCRIPTION: Final = 500
LONGEST_TITLE: Final = 200
#: Maximal number of characters of the unit of a number.
LONGEST_UNIT: Final = 40
# What holds for the checks for a goal about predictions made elsewhere.
_OF_CHECKS: Final = ("confidence", "earlier_checks")
# Unit and plausible range of labels that are numbers.
_OF_NUMBERS: Final = ("unit", "lowest", "highest")
# Settings of a goal for the whole data set, besides the share.
_OF_GOAL: Final = ("of", "annotator_error", "correction_cost", "tolerance")
#: In place of the name of a model: the best of several on the labels so far.
AUTO: Final = "auto"
#: Settings that can be changed at any time. The costs are parameters of the rule.
CHANGEABLE: Final = (
    *("name", "guidelines", "descriptions", "label_cost", "mistake_cost", "at_most", "overlap", "opinions", "may_miss"),
    *_OF_NUMBERS,
    *_OF_GOAL,
    *_OF_CHECKS,
)
# Settings that do not affect learning.
_ONLY_SHOWN: Final = frozenset(
    {
        *("name", "target", "shown", "columns", "main", "overlap", "opinions", "lease", "source", "root", "notes"),
        *("guidelines", "descriptions", "choose_model", "model_reason", "expected", *_OF_NUMBERS),
    }
)


# Settings that are written only if they are used, so that earlier versions can open projects without them; each with
# its value if it is not used.
_WHERE_USED: Final[Mapping[str, Any]] = {
    "positive": None,
    "recall": None,
    "may_miss": [],
    "guidelines": "",
    "descriptions": {},
    "of": "rest",
    "annotator_error": 0.0,
    "correction_cost": 1.0,
    "tolerance": None,
    "checked": None,
    "choose_model": False,
    "model_reason": "",
    "confidence": 0.95,
    "earlier_checks": 0,
    "unit": "",
    "lowest": None,
    "highest": None,
    "expected": None,
    "opinions": FEWEST_OPINIONS,
}


@dataclass(frozen=True)
class Settings:
    """Settings of a project.

    Attributes:
        name: Name of the project, for people.
        task: Whether labels are classes or numbers.
        classes: Names of the classes, in the order of their keys; empty for numbers.
        target: Name of the label: the name of its column in an export.
        shown: How an item is shown: as a row, a text, or an image.
        columns: Names of the cells of an item.
        main: The column that is the text or the path of the image, or None for a row.
        model: Name of the original model, see :func:`project_models`. It can be changed, see
            :meth:`suffice.project.labelling_project.Project.switch_model`.
        rule: The stopping rule, as returned by :meth:`suffice.Criterion.state_dict`.
        seed: Seed of all randomness. Without one, checks are drawn anew, and all else as with seed 0.
        initial: Number of random labels before the model chooses.
        random_share: Share of the items that are drawn at random once the model chooses, from 0 to 1. It is 0 in
            projects made by version 0.7 or older.
        overlap: Share of the items that other people are asked for too, from 0 to 1.
        lease: Seconds for which an item is reserved for one person.
        source: Name of the file or folder of the items.
        root: The folder of the images; files outside it are never read. Empty if there are no images.
        notes: What was done to the data, in sentences.
        components: First feature and feature after the last of each text whose components a classifier chooses from.
            Empty in projects made by version 0.7 or older: they use all of their features, as before.
        regularize: Whether a regression model learns its hyper-parameters as in version 0.8 and later. False in
            projects made by an older version, so that their verdicts do not change.
        at_most: The target error: for classes the share of wrong predictions, for numbers the root mean squared error;
            or None. With ``of="all"``: the share of wrong labels.
        positive: The class that a screening looks for, or None. Its likeliest items are requested first.
        recall: The share of its items that must be found; None without a positive class. A goal (``of="all"``) has its
            own share.
        may_miss: Classes that do not hold a stop back if they are rare and have few labels.
        guidelines: Instructions for labelling, in Markdown; empty if there are none.
        descriptions: Descriptions of classes, by name. Classes without a description are not included.
        of: What ``at_most`` is about: the unlabelled items (``"rest"``), or all final labels (``"all"``). With a
            positive class and ``"all"``, it is the share of the items of the class that may be missed.
        annotator_error: For ``"all"``: share of the labels by people that may be wrong.
        correction_cost: For ``"all"``: cost of an answer in a check, relative to a label.
        tolerance: For ``"all"`` and numbers: a value is wrong if it is off by more than this.
        checked: The predictions made elsewhere that the project checks, instead of having a model; or None.
        choose_model: For ``"all"`` and classes: whether the best of several models on the labels so far is used, until
            a check starts or somebody chooses a model. ``model`` is then the one that starts.
        model_reason: Why ``model`` was chosen for the number of columns and classes, in a sentence; empty if it is the
            usual one, or was named.
        confidence: For ``"all"`` and predictions made elsewhere: confidence of all checks together.
        earlier_checks: For the same: number of checks of these items that were started elsewhere.
        unit: For numbers: the unit of the label, shown beside it; empty if there is none.
        lowest: For numbers: smallest plausible label; a smaller one must be confirmed. None for no limit.
        highest: The same for the largest.
        opinions: Number of people who are asked for an item of the overlap, at least 2.
        expected: For predictions made elsewhere: the share of wrong ones for which a check is planned that starts with
            ``at_most``; half of it if None.
    """

    name: str
    task: Task
    classes: tuple[str, ...]
    target: str
    shown: Shown
    columns: tuple[str, ...]
    main: str | None
    model: str
    rule: Mapping[str, Any]
    seed: int | None = None
    initial: int = DEFAULT_INITIAL
    overlap: float = 0.0
    lease: float = 600.0
    source: str = ""
    root: str = ""
    notes: tuple[str, ...] = field(default=())
    components: tuple[tuple[int, int], ...] = field(default=())
    random_share: float = RANDOM_SHARES["classification"]
    regularize: bool = True
    at_most: float | None = None
    positive: str | None = None
    recall: float | None = None
    may_miss: tuple[str, ...] = ()
    guidelines: str = ""
    descriptions: Mapping[str, str] = field(default_factory=dict)
    of: TargetOf = "rest"
    annotator_error: float = 0.0
    correction_cost: float = 1.0
    tolerance: float | None = None
    checked: CheckedPredictions | None = None
    choose_model: bool = False
    model_reason: str = ""
    confidence: float = 0.95
    earlier_checks: int = 0
    unit: str = ""
    lowest: float | None = None
    highest: float | None = None
    opinions: int = FEWEST_OPINIONS
    expected: float | None = None

    @property
    def usual_model(self) -> str:
        """Name of the model of the project if none is named."""
        return "components" if self.model_reason else model_names(self.task)[0]

    @property
    def creation_notes(self) -> tuple[str, ...]:
        """What was done to the data, and why the model was chosen if it is not the usual one."""
        return (*self.notes, self.model_reason) if self.model_reason else self.notes

    @property
    def goal(self) -> Goal | None:
        """The goal for all final labels, or for the positive class; None if the target is another, or there is none."""
        if self.of == "rest" or self.at_most is None:
            return None
        return Goal(self.at_most, self.of, self.annotator_error, self.correction_cost, self.positive)

    def screens_to_goal(self, of: str | None) -> bool:
        """Whether a check that ends by itself counts the items of the positive class.

        Args:
            of: What its target is about; None for that of the project.
        """
        return self.positive is not None and (of == "all" or (of is None and self.goal is not None))

    @property
    def pick_seed(self) -> int:
        """Seed of everything but checks."""
        return 0 if self.seed is None else self.seed

    def as_dict(self) -> dict[str, Any]:
        """The settings as JSON values, without settings of later versions that the project does not use."""
        values = asdict(self) | {"rule": dict(self.rule), "descriptions": dict(self.descriptions)}
        values["may_miss"] = list(self.may_miss)
        used = (name for name, value in values.items() if name not in _WHERE_USED or value != _WHERE_USED[name])
        return {name: values[name] for name in used}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "Settings":
        """Create it from the result of :meth:`as_dict`, also after a round trip through JSON.

        Raises:
            InvalidValueError: It does not fit.
        """
        known = {each.name for each in fields(Settings)}
        if unknown := set(saved) - known:
            raise InvalidValueError(
                f"the project was made by a later version of suffice: it knows {', '.join(sorted(unknown))}; "
                f"{upgrade_advice()}"
            )
        lists = {name: tuple(saved[name]) for name in ("classes", "columns", "notes", "may_miss") if name in saved}
        components = tuple((int(first), int(after)) for first, after in saved.get("components", ()))
        older = {"random_share": 0.0, "regularize": False}
        checked = None if saved.get("checked") is None else CheckedPredictions.from_dict(saved["checked"])
        return Settings(**{**older, **saved, **lists, "components": components, "checked": checked})

    def using(self, model: str | None) -> "Settings":
        """The same settings with another model; unchanged for None.

        Examples:
            >>> settings = Settings("p", "classification", ("a", "b"), "y", "table", ("x",), None, "logistic", {})
            >>> settings.using("kernel").model, settings.using(None).model
            ('kernel', 'logistic')
        """
        return self if model is None or model == self.model else replace(self, model=model)

    def with_changes(self, changes: Mapping[str, Any]) -> "Settings":
        """The same settings with some of them changed.

        Args:
            changes: Names of settings with their new values, as JSON values.

        Examples:
            >>> settings = Settings("p", "classification", ("a", "b"), "y", "table", ("x",), None, "logistic", {})
            >>> settings.with_changes({"classes": ["a", "b", "c"]}).classes
            ('a', 'b', 'c')
        """
        return Settings.from_dict({**self.as_dict(), **changes}) if changes else self

    def costs(self) -> tuple[float, float | None] | None:
        """Cost of a label and of a mistake, if the rule has costs; the latter is None if it is given in another way.

        Examples:
            >>> rule = LabelWorth(label_cost=2.0).state_dict()
            >>> Settings("p", "regression", (), "y", "table", ("x",), None, "gp", rule).costs()
            (2.0, 1.0)
        """
        rule = self.criterion() if self.rule else None
        if not isinstance(rule, LabelWorth):
            return None
        return rule.label_cost, None if rule.error_cost is not None else rule.mistake_cost or 1.0

    def outside_range(self, label: float) -> bool:
        """Whether a number is outside of the plausible range.

        Examples:
            >>> settings = Settings("p", "regression", (), "y", "table", ("x",), None, "gp", {}, lowest=0.0)
            >>> settings.outside_range(-1.0), settings.outside_range(1e9)
            (True, False)
        """
        below = self.lowest is not None and label < self.lowest
        return below or (self.highest is not None and label > self.highest)

    def checked_changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return validated changes of settings in stored form, without values that are the same as before.

        Args:
            changes: New values of some of ``name``, ``guidelines``, ``descriptions`` (a text for each class),
                ``label_cost``, ``mistake_cost``, ``at_most`` (None for none), ``overlap``, ``opinions``, ``may_miss``,
                for numbers ``unit``, ``lowest`` and ``highest`` (None for no limit),
                ``of``, ``annotator_error``, ``correction_cost``, ``tolerance``, ``confidence`` and ``earlier_checks``.
                Without a target or with ``of="rest"``, ``annotator_error``, ``correction_cost`` and ``tolerance`` have
                their defaults again.

        Raises:
            InvalidValueError: A value cannot be used, or the setting cannot be changed.

        Examples:
            >>> settings = Settings("p", "regression", (), "y", "table", ("x",), None, "gp", LabelWorth().state_dict())
            >>> settings.checked_changes({"name": "prices", "overlap": 0.0})
            {'name': 'prices'}
        """
        if unknown := [name for name in changes if name not in CHANGEABLE]:
            raise InvalidValueError(f"{unknown[0]!r} cannot be changed; what can is {', '.join(CHANGEABLE)}")
        found: dict[str, Any] = {}
        if "name" in changes:
            found["name"] = _text(changes["name"], "name", LONGEST_TITLE, least=1)
        if "guidelines" in changes:
            found["guidelines"] = _text(changes["guidelines"], "guidelines", LONGEST_GUIDELINES, lines=True)
        if "descriptions" in changes:
            found["descriptions"] = self._checked_descriptions(changes["descriptions"])
        found |= self._checked_goal({name: changes[name] for name in ("at_most", *_OF_GOAL) if name in changes})
        found |= self._checked_conditions({name: changes[name] for name in _OF_CHECKS if name in changes})
        if "may_miss" in changes:
            found["may_miss"] = list(checked_may_miss(changes["may_miss"], self.classes, name="may_miss"))
        if "overlap" in changes:
            found["overlap"] = real(changes["overlap"], "overlap", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        found |= self._checked_number({name: changes[name] for name in _OF_NUMBERS if name in changes})
        if "opinions" in changes:
            found["opinions"] = checked_opinions(changes["opinions"])
        if costs := {name: changes[name] for name in ("label_cost", "mistake_cost") if name in changes}:
            found["rule"] = self._rule_with(costs)
        now = self.as_dict()
        return {name: value for name, value in found.items() if value != now.get(name, _WHERE_USED.get(name))}

    def _checked_number(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Validated changes of the unit and the plausible range of numbers."""
        given = {name: value for name, value in changes.items() if value not in (None, "")}
        if given and self.task == "classification":
            raise InvalidValueError(f"{next(iter(given))} is for numbers, and the labels of this project are classes")
        found: dict[str, Any] = {}
        if "unit" in changes:
            found["unit"] = _text(changes["unit"], "unit", LONGEST_UNIT)
        for name in ("lowest", "highest"):
            if name in changes:
                value = changes[name]
                found[name] = None if value is None else real(value, name, "finite", math.isfinite)
        lowest, highest = (found.get(name, getattr(self, name)) for name in ("lowest", "highest"))
        if lowest is not None and highest is not None and lowest >= highest:
            raise InvalidValueError(f"lowest must be below highest, and it is {lowest:g}, and highest {highest:g}")
        return found

    def _checked_goal(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Validated changes of the target and of what it is about; empty without changes."""
        if not changes:
            return {}
        if self.checked is not None:
            return self._checked_target(changes)
        removed = "at_most" in changes and changes["at_most"] is None
        wanted = {name: changes.get(name, getattr(self, name)) for name in ("at_most", *_OF_GOAL)}
        if "of" not in changes and removed:
            wanted["of"] = "rest"
        if wanted["of"] == "rest":
            wanted |= {name: changes.get(name, _WHERE_USED[name]) for name in _OF_GOAL if name != "of"}
        return checked_goal_settings(wanted, self.task, positive=self.positive)

    def _checked_target(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Validated changes of the target of predictions made elsewhere; what it is about is fixed."""
        fixed = ("of", "tolerance") if self.of == "all" else _OF_GOAL
        if other := [name for name in fixed if name in changes and changes[name] != getattr(self, name)]:
            raise InvalidValueError(
                f"{other[0]} cannot be changed: it is fixed before predictions made elsewhere are checked; make "
                "another project with it"
            )
        if self.of == "all":
            wanted = {name: changes.get(name, getattr(self, name)) for name in ("at_most", *_OF_GOAL)}
            return checked_goal_settings(wanted, self.task)
        share = changes.get("at_most", self.at_most)
        at_most = None if share is None else real(share, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        return {"at_most": at_most}

    def _checked_conditions(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Validated changes of what holds for the checks for a goal; empty without changes."""
        if changes and (self.checked is None or self.goal is None):
            raise InvalidValueError(
                f"{next(iter(changes))} is a setting of a goal about predictions made elsewhere; in another project, "
                "give it when a check starts"
            )
        return checked_conditions(changes)

    def _checked_descriptions(self, descriptions: Any) -> dict[str, str]:
        if not isinstance(descriptions, Mapping):
            raise InvalidValueError("descriptions must be a text for each class, by its name")
        if unknown := [name for name in descriptions if name not in self.classes]:
            raise InvalidValueError(
                f"descriptions has {unknown[0]!r}, which is none of the classes: {', '.join(self.classes[:20])}"
            )
        texts = {name: _text(text, "a description", LONGEST_DESCRIPTION) for name, text in descriptions.items()}
        return {name: texts[name] for name in self.classes if texts.get(name)}

    def _rule_with(self, costs: Mapping[str, Any]) -> dict[str, Any]:
        rule = self.criterion()
        if not isinstance(rule, LabelWorth):
            raise InvalidValueError(
                f"the rule {type(rule).__name__} weighs no costs; they can be changed in a project that was made with "
                "the default rule, LabelWorth"
            )
        given = {name: real(value, name, "above 0", lambda x: x > 0.0) for name, value in costs.items()}
        error_cost = None if "mistake_cost" in given else rule.error_cost
        mistake_cost = given.get("mistake_cost", rule.mistake_cost)
        label_cost = given.get("label_cost", rule.label_cost)
        if (label_cost, mistake_cost or 1.0, error_cost) == (
            rule.label_cost,
            rule.mistake_cost or 1.0,
            rule.error_cost,
        ):
            return dict(self.rule)
        rule = LabelWorth(error_cost, label_cost, mistake_cost=mistake_cost, tolerance=rule.tolerance)
        return rule.state_dict()

    def learns_like(self, other: "Settings") -> bool:
        """Whether a model learns the same from the same answers with other settings."""
        return self.learned_part() == other.learned_part()

    def learned_part(self) -> dict[str, Any]:
        """The settings that affect learning, as JSON values."""
        return {key: value for key, value in self.as_dict().items() if key not in _ONLY_SHOWN}

    def models(self) -> list[str]:
        """Names of the models that the project can have, the default first; none for predictions made elsewhere."""
        return [] if self.checked is not None else project_models(self.task)

    def criterion(self) -> Criterion:
        """The stopping rule, before any observation."""
        return criterion_from_dict(self.rule)

    def require_model(self) -> None:
        """Raise an error for a model that the project cannot have.

        Raises:
            InvalidValueError: A project cannot have this model, it is for the other task, or there are fewer than 2
                classes.
        """
        if self.checked is not None:
            raise InvalidValueError("the predictions of this project were made elsewhere; it has no model")
        require_project_model(self.model)
        if self.model not in self.models():
            (task,) = MODEL_FAMILIES[self.model].tasks
            raise InvalidValueError(
                f"the model {self.model} is for {task}, and this is a project of {self.task}; use "
                f"{' or '.join(self.models())}"
            )
        if self.task == "classification" and len(self.classes) < 2:
            raise InvalidValueError(
                f"a project of classification needs at least 2 classes, and this one has {len(self.classes)}; name all"
            )

    def estimator(self) -> Any:
        """The model, not fitted.

        Raises:
            InvalidValueError: As :meth:`require_model`.
        """
        self.require_model()
        options: dict[str, Any] = {"task": self.task, "seed": self.pick_seed}
        if self.task == "regression":
            return make_model(self.model, regularize=self.regularize, **options)
        components = self.components if chooses_components(self.model) else ()
        return make_model(self.model, classes=self.classes, components=components, **options)

    def require_usable_rule(self) -> None:
        """Raise an error for a stopping rule that a project cannot use.

        Raises:
            InvalidValueError: The rule limits time, or requires fields that the model does not provide.
        """
        rule = self.criterion()
        if type(rule) is LabelWorth:
            # Every model of a project supports it; the imports below take a second.
            self.require_model()
            return
        from suffice.learner.prepare import require_provided

        if "seconds" in rule.needs():
            raise InvalidValueError(
                f"the rule {type(rule).__name__} counts seconds, and days may pass between two labels of a project; "
                "use Budget to limit the labels"
            )
        require_provided(
            rule.needs(),
            self.estimator(),
            screening=self.positive is not None,
            names=(f"the rule {type(rule).__name__}", f"a project with {model_description(self.model)}"),
            remedy="use LabelWorth, which every model of a project supports, or another model",
        )


def checked_target(at_most: Any, task: str, name: str = "at_most") -> float:
    """Return a validated target error.

    Args:
        at_most: For classes a share of wrong predictions, for numbers the root of the mean squared error.
        task: Whether labels are classes or numbers.
        name: What to call it in an error message.

    Raises:
        InvalidValueError: It cannot be reached, or is not an error.
    """
    if task == "classification":
        wanted = "above 0 and below 1, a share of wrong predictions"
        return real(at_most, name, wanted, lambda x: 0.0 < x < 1.0)
    return real(at_most, name, "above 0, in units of the target", lambda x: x > 0.0)


def checked_may_miss(may_miss: Any, classes: Sequence[str], *, name: str) -> tuple[str, ...]:
    """Return the validated classes that may be missed.

    Args:
        may_miss: One class, or several.
        classes: The classes of the project; empty for numbers.
        name: Name of the argument or option in an error message.

    Raises:
        InvalidValueError: The labels are numbers, or a class is not among them.
        InvalidTypeError: It is not a class or several.
    """
    missed = tuple(str(each) for each in classes_that_may_be_missed(may_miss, name=name))
    if missed and not classes:
        raise InvalidValueError(f"{name} is for classes, and the labels of this project are numbers; leave it out")
    require_known(missed, classes, name=name)
    return missed


def checked_opinions(opinions: Any, *, name: str = "opinions") -> int:
    """Return the validated number of people who label an item of the overlap.

    Args:
        opinions: The number.
        name: Name of the argument or option in an error message.

    Raises:
        InvalidValueError: It is not a whole number, or too small or too large.

    Examples:
        >>> checked_opinions(3)
        3
    """
    number = whole(opinions, name, least=FEWEST_OPINIONS)
    if number > MOST_OPINIONS:
        raise InvalidValueError(f"{name} must be at most {MOST_OPINIONS}, not {number}")
    return number


def checked_goal_settings(
    given: Mapping[str, Any], task: str, *, positive: str | None = None, name: str = "at_most"
) -> dict[str, Any]:
    """Return the validated settings of a target: ``at_most``, ``of``, ``annotator_error`` and so on.

    Args:
        given: The settings; those that are left out have their defaults.
        task: Whether labels are classes or numbers.
        positive: The class that the project looks for, or None.
        name: What to call the target in an error message.

    Raises:
        InvalidValueError: A value is out of range, or the settings do not go together.

    Examples:
        >>> checked_goal_settings({"at_most": 0.05, "of": "all"}, "classification")["of"]
        'all'
    """
    values = {"at_most": None, **{each: _WHERE_USED[each] for each in _OF_GOAL}, **given}
    at_most, of, tolerance = values["at_most"], values["of"], values["tolerance"]
    if of == "all" and at_most is None:
        raise InvalidValueError(f"a goal about all labels needs a share: give {name}, the share that may be wrong")
    share = 0.0
    if at_most is not None:
        share = at_most = checked_target(at_most, "classification" if of == "all" else task, name)
    # A target of numbers may be above 1; that about all labels may not.
    costs = values["annotator_error"], values["correction_cost"]
    goal = checked_goal(of, share if of == "all" else 0.0, *costs, class_name=positive)
    if tolerance is not None:
        tolerance = real(tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)
        if goal.of == "rest" or task == "classification":
            raise InvalidValueError("a tolerance (--tolerance) is for a goal about all labels of numbers; leave it out")
    elif goal.of == "all" and task == "regression":
        raise InvalidValueError(
            "a goal about all labels of numbers needs a tolerance (--tolerance): a value is wrong if it is off by more "
            "than that"
        )
    return {
        "at_most": at_most,
        "of": goal.of,
        "annotator_error": goal.annotator_error,
        "correction_cost": goal.answer_cost,
        "tolerance": tolerance,
    }


def checked_conditions(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what holds for the checks for a goal, validated: ``confidence`` and ``earlier_checks``.

    Args:
        given: The values; those that are left out are not returned.

    Raises:
        InvalidValueError: A value is out of range.

    Examples:
        >>> checked_conditions({"confidence": 0.99})
        {'confidence': 0.99}
    """
    values: dict[str, Any] = {}
    if "confidence" in given:
        wanted = "above 0 and below 1"
        values["confidence"] = real(given["confidence"], "confidence", wanted, lambda x: 0.0 < x < 1.0)
    if "earlier_checks" in given:
        values["earlier_checks"] = whole(given["earlier_checks"], "earlier_checks", least=0)
    return values


def _text(value: Any, name: str, longest: int, *, least: int = 0, lines: bool = False) -> str:
    text = value.strip().replace("\r\n", "\n") if isinstance(value, str) else None
    allowed = "\n\t" if lines else ""
    if text is None or not least <= len(text) <= longest or not _printable(text, allowed):
        came = f"{len(text):,} characters" if text is not None and len(text) > longest else repr(value)[:60]
        raise InvalidValueError(
            f"{name} must be {least} to {longest:,} characters without control characters, not {came}"
        )
    return text


def _printable(text: str, allowed: str) -> bool:
    return not any(category(letter) in {"Cc", "Cs"} and letter not in allowed for letter in text)


def default_rule() -> Criterion:
    """The default stopping rule of a project: stop when a label is worth less than its cost.

    Examples:
        >>> default_rule()
        LabelWorth(error_cost=None, label_cost=1.0, mistake_cost=None, tolerance=None)
    """
    return LabelWorth()


def project_models(task: Task | None = None) -> list[str]:
    """Names of the models that a project can have, the default of a task first.

    Args:
        task: The task; all models if left out.

    Examples:
        >>> project_models("regression")
        ['gp', 'ridge', 'forest', 'boosting']
    """
    return [
        name for name, family in MODEL_FAMILIES.items() if family.interactive and (task is None or task in family.tasks)
    ]


def described_model(name: str) -> str:
    """Description of a model for a sentence; its name if it is not known.

    Examples:
        >>> described_model("gp"), described_model("of_ours")
        ('a Gaussian process', 'of_ours')
    """
    if name == GIVEN:
        return "predictions made elsewhere"
    return model_description(name) if name in MODEL_FAMILIES else name


def require_project_model(name: str) -> None:
    """Raise an error for a model that a project cannot have.

    Raises:
        InvalidValueError: The model is unknown, or it learns too slowly for interactive labelling.
    """
    if name not in project_models():
        slow = f"{model_description(name)} learns too slowly" if name in MODEL_FAMILIES else ""
        reason = f"{slow} for a person who waits for the next item; " if slow else ""
        raise InvalidValueError(f"{reason}model must be one of {', '.join(project_models())}, not {name!r}")
