"""``suffice check FILE --prediction COLUMN``: a check of predictions that were made elsewhere."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from suffice.arguments import whole
from suffice.cli.argument_names import option_names
from suffice.cli.check_options import CheckOptions
from suffice.cli.goal_options import expected_of, target_of
from suffice.cli.json_output import print_json
from suffice.cli.prediction_options import PredictionChoice
from suffice.cli.project_options import ProjectOptions, opened_project, person_name, plain_console, say, shown_place
from suffice.cli.rule_options import share_of
from suffice.cli.settings_options import settings_of
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import digest_of, write_bytes_whole
from suffice.presentation.given_words import fixed_size_sentence, rows_words
from suffice.presentation.text_format import count

if TYPE_CHECKING:
    from suffice.checks.prediction_check import PredictionResult
    from suffice.project.checked_predictions import KnownAnswers
    from suffice.project.labelling_project import Project
    from suffice.project.project_check import CheckDraw

#: Exit status if the check has ended and does not prove the target.
NOT_PROVEN = 1
# What a check can be about instead of the share of wrong predictions.
_QUANTITIES = ("share_of", "recall_of", "precision_of", "accept")


@dataclass(frozen=True, kw_only=True)
class PredictionCheckOptions:
    """Options about a check of predictions made elsewhere."""

    checked: PredictionChoice
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="With --prediction: the right answers, so that nobody is asked. If only some rows have one, these "
            "are taken as the random sample.",
            show_default=False,
        ),
    ] = None
    share_of: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="With --prediction: state how common this class is.",
            show_default=False,
        ),
    ] = None
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help="With --probability and --at-most: accept the most confident predictions. all: at most this share of "
            "all rows is wrong, if people label the others; accepted: of the accepted ones.",
            show_default=False,
        ),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="LABELS",
            help="With --prediction: answer at most this many rows now; the size of a check that has a fixed one.",
            show_default=False,
        ),
    ] = None
    add: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Add rows with new predictions to the project, and check them on their own.",
            show_default=False,
        ),
    ] = None
    statement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Where to write the statement when the check has ended.",
            show_default="NAME.statement.html beside the project",
        ),
    ] = None
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --prediction: the text to read.", show_default=False)
    ] = None
    image: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --prediction: paths of images.", show_default=False)
    ] = None
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="With --prediction: the column that names a row."),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="With --prediction: a column to leave out; it is not shown, and not in the final file.",
            show_default=False,
        ),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="With --prediction: all classes, if some are never predicted."),
    ] = None
    guidelines: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="With --prediction: how to answer, in Markdown.", show_default=False),
    ] = None
    project: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="With --prediction: where the check is kept.",
            show_default="NAME.check.suffice beside the file",
        ),
    ] = None
    seed: Annotated[
        int | None, typer.Option(help="With --prediction: for a reproducible draw.", show_default=False)
    ] = None

    def require_unused(self) -> None:
        """Raise an error if an option is given, because there is no column of predictions.

        Raises:
            InvalidValueError: It names the option.
        """
        for name, value in vars(self).items():
            if value is not None and name != "checked":
                option = name.replace("_", "-")
                raise InvalidValueError(f"--{option} is for predictions made elsewhere; give --prediction COLUMN too")

    def project_options(self, place: str, options: CheckOptions, person: str | None) -> ProjectOptions:
        """The options of the project."""
        same = ("text", "image", "id", "ignore", "classes", "guidelines", "project", "seed")
        values: dict[str, Any] = {name: getattr(self, name) for name in same}
        values |= {name: getattr(self.checked, name) for name in vars(self.checked)}
        values |= {"at_most": options.at_most, "of": options.of, "annotator_error": options.annotator_error}
        values["expected"] = options.expected
        return settings_of(ProjectOptions, data=place, person=person, tolerance=options.tolerance, **values)


def place_of_check(place: str) -> str:
    """The project of a check beside a file, if there is one and no column of predictions is named; else the place."""
    from suffice.cli.project_options import place_of
    from suffice.project.create import has_project

    _, is_project = place_of(place)
    beside = place if is_project else place_of(place, checks=True)[0]
    return beside if not is_project and has_project(beside) else place


def checks_predictions(place: str) -> bool:
    """Whether a place names a project that checks predictions made elsewhere, or a file beside which there is one.

    Raises:
        InvalidValueError: It is a file without a project beside it.
    """
    from suffice.cli.project_options import place_of
    from suffice.project.create import has_project, is_url, open_project

    location, is_project = place_of(place)
    if not is_project and not is_url(place):
        beside = place_of(place, checks=True)[0]
        if has_project(location):
            return False
        if has_project(beside):
            return True
        if Path(place).is_file():
            raise InvalidValueError(
                f"{place} has no project beside it; name the column of predictions to check with --prediction, or "
                f"label it first: suffice label {place}"
            )
        return False
    if not has_project(location):
        if is_project and not is_url(place):
            raise InvalidValueError(
                f"there is no project in {place}; to check predictions in a file: suffice check FILE --prediction "
                "COLUMN; to label data: suffice label DATA"
            )
        return False
    with open_project(location) as project:
        return project.settings.checked is not None


def check_predictions(
    place: str, options: CheckOptions, wanted: PredictionCheckOptions, person: str | None, *, as_json: bool
) -> None:
    """Check predictions made elsewhere: ask for answers until the check ends, and state the result.

    Args:
        place: The file of predictions, or the project of the check.
        options: Options of the check.
        wanted: Options about the predictions.
        person: Who answers.
        as_json: Whether to print the result as JSON.

    Raises:
        InvalidValueError: An option or the file cannot be used.
        typer.Exit: With status 1 if the check has ended and does not prove its target.
    """
    if wanted.budget is not None:
        whole(wanted.budget, "--budget", least=1)
    if wanted.accept is not None and wanted.accept not in ("all", "accepted"):
        raise InvalidValueError(f"--accept must be all or accepted, not {wanted.accept!r}")
    if wanted.truth is not None:
        with option_names():
            _report_known(place, options, wanted, as_json=as_json)
        return
    with option_names():
        _check_in_project(place, options, wanted, person, as_json=as_json)


def _check_in_project(
    place: str, options: CheckOptions, wanted: PredictionCheckOptions, person: str | None, *, as_json: bool
) -> None:
    """Check in a project: start or continue the check, ask, and report."""
    if target_of(options.of) == "all":
        _require_for_goal(_design(options, wanted))
    console = Console(stderr=as_json, highlight=False)
    console.soft_wrap = not console.is_terminal
    named = place if wanted.checked.given else place_of_check(place)
    wanted_project = wanted.project_options(named, options, person)
    first = _design(options, wanted)
    if all(first[each] is None for each in ("at_most", "size", *_QUANTITIES)):
        # A budget alone is the size of the check.
        first["size"] = wanted.budget
    with opened_project(wanted_project, console, labels=True, first_check=first) as project:
        name = person_name(person)
        if not wanted.checked.given and (changed := _changed_source(project)):
            print(changed, file=sys.stderr)
        if wanted.add is not None:
            say(console, _added(project, wanted.add, _design(options, wanted), name))
        if options.abort:
            project.abort_check(person=name)
        else:
            if words := _start_if_due(project, options, wanted, name):
                say(console, words)
            _ask(project, console, name, wanted.budget)
        _report(project, wanted, as_json=as_json)


def _changed_source(project: "Project") -> str:
    """A note if the file of a project is still beside it, and has other content; otherwise nothing."""
    digest, folder = project.made_with.get("digest"), project.folder
    if digest is None or folder is None:
        return ""
    path = folder.absolute().parent / project.settings.source
    if not path.is_file() or digest_of(path) == digest:
        return ""
    return (
        f"- {path.name} has changed since the project was made. The check is about the rows and predictions as they "
        "were then."
    )


def _added(project: "Project", path: Path, design: Mapping[str, Any], person: str) -> str:
    """Add rows with predictions, and say when they are checked."""
    with project.lock:
        open_check, first = project.state().checks.open_check, project.size
    if open_check is not None:
        # Nothing is added by a command that is refused.
        _require_as_open(project, open_check, design)
    added = project.add_items(path, person=person)
    rows = rows_words(first, first + added)
    words = f"{count(added, 'row')} {'is' if added == 1 else 'are'} added as {rows}"
    if open_check is None:
        return f"{words}, and checked on their own."
    checked = rows_words(open_check.asked.first_item, open_check.before.size)
    return (
        f"{words}. The open check of {checked} is finished first; then suffice check {shown_place(_place(project))} "
        "checks the new rows on their own."
    )


def _start_if_due(project: "Project", options: CheckOptions, wanted: PredictionCheckOptions, person: str) -> str:
    """Start a check, unless one is open or has answered what is asked for; return what there is to state about it."""
    from suffice.project.prediction_results import first_checked_item, start_prediction_check

    with project.lock:
        state = project.state()
        open_check = state.checks.open_check
        first = first_checked_item(state)
        done = [check for check in state.checks.all() if check.draw.asked.first_item == first]
    design = _design(options, wanted)
    if project.settings.goal is not None:
        # People label the least sure rows first; the labeller starts the check when the plan says so.
        _keep_conditions(project, design, person)
        return ""
    if open_check is not None:
        _require_as_open(project, open_check, design)
        return ""
    # Another plan alone is no other check: what is proven does not depend on it.
    if done and done[-1].state == "complete" and not _differences(done[-1].draw, {**design, "expected": None}):
        return ""
    target = project.settings.at_most if design["at_most"] is None else design["at_most"]
    _require_target({**design, "at_most": target}, wanted.budget)
    start_prediction_check(project, person=person, budget=wanted.budget, **design)
    with project.lock:
        started = project.state().checks.open_check
    if started is None:
        return ""
    if started.terms is not None:
        words = _plan_words(started)
    else:
        given = options.size is not None or wanted.budget is not None
        words = fixed_size_sentence(len(started.items), started.pool, parts=1 if given else started.asked.parts)
    return "\n".join(line for line in (started.later_sentence("rows"), words) if line)


def _plan_words(draw: "CheckDraw") -> str:
    """How many answers a check that ends by itself is planned to take."""
    from suffice.checks.answer_plan import plan_answers

    target, alpha = draw.asked.at_most or 0.0, draw.alpha
    if not 0.0 < target < 1.0:
        return ""
    plan = plan_answers(target, draw.asked.expected, draw.pool, alpha=alpha, number=draw.spends_as)
    return str(dataclasses.replace(plan, fixed=None))


def _keep_conditions(project: "Project", design: Mapping[str, Any], person: str) -> None:
    """Keep the confidence and the number of earlier checks, if they are given, for the checks that start later."""
    settings = project.settings
    _require_for_goal(design)
    # This raises an error if the first check was started with another confidence.
    project.checks_alpha(design.get("confidence"))
    given = {name: design[name] for name in ("confidence", "earlier_checks") if design.get(name)}
    changes = {name: value for name, value in given.items() if value != getattr(settings, name)}
    if changes:
        project.change_settings(changes, person=person)


def _design(options: CheckOptions, wanted: PredictionCheckOptions) -> dict[str, Any]:
    """What a check is to prove, as far as it is given."""
    confidence = share_of(options.confidence, "--confidence")
    return {
        "at_most": share_of(options.at_most, "--at-most"),
        "expected": expected_of(options.expected),
        "size": options.size,
        "share_of": wanted.share_of,
        "recall_of": options.recall_of,
        "precision_of": options.precision_of,
        "accept": wanted.accept,
        "earlier_checks": options.earlier_checks,
        **({} if confidence is None else {"confidence": confidence}),
    }


def _require_for_goal(design: Mapping[str, Any]) -> None:
    """Raise an error for what is not used with a goal about all labels."""
    if given := [name for name in ("size", *_QUANTITIES) if design[name] is not None]:
        option = given[0].replace("_", "-")
        raise InvalidValueError(f"--{option} is not used with --of all, whose check ends by itself; leave it out")


def _require_target(design: Mapping[str, Any], budget: int | None) -> None:
    """Raise an error if nothing says what a check is to prove, or how large it is."""
    if budget is None and all(design[name] is None for name in ("at_most", "size", *_QUANTITIES)):
        raise InvalidValueError(
            "give --at-most, the largest acceptable share of wrong predictions, such as 5%; or --size, the number of "
            "answers"
        )


def _differences(draw: "CheckDraw", design: Mapping[str, Any]) -> list[str]:
    """The given options that ask for another check than one that was started before, with their values."""
    before = draw.asked
    there: dict[str, Any] = {"share_of": before.share_of, "accept": before.accept}
    there |= {f"{name}_of": before.class_name if before.quantity == name else None for name in ("recall", "precision")}
    there |= {"at_most": before.target if before.at_most is None else before.at_most}
    there |= {"size": None if draw.terms is not None else len(draw.items)}
    there |= {"confidence": round(1.0 - draw.alpha, 15), "expected": before.expected}
    given = {name: design[name] for name in there if design.get(name) is not None}
    differ = [name for name, value in given.items() if value != there[name]]
    asked = [name for name in _QUANTITIES if name in given]
    if not asked and any(there[name] is not None for name in _QUANTITIES):
        # A target or a size alone asks for a check of the error.
        differ += [name for name in ("at_most", "size") if name in given]
    shares = ("at_most", "expected", "confidence")
    shown: dict[str, Any] = {name: f"{100.0 * given[name]:g}%" for name in shares if name in given}
    return [f"--{name.replace('_', '-')} {shown.get(name, given[name])}" for name in dict.fromkeys(differ)]


def _require_as_open(project: "Project", draw: "CheckDraw", design: Mapping[str, Any]) -> None:
    """Raise an error if options ask for another check than the open one."""
    place = shown_place(_place(project))
    same = [each for each in project.checks() if each.draw.asked.first_item == draw.asked.first_item]
    differ = _differences(draw, design)
    if design["earlier_checks"] not in (0, draw.spends_as - len(same)):
        differ.append(f"--earlier-checks {design['earlier_checks']}")
    if differ:
        raise InvalidValueError(
            f"check {draw.number} of {place} is open, and {differ[0]} asks for another one; finish the open check "
            f"first, or end it without a result: suffice check {place} --abort. Another project for the same file: "
            "--project FOLDER"
        )


def _ask(project: "Project", console: Console, person: str, budget: int | None) -> None:
    """Ask for answers in the terminal, until nothing is left or the person leaves."""
    with project.lock:
        waits = len(project.state().checks.pending()) > 0
    if not waits and (project.settings.goal is None or project.reached_goal() is not None):
        return
    from suffice.cli.label_commands import label_in_terminal

    label_in_terminal(project, console, person, most=budget)


def _report(project: "Project", wanted: PredictionCheckOptions, *, as_json: bool) -> None:
    from suffice.project.prediction_results import batch_change, batch_results, check_result

    with project.lock:
        newest = project.state().newest_check()
    goal = project.settings.goal
    if goal is not None:
        _report_goal(project, wanted, as_json=as_json)
        return
    if newest is None:
        raise SufficeError("no check is started; give --at-most, the share of wrong predictions that is acceptable")
    result, batches = check_result(project, newest), batch_results(project)
    change = batch_change(project) if result.complete else None
    more: dict[str, Any] = {"project": _place(project), "change": change, "batches": batches}
    more["expected"] = newest.draw.asked.expected
    if result.complete:
        more["statement_file"] = str(_write_statement(project, wanted))
    how = [] if change is None else list(change["sentences"])
    how += [] if result.complete else [f"Go on with: suffice check {shown_place(_place(project))}"]
    about = rows_words(newest.draw.asked.first_item, newest.draw.before.size).capitalize()
    _finish(result, as_json=as_json, more=more, lines=how, about=f"{about}:" if len(batches) > 1 else "")


def _place(project: "Project") -> str:
    """The project as it can be typed again."""
    return project.place if project.folder is None else str(project.folder)


def _report_goal(project: "Project", wanted: PredictionCheckOptions, *, as_json: bool) -> None:
    """Report the progress towards a goal about all labels."""
    told = _goal_result(project)
    if told["guaranteed"]:
        told["statement_file"] = str(_write_statement(project, wanted))
    if as_json:
        print_json("check", told)
    else:
        for line in told["sentences"]:
            plain_console().print(line)
        if told["guaranteed"]:
            place = shown_place(_place(project))
            plain_console().print(f"Write the final file: suffice export {place} --final FILE.csv")


def _goal_result(project: "Project") -> dict[str, Any]:
    """Progress of predictions made elsewhere towards a goal about all labels, as JSON values."""
    from suffice.project.learned_project import learned_project
    from suffice.project.status_summary import status

    told = status(project, learned_project(project).learning_status())
    goal, check = told["goal"], told["check"]
    reached = goal["reached"]
    return {
        "guaranteed": reached is not None,
        "rows": goal["rows"],
        "labelled_by_people": goal["by_people"],
        "predicted": goal["rows"] - goal["by_people"],
        "wrong_at_most": None if reached is None else reached["wrong_at_most"],
        "at_most": goal["at_most"],
        "confidence_level": project.settings.confidence if check is None else check["confidence"],
        "checked": 0 if check is None else check["answered"],
        "wrong": 0 if check is None or check["sequential"] is None else check["sequential"]["wrong"],
        "groups": {},
        "goal": goal,
        "project": _place(project),
        "sentences": goal["sentences"],
    }


def _write_statement(project: "Project", wanted: PredictionCheckOptions) -> Path:
    from suffice.report.prediction_statement import prediction_statement

    path = wanted.statement
    if path is None:
        folder = project.folder or Path.cwd() / "check"
        path = folder.with_name(folder.name.removesuffix(".suffice").removesuffix(".check") + ".statement.html")
    write_bytes_whole(path, prediction_statement(project).encode())
    return path


def _finish(
    result: "PredictionResult",
    *,
    as_json: bool,
    more: dict[str, Any],
    lines: Sequence[str] = (),
    about: str = "",
    resumable: bool = True,
) -> None:
    """Print a result, and leave with status 1 if a check that has ended or cannot go on does not prove its target."""
    if as_json:
        print_json("check", {**result.to_dict(), **more, "sentences": result.sentences()})
    else:
        console = plain_console()
        for line in [*([about] if about else []), *result.sentences(), *lines]:
            console.print(line)
        if "statement_file" in more:
            console.print(f"Statement: {more['statement_file']}")
    ended = result.complete or not resumable
    if ended and result.at_most is not None and not result.guaranteed:
        raise typer.Exit(NOT_PROVEN)


# Answers that are known.


def _report_known(place: str, options: CheckOptions, wanted: PredictionCheckOptions, *, as_json: bool) -> None:
    """Report what follows from answers in the file; nobody is asked, and no project is made."""
    from suffice.project.checked_predictions import known_answers
    from suffice.project.read_items import ReadingOptions, parse_classes

    assert wanted.truth is not None
    whole_file = target_of(options.of) == "all"
    _require_for_truth(options, wanted, whole_file=whole_file)
    classes = () if wanted.classes is None else parse_classes(wanted.classes)
    choice = wanted.checked.options(numbers=options.tolerance is not None, classes=classes)
    reading = ReadingOptions(text=wanted.text, image=wanted.image, id=wanted.id, ignore=tuple(wanted.ignore or ()))
    known = known_answers(Path(place), reading, choice, wanted.truth)
    for note in known.notes:
        print(f"- {note}", file=sys.stderr)
    if whole_file:
        _report_finished(known, options, wanted, as_json=as_json)
        return
    result = _known_result(known, options, wanted)
    more: dict[str, Any] = {}
    if wanted.statement is not None and result.complete:
        from suffice.report.prediction_statement import known_statement

        page = known_statement(
            result,
            source=Path(place).name,
            digest=digest_of(Path(place)),
            truth=wanted.truth,
            drawn=known.complete,
            earlier_checks=options.earlier_checks,
        )
        write_bytes_whole(wanted.statement, page.encode())
        more["statement_file"] = str(wanted.statement)
    elif wanted.statement is not None:
        print("The check has not ended, so that no statement is written.", file=sys.stderr)
    _finish(result, as_json=as_json, more=more, resumable=False)


def _require_for_truth(options: CheckOptions, wanted: PredictionCheckOptions, *, whole_file: bool) -> None:
    """Raise an error for options that are of no use if the answers are known."""
    if not wanted.checked.given:
        raise InvalidValueError("--truth is for --prediction; name the column of predictions too")
    asks = {name: getattr(wanted.checked, name) for name in ("answer", "spans", "show")}
    asks |= {name: getattr(wanted, name) for name in ("project", "add", "guidelines")}
    asks |= {"abort": options.abort or None}
    if unused := [name for name, value in asks.items() if value is not None]:
        raise InvalidValueError(
            f"--truth asks nobody and keeps no project, so that --{unused[0]} is of no use; leave one of them out"
        )
    if options.annotator_error is not None and not whole_file:
        raise InvalidValueError("--annotator-error is for a goal about all labels; give --of all too")
    if not whole_file:
        return
    if options.at_most is None:
        raise InvalidValueError("--of all needs --at-most, the share of wrong labels that is acceptable, such as 5%")
    others: dict[str, Any] = {name: getattr(wanted, name) for name in ("share_of", "accept", "budget", "statement")}
    others |= {name: getattr(options, name) for name in ("size", "expected", "recall_of", "precision_of")}
    others |= {"group": wanted.checked.group}
    if unused := [name for name, value in others.items() if value is not None]:
        name = unused[0].replace("_", "-")
        raise InvalidValueError(f"--{name} is not used with --truth and --of all; leave one of them out")


def _known_result(known: "KnownAnswers", options: CheckOptions, wanted: PredictionCheckOptions) -> "PredictionResult":
    """The result of a check that is drawn now, or of a sample that was labelled before."""
    design = {**_design(options, wanted), "tolerance": options.tolerance}
    _require_target(design, wanted.budget)
    if known.complete:
        design |= {"size": _size_of_budget(design, known, wanted.budget)}
        check = known.given.check(**design, seed=wanted.seed, classes=known.classes)
        return check.run(lambda row: known.truth[row], wanted.budget)
    if options.size is not None or wanted.budget is not None:
        raise InvalidValueError(
            "--size and --budget are for a check that is drawn now; column "
            f"{wanted.truth!r} has the answers of {count(len(known.answered), 'row')}, which are the sample"
        )
    have = "has" if len(known.answered) == 1 else "have"
    print(
        f"{count(len(known.answered), 'row')} {have} an answer. The result holds if they are a random sample of all "
        "rows, whose size was fixed before anybody saw an answer. A row of the sample that nobody could label must "
        "count as wrong: do not leave its answer empty, but write a class that is never predicted, named with "
        "--classes.",
        file=sys.stderr,
    )
    return known.sample_result(design)


def _size_of_budget(design: Mapping[str, Any], known: "KnownAnswers", budget: int | None) -> int | None:
    """The size of the check: without one, a budget is that of a check of fixed size."""
    from suffice.checks.prediction_check import CheckDesign

    made = CheckDesign(**design)
    if design["size"] is not None or budget is None or (made.sequential(known.given) and design["at_most"] is not None):
        return made.size
    return min(budget, made.pool(known.given))


def _report_finished(
    known: "KnownAnswers", options: CheckOptions, wanted: PredictionCheckOptions, *, as_json: bool
) -> None:
    """Label by the known answers until the goal about all labels is reached, and report what it took."""
    if not known.complete:
        missing = len(known.given) - len(known.answered)
        raise InvalidValueError(
            f"--of all asks for any row, and column {wanted.truth!r} has no answer in {count(missing, 'row')}; fill "
            "them in, or leave these rows out of the file"
        )
    confidence = share_of(options.confidence, "--confidence")
    work = known.given.finish(
        at_most=share_of(options.at_most, "--at-most"),
        annotator_error=share_of(options.annotator_error, "--annotator-error") or 0.0,
        earlier_checks=options.earlier_checks,
        tolerance=options.tolerance,
        seed=wanted.seed,
        **({} if confidence is None else {"confidence": confidence}),
    )
    reached = work.run(lambda row: known.truth[row])
    wrong = known.wrong(work.final_labels(), options.tolerance)
    sentences = [
        str(reached),
        f"By the answers in column {wanted.truth!r}, {wrong:,} of the {count(reached.rows, 'final label')} "
        f"{'is' if wrong == 1 else 'are'} wrong.",
    ]
    if not as_json:
        for line in sentences:
            plain_console().print(line)
        return
    told = {
        "guaranteed": True,
        "rows": reached.rows,
        "labelled_by_people": reached.by_people,
        "predicted": reached.rows - reached.by_people,
        "wrong_at_most": reached.wrong_at_most,
        "at_most": reached.at_most,
        "confidence_level": 0.95 if confidence is None else confidence,
        "true_wrong": wrong,
        "sentences": sentences,
    }
    print_json("check", told)
