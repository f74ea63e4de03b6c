"""``suffice check``: a random check of a labelling project, which guarantees how many predictions are wrong."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console

from suffice.cli.check_options import CheckOptions
from suffice.cli.given_check import PredictionCheckOptions, check_predictions, checks_predictions
from suffice.cli.json_output import AsJson, print_json
from suffice.cli.project_options import (
    Place,
    Reading,
    learned_project,
    person_name,
    person_option,
    plain_console,
    shown_place,
    stored_project,
)
from suffice.cli.rule_options import share_of
from suffice.cli.settings_options import with_settings
from suffice.errors import InvalidValueError
from suffice.presentation.goal_words import goal_words
from suffice.presentation.text_format import count, percent_at_most

if TYPE_CHECKING:
    from suffice.project.check_offers import CheckOffers, ClassOffers
    from suffice.project.labelling_project import Project


@with_settings
def check_command(
    place: Place,
    options: CheckOptions,
    predictions: PredictionCheckOptions,
    person: Annotated[str | None, person_option("Who starts or aborts it, or answers.")] = None,
    as_json: AsJson = False,
) -> None:
    """Guarantee how many predictions are wrong, by a random check of the unlabelled items.

    With --prediction, the predictions are a column of a file, made by a language model, by rules or by other people:
    suffice check answers.csv --prediction llm --at-most 5% draws rows, asks for them, and ends when the share is
    proven. The answers are kept in answers.check.suffice, which later calls name.

    Otherwise the command is about a labelling project and its model.

    The check draws items at random. Label them with suffice label or suffice serve, which ask for them first; then
    suffice status states the guarantee. The model learns these labels when labelling continues.

    Without --size and --at-most nothing is started: the command shows the progress of the open check, or what checks
    would cost and guarantee, also with --recall-of and --precision-of.

    Example: suffice check mails.suffice --size 100

    Until a share is proven: suffice check mails.suffice --at-most 5%

    For the goal that at most 5 % of all labels are wrong: suffice check mails.suffice --at-most 5% --of all

    In a project that screens for a class, the check is about the recall of that class, and only labelled items count
    as found, unless another quantity is asked for. With --of all it ends when it has proven that all items of the class
    but the share of --at-most are found.
    """
    if predictions.checked.given or checks_predictions(place):
        options.require_for_predictions()
        check_predictions(place, options, predictions, person, as_json=as_json)
        return
    predictions.require_unused()
    asked = options.arguments(person_name(person))
    size, target = options.size, share_of(options.at_most, "--at-most")
    options.require_consistent()
    with stored_project(place) as (project, location):
        # A check for the goal of a screening ends by itself; another one is of the size that is given.
        settings = project.settings
        screens = settings.positive is not None and not (size is None and settings.screens_to_goal(asked["of"]))
        if screens and target is None and not options.quantity_given:
            asked |= {"recall_of": project.settings.positive, "predicted_as_found": False}
        if options.abort:
            project.abort_check(person=asked["person"])
            result = _result(project, action="aborted")
            lines = ["The check is aborted. It proves nothing; its labels are kept, and the model learns them."]
        elif options.starts:
            result, lines = _started(project, location, size, target, asked)
        else:
            result, lines = _asked(project, location, asked)
    if as_json:
        print_json("check", result)
        return
    console = plain_console()
    for line in lines:
        console.print(line)


def _result(
    project: "Project", *, action: str | None, offers: "CheckOffers | ClassOffers | None" = None
) -> dict[str, Any]:
    from suffice.project.status_summary import check_status

    with project.lock:
        status = check_status(project.state(), project.settings)
    return {
        "action": action,
        "check": status.check,
        "guarantee": status.guarantee,
        "offers": None if offers is None else offers.as_dict(),
    }


def _started(
    project: "Project", place: str, size: int | None, at_most: float | None, asked: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Start a check of a size, or one that ends when it has proven a share."""
    from suffice.project.check_offers import expected_share
    from suffice.project.learned_project import predictions_after

    learned, expected = None, asked["expected"]
    if size is None:
        project.require_no_open_check()
        tolerance = asked["tolerance"]
        if tolerance is None and asked["of"] != "rest":
            tolerance = project.settings.tolerance
        if project.settings.task == "regression" and tolerance is None:
            raise InvalidValueError("a check of numbers needs --tolerance, the largest error that is not wrong")
        learned = learned_project(project, place)
        if expected is None:
            screening = project.settings.screens_to_goal(asked["of"])
            expected = expected_share(learned.learning_status, tolerance, screening=screening)

    def predict(model: str, answers: Any) -> Any:
        if learned is not None and (learned.settings.model, learned.answers) == (model, answers):
            return learned.predictions()
        with Console(stderr=True).status(f"learning {count(len(answers), 'label')}", spinner="line"):
            X = project.X  # the settings of the model depend on the features
            return predictions_after(project.settings.using(model), X, answers, project.learned_files)

    project.start_check(size, at_most=at_most, predict=predict, **{**asked, "expected": expected})
    result = _result(project, action="started")
    with project.lock:
        started = project.state().checks.open_check
    later = "" if started is None else started.later_sentence("items")
    rest = [*([later] if later else []), *_standing(result, place)]
    check = result["check"]
    if check["sequential"] is not None:
        words = f"Check {check['number']} is started: {count(check['pool'], 'unlabelled item')} in random order, until "
        words += f"at most {percent_at_most(check['at_most'])} wrong predictions are proven."
        if check["of"] == "all":
            words = words.partition(", until ")[0]
            class_name = check["class_name"] if check["quantity"] == "recall" else None
            goal = goal_words(check["at_most"], check["tolerance"], class_name=class_name)
            words += f", until it is proven that {goal}."
        lines = [f"{words} {check['plan_words']}".replace("\u00a0", " "), *rest]
        return result, lines
    which = f" predicted as {check['class_name']!r}" if check["quantity"] == "precision" else ""
    drawn = f"{check['size']:,} of {count(check['pool'], 'unlabelled item')}{which}, drawn at random"
    return result, [f"Check {check['number']} is started: {drawn}.", *rest]


