"""Sentences about the state of labelling, built from plain values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from suffice.presentation.text_format import (
    count,
    duration,
    number,
    number_at_most,
    numbers,
    percent,
    percent_at_least,
    percent_at_most,
    percents,
    rounded_percent,
    shortened,
    two_digits,
    utc_time,
    with_interval,
)

#: The rule that compares an error ratio.
RATIO_RULE: Final = "ErrorStability"
#: The rules that compare the worth of a label with its cost.
_WORTH_RULES: Final = frozenset({"LabelWorth", "ExpectedCost"})
#: The name under which a learner gives a verdict in place of its rule: before the model starts, and at the pool's end.
_LEARNER: Final = "ActiveLearner"
#: Used in place of the name of the rule while a model learns the labels of a project again.
CATCHING_UP: Final = "BackgroundLearner"
#: Classes and people that are named.
_MOST_NAMES: Final = 20

ERROR_RATIO_EXPLAINED: Final = (
    "The rule bounds how much each label changed the error of the model, and divides this by the bound at the start: "
    "this is the error ratio. It is 1 at the start and falls as the model learns. When it reaches the threshold, the "
    "last label changed very little, and the rule says stop. The next labels are likely to change no more, but this is "
    "not certain."
)
NOT_GUARANTEED: Final = (
    "The error. It is an estimate, and what more labels would bring is extrapolated from how the error fell so far.",
    "That any single prediction is correct. The error says how many are wrong, or by how much, but not which.",
    "That the labels are correct. The model also learns mistakes that people repeat.",
    "That the model is as good on other items. All statements are about the items of this data.",
    "That no other model is better. Only a few are compared.",
)


def not_guaranteed(guarantee: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Statements that are not guaranteed.

    Args:
        guarantee: As for :func:`guarantee_sentences`; None if there is none.
    """
    if guarantee is None:
        return NOT_GUARANTEED
    error = "The estimated error. Only the bound of the check is guaranteed; what more labels bring is extrapolated."
    other = "The predictions of another model. When the model learns more labels, the new one has to be checked."
    return error, other, *NOT_GUARANTEED[1:]


