"""Sentences about a labelling project: its progress, its people, changes of its settings, and damage."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from suffice.presentation.text_format import count, number, percent, shortened

#: Classes and people that are named.
_MOST_NAMES: Final = 20
# The numbers of one person alone are those of the project.
_FEWEST_PEOPLE: Final = 2


def progress_sentence(name: str, status: Mapping[str, Any]) -> str:
    """Progress of a project.

    Examples:
        >>> progress_sentence("mails", {"n_labelled": 40, "size": 1200, "n_skipped": 2, "left": 1158})
        'mails: 40 of 1,200 items labelled, 2 skipped, 1,158 left.'
    """
    done = labelled_of(status["n_labelled"], status["size"], "labelled", status["n_skipped"])
    return f"{name}: {done}, {status['left']:,} left.{held_back_sentence(status)}"


def held_back_sentence(status: Mapping[str, Any]) -> str:
    """Statement that labels of a check are not learned yet, after a space; empty if there are none.

    Examples:
        >>> held_back_sentence({"n_labelled": 260, "held": 100})
        ' The model has learned 160 of these labels; the 100 of the check follow when labelling continues.'
    """
    held = status.get("held", 0)
    if not held:
        return ""
    learned = f"The model has learned {status['n_labelled'] - held:,} of these labels"
    return f" {learned}; the {held:,} of the check follow{'s' * (held == 1)} when labelling continues."


def given_sentence(given: int, n_labelled: int, size: int, skipped: int) -> str:
    """Number of labels given at the terminal, and progress of the project.

    Examples:
        >>> given_sentence(1, 40, 1200, 0)
        'You gave 1 label; 40 of 1,200 items are labelled. Everything is saved.'
    """
    done = labelled_of(n_labelled, size, "are labelled", skipped)
    return f"You gave {count(given, 'label')}; {done}. Everything is saved."


def labelled_of(n_labelled: int, size: int, verb: str, skipped: int) -> str:
    """Numbers of labelled and skipped items, as a part of a sentence."""
    return f"{n_labelled:,} of {size:,} items {verb}{f', {skipped:,} skipped' if skipped else ''}"


def count_lines(status: Mapping[str, Any], source: str) -> list[str]:
    """Counts of classes and people, and the agreement of people, a line each.

    Args:
        status: The status of the project.
        source: Name of the file or folder of the data, which is used as the person of the labels in it.
    """
    lines = []
    if status["classes"]:
        lines.append(f"Classes: {some_counts([(entry['name'], entry['count']) for entry in status['classes']])}")
    if status["people"]:
        names = {source: f"{source} (with the data)"}
        people = [(names.get(person["name"], person["name"]), person["labels"]) for person in status["people"]]
        lines.append(f"People: {some_counts(people)}")
    return lines + ([agreement_sentence(status["agreement"])] if status["agreement"] is not None else [])


def team_lines(team: Mapping[str, Any]) -> list[str]:
    """What is known about the answers of each person, a line each, and how to read it; nothing for one person.

    Args:
        team: The result of :func:`suffice.project.people.people_summary`.
    """
    if len(team["people"]) < _FEWEST_PEOPLE:
        return []
    told = [f"{each['name']}: {' '.join(each['sentences'])}" for each in team["people"] if each["sentences"]]
    lines, more = told[:_MOST_NAMES], len(told[_MOST_NAMES:])
    others = f"{more:,} more {'person' if more == 1 else 'people'}: suffice status --json."
    return [*lines, *([others] if more else []), *team["notes"]]


def some_counts(counts: Sequence[tuple[str, int]]) -> str:
    """Names with their counts; only the first ones if there are many."""
    names = [f"{name} {total:,}" for name, total in counts[:_MOST_NAMES]]
    more = len(counts) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def agreement_sentence(agreement: Mapping[str, Any]) -> str:
    """Agreement of people on the same items.

    Examples:
        >>> both = {"both": 5, "same": 4, "people": 3, "alpha": 0.69, "low": 0.184, "high": 1.0, "difference": None}
        >>> print(agreement_sentence(both))
        3 people labelled 5 items, two or more each, and 4 items got the same label from all. Krippendorff's alpha, the agreement beyond chance, is 0.69 (95 % confidence: 0.18 to 1.00); 1 would be perfect.
        >>> agreement_sentence({**both, "both": 1, "people": 2, "alpha": None, "difference": 3.25})
        'Two people labelled the same item; on average two numbers are 3.25 apart.'
    """  # noqa: E501 - one sentence
    items = count(agreement["both"], "item")
    if agreement["people"] == 2:
        said = f"Two people labelled the same {items if agreement['both'] != 1 else 'item'}"
    else:
        said = f"{agreement['people']:,} people labelled {items}, two or more each"
    if agreement["difference"] is None:
        same = agreement["same"]
        said += f", and {count(same, 'item')} got the same label from all"
    else:
        said += f"; on average two numbers are {number(agreement['difference'])} apart"
    alpha = alpha_words(agreement)
    return f"{said}. {alpha}" if alpha else f"{said}."


def alpha_words(agreement: Mapping[str, Any]) -> str:
    """Krippendorff's alpha in a sentence; empty if it is not known."""
    if agreement["alpha"] is None:
        return ""
    low, high = f"{agreement['low']:.2f}", f"{agreement['high']:.2f}"
    return (
        f"Krippendorff's alpha, the agreement beyond chance, is {agreement['alpha']:.2f} (95 % confidence: {low} to "
        f"{high}); 1 would be perfect."
    )