def _asked(project: "Project", place: str, asked: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Progress of the open check; or the costs and guarantees of possible checks."""
    result = _result(project, action=None)
    if result["check"] is not None and result["check"]["state"] == "open":
        return result, _standing(result, place)
    learned = learned_project(project, place)
    if project.settings.goal is not None and asked["recall_of"] is None and asked["precision_of"] is None:
        return _asked_of_goal(learned, result)
    if asked["recall_of"] is not None or asked["precision_of"] is not None:
        return _asked_of_class(learned, asked)
    offers = _offers(learned, asked)
    result = _result(project, action=None, offers=offers)
    tolerance = "" if asked["tolerance"] is None else f" --tolerance {asked['tolerance']:g}"
    what = f"--size {min(100, offers.pool)}"
    if offers.target_check is not None:
        what = f"--at-most {percent_at_most(offers.at_most or 0.0)}".replace("\u00a0", "")
    how = [f"To start one: suffice check {shown_place(place)} {what}{tolerance}"]
    sentences = result["guarantee"]["sentences"] if result["guarantee"] is not None else []
    return result, [*sentences, *result["offers"]["sentences"], *(how if result["offers"]["rows"] else [])]


def _asked_of_goal(learned: Reading, result: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Progress towards the goal about all labels, and how to start its check."""
    from suffice.project.status_summary import status

    goal = status(learned.project, learned.learning_status)["goal"]
    how = f"To start the check: suffice check {shown_place(learned.place)} --of all"
    return {**result, "goal": goal}, [*goal["sentences"], *([] if goal["reached"] else [how])]


def _asked_of_class(learned: Reading, asked: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Cost of a check of the recall or precision of a class."""
    from suffice.project.check_offers import class_offers

    if asked["recall_of"] is not None and asked["precision_of"] is not None:
        raise InvalidValueError("a check guarantees one quantity; give --recall-of or --precision-of, not both")
    names = ("recall_of", "precision_of", "unlabelable_as", "predicted_as_found", "confidence")
    predictions = learned.predictions()
    offers = class_offers(learned.project, predictions, **{name: asked[name] for name in names})
    result = _result(learned.project, action=None, offers=offers)
    option = f"--{offers.quantity}-of {quote(offers.class_name)}"
    if not offers.predicted_as_found:
        option += " --only-labelled"
    size = next((offer.size for offer in reversed(offers.offers) if offer.size is not None), min(100, offers.pool))
    how = f"To start one: suffice check {shown_place(learned.place)} {option} --size {size}"
    return result, [*result["offers"]["sentences"], how]


def _standing(result: dict[str, Any], place: str) -> list[str]:
    """Progress of the newest check, and how to continue."""
    check, guarantee = result["check"], result["guarantee"]
    if check["state"] != "open":
        return [*([check["sentence"]] if check["sentence"] else []), *(guarantee["sentences"] if guarantee else [])]
    shown = shown_place(place)
    return [
        check["sentence"],
        f"Label its items, which come first: suffice label {shown} or suffice serve {shown}",
        f"Give it up: suffice check {shown} --abort",
    ]


def _offers(learned: Reading, asked: dict[str, Any], at_most: float | None = None) -> "CheckOffers":
    from suffice.project.check_offers import check_offers
    from suffice.project.labelling_pace import pace

    project = learned.project
    if project.settings.task == "regression" and asked["tolerance"] is None:
        raise InvalidValueError(
            "a check of numbers needs --tolerance, the largest error that is not wrong; or --share and --size"
        )
    with project.lock:
        given = [answer for answer in project.state().labelled() if answer.person != project.settings.source]
    return check_offers(
        project,
        learned.learning_status,
        at_most=at_most,
        tolerance=asked["tolerance"],
        unlabelable_as=asked["unlabelable_as"],
        confidence=asked["confidence"],
        seconds=pace(given),
    )