def as_sentence(words: str) -> str:
    """Words with a capital at the start and a full stop at the end.

    Examples:
        >>> as_sentence("about 40 labels (or 50)"), as_sentence("Why?")
        ('About 40 labels (or 50).', 'Why?')
    """
    text = words.strip()
    end = "" if not text or text.endswith((".", "!", "?", ".)")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


def more_labels(labels: int, low: int, high: int, *, coverage: float | None = None) -> str:
    r"""A forecast of how many more labels it takes, with its interval.

    Args:
        labels: The middle of the forecast.
        low: Lower end of its interval.
        high: Upper end of its interval.
        coverage: Probability that the interval contains the true number, if it is to be stated.

    Examples:
        >>> more_labels(401, 73, 1177), more_labels(1, 1, 1)
        ('about 400 more labels (73 to 1,200)', '1 more label')
        >>> more_labels(401, 73, 1177, coverage=0.8)
        'about 400 more labels (80\xa0% sure: 73 to 1,200)'
    """
    if low == high:
        return count(labels, "more label")
    sure = "" if coverage is None else f"{percent(coverage)} sure: "
    return f"about {count(two_digits(labels), 'more label')} ({sure}{two_digits(low):,} to {two_digits(high):,})"


# Sentences of the page, the terminal and ``suffice status``.


class DecisionWords(NamedTuple):
    """A decision in words, the same in all places that show it.

    Attributes:
        headline: The answer in a few words.
        tone: Name of its colour: ``quiet``, ``on``, ``good`` or ``limit``. It is never ``good`` without an error.
        sentences: The answer with its numbers, the most important first; the first one begins with the headline,
            unless a guarantee precedes it.
        error_figure: The error as a large figure; empty if there is none.
        error_note: Explanation of the figure, and its basis.
        outlook: Effect of more labels, as figures with their notes: now and after these labels. Empty if it is not
            predictable, or if more labels are not worth their cost.
        outlook_note: Effect of more labels, in words.
        summary: The first sentence without the headline, to be shown below it.
        remedy: Why the error is too large and what to try, if the answer is that the model has reached its limit.
    """

    headline: str
    tone: str
    sentences: list[str]
    error_figure: str = ""
    error_note: str = ""
    outlook: Sequence[tuple[str, str]] = ()
    outlook_note: str = ""
    summary: str = ""
    remedy: str = ""


#: The answers that are reasons to stop.
STOPS: Final = frozenset({"enough", "limit", "complete"})
_HEADLINES: Final = {
    "too early": ("Too early to say", "quiet"),
    "keep going": ("Keep labelling", "on"),
    "enough": ("You can stop now", "good"),
    "limit": ("More labels will not help this model much", "limit"),
    # Nothing is left to predict, so there is no error to show.
    "complete": ("Nothing is left to label", "quiet"),
}


# With a large error the colour is not green.
_NOT_WORTH: Final = "More labels are not worth their cost"
# The error may be below the target, but too close to it for a check.
_OUT_OF_REACH: Final = "Your target seems out of reach"
_EXTRAPOLATED: Final = (
    "This is extrapolated: it assumes that the error continues to fall as before. After these labels, more would not "
    "be worth their cost."
)


def decision_words(decision: Mapping[str, Any], *, initial: int = 0) -> DecisionWords:
    r"""A decision in words.

    Args:
        decision: The result of :meth:`suffice.session.decision.Decision.as_dict`.
        initial: Number of labels with which the model starts.

    Examples:
        >>> error = {"value": 0.061, "low": 0.04, "high": 0.09, "random_labels": 30}
        >>> said = decision_words({"answer": "enough", "n_labelled": 300, "unlabelled": 4618, "share": True,
        ...     "since": 283, "error": error, "rule": "LabelWorth"})
        >>> print(said.headline, *said.sentences, said.error_figure.replace("\xa0", " "), sep="\n")
        You can stop now
        You can stop now: about 6 % of the 4,618 unlabelled items are predicted wrong (estimate; probably 4 to 9 %).
        More labels are not worth their cost: each further label is expected to avoid too few wrong predictions.
        The rule first said so at 283 labels.
        6 %
    """
    answer = decision["answer"]
    if decision.get("screening") is not None and answer in ("keep going", "enough"):
        return _screening_words(decision)
    headline, tone = _HEADLINES[answer]
    planned = decision.get("plan")
    if answer == "too early" and decision.get("rule") == CATCHING_UP:
        headline = "Please wait"
    if answer == "enough" and decision.get("target_guaranteed"):
        headline = "Your target is guaranteed"
    elif answer == "enough" and decision.get("large_error"):
        headline, tone = _NOT_WORTH, "limit"
    if answer == "keep going" and planned is not None and planned["check_now"]:
        headline = "Time for a check"
    if answer == "keep going" and decision.get("check_pending"):
        headline = "A check is running"
    if answer == "limit" and not _model_at_limit(decision):
        headline = _OUT_OF_REACH
    sentences = {
        "too early": _too_early_sentences,
        "keep going": _keep_going_sentences,
        "enough": _enough_sentences,
        "limit": _limit_sentences,
        "complete": _complete_sentences,
    }[answer](decision, initial)
    figure, note = ("", "") if answer == "complete" else _error_figure(decision)
    if tone == "good" and not figure:
        tone = "quiet"
    outlook = _outlook(decision)
    by_forecast = outlook and decision.get("forecast") is not None
    said = _EXTRAPOLATED if by_forecast else _outlook_note(decision, sentences)
    summary = as_sentence(sentences[0].removeprefix(f"{headline}: "))
    remedy = " ".join(_remedy_sentences(decision)) if answer == "limit" else ""
    sentences = [*_guarantee_sentences(decision), *sentences]
    return DecisionWords(headline, tone, sentences, figure, note, outlook, said, summary, remedy)


def _screening_words(decision: Mapping[str, Any]) -> DecisionWords:
    """The decision of a screening in words."""
    screening, screened = decision["screening"], decision["n_labelled"]
    size, found = screened + decision["unlabelled"], screening["found"]
    about = max(found, two_digits(round(screening["estimated"])))
    progress = f"{found:,} of about {about:,} relevant items are found (estimate)"
    done = f"{screened:,} of {size:,} items are screened"
    if decision["answer"] == "keep going" and decision.get("check_pending"):
        headline, tone = "A check is running", "on"
        pending = decision["check_pending"]
        waiting = f"{count(pending, 'item')} of it {'is' if pending == 1 else 'are'} not yet labelled"
        sentences = [f"{headline}: {waiting}.", f"{progress}, and {done}."]
    elif decision["answer"] == "keep going":
        headline, tone = "Keep screening", "on"
        sentences = [f"{headline}: {progress}, and {done}."]
    else:
        proven = decision.get("target_guaranteed")
        headline, tone = ("Your target is guaranteed" if proven else "You can stop now"), "good"
        sentences = [f"{headline}: {progress}, and {done}."]
        if not proven:
            wanted = f"at least {percent(screening['recall'])} of class {screening['positive']!r} are found"
            sentences.append(f"By the rule {decision['rule']}, {wanted}. Only a random check can guarantee it.")
        if decision.get("since") is not None and decision["since"] < screened:
            sentences.append(f"The rule first said so at {count(decision['since'], 'label')}.")
    figure = f"{found:,} of ≈ {about:,}"
    note = f"of {shortened(str(screening['positive']), 20)} found (estimate), {screened:,} of {size:,} screened"
    next_ones = "The likeliest items come first, so the next ones are less often relevant than those so far."
    judged = f"The rule {decision['rule']}: {as_sentence(decision['reason'])}" if decision.get("reason") else ""
    summary = as_sentence(sentences[0].removeprefix(f"{headline}: "))
    return DecisionWords(
        headline,
        tone,
        [*_guarantee_sentences(decision), *sentences],
        figure,
        note,
        outlook_note=f"{next_ones} {judged}".rstrip(),
        summary=summary,
    )


def _guarantee_sentences(decision: Mapping[str, Any]) -> list[str]:
    """Guarantee for the predictions of the present model; empty if there is none."""
    guarantee = decision.get("guarantee")
    return [] if guarantee is None else guarantee_sentences(guarantee)


def guarantee_sentences(guarantee: Mapping[str, Any]) -> list[str]:
    """Guarantee of a check, and the model that it is about.

    Args:
        guarantee: The result of :meth:`suffice.checks.Guarantee.to_dict`. If the guarantee is not about the present
            model, also ``about_present_model``, which is False, and ``n_labelled``, the labels of the checked model.
            If it is about other classes, also ``classes_since``: ``"merged"`` or ``"changed"``.
            If items were added since the check was drawn, also ``added``, their number.

    Examples:
        >>> said = {"statement": "At most 5 % of the predictions for the 4,618 unlabelled items are wrong."}
        >>> guarantee_sentences(said)
        ['Guaranteed: at most 5 % of the predictions for the 4,618 unlabelled items are wrong.']
        >>> print(guarantee_sentences({**said, "about_present_model": False, "n_labelled": 300})[1])
        This is about the model at 300 labels; its predictions are exported as checked_predictions. The present model \
is another and has no guarantee until it is checked.
        >>> earlier = {**said, "about_present_model": False, "n_labelled": 300, "quantity": "error"}
        >>> print(guarantee_sentences({**earlier, "classes_since": "merged"})[1].partition(". ")[0])
        This is about the model at 300 labels and the classes of that time; classes were merged since, which can only \
lower the share of wrong predictions; its predictions are exported as checked_predictions
        >>> print(guarantee_sentences({**said, "about_present_model": False, "n_labelled": 300, "added": 50})[2])
        It does not cover the 50 items that were added since the check was drawn.
    """
    statement, added = guarantee["statement"], guarantee.get("added", 0)
    which = "item that was" if added == 1 else f"{added:,} items that were"
    later = [f"It does not cover the {which} added since the check was drawn."] if added else []
    if guarantee.get("about_present_model", True):
        return [f"Guaranteed: {statement[:1].lower()}{statement[1:]}", *later]
    then = count(guarantee["n_labelled"], "label")
    about = f"This is about the model at {then}"
    since = guarantee.get("classes_since", "same")
    if since == "merged" and guarantee["quantity"] == "error":
        about += " and the classes of that time; classes were merged since, which can only lower the share of wrong "
        about += "predictions"
    elif since != "same":
        about += " and the classes of that time; the classes were changed since"
    return [
        f"Guaranteed for an earlier model: {statement[:1].lower()}{statement[1:]}",
        f"{about}; its predictions are exported as checked_predictions. The present model is another and has no "
        "guarantee until it is checked.",
        *later,
    ]


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
    return f"changed {'; '.join(part for each in parts for part in each)}"


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
        old, new = ({key: each.get("params", {}).get(key) for key in costs} for each in (before, after))
        return [
            f"{words} from {number(old[key] or 1.0)} to {number(new[key] or 1.0)}"
            for key, words in costs.items()
            if old[key] != new[key]
        ]
    words = {"at_most": "the target error", "overlap": "the overlap", "name": "the name"}
    if name in words:
        shown = [
            "none" if value is None else f"“{shortened(value, 40)}”" if isinstance(value, str) else number(value)
            for value in (before, after)
        ]
        return [f"{words[name]} from {shown[0]} to {shown[1]}"]
    return ["the guidelines" if name == "guidelines" else "descriptions of classes"]


def guarantee_figure(guarantee: Mapping[str, Any]) -> tuple[str, str]:
    r"""Guarantee of a check as a figure and a note; rounded so that it stays true.

    Args:
        guarantee: The result of :meth:`suffice.checks.Guarantee.to_dict`.

    Examples:
        >>> guarantee_figure({"quantity": "error", "value": 0.104})
        ('≤ 11\xa0%', 'wrong, guaranteed')
        >>> guarantee_figure({"quantity": "recall", "value": 0.958, "class_name": "spam"})
        ('≥ 95.8\xa0%', 'of spam found, guaranteed')
    """
    quantity, value = guarantee["quantity"], guarantee["value"]
    if quantity in ("error", "within"):
        off = "wrong" if quantity == "error" else f"off by more than {number(guarantee['tolerance'])}"
        return f"≤ {percent_at_most(value)}", f"{off}, guaranteed"
    if quantity == "tolerance":
        others = percent_at_least(1.0 - guarantee["share"])
        return f"± {number_at_most(guarantee['tolerance'])}", f"for {others}, guaranteed"
    name = shortened(str(guarantee["class_name"]), 20)
    note = f"of {name} found" if quantity == "recall" else f"of predicted {name} right"
    return f"≥ {percent_at_least(value)}", f"{note}, guaranteed"


def check_sentence(check: Mapping[str, Any]) -> str:
    """Progress of a check; empty if it is complete with a guarantee, or if an answer of an older check was undone.

    Args:
        check: ``state``, ``size`` and ``answered``; ``proves``, whether a check that is complete proves something.

    Examples:
        >>> print(check_sentence({"state": "open", "size": 100, "answered": 37, "proves": False}))
        Check: 37 of 100 random items answered. The guarantee is stated when all are answered.
    """
    if check["state"] == "open":
        done = f"{check['answered']:,} of {count(check['size'], 'random item')} answered"
        return f"Check: {done}. The guarantee is stated when all are answered."
    if check["state"] == "aborted":
        return "The last check was aborted: it proves nothing."
    if check["state"] == "complete" and not check["proves"]:
        return "The check is complete and proves nothing: too many of its items could not be labelled."
    return ""


def check_offer_sentences(offers: Mapping[str, Any]) -> list[str]:
    r"""Likely guarantees of checks of several sizes, and their costs.

    Args:
        offers: ``pool``, ``expected``, ``confidence``, ``probability``, ``tolerance``, ``offers`` (each with ``size``
            and ``at_most``), ``at_most``, ``planned`` and ``seconds``; see
            :class:`suffice.project.check_offers.CheckOffers`.

    Examples:
        >>> said = check_offer_sentences({"pool": 4600, "expected": 0.02, "confidence": 0.95, "probability": 0.8,
        ...     "tolerance": None, "offers": [{"size": 100, "at_most": 0.0858}], "at_most": 0.05, "planned": 370,
        ...     "seconds": 4.0})
        >>> print(*said, sep="\n")
        A check draws unlabelled items at random. When they are labelled, it guarantees how many predictions are wrong.
        Estimate: about 2 % of the predictions for the 4,600 unlabelled items are wrong. If so, a check will in 4 of
        5 cases guarantee, with 95 % confidence:
        - 100 labels (about 7 minutes): at most 8.6 % are wrong.
        - 370 labels (about 25 minutes): at most 5 % are wrong, your target.
        The model learns these labels afterwards.
    """
    wrong = "wrong" if offers["tolerance"] is None else f"off by more than {number(offers['tolerance'])}"
    pool = count(offers["pool"], "unlabelled item")
    share = percent(offers["expected"]) if offers["expected"] else "0 %"
    sure = percent_at_least(offers["confidence"])
    draws = (
        f"A check draws unlabelled items at random. When they are labelled, it guarantees how many predictions are "
        f"{wrong}."
    )
    rows = check_offer_rows(offers)
    if not rows:
        return [draws, f"A check is of no use for {pool}: label all of them instead."]
    said = [
        draws,
        f"Estimate: about {share} of the predictions for the {pool} are {wrong}. If so, a check will in 4 of "
        f"5 cases guarantee, with {sure} confidence:",
    ]
    said += [f"- {row['cost']}: {row['words']}." for row in rows]
    if offers["at_most"] is not None and offers["planned"] is None:
        said.append(not_achievable_sentence(offers))
    return [sentence.replace("\u00a0", " ") for sentence in [*said, "The model learns these labels afterwards."]]


def class_offer_sentences(offers: Mapping[str, Any]) -> list[str]:
    r"""Cost of a check of the recall or precision of a class.

    Args:
        offers: ``quantity``, ``class_name``, ``pool``, ``expected``, ``confidence`` and ``offers`` (each with
            ``at_least`` and ``size``); see :class:`suffice.project.check_offers.ClassOffers`.

    Examples:
        >>> said = class_offer_sentences({"quantity": "recall", "class_name": "spam", "pool": 4000, "expected": 3,
        ...     "confidence": 0.95, "offers": [{"at_least": 0.9, "size": 1200}, {"at_least": 0.95, "size": None}]})
        >>> print(*said, sep="\n")
        The model's own estimate: about 3 unlabelled items of class 'spam' are not predicted as such. If so, these
        checks are likely to guarantee, with 95 % confidence, which share of the class is labelled or predicted:
        - at least 90 %: 1,200 of 4,000 items.
        - at least 95 %: not achievable without labelling all 4,000 items.
    """
    name, pool = repr(shortened(str(offers["class_name"]), 40)), count(offers["pool"], "item")
    sure = f"these checks are likely to guarantee, with {percent_at_least(offers['confidence'])} confidence,"
    if offers["quantity"] == "recall":
        items = count(offers["expected"], "unlabelled item")
        verb = "is" if offers["expected"] == 1 else "are"
        if offers.get("predicted_as_found", True):
            lead = f"about {items} of class {name} {verb} not predicted as such"
            what = f"If so, {sure} which share of the class is labelled or predicted:"
        else:
            lead = f"about {items} {verb} of class {name}"
            what = f"If so, {sure} which share of the class is found:"
    else:
        belong = "does" if offers["expected"] == 1 else "do"
        lead = f"about {offers['expected']:,} of {pool} predicted as {name} {belong} not belong to that class"
        what = f"If so, {sure} which share of them belongs to it:"
    rows = [
        f"- at least {percent_at_least(each['at_least'])}: "
        + (f"not achievable without labelling all {pool}." if each["size"] is None else f"{each['size']:,} of {pool}.")
        for each in offers["offers"]
    ]
    return [line.replace("\u00a0", " ") for line in (f"The model's own estimate: {lead}. {what}", *rows)]


def class_offer_rows(offers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each possible check of a class: its ``size``, its ``cost``, and its likely guarantee, ``words``.

    The argument is that of :func:`class_offer_sentences`.
    """
    name = repr(shortened(str(offers["class_name"]), 40))
    found = "found" if not offers.get("predicted_as_found", True) else "labelled or predicted as such"
    what = f"of the items of class {name} are {found}"
    if offers["quantity"] == "precision":
        what = f"of the items predicted as {name} belong to it"
    rows: dict[int, str] = {}
    for each in offers["offers"]:
        if each["size"] is not None:
            rows[each["size"]] = f"likely to guarantee that at least {percent_at_least(each['at_least'])} {what}"
    return [
        {"size": size, "cost": f"{size:,} of {count(offers['pool'], 'unlabelled item')}", "words": words}
        for size, words in sorted(rows.items())
    ]


def check_offer_rows(offers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each check that is offered: its ``size``, ``cost`` and likely guarantee, ``words``, smallest first.

    The size that is planned for the target is among them. The argument is that of :func:`check_offer_sentences`.
    """
    wrong = "wrong" if offers["tolerance"] is None else f"off by more than {number(offers['tolerance'])}"
    rows = {each["size"]: f"at most {percent_at_most(each['at_most'])} are {wrong}" for each in offers["offers"]}
    target, planned = offers["at_most"], offers["planned"]
    if target is not None and planned is not None:
        rows[planned] = f"at most {percent_at_most(target)} are {wrong}, your target"
    return [
        {"size": size, "cost": _label_time(size, offers["seconds"]), "words": rows[size].replace("\u00a0", " ")}
        for size in sorted(rows)
    ]


def not_achievable_sentence(offers: Mapping[str, Any]) -> str:
    """Statement that no check is likely to reach the target; the argument is that of :func:`check_offer_sentences`."""
    most, pool = percent_at_most(offers["at_most"]), count(offers["pool"], "unlabelled item")
    said = f"Your target of at most {most} is not achievable now without labelling all {pool}"
    lowest = min((each["at_most"] for each in offers["offers"]), default=1.0)
    reach = f", or ask for at most {percent_at_most(lowest)}" if lowest < 1.0 else ""
    return f"{said}: label more items first{reach}.".replace("\u00a0", " ")


def _label_time(labels: int, seconds: float | None) -> str:
    time = "" if seconds is None else f" (about {duration(labels * seconds)})"
    return f"{count(labels, 'label')}{time}"


def _error_figure(decision: Mapping[str, Any]) -> tuple[str, str]:
    """Return the error as a figure, and its explanation; empty if there is none."""
    error = decision.get("error")
    if error is None:
        return "", ""
    figure, interval = with_interval(error["value"], error["low"], error["high"], share=decision["share"])
    left = f"the {count(decision['unlabelled'], 'unlabelled item')}"
    what = f"of {left} predicted wrong" if decision["share"] else f"typical error of a prediction, for {left}"
    random_labels = error["random_labels"]
    basis = estimated_with(random_labels) if random_labels else "the model's own estimate"
    return figure, f"{what}, after {count(decision['n_labelled'], 'label')} (probably {interval}; {basis})"


def _outlook(decision: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Effect of the labels of the forecast: the number of wrong predictions, or the error, before and after."""
    planned = decision.get("plan")
    if decision["answer"] == "keep going" and planned is not None and planned["expected_total"] is not None:
        after = f"guaranteed after {two_digits(planned['expected_total']):,} labels in all, extrapolated"
        return [
            (_error_figure(decision)[0], "predicted wrong now, estimated"),
            (f"at most {percent(planned['target'])}", after),
        ]
    forecast, then = decision.get("forecast"), decision.get("error_then")
    if forecast is None or then is None or forecast["labels"] >= decision["unlabelled"]:
        return []
    after = f"after {more_labels(forecast['labels'], forecast['low'], forecast['high'])}, extrapolated"
    if not decision["share"]:
        figure, later = _error_figure(decision)[0], _error_then(decision)
        return [(figure, "typical error now, estimated"), (later, after)] if later else []
    wrong, corrected = decision["wrong"], decision["corrected"]
    before, then_wrong = two_digits(wrong or 0), two_digits((wrong or 0) - (corrected or 0))
    return [] if not corrected else [(f"{before:,}", "wrong predictions now, estimated"), (f"{then_wrong:,}", after)]


def _outlook_note(decision: Mapping[str, Any], sentences: Sequence[str]) -> str:
    """Effect of more labels in words, if there are no figures; the sentences are those of the decision."""
    answer = decision["answer"]
    if answer == "too early":
        return "This is known once the model has learned a few labels."
    if answer == "complete":
        return "There are no more labels to give."
    return sentences[1] if answer == "keep going" else next(iter(_stop_reasons(decision)), "")


def _error_then(decision: Mapping[str, Any]) -> str:
    """The error of numbers after the labels of the forecast, with the digits of the error now; empty if it is equal."""
    error, then = decision.get("error"), decision.get("error_then")
    if error is None or then is None or decision["share"]:
        return ""
    now, _, _ = numbers(error["value"], error["low"], error["high"])
    later = numbers(then, error["low"], error["high"])[0]
    return "" if later == now else later


def error_words(decision: Mapping[str, Any]) -> str:
    """The estimated error of the unlabelled items, as a part of a sentence; empty if there is none."""
    error = decision.get("error")
    if error is None:
        return ""
    left = f"the {count(decision['unlabelled'], 'unlabelled item')}"
    kind = "estimate" if error["random_labels"] else "the model's own estimate"
    if decision["share"]:
        value, low, high = percents(error["value"], error["low"], error["high"])
        return f"about {value} % of {left} are predicted wrong ({kind}; probably {low} to {high} %)"
    value, low, high = numbers(error["value"], error["low"], error["high"])
    return f"predictions for {left} are typically off by about {value} ({kind}; probably {low} to {high})"


def _error_or(decision: Mapping[str, Any], otherwise: str) -> str:
    return error_words(decision) or otherwise


def _too_early_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    missing = min(initial, decision["n_labelled"] + decision["unlabelled"]) - decision["n_labelled"]
    if missing > 0:
        are = "are" if missing > 1 else "is"
        return [f"Too early to say: {count(missing, 'more label')} {are} needed before the model starts."]
    if decision.get("rule") == CATCHING_UP:
        return [f"Please wait: {decision['reason']}. You can continue to label meanwhile."]
    if not decision.get("reason") or decision.get("rule") == _LEARNER:
        return ["Too early to say: the model is learning the first labels."]
    return [f"Too early to say: {decision['reason']}."]


def _keep_going_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    planned = decision.get("plan")
    lead = "Time for a check" if planned is not None and planned["check_now"] else "Keep labelling"
    lead = "A check is running" if decision.get("check_pending") else lead
    first = f"{lead}: {_error_or(decision, 'the rule does not say stop yet')}."
    if decision.get("check_pending"):
        still = f"{count(decision['check_pending'], 'random item')} still to answer"
        return [first, f"{still}. Then the check states how many predictions are wrong at most, guaranteed."]
    if planned is not None and planned["expected_total"] is not None:
        return [first, _plan_sentence(planned, decision["unlabelled"])]
    if decision.get("target_missed"):
        missed = f"The check has not shown your target of at most {percent(decision['at_most'])}"
        return [first, f"{missed}. Continue to label: the model learns the labels of the check first."]
    doubt = _doubt_sentence(decision)
    said = [first, doubt or _forecast_sentence(decision)]
    if planned is not None and not doubt:
        target = f"your target of at most {percent(planned['target'])}"
        unknown = f"It is not known yet whether {target} can be guaranteed."
        out_of_reach = f"At present, a guarantee of {target} is expected to need labels of all items."
        said.append(out_of_reach if decision.get("target_out_of_reach") else unknown)
    return said


def _forecast_sentence(decision: Mapping[str, Any]) -> str:
    """Forecast of the number of labels, and their effect."""
    forecast = decision.get("forecast")
    if forecast is None:
        return "How many more labels it takes is not yet predictable."
    labels, low, high = forecast["labels"], forecast["low"], forecast["high"]
    if labels >= decision["unlabelled"]:
        return "It may take all of the remaining items."
    more = as_sentence(more_labels(labels, low, high))[:-1]
    corrected, then = decision.get("corrected"), _error_then(decision)
    if corrected:
        wrong = f"{two_digits(corrected):,} of about {two_digits(decision['wrong']):,} wrong predictions"
        still = f"about {percent(decision['error_then'])} would still be wrong, and more would not be worth their cost"
        return f"{more} would avoid about {wrong}; {still} (extrapolated)."
    if then:
        return f"{more} would lower that to about {then}; then more labels are not worth their cost (extrapolated)."
    return f"{more} until more labels are not worth their cost (extrapolated)."


def _plan_sentence(plan: Mapping[str, Any], unlabelled: int) -> str:
    """Time of the check for the target error, and the number of labels."""
    target, size = f"at most {percent(plan['target'])}", two_digits(plan["check_size"])
    if plan["check_now"]:
        likely = f"is likely to guarantee your target of {target}"
        return f"A check of {count(plan['check_size'], 'random item')} of these {unlabelled:,} {likely}."
    more, total = two_digits(plan["more_labels"]), two_digits(plan["expected_total"])
    first = f"About {count(more, 'more label')}, then a check of {count(size, 'random item')},"
    return f"{first} would guarantee your target of {target} (extrapolated): {total:,} labels in all."


def _doubt_sentence(decision: Mapping[str, Any]) -> str:
    """Reason to continue although the rule says stop; empty if it does not."""
    if decision.get("since") is None:
        return ""
    alternative = decision.get("alternative")
    if alternative is not None:
        return f"{_alternative_sentence(decision, alternative)} More labels will show whether that is chance."
    planned = decision.get("plan") is not None
    if planned or decision.get("above_target"):
        asked = _error_value(decision["at_most"], share=decision["share"])
        where = "above" if decision.get("above_target") else "too close to"
        falls = "falls enough for a check" if planned else "falls"
        return f"The error is still {where} your target of at most {asked}; more labels will show whether it {falls}."
    return "The error is not yet known well enough; some more random labels will show it."


def _enough_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    error = _error_or(decision, "the rule says stop")
    if decision.get("target_guaranteed"):
        asked = f"you asked for at most {percent(decision['at_most'])} of wrong predictions"
        return [
            f"Your target is guaranteed: {asked}; by the check, {error}.",
            "Export the predictions now: more labels change the model, and a guarantee is about predictions as they "
            "are now.",
        ]
    if decision.get("large_error"):
        reasons = [as_sentence(each.removeprefix(f"{_NOT_WORTH}: ")) for each in _stop_reasons(decision)]
        too = "many" if decision["share"] else "much"
        remedy = "try other features or another model"
        if decision["rule"] in _WORTH_RULES:
            remedy = f"say that a wrong prediction costs more, or {remedy}"
        return [f"{_NOT_WORTH}: {error}.", *reasons, f"If that is too {too} for you, {remedy}."]
    return [f"You can stop now: {error}.", *_stop_reasons(decision)]


def _stop_reasons(decision: Mapping[str, Any]) -> list[str]:
    reason, said = decision.get("reason", ""), []
    if decision["rule"] == RATIO_RULE:
        said.append("The last labels changed the model so little that the stopping rule says stop.")
    elif decision["rule"] in _WORTH_RULES:
        said.append(_worth_sentence(decision))
    elif reason:
        said.append(as_sentence(reason))
    since = decision.get("since")
    if since is not None and since < decision["n_labelled"]:
        said.append(f"The rule first said so at {count(since, 'label')}.")
    return said


def _worth_sentence(decision: Mapping[str, Any]) -> str:
    """Why more labels are not worth their cost."""
    avoided, price = decision.get("avoided"), decision.get("price")
    if not decision["share"]:
        return "More labels are not worth their cost: each further label is expected to lower the error too little."
    if avoided is None or price is None or avoided >= price:
        return (
            "More labels are not worth their cost: each further label is expected to avoid too few wrong predictions."
        )
    wrong = decision.get("wrong")
    # The estimate for one label is noisy: it can exceed the estimate of all wrong predictions.
    each = avoided if wrong is None else min(avoided, wrong)
    few = "fewer than 0.01" if each < 0.01 else f"about {two_digits_of(each)}"
    return (
        f"More labels are not worth their cost: 1 more label would avoid {few} wrong predictions, and it costs as much "
        f"as {two_digits_of(price)}."
    )


def two_digits_of(value: float) -> str:
    """A number above 0 rounded to two digits, without an exponent.

    Examples:
        >>> two_digits_of(33.7), two_digits_of(1234.0), two_digits_of(0.567), two_digits_of(1.0)
        ('34', '1,200', '0.57', '1')
    """
    if value <= 0.0:
        return "0"
    digits = 1 - math.floor(math.log10(value))
    shown = f"{round(value, digits):,.{max(digits, 0)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _limit_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    # An error above the one asked for does not mean that the model cannot learn more.
    lead = _HEADLINES["limit"][0] if _model_at_limit(decision) else _OUT_OF_REACH
    first = f"{lead}: {_error_or(decision, 'the error does not fall any more')}."
    return [first, *_remedy_sentences(decision), *_stop_reasons(decision)]


def _model_at_limit(decision: Mapping[str, Any]) -> bool:
    """Whether the model is the reason for the answer "limit", and not the target alone."""
    target = decision.get("above_target") or decision.get("plan") is not None
    return decision.get("alternative") is not None or not target


def _remedy_sentences(decision: Mapping[str, Any]) -> list[str]:
    """Why the error is too large, and what to try."""
    said = []
    target = decision.get("at_most") or 0.0
    if decision.get("above_target"):
        asked, error = (_error_value(each, share=decision["share"]) for each in (target, decision["error"]["value"]))
        said.append(f"You asked for at most {asked}{', which is slightly less' if asked == error else ''}.")
    elif decision.get("plan") is not None:
        said.append(f"That is too close to your target of at most {percent(target)} for a check to guarantee it.")
    if decision.get("hardly_better"):
        baseline, common = decision["baseline"], decision.get("common")
        if decision["share"]:
            said.append(f"Always answering {shortened(str(common), 40)} would be wrong on {percent(baseline)}.")
        else:
            said.append(f"Always answering the mean of the labels would be off by {number(baseline)}.")
    alternative = decision.get("alternative")
    if alternative is None and not decision.get("hardly_better"):
        said.append("A higher cost of a wrong prediction leads to more labels; another model may need fewer.")
    elif alternative is None:
        said.append("Try other features or another model.")
    elif alternative["name"] == "forest":
        remedy = "That model cannot be used here; export the labels to train it elsewhere."
        said.append(f"{_alternative_sentence(decision, alternative)} {remedy}")
    else:
        said.append(f"{_alternative_sentence(decision, alternative)} Switch to that model: all labels stay.")
    return said


def _alternative_sentence(decision: Mapping[str, Any], alternative: Mapping[str, Any]) -> str:
    """Comparison with a better model on the same labels."""
    name, items = alternative["description"], count(alternative["labels"], "labelled item")
    if decision["share"]:
        theirs, ours = (f"{round(alternative[key] * alternative['labels']):,}" for key in ("error", "present"))
        compared = f"Tested on {items} without knowing their labels, it predicts {theirs} wrong"
        return f"Another model is better: {name}. {compared}, the present model {ours}."
    theirs, ours = (number(alternative[key]) for key in ("error", "present"))
    compared = f"Tested on {items} without knowing their labels, it is typically off by {theirs}"
    return f"Another model is better: {name}. {compared}, the present model by {ours}."


def _complete_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del decision, initial
    return ["Nothing is left to label: every item is labelled or skipped."]


def status_sentences(
    words: DecisionWords,
    *,
    warning: str,
    problem: str,
    behind: int,
    checked: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> list[str]:
    """Return the sentences of the decision, and of a warning, of labels not learned yet and of a problem, if any.

    Args:
        words: The decision in words.
        warning: A warning that the model may be getting worse; empty if there is none.
        problem: Why the model cannot learn; empty if it can.
        behind: Number of labels that the model has not learned yet.
        checked: Sentences about checks that come before the decision, and after it; see :func:`checks_sentences`.
    """
    early = words.headline in (_HEADLINES["too early"][0], "Please wait")
    first, last = checked
    said = [*first, *([] if problem and early else words.sentences), *last]
    said += [warning] if warning else []
    if behind > 0 and not early:
        newest = f"{behind} labels" if behind > 1 else "label"
        said.append(f"The model is still learning the last {newest}.")
    return said + ([problem] if problem else [])


def checks_sentences(
    guarantee: Mapping[str, Any] | None, check: Mapping[str, Any] | None, *, open_told: bool = False
) -> tuple[list[str], list[str]]:
    """Return the sentences about checks before the decision, and those after it.

    A guarantee of the present model is first, and one of an earlier model last.

    Args:
        guarantee: As for :func:`guarantee_sentences`, or None.
        check: The newest check, as for :func:`check_sentence`, or None.
        open_told: Whether the decision says that the check is open.
    """
    first: list[str] = []
    last: list[str] = []
    if guarantee is not None:
        present = guarantee["about_present_model"]
        (first if present else last).extend(guarantee_sentences(guarantee))
    told = open_told and check is not None and check["state"] == "open"
    if check is not None and not told and (sentence := check_sentence(check)):
        (last if check["state"] == "aborted" else first).append(sentence)
    return first, last


def worsening_sentence(random_labels: int) -> str:
    """Warning that the newest labels have made a model worse.

    Examples:
        >>> worsening_sentence(12)
        'The newest labels have made the model worse: it predicts the last 12 random labels worse than it did before.'
    """
    return (
        "The newest labels have made the model worse: it predicts the last "
        f"{random_labels} random labels worse than it did before."
    )


def estimated_with(random_labels: int) -> str:
    """Basis of an estimate of the error, as a part of a sentence.

    Examples:
        >>> estimated_with(24)
        'estimated from 24 labels of items drawn at random'
    """
    return f"estimated from {count(random_labels, 'label')} of items drawn at random"


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
        lines.append(f"Classes: {_some_counts([(each['name'], each['count']) for each in status['classes']])}")
    if status["people"]:
        names = {source: f"{source} (with the data)"}
        people = [(names.get(each["name"], each["name"]), each["labels"]) for each in status["people"]]
        lines.append(f"People: {_some_counts(people)}")
    return lines + ([agreement_sentence(status["agreement"])] if status["agreement"] is not None else [])


def _some_counts(counts: Sequence[tuple[str, int]]) -> str:
    """Names with their counts; only the first ones if there are many."""
    names = [f"{name} {each:,}" for name, each in counts[:_MOST_NAMES]]
    more = len(counts) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def agreement_sentence(agreement: Mapping[str, Any]) -> str:
    """Agreement of two people on the same items.

    Examples:
        >>> agreement_sentence({"both": 5, "same": 4, "kappa": 0.6875, "difference": None})
        "Two people labelled 5 items, and gave the same label to 4. Cohen's kappa, the agreement beyond chance, is 0.69; 1 would be perfect."
        >>> agreement_sentence({"both": 1, "same": 0, "kappa": None, "difference": 3.25})
        'Two people labelled 1 item; on average their numbers are 3.25 apart.'
    """  # noqa: E501 - one sentence
    both = f"Two people labelled {count(agreement['both'], 'item')}"
    if agreement["kappa"] is not None:
        kappa = f"Cohen's kappa, the agreement beyond chance, is {agreement['kappa']:.2f}; 1 would be perfect."
        return f"{both}, and gave the same label to {agreement['same']:,}. {kappa}"
    if agreement["difference"] is None:
        return f"{both}."
    return f"{both}; on average their numbers are {number(agreement['difference'])} apart."


# Sentences of the report of a project.


def summary_tiles(status: Mapping[str, Any], *, seconds: float | None) -> list[tuple[str, str]]:
    """The main numbers of a project, each with its name; the error first.

    Args:
        status: The status of the project.
        seconds: Typical time for a label, or None.
    """
    done, size, left, decision = (status[name] for name in ("n_labelled", "size", "left", "decision"))
    skipped = f", {status['n_skipped']:,} skipped" if status["n_skipped"] else ""
    tiles = [(decision["error_figure"], decision["error_note"])] if decision["error_figure"] else []
    held = f"; {status['held']:,} of them in the check, not learned yet" if status.get("held") else ""
    tiles.append((f"{done:,}", f"of {size:,} items labelled ({percent(done / size)}){skipped}{held}"))
    more, forecast = "", decision["forecast"]
    if decision["answer"] in ("enough", "limit") and left:
        tiles.append((f"{left:,}", "items without a label: the model predicts them"))
        more, labels = "to label these too", left
    elif forecast is not None and forecast["labels"] < decision["unlabelled"]:
        labels, low, high = (two_digits(forecast[name]) for name in ("labels", "low", "high"))
        until = f"more labels until they are not worth their cost, extrapolated ({low:,} to {high:,})"
        tiles.append((f"{labels:,}", until))
        more = "for these labels"
    if more and seconds is not None:
        tiles.append((duration(labels * seconds), f"{more}, at {seconds:.2g} seconds a label as so far"))
    agreement = status["agreement"]
    if agreement is not None and agreement["kappa"] is not None:
        same = f"{agreement['same']:,} of {agreement['both']:,}"
        tiles.append((same, "second opinions were the same as the first"))
    elif agreement is not None and agreement["difference"] is not None:
        what = f"average difference between two people, on {count(agreement['both'], 'item')}"
        tiles.append((number(agreement["difference"]), what))
    return tiles


def target_words(at_most: float, task: str) -> str:
    """The error that the user asked for.

    Examples:
        >>> target_words(0.1, "classification").replace("\u00a0", " "), target_words(0.5, "regression")
        ('at most 10 % of wrong predictions', 'a typical error of at most 0.5')
    """
    if task == "classification":
        return f"at most {percent(at_most)} of wrong predictions"
    return f"a typical error of at most {number(at_most)}"


def compared_sentence(rule: str, n_labelled: int, value: float, threshold: float | None) -> str:
    """The last comparison of a rule.

    Examples:
        >>> compared_sentence("LabelWorth", 300, 0.21, 1.0)
        'After 300 labels, the worth of a label is 0.21, and its cost is 1.'
        >>> compared_sentence("ErrorStability", 300, 0.07, 0.1)
        'After 300 labels, the error ratio is 0.07, and the threshold is 0.1.'
    """
    its = "its" if rule in _WORTH_RULES else "the"
    limit = "" if threshold is None else f", and {its} {threshold_name(rule)} is {threshold:.3g}"
    return f"After {count(n_labelled, 'label')}, the {quantity_name(rule)} is {value:.3g}{limit}."


def given_and_imported(given: int, first: str, last: str, *, imported: int, source: str) -> str:
    """Number and time of the labels that people gave, and number of labels in the data.

    Args:
        given: Labels that people gave.
        first: Time of the first, in ISO format; not used if there is none.
        last: Time of the last.
        imported: Labels in the data.
        source: Name of the data.
    """
    said = []
    if given:
        start, end = utc_time(first), utc_time(last)
        span = f"on {start}" if start == end else f"from {start} to {end}"
        said.append(f"{count(given, 'label')} {'was' if given == 1 else 'were'} given {span}.")
    if imported:
        said.append(f"{count(imported, 'label')} came with the data ({shortened(source)}).")
    return " ".join(said)


def corrections_and_skips(corrected: int, skipped: int) -> str:
    """Numbers of corrected labels and skipped items; empty if there are none.

    Examples:
        >>> corrections_and_skips(1, 2)
        '1 label was corrected. 2 items were skipped.'
    """
    counts = [(corrected, "label", "corrected"), (skipped, "item", "skipped")]
    return " ".join(f"{count(n, noun)} {'was' if n == 1 else 'were'} {verb}." for n, noun, verb in counts if n)


def not_started_sentence(initial: int, size: int) -> str:
    """Note about the start of the rule."""
    first = count(min(initial, size), "label")
    return f"The model starts after the first {first}, of items drawn at random. Then the rule is applied."


def quantity_name(rule: str) -> str:
    """Name of the number that a rule compares."""
    if rule == RATIO_RULE:
        return "error ratio"
    return "worth of a label" if rule in _WORTH_RULES else f"value of {rule}"


def threshold_name(rule: str) -> str:
    """Name of the limit that a rule compares its number with."""
    return "cost" if rule in _WORTH_RULES else "threshold"


def curve_caption(rule: str, *, forecast: bool) -> str:
    """Caption of the curve of a rule."""
    least = " (thin) and its least so far (bold)" if rule == RATIO_RULE else ""
    end = " The grey area is the expected range of the stop." if forecast else ""
    limit = f"the {threshold_name(rule)} that it is compared with (dashed)"
    return f"The {quantity_name(rule)} after each label{least}, and {limit}.{end}"


def expected_error_basis(items: int, random_labels: int = 0) -> str:
    """Basis of the estimate of the error.

    Args:
        items: Number of items for which it was computed.
        random_labels: Number of random labels that calibrate the estimate.
    """
    if random_labels:
        return (
            f"This is an estimate, and no guarantee. The model states how sure it is of its predictions for "
            f"{count(items, 'unlabelled item')}. That was corrected with {count(random_labels, 'label')} of items that "
            "were drawn at random: each was predicted without its label, and compared with it. The more such labels "
            "there are, the more precise the estimate is."
        )
    return (
        "This is the model's own estimate: no labels were held back to measure it. It comes from the model's own "
        f"probabilities on {count(items, 'item')} drawn at random, so it is only correct if the model fits the data. "
        "On real data it was often off by a factor of two. To be sure, draw some more items at random, label them, and "
        "compare."
    )


def certified_change_sentence(change: float) -> str:
    """Meaning of a certificate without theory."""
    return (
        "In other words: the newest label changed the error of the model by at most "
        f"{percent(change)} of the range between the best and the worst possible error."
    )


# Sentences of ``suffice run``, ``suffice audit`` and ``suffice recommend``.


def with_labels(labels: int, pool: int) -> str:
    """Number of labels at the end of a run.

    Examples:
        >>> with_labels(300, 500), with_labels(500, 500)
        ('with 300 labels', 'with all 500 labels')
    """
    return f"with {'all ' if labels == pool else ''}{labels} labels"


def run_headline(answer: str, labels: int, pool: int, reason: str, *, by_cost: bool = False) -> str:
    """Result of a run.

    Args:
        answer: The answer of the decision at the stop, or at the end.
        labels: Number of labels there.
        pool: Number of rows to label.
        reason: Reason of the last verdict, for a run without a stop.
        by_cost: Whether the error is still large or above the target, and only the cost of a label is the reason to
            stop.

    Examples:
        >>> run_headline("enough", 143, 1438, "")
        'Enough at 143 of 1,438 labels.'
        >>> run_headline("enough", 26, 240, "", by_cost=True)
        'More labels are not worth their cost after 26 of 240 labels.'
        >>> run_headline("keep going", 60, 120, "the error ratio 0.3 is above the threshold 0.1")
        'Not enough within 60 labels: the error ratio 0.3 is above the threshold 0.1.'
    """
    if by_cost and answer in ("enough", "limit"):
        return f"{_NOT_WORTH} after {labels:,} of {pool:,} labels."
    if answer == "enough":
        return f"Enough at {labels:,} of {pool:,} labels."
    if answer == "limit":
        return f"This model has reached its limit at {labels:,} of {pool:,} labels."
    return f"Not enough within {'all ' if labels == pool else ''}{labels:,} labels: {reason}."


def screening_headline(screened: int, size: int, found: int, *, stopped: bool, reason: str) -> str:
    """Result of a screening.

    Args:
        screened: Rows screened.
        size: All rows.
        found: Relevant rows among those screened.
        stopped: Whether the rule said stop.
        reason: Reason of the last verdict, for a screening without a stop.

    Examples:
        >>> screening_headline(812, 3000, 88, stopped=True, reason="")
        'Enough: 812 of 3,000 rows are screened, and 88 relevant ones are found.'
        >>> screening_headline(100, 3000, 8, stopped=False, reason="8 are found")
        'Not enough within 100 of 3,000 rows, among which 8 relevant ones are found: 8 are found.'
    """
    if stopped:
        return f"Enough: {screened:,} of {size:,} rows are screened, and {found:,} relevant ones are found."
    rows = f"{'all ' if screened == size else ''}{screened:,} of {size:,} rows"
    return f"Not enough within {rows}, among which {found:,} relevant ones are found: {reason}."


def screening_sentences(screening: Mapping[str, Any]) -> list[str]:
    r"""Result of a screening, in sentences for a report, and the guarantee of a check of the rest.

    Args:
        screening: ``positive``, ``size``, ``screened``, ``found``, ``rule`` (its description), ``stopped``,
            ``recall`` (that was wanted), ``relevant`` (all rows of the class, None if that is not known), ``checks``
            (pairs of a size and the recall that a check of that size guarantees if it finds no relevant item),
            ``check_for_recall`` (the least size that guarantees the recall; None if there is none) and ``confidence``.

    Examples:
        >>> said = screening_sentences({"positive": "yes", "size": 3000, "screened": 812, "found": 88, "relevant": 90,
        ...     "rule": "RecallTest", "stopped": True, "recall": 0.95, "checks": [(300, 0.81)],
        ...     "check_for_recall": 1240, "confidence": 0.95})
        >>> for sentence in said:
        ...     print(sentence.replace("\xa0", " "))
        Of 3,000 records, 812 (27 %) were screened in the order of their predicted relevance, until the rule RecallTest
        said stop; 88 of class 'yes' were found.
        By the labels of the file these are 98 % of the 90 records of the class; the target is 95 %.
        Without these labels only a random check of the 2,188 unscreened records can guarantee a recall. If it finds no
        record of the class: 300 records guarantee at least 81 %, and 1,240 the target of 95 % (95 % confidence).
    """
    size, screened, found, wanted = (screening[name] for name in ("size", "screened", "found", "recall"))
    name, rest = f"class {screening['positive']!r}", size - screened
    until = "until the rule {} said stop" if screening["stopped"] else "without a stop of the rule {}"
    share = f"{screened:,} ({percent(screened / size)})"
    sentences = [
        f"Of {size:,} records, {share} were screened in the order of their predicted relevance, "
        f"{until.format(screening['rule'])}; {found:,} of {name} were found."
    ]
    if screening["relevant"]:
        reached = percent(found / screening["relevant"])
        sentences.append(
            f"By the labels of the file these are {reached} of the {screening['relevant']:,} records of the class; "
            f"the target is {percent(wanted)}."
        )
    if not rest:
        return [*sentences, "All records are screened, so nothing is missed."]
    sure = f"{percent(screening['confidence'])} confidence"
    least = screening["check_for_recall"]
    offers = [
        f"{labels:,} records guarantee at least {percent_at_least(value)}" for labels, value in screening["checks"]
    ]
    if least is not None:
        offers.append(f"{least:,}{'' if offers else ' records guarantee'} the target of {percent(wanted)}")
    only = "Without these labels only" if screening["relevant"] else "Only"
    if offers:
        sentences.append(
            f"{only} a random check of the {rest:,} unscreened records can guarantee a recall. If it finds no record "
            f"of the class: {', and '.join(offers)} ({sure})."
        )
    if least is None:
        sentences.append(f"Only screening all {rest:,} other records guarantees {percent(wanted)}.")
    return sentences


def labels_saved_sentence(labels: int, pool: int) -> str:
    """Number of labels that a stop saves."""
    saved = pool - labels
    return f"Labels that would have been saved: {saved} of {pool} ({100.0 * saved / pool:.3g}\u00a0%)."


def run_error_sentence(name: str, at_stop: float | None, at_end: float, end: str) -> str:
    """The error on the test set at the stop, if there is one, and at the end.

    Args:
        name: Name of the error.
        at_stop: The error at the stop, or None.
        at_end: The error at the end.
        end: Number of labels at the end, in words.
    """
    if at_stop is None:
        return f"{name.capitalize()}: {at_end:.4g} {end}."
    change = f" ({100.0 * (at_stop - at_end) / at_end:+.1f}\u00a0%)" if at_end > 0.0 else ""
    return f"{name.capitalize()}: {at_stop:.4g} at the stop, {at_end:.4g} {end}{change}."


def run_wrong_share_sentence(at_stop: float | None, at_end: float, end: str) -> str:
    r"""The share of wrong predictions on the test set at the stop, if there is one, and at the end.

    Args:
        at_stop: The share at the stop, or None.
        at_end: The share at the end.
        end: Number of labels at the end, in words.

    Examples:
        >>> run_wrong_share_sentence(0.0833, 0.079, "with all 300 labels").replace("\xa0", " ")
        '8.33 % of the test items predicted wrong at the stop, 7.9 % with all 300 labels.'
    """
    wrong = "of the test items predicted wrong"
    last = f"{100.0 * at_end:.3g}\u00a0%"
    if at_stop is None:
        return f"{last} {wrong} {end}."
    return f"{100.0 * at_stop:.3g}\u00a0% {wrong} at the stop, {last} {end}."


def demo_saved_sentence(pool: int, labelled: int, checked: int) -> str:
    r"""Number of items of a pool that were not labelled.

    Args:
        pool: Number of items.
        labelled: Labels until the stop.
        checked: Labels of the check after it; 0 without a check.

    Examples:
        >>> demo_saved_sentence(398, 78, 60).replace("\xa0", " ")
        'Labels saved: 260 of 398 (65 %). 78 were needed until the stop, and 60 for the check.'
    """
    saved = pool - labelled - checked
    needed = f"{labelled:,} were needed until the stop" + (f", and {checked:,} for the check." if checked else ".")
    return f"Labels saved: {saved:,} of {pool:,} ({100.0 * saved / pool:.0f}\u00a0%). {needed}"


def demo_truth_sentence(share: float, tolerance: float | None) -> str:
    r"""The true share of wrong predictions for the unlabelled items of the demonstration, which knows all labels.

    Args:
        share: The share.
        tolerance: For numbers: a prediction is wrong if it is off by more than this.

    Examples:
        >>> demo_truth_sentence(0.023, None).replace("\xa0", " ")
        'The demonstration knows all labels: 2.3 % of these predictions are in fact wrong.'
    """
    what = "wrong" if tolerance is None else f"off by more than {tolerance:.3g}"
    return f"The demonstration knows all labels: {100.0 * share:.2g}\u00a0% of these predictions are in fact {what}."


def demo_page_sentence(error: str) -> str:
    """What to do on the page of the demonstration.

    Args:
        error: The error to guarantee, as it is shown.

    Examples:
        >>> demo_page_sentence("10%")
        'Label digits until the page says that you can stop. A random check then shows whether at most 10% are wrong.'
    """
    return (
        "Label digits until the page says that you can stop. "
        f"A random check then shows whether at most {error} are wrong."
    )


def demo_next_sentences() -> list[str]:
    """The commands for the user's own data, after the demonstration."""
    return [
        "Next, with data of your own:",
        "  suffice serve data.csv --classes yes,no    # label rows, texts or images on a page",
        "  suffice run labelled.csv --target COLUMN   # already labelled: how many labels would have been enough?",
    ]


def true_error_sentence(errors: tuple[float | None, float], end: str, rows: int, *, share: bool, baseline: str) -> str:
    r"""The error measured on the test rows, at the stop and at the end.

    Args:
        errors: The error at the stop, or None, and at the end: a share of wrong predictions, or the root of the mean
            squared error.
        end: Number of labels at the end, in words.
        rows: Number of test rows.
        share: Whether the error is a share.
        baseline: The error of the trivial prediction, in words; may be empty.

    Examples:
        >>> said = true_error_sentence((0.0833, 0.079), "with all 300 labels", 100, share=True, baseline="")
        >>> said.replace("\xa0", " ")
        'Measured on 100 test rows: 8.3 % predicted wrong at the stop, 7.9 % with all 300 labels.'
    """
    at_stop, at_end = errors
    kind = " predicted wrong" if share else ""
    lead = f"Measured on {count(rows, 'test row')}{'' if share else ', typical error (root mean square)'}"
    than = f"; {baseline}" if baseline else ""
    if at_stop is None:
        return f"{lead}: {_error_value(at_end, share=share)}{kind} {end}{than}."
    first = f"{_error_value(at_stop, share=share)}{kind} at the stop"
    return f"{lead}: {first}, {_error_value(at_end, share=share)} {end}{than}."


def _error_value(error: float, *, share: bool) -> str:
    return (percent(error) if error else "0\u00a0%") if share else number(error)


def measured_target_sentence(measured: float, at_most: float, *, share: bool) -> str:
    """Whether the measured error at the stop reaches the one that was asked for.

    Examples:
        >>> measured_target_sentence(0.018, 0.05, share=True).replace("\u00a0", " ")
        'By this measure the target of at most 5 % was reached at the stop.'
        >>> measured_target_sentence(2.5, 2.0, share=False)
        'By this measure the target of at most 2 was not reached at the stop.'
    """
    reached = "reached" if measured <= at_most else "not reached"
    return f"By this measure the target of at most {_error_value(at_most, share=share)} was {reached} at the stop."


def off_share_sentence(shares: tuple[float | None, float], end: str, tolerance: float) -> str:
    r"""The share of the test rows whose prediction is off by more than a tolerance, at the stop and at the end.

    Examples:
        >>> off_share_sentence((0.25, 0.2), "with all 300 labels", 30.0).replace("\xa0", " ")
        'Off by more than 30: 25 % of the test rows at the stop, 20 % with all 300 labels.'
    """
    at_stop, at_end = (None if share is None else _error_value(share, share=True) for share in shares)
    first = f"{at_end} of the test rows {end}"
    if at_stop is not None:
        first = f"{at_stop} of the test rows at the stop, {at_end} {end}"
    return f"Off by more than {number(tolerance)}: {first}."


def trivial_error_words(baseline: float, *, share: bool, common: str = "") -> str:
    r"""The error of the trivial prediction, as a part of a sentence.

    Examples:
        >>> trivial_error_words(0.37, share=True, common="benign").replace("\xa0", " ")
        'always answering benign: 37 %'
    """
    what = shortened(common, 40) if share else "the mean"
    return f"always answering {what}: {_error_value(baseline, share=share)}"


def try_sentence(name: str, *, command: str) -> str:
    """Option that selects a better model.

    Args:
        name: Its name, one of the models of suffice.
        command: Name of the command.
    """
    return f"To try it: suffice {command} with --model {name}."


def details_sentence(rule: str, reason: str) -> str:
    """Values that a rule compared at its stop.

    Examples:
        >>> details_sentence("LabelWorth", "1 more label is worth 0.9, which is below its cost of 1")
        'Details: by the rule LabelWorth, 1 more label is worth 0.9, which is below its cost of 1.'
    """
    return f"Details: by the rule {rule}, {reason}."


def classes_without_labels_sentence(unmet: int, classes: int) -> str:
    """Note that some classes have no label yet."""
    return f"Note: no label of {unmet} of the {classes} classes has been bought so far."


def unseen_classes_sentence(unmet: int, classes: int, *, stopped: bool) -> str:
    """Warning of an audit that some classes have no label among those that the statement is about.

    Args:
        unmet: Number of these classes.
        classes: Number of all classes.
        stopped: Whether the labels are those before a stop; otherwise all labels that were used.

    Examples:
        >>> unseen_classes_sentence(1, 3, stopped=True)
        'Warning: 1 of the 3 classes has no label before this stop. The model cannot predict it, so do not rely on the \
stop.'
    """
    have, it = ("has", "it") if unmet == 1 else ("have", "them")
    labels, result = ("before this stop", "stop") if stopped else ("among the labels that were used", "result")
    return (
        f"Warning: {unmet} of the {classes} classes {have} no label {labels}. The model cannot predict {it}, so do not "
        f"rely on the {result}."
    )


def counted_costs(label: float, mistake: float | None, error: float | None, *, what: str) -> str:
    """Costs of labels and errors, as a part of a sentence.

    Args:
        label: Cost of a label.
        mistake: Cost of one wrong prediction; None if an error is counted as a whole.
        error: Cost of an error that is larger by 1; None if wrong predictions are counted.
        what: Description of a wrong prediction, or of the error.

    Examples:
        >>> counted_costs(1.0, 1.0, None, what="wrong prediction among the other rows")
        'counting 1 for a label and 1 for each wrong prediction among the other rows'
    """
    costs = f"{mistake:.6g} for each {what}" if mistake is not None else f"{error:.6g} for {what}"
    return f"counting {label:.6g} for a label and {costs}"


def best_stop_sentence(counted: str, here: tuple[int, float], best: tuple[int, float], *, stopped: bool) -> str:
    """Cost of a stop, and the best stop in hindsight.

    Args:
        counted: The costs, see :func:`counted_costs`.
        here: Labels at the stop, or at the end, and the total cost there.
        best: Labels of the best stop, and the total cost there.
        stopped: Whether the rule stopped.

    Examples:
        >>> best_stop_sentence("counting 1 for a label", (143, 236.2), (201, 232.4), stopped=True)
        'In hindsight, counting 1 for a label: stopping there costs 236, and the best stop, at 201 labels, 232.'
    """
    place = "stopping there" if stopped else "the whole run"
    lead = f"In hindsight, {counted}: {place} costs {_amount(here[1])}"
    if best[0] == here[0]:
        return f"{lead}, and no other stop costs less."
    return f"{lead}, and the best stop, at {count(best[0], 'label')}, {_amount(best[1])}."


def _amount(value: float) -> str:
    return f"{round(value):,}" if 100.0 <= value < 1e9 else f"{value:.3g}"


def audit_headline(labels: int | None, rows: int, reason: str) -> str:
    """Result of an audit.

    Args:
        labels: Labels at the stop; None if there was none.
        rows: Labels in all.
        reason: Reason of the verdict there, or at the end.

    Examples:
        >>> audit_headline(143, 500, "1 more label was worth less than it costs")
        'Labelling could have stopped at 143 of 500 labels: 1 more label was worth less than it costs.'
    """
    if labels is None:
        return f"Not enough within all {rows:,} labels: {reason}."
    return f"Labelling could have stopped at {labels:,} of {rows:,} labels: {reason}."


def raise_cost_sentence(*, ratio: bool) -> str:
    """Note that more labels lower the error, and the option for this.

    Args:
        ratio: Whether the rule compares an error ratio with a threshold, and not costs.
    """
    option = "a lower --threshold" if ratio else "a higher --mistake-cost"
    return f"Measured afterwards, more labels did lower the error; {option} makes the rule ask for them."


def audit_error_sentence(error: float, at_end: float | None, rows: int, *, share: bool) -> str:
    r"""The error on the rows after the stop: of the model at the stop, and of one with all other labels.

    Examples:
        >>> audit_error_sentence(0.081, 0.069, 357, share=True).replace("\xa0", " ")
        'On the 357 rows labelled after that: 8.1 % predicted wrong at the stop, 6.9 % with all other labels.'
    """
    kind = " predicted wrong" if share else ""
    lead = f"On the {count(rows, 'row')} labelled after that{'' if share else ', typical error (root mean square)'}"
    end = "" if at_end is None else f", {_error_value(at_end, share=share)} with all other labels"
    return f"{lead}: {_error_value(error, share=share)}{kind} at the stop{end}."


def audit_orders_sentences(stops: Sequence[int | None], errors: Sequence[float], *, share: bool) -> list[str]:
    r"""Dependence of the stop on the order of the rows.

    Args:
        stops: Labels at the stop in each order; None if there was none.
        errors: The error on the rows after the stop, for the orders with a stop and such rows.
        share: Whether errors are shares of wrong predictions.

    Examples:
        >>> audit_orders_sentences([120, 143, 180], [0.07, 0.08, 0.1], share=True)[0].replace("\xa0", " ")
        'In 3 random orders of the same rows: stop at 120 to 180 labels, with 7 to 10 % of the later rows predicted wrong.'
    """  # noqa: E501 - one sentence
    found = [stop for stop in stops if stop is not None]
    orders = f"In {count(len(stops), 'random order')} of the same rows"
    if not found:
        return [f"{orders}: no stop."]
    low, high = min(found), max(found)
    said = f"{orders}: stop at {low:,}{'' if low == high else f' to {high:,}'} labels"
    if errors:
        ends = sorted((min(errors), max(errors)))
        if share:
            first, last = (f"{100.0 * each:.2g}" for each in ends)
            span = f"{first} %" if first == last else f"{first} to {last} %"
            said += f", with {span} of the later rows predicted wrong"
        else:
            first, last = (number(each) for each in ends)
            said += f", with an error of {first if first == last else f'{first} to {last}'} on the later rows"
    never = len(stops) - len(found)
    return [f"{said}.", *([f"In {never} of them there was no stop."] if never else [])]


def unlike_random_sentence() -> str:
    """Note that the stop or its error in the order of the file differs from that in random orders."""
    return "The order of the file is unlike a random one, which matters here: check whether the file is sorted."


def orders_skipped_sentence(orders: int, seconds: float) -> str:
    """Note that other orders were not measured because of the time."""
    return (
        f"How much this depends on the order was not measured: {count(orders, 'other order')} would take "
        f"{duration(seconds)}; request them with --orders {orders}."
    )


def assumed_costs_sentence(label: float, mistake: float, unlabelled: int, *, task: str) -> str:
    """The costs that a recommendation is for.

    Examples:
        >>> assumed_costs_sentence(1.0, 20.0, 5000, task="classification")
        'Costs: 1 for a label, 20 for each wrong prediction among 5,000 items.'
    """
    wrong = "wrong prediction" if task == "classification" else "prediction no better than the mean"
    return f"Costs: {label:.6g} for a label, {mistake:.6g} for each {wrong} among {count(unlabelled, 'item')}."


def expected_cost_sentence(typical: float, median: float, p90: float, mean: float) -> str:
    """Expected regret of a recommended rule."""
    return (
        f"Expected: typically {rounded_percent(typical)} more expensive than the best stop in hindsight, labels and "
        f"error together; at most {rounded_percent(median)} in half of the runs, at most {rounded_percent(p90)} in "
        f"nine of ten. (On average {rounded_percent(mean)}, mostly because of the few worst runs.)"
    )


#: Why a label at the top of the list of suspicious labels may be right.
REVIEW_NOTE: Final = (
    "The model does not expect these labels; it judges each without having learned it. Not all of them are wrong: some "
    "are correct but hard to predict. Confirm the correct ones; they are not listed again."
)


def suspicious_label_sentence(label: Any, prediction: Any, probability: float, deviation: float | None) -> str:
    r"""Prediction of the model for a label that it has not learned.

    Args:
        label: The label.
        prediction: The prediction without it.
        probability: Probability of the label; for numbers, of one at least as far from the prediction.
        deviation: For numbers the standard deviation; None for classes.

    Examples:
        >>> print(suspicious_label_sentence("ham", "spam", 0.021, None).replace("\N{NO-BREAK SPACE}", " "))
        Labelled ham; without this label the model says spam, and gives ham a probability of 2.1 %.
        >>> suspicious_label_sentence(9.5, 3.25, 0.0001, 1.5)
        'Labelled 9.5; without this label the model says 3.25, give or take 1.5.'
    """
    if deviation is not None:
        near = f"{number(float(prediction))}, give or take {number(deviation)}"
        return f"Labelled {number(float(label))}; without this label the model says {near}."
    if prediction == label:
        return f"Labelled {label}; without this label the model says the same, with {percent(probability)} probability."
    return (
        f"Labelled {label}; without this label the model says {prediction}, and gives {label} a probability of "
        f"{percent(probability)}."
    )


def review_sentence(listed: int, total: int, labels: int) -> str:
    """Number of labels to review.

    Args:
        listed: Labels that are listed.
        total: Labels that are likely wrong, according to the model.
        labels: All labels.

    Examples:
        >>> review_sentence(50, 70, 500)
        'The model finds 70 of 500 labels unlikely; the 50 least likely are listed.'
        >>> review_sentence(1, 1, 500)
        'The model finds 1 of 500 labels unlikely.'
        >>> review_sentence(0, 0, 500)
        'The model finds none of the 500 labels unlikely.'
    """
    if not total:
        return f"The model finds none of the {labels:,} labels unlikely."
    some = f"; the {listed:,} least likely are listed" if listed < total else ""
    return f"The model finds {total:,} of {labels:,} labels unlikely{some}."


def too_few_to_review_sentence(fewest: int) -> str:
    """Note that there are too few labels to find unlikely ones.

    Examples:
        >>> too_few_to_review_sentence(20)
        'Unlikely labels are listed once there are 20 labels of at least two kinds.'
    """
    return f"Unlikely labels are listed once there are {fewest} labels of at least two kinds."


def import_sentences(report: Mapping[str, Any], *, trial: bool = False) -> list[str]:
    """Result of an import.

    Args:
        report: The values of :class:`suffice.project.incoming_rows.ImportReport`.
        trial: Whether nothing was to be written.

    Examples:
        >>> names = ["opinions", "replaced", "same", "kept", "predicted", "contradictory", "in_check"]
        >>> report = dict.fromkeys(names, 0) | {"rows": 12, "matched": 10, "matched_by": "id", "labelled": 8}
        >>> report |= {"empty": 1, "unmatched": 2, "unmatched_examples": ["'x7'"], "unknown": {"egg": 1}, "same": 1}
        >>> for sentence in import_sentences(report):
        ...     print(sentence)
        10 of 12 rows belong to items, matched by id.
        Items: 8 newly labelled, 1 with this label already.
        Rows that belong to no item: 2, such as 'x7'.
        Rows without a label: 1.
        Rows with a label that cannot be used: 1 (egg 1).
    """
    matched_by = _MATCHED[report["matched_by"]]
    said = [f"{report['matched']:,} of {count(report['rows'], 'row')} belong to items, matched by {matched_by}."]
    items = [f"{report[name]:,} {words}" for name, words in _IMPORTED if report[name]]
    said += [f"Items: {', '.join(items)}."] if items else ["No item is changed."]
    if report["unmatched"]:
        some = ", ".join(report["unmatched_examples"])
        said.append(f"Rows that belong to no item: {report['unmatched']:,}, such as {some}.")
    if report["empty"]:
        said.append(f"Rows without a label: {report['empty']:,}.")
    if report["unknown"]:
        listed = _some_counts(list(report["unknown"].items()))
        said.append(f"Rows with a label that cannot be used: {sum(report['unknown'].values()):,} ({listed}).")
    return [*said, "Nothing was written: this was a trial run."] if trial else said


_MATCHED: Final = {"id": "id", "row": "their order", "text": "their text"}
# Counts of an imported file, and their descriptions.
_IMPORTED: Final = (
    ("labelled", "newly labelled"),
    ("opinions", "with a further opinion"),
    ("replaced", "with a replaced label"),
    ("same", "with this label already"),
    ("kept", "with another label, which is kept"),
    ("predicted", "with a prediction"),
    ("contradictory", "in the file with several labels, of which none is used"),
    ("in_check", "of the open check, which are left out"),
)


def prediction_sentence(
    prediction: Any, *, probability: float | None = None, deviation: float | None = None, source: str = ""
) -> str:
    r"""Prediction of a model for an item.

    Args:
        prediction: The class, or the number.
        probability: Probability of the class, if it is known.
        deviation: For numbers the standard deviation, if it is known.
        source: Name of the file that the prediction is from; empty for the project's own model.

    Examples:
        >>> print(prediction_sentence("spam", probability=0.934).replace("\N{NO-BREAK SPACE}", " "))
        The model says spam (93 %).
        >>> prediction_sentence(3.25, deviation=1.5)
        'The model says 3.25, give or take 1.5.'
        >>> prediction_sentence("ham", source="old.csv")
        'The file old.csv says ham.'
    """
    who = f"The file {source}" if source else "The model"
    what = number(float(prediction)) if isinstance(prediction, float) else str(prediction)
    near = f", give or take {number(deviation)}" if deviation is not None else ""
    return f"{who} says {what}{near}{'' if probability is None else f' ({percent(probability)})'}."


def items_added_sentences(added: int, size: int, *, trial: bool = False, guaranteed: bool = False) -> list[str]:
    """Note that items were added to a project, and the consequences.

    Args:
        added: Number of items that were added.
        size: Number of items of the project now.
        trial: Whether nothing was changed.
        guaranteed: Whether the project has a guarantee.

    Examples:
        >>> print(items_added_sentences(50, 150, guaranteed=True)[1])
        The guarantee does not cover them: draw a new check to cover all.
        >>> items_added_sentences(1, 100, trial=True)
        ['1 item would be added; the project has 100. Nothing was changed: this was a trial run.']
    """
    if trial:
        nothing = "Nothing was changed: this was a trial run."
        return [f"{count(added, 'item')} would be added; the project has {size:,}. {nothing}"]
    said = [f"{count(added, 'item')} {'was' if added == 1 else 'were'} added; the project has {size:,}."]
    return [*said, "The guarantee does not cover them: draw a new check to cover all."] if guaranteed else said


def damage_sentences(report: Mapping[str, Any], place: str) -> list[str]:
    """Result of verifying a project, and the repairs.

    Args:
        report: The result of :meth:`suffice.project.repair.DamageReport.as_dict`.
        place: The project, as it can be typed in a command.
    """
    events, items = f"{report['events']:,} events", f"{report['items']:,} items"
    if report["intact"]:
        return [f"Nothing is damaged: {events} and {items} have their checksums."]
    found = [f"{events} and {items} are verified."]
    if report["structure"]:
        found.append(f"SQLite says of the file: {report['structure']}.")
    if lost := report["lost_events"]:
        found.append(f"{_so_many(len(lost), 'event is', 'events are')} lost: {_some_numbers(lost)}.")
    if report["missing_events"]:
        missing = _so_many(report["missing_events"], "event is", "events are")
        found.append(f"{missing} missing at the end: they were acknowledged, and are not in the file.")
    if damaged := report["damaged_items"]:
        found.append(f"{_so_many(len(damaged), 'item is', 'items are')} damaged: {_some_numbers(damaged)}.")
    if report["features_damaged"]:
        found.append("The features are damaged.")
    if report["kept"]:
        found.append(f"Repaired. The damaged file is kept as {report['kept']}.")
    elif report["repaired"]:
        found.append("Repaired: the project continues with the events that are left.")
    elif report["labels_file"]:
        found.append(
            f"The project cannot be repaired. Its labels are in {report['labels_file']}: make a new project from the "
            "data, then read them with suffice import."
        )
    else:
        found.append(f"To repair it: suffice repair {place}")
    return found


def _so_many(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _some_numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"{shown} and {len(numbers) - 10:,} more" if len(numbers) > 10 else shown


def interrupted_sentence(checkpoint: str) -> str:
    """Message of an interrupted run with a checkpoint.

    Examples:
        >>> print(interrupted_sentence("run.json"))
        suffice: interrupted; the labels so far are saved in run.json. Give the same command with --checkpoint run.json
        to go on from there.
    """
    return (
        f"suffice: interrupted; the labels so far are saved in {checkpoint}. Give the same command with --checkpoint "
        f"{checkpoint} to go on from there."
    )


def memory_sentence(name: str, shape: tuple[int, int], needed: str, free: str) -> str:
    """Message for a table that does not fit into memory.

    Args:
        name: Name of the file.
        shape: Rows and columns.
        needed: Memory that it needs.
        free: Memory that is free.

    Examples:
        >>> print(memory_sentence("big.parquet", (10**9, 9), "360.0 GB", "21.5 GB"))
        big.parquet has 1,000,000,000 rows of 9 columns: to read it takes about 360.0 GB of memory, and 21.5 GB are
        free. Leave columns out of the file, take fewer rows, or use the library, which leaves a Parquet pool on disk
        or on the workers of a cluster: suffice.ActiveLearner(model, 'big.parquet')
    """
    rows, columns = shape
    return (
        f"{name} has {rows:,} rows of {columns:,} columns: to read it takes about {needed} of memory, and {free} are "
        "free. Leave columns out of the file, take fewer rows, or use the library, which leaves a Parquet pool on disk "
        f"or on the workers of a cluster: suffice.ActiveLearner(model, {name!r})"
    )