def model_choice_sentences(descriptions: Mapping[str, str], choice: Mapping[str, Any]) -> list[str]:
    r"""Why a project has its model, if it is chosen on the labels.

    Args:
        descriptions: What to call each model, by name.
        choice: ``model`` (the one in use), ``compared_at`` (number of labels at the last comparison, or None),
            ``errors`` (of each model, by name) and ``next_at`` (number of labels at the next one; None if a check has
            started).

    Examples:
        >>> names = {"logistic": "Bayesian logistic regression", "forest": "a forest of randomised trees"}
        >>> choice = {"model": "logistic", "compared_at": None, "errors": {}, "next_at": 100}
        >>> model_choice_sentences(names, choice)
        ['The model is chosen on the labels: models are compared at 100 labels and before the check.']
        >>> choice |= {"compared_at": 100, "errors": {"logistic": 0.12, "forest": 0.115}, "next_at": 200}
        >>> print(model_choice_sentences(names, choice)[0].replace("\xa0", " "))
        Compared on 100 labels: a forest of randomised trees predicts 12 % wrong, Bayesian logistic regression 12 %.
    """
    errors, next_at = choice["errors"], choice["next_at"]
    later = "" if next_at is None else f"compared at {next_at:,} labels and before the check."
    if not errors:
        return [f"The model is chosen on the labels: models are {later}"] if later else []
    ranked = sorted(errors.items(), key=lambda each: each[1])
    shown = [f"{descriptions[name]} {percent(error)}" for name, error in ranked[1:]]
    first = f"{descriptions[ranked[0][0]]} predicts {percent(ranked[0][1])} wrong"
    sentences = [f"Compared on {choice['compared_at']:,} labels: {', '.join([first, *shown])}."]
    if ranked[0][0] != choice["model"]:
        sentences.append("The difference is too small to change the model.")
    return sentences + ([f"They will be {later.replace('compared', 'compared again', 1)}"] if later else [])


def setting_change_sentence(kind: str, data: Mapping[str, Any]) -> str:
    """A change of the settings of a project.

    Args:
        kind: The kind of the event: ``"classes changed"``, ``"settings changed"`` or ``"model changed"``.
        data: The data of the event.

    Examples:
        >>> change = {"before": ["a", "b"], "classes": ["a", "c"], "moved": {"b": "c"}}
        >>> setting_change_sentence("classes changed", change)
        'changed the classes: b is now c'
        >>> setting_change_sentence("settings changed", {"settings": {"overlap": 0.1}, "before": {"overlap": 0.0}})
        'changed the overlap from 0 to 0.1'
    """
    if kind == "model changed":
        return f"switched the model to {data['model']}"
    if kind == "classes changed":
        return f"changed the classes: {_classes_in_words(data)}"
    parts = [_setting_in_words(name, data["before"].get(name), value) for name, value in data["settings"].items()]
    return f"changed {'; '.join(part for changes in parts for part in changes)}"


def _classes_in_words(data: Mapping[str, Any]) -> str:
    before, after, moved = data["before"], data["classes"], data["moved"]
    names = [moved.get(name, name) for name in before]
    parts = [
        f"{old} is merged into {new}" if names.count(new) > 1 else f"{old} is now {new}" for old, new in moved.items()
    ]
    parts += [f"{name} is added" for name in after if name not in names]
    parts += [f"{name} is removed" for name in before if moved.get(name, name) not in after]
    return "; ".join(parts) or "another order"


def _setting_in_words(name: str, before: Any, after: Any) -> list[str]:
    if name == "rule":
        costs = {"label_cost": "the cost of a label", "mistake_cost": "the cost of a mistake"}
        old, new = ({key: rule.get("params", {}).get(key) for key in costs} for rule in (before, after))
        return [
            f"{words} from {number(old[key] or 1.0)} to {number(new[key] or 1.0)}"
            for key, words in costs.items()
            if old[key] != new[key]
        ]
    words = {
        "at_most": "the target error",
        "overlap": "the overlap",
        "opinions": "the number of opinions",
        "name": "the name",
        "of": "what the target is about",
        "annotator_error": "the share of labels by people that may be wrong",
        "correction_cost": "the cost of an answer in a check",
        "tolerance": "the tolerance",
        "confidence": "the confidence of the checks",
        "earlier_checks": "the number of earlier checks",
        "unit": "the unit",
        "lowest": "the smallest plausible label",
        "highest": "the largest plausible label",
    }
    if name == "may_miss":
        listed = [", ".join(shortened(each, 40) for each in classes or ()) or "none" for classes in (before, after)]
        return [f"the classes that may be missed from {listed[0]} to {listed[1]}"]
    if name in words:
        shown = [
            "none" if value is None else f"“{shortened(value, 40)}”" if isinstance(value, str) else number(value)
            for value in (before, after)
        ]
        return [f"{words[name]} from {shown[0]} to {shown[1]}"]
    return ["the guidelines" if name == "guidelines" else "descriptions of classes"]


def damage_sentences(report: Mapping[str, Any], place: str) -> list[str]:
    """Result of verifying a project, and the repairs.

    Args:
        report: The result of :meth:`suffice.project.repair.DamageReport.as_dict`.
        place: The project, as it can be typed in a command.
    """
    events, items = count(report["events"], "event"), count(report["items"], "item")
    if report["intact"]:
        return [f"Nothing is damaged: {events} and {items} have their checksums."]
    sentences = [f"{events} and {items} are verified."]
    if report["structure"]:
        sentences.append(f"SQLite says of the file: {report['structure']}.")
    if lost := report["lost_events"]:
        sentences.append(f"{_so_many(len(lost), 'event is', 'events are')} lost: {_some_numbers(lost)}.")
    if report["missing_events"]:
        missing = _so_many(report["missing_events"], "event is", "events are")
        sentences.append(f"{missing} missing at the end: acknowledged, and not in the file.")
    if damaged := report["damaged_digests"]:
        kept = "event has a damaged checksum and is kept", "events have damaged checksums and are kept"
        sentences.append(f"{_so_many(len(damaged), *kept)}: {_some_numbers(damaged)}.")
    if report["other_events"]:
        sentences.append(
            "The note of the last event, beside the file, is of another event: the note is damaged, or the file is "
            "another one."
        )
    if damaged := report["damaged_items"]:
        sentences.append(f"{_so_many(len(damaged), 'item is', 'items are')} damaged: {_some_numbers(damaged)}.")
    if report["features_damaged"]:
        sentences.append("The features are damaged.")
    if report["kept"]:
        sentences.append(f"Repaired. The damaged file is kept as {report['kept']}.")
    elif report["repaired"]:
        sentences.append("Repaired: the project continues with the events that are there.")
    elif report["labels_file"]:
        sentences.append(
            f"The project cannot be repaired. Its labels are in {report['labels_file']}: make a new project from the "
            "data, then read them with suffice import."
        )
    else:
        sentences.append(f"To repair it: suffice repair {place}")
    return sentences


def _so_many(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _some_numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"{shown} and {len(numbers) - 10:,} more" if len(numbers) > 10 else shown
