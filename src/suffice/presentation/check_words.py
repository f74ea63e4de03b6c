"""Sentences about random checks: offers, progress, and guarantees."""

from collections.abc import Mapping
from typing import Any, Final

from suffice.presentation.text_format import (
    count,
    duration,
    number,
    number_at_most,
    percent,
    percent_at_least,
    percent_at_most,
    shortened,
    two_digits,
)

# A check with a lower probability of success is not recommended.
_UNLIKELY: Final = 0.5
# With fewer answers, their wrong ones say little about all predictions.
_TELLING: Final = 50


def guarantee_sentences(guarantee: Mapping[str, Any]) -> list[str]:
    """Guarantee of a check, and the model that it is about.

    Args:
        guarantee: The result of :meth:`suffice.checks.Guarantee.to_dict`. If the guarantee is not about the current
            model, also ``about_present_model``, which is False, and ``n_labelled``, the labels of the checked model.
            If it is about other classes, also ``classes_since``: ``"merged"`` or ``"changed"``.
            If items were added since the check was drawn, also ``added``, their number.

    Examples:
        >>> guarantee = {"statement": "At most 5 % of the predictions for the 4,618 unlabelled items are wrong."}
        >>> guarantee_sentences(guarantee)
        ['Guaranteed: at most 5 % of the predictions for the 4,618 unlabelled items are wrong.']
        >>> print(guarantee_sentences({**guarantee, "about_present_model": False, "n_labelled": 300})[1])
        This is about the model at 300 labels; its predictions are exported as checked_predictions. The current model \
is different and has no guarantee until it is checked.
        >>> earlier = {**guarantee, "about_present_model": False, "n_labelled": 300, "quantity": "error"}
        >>> print(guarantee_sentences({**earlier, "classes_since": "merged"})[1].partition(". ")[0])
        This is about the model at 300 labels and the classes of that time; classes were merged since, which can only \
lower the share of wrong predictions; its predictions are exported as checked_predictions
        >>> print(guarantee_sentences({**guarantee, "about_present_model": False, "n_labelled": 300, "added": 50})[2])
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
        f"{about}; its predictions are exported as checked_predictions. The current model is different and has no "
        "guarantee until it is checked.",
        *later,
    ]


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
        check: ``state``, ``size`` and ``answered``; ``proves``, whether a check that is complete proves something. Of a
            sequential check ``sequential``, its progress, with ``pool`` and ``of``.

    Examples:
        >>> print(check_sentence({"state": "open", "size": 100, "answered": 37, "proves": False}))
        Check: 37 of 100 random items answered. The guarantee is stated when all are answered.
        >>> progress = {"state": "open", "answered": 100, "wrong": 7, "needed": 150, "allowed": 150}
        >>> print(check_sentence({"sequential": progress, "pool": 3000, "of": "rest"}))
        Check: 100 answers, 7 wrong predictions. The target is proven if the next 150 predictions are all right. So far
        more predictions are wrong than the target allows: if this continues, it will not be proven.
    """
    if check.get("sequential") is not None:
        return sequential_words(check["sequential"]) + _doubt(check)
    if check["state"] == "open":
        done = f"{check['answered']:,} of {count(check['size'], 'random item')} answered"
        return f"Check: {done}. The guarantee is stated when all are answered."
    if check["state"] == "aborted":
        return "The last check was aborted: it proves nothing."
    if check["state"] == "complete" and not check["proves"]:
        return "The check is complete and proves nothing: too many of its items could not be labelled."
    return ""


def _doubt(check: Mapping[str, Any]) -> str:
    """A sentence if the answers of an open check speak against its target; a goal about all labels corrects them."""
    progress = check["sequential"]
    if progress["state"] != "open" or check["of"] == "all" or progress["answered"] < _TELLING:
        return ""
    if progress["wrong"] * check["pool"] <= progress["allowed"] * progress["answered"]:
        return ""
    return " So far more predictions are wrong than the target allows: if this continues, it will not be proven."


def sequential_words(check: Mapping[str, Any]) -> str:
    """Progress of a sequential check; empty if its target is proven.

    Args:
        check: ``state``, ``answered``, ``wrong``, ``needed`` (answers that prove the target if none is wrong) and
            ``allowed`` (wrong items that the target allows); in a screening also ``class_name``, the class whose items
            count as wrong.

    Examples:
        >>> check = {"state": "open", "answered": 62, "wrong": 1, "needed": 11, "allowed": 150}
        >>> print(sequential_words(check))
        Check: 62 answers, 1 wrong prediction. The target is proven if the next 11 predictions are all right.
        >>> print(sequential_words({**check, "needed": 1}))
        Check: 62 answers, 1 wrong prediction. The target is proven if the next prediction is right.
        >>> print(sequential_words({**check, "state": "given up"}))
        The check was given up after 62 answers: it proves nothing.
        >>> print(sequential_words({**check, "class_name": "yes"}))
        Check: 62 answers, 1 of class 'yes'. The target is proven if none of the next 11 is of the class.
    """
    answered = count(check["answered"], "answer")
    if check["state"] in ("given up", "aborted"):
        return f"The check was given up after {answered}: it proves nothing."
    name = check.get("class_name")
    of_class = "" if name is None else f"{check['wrong']:,} of class {shortened(str(name), 40)!r}"
    found = f"Check: {answered}, {of_class or count(check['wrong'], 'wrong prediction')}."
    if check["state"] == "failed":
        return f"{found} That is too many: the check cannot prove its target any more."
    if check["state"] != "open":
        return ""
    if name is None:
        right = "prediction is right" if check["needed"] == 1 else f"{check['needed']:,} predictions are all right"
        return f"{found} The target is proven if the next {right}."
    if check["needed"] == 1:
        return f"{found} The target is proven if the next one is not of the class."
    return f"{found} The target is proven if none of the next {check['needed']:,} is of the class."


def sequential_target_words(check: Mapping[str, Any]) -> str:
    r"""The target of a sequential check, as a part of a sentence.

    Args:
        check: ``at_most``, ``of``, ``tolerance``, ``quantity`` and ``class_name``.

    Examples:
        >>> check = {"at_most": 0.05, "of": "all", "tolerance": None, "quantity": "error", "class_name": None}
        >>> sequential_target_words(check).replace("\xa0", " ")
        'at most 5 % of all labels wrong'
        >>> sequential_target_words({**check, "quantity": "recall", "class_name": "yes"}).replace("\xa0", " ")
        "at most 5 % of class 'yes' missed"
    """
    most, tolerance = f"at most {percent_at_most(check['at_most'])}", check["tolerance"]
    if check["quantity"] == "recall":
        return f"{most} of class {shortened(str(check['class_name']), 40)!r} missed"
    fault = "wrong" if tolerance is None else f"off by more than {number(tolerance)}"
    return f"{most} {'of all labels ' if check['of'] == 'all' else ''}{fault}"


def how_to_answer(check: Mapping[str, Any]) -> str:
    """How to answer the items of a check.

    Args:
        check: ``quantity`` and ``predicted_as_found``.

    Examples:
        >>> print(how_to_answer({"quantity": "error", "predicted_as_found": True}))
        These items are drawn at random, without the model's prediction. Skip one only if it cannot be answered: it then
        counts as predicted wrong.
    """
    screening = check["quantity"] == "recall" and not check["predicted_as_found"]
    counts = "counts as an item of the class" if screening else "counts as predicted wrong"
    drawn = "These items are drawn at random, without the model's prediction."
    return f"{drawn} Skip one only if it cannot be answered: it then {counts}."


def sequential_offer_sentences(offer: Mapping[str, Any]) -> list[str]:
    r"""What a sequential check is to prove, and the least number of answers that it needs.

    Args:
        offer: ``at_most``, ``tolerance``, ``pool``, ``allowed``, ``least``, ``expected`` and ``check`` (its ``size``,
            ``low``, ``high`` and ``success``); see :class:`suffice.project.sequential_offer.SequentialOffer`.

    Examples:
        >>> offer = {"at_most": 0.05, "tolerance": None, "pool": 1460, "allowed": 73, "least": 72, "expected": 0.02,
        ...     "check": {"size": 180, "low": 100, "high": 480, "success": 0.93}}
        >>> print(*sequential_offer_sentences(offer), sep="\n")
        The check ends by itself when it is proven that at most 73 of the 1,460 unlabelled items are predicted wrong. It
        takes about 180 answers (100 to 480) and succeeds with a probability of 93 %. At least 72 are needed.
        >>> print(sequential_offer_sentences({**offer, "expected": 0.08})[1])
        About 8 % are wrong by the estimate. That is more than 5 %, so the check would probably not prove it: label more
        items first, or write a larger share.
    """
    tolerance = offer["tolerance"]
    wrong = "predicted wrong" if tolerance is None else f"predicted with an error of more than {number(tolerance)}"
    verb, check = "is" if offer["least"] == 1 else "are", offer["check"]
    proven = f"at most {offer['allowed']:,} of the {count(offer['pool'], 'unlabelled item')} are {wrong}"
    takes = f"At least {count(offer['least'], 'answer')} {verb} needed."
    if check["success"] >= _UNLIKELY:
        size, low, high = (two_digits(check[name], offer["pool"]) for name in ("size", "low", "high"))
        takes = (
            f"It takes about {count(size, 'answer')} ({low:,} to {high:,}) and succeeds with a probability of "
            f"{percent(check['success'])}. At least {offer['least']:,} {verb} needed."
        )
    sentences = [f"The check ends by itself when it is proven that {proven}. {takes}"]
    if offer["expected"] > offer["at_most"]:
        sentences.append(
            f"About {percent(offer['expected'])} are wrong by the estimate. That is more than "
            f"{percent_at_most(offer['at_most'])}, so the check would probably not prove it: label more items first, "
            "or write a larger share."
        )
    return [sentence.replace("\u00a0", " ") for sentence in sentences]


def later_check_sentence(number_of: int, share: float, first_share: float, *, items: str) -> str:
    """What starting another check of the same items means; empty for the first.

    Args:
        number_of: Number of the check among those of these items, from 1.
        share: Its share of the error probability.
        first_share: That of the first check.
        items: What is checked, such as "items" or "rows".

    Examples:
        >>> print(later_check_sentence(2, 0.05 / 6.0, 0.025, items="rows"))
        This is check 2 of these rows: its share of the error probability is 0.83 %, after 2.5 % for the first, so it
        takes more answers. What was proven before stays proven.
    """
    if number_of == 1:
        return ""
    shares = f"{percent(share)}, after {percent(first_share)} for the first".replace("\u00a0", " ")
    return (
        f"This is check {number_of} of these {items}: its share of the error probability is {shares}, so it takes more "
        "answers. What was proven before stays proven."
    )


def checks_sentences(
    guarantee: Mapping[str, Any] | None, check: Mapping[str, Any] | None, *, open_told: bool = False
) -> tuple[list[str], list[str]]:
    """Return the sentences about checks before the decision, and those after it.

    A guarantee of the current model is first, and one of an earlier model last.

    Args:
        guarantee: As for :func:`guarantee_sentences`, or with its ``sentences``; or None.
        check: The newest check, as for :func:`check_sentence`, or None.
        open_told: Whether the decision says that the check is open.
    """
    first: list[str] = []
    last: list[str] = []
    if guarantee is not None:
        # A statement about all final labels does not depend on the current model.
        present = guarantee["about_present_model"] or guarantee.get("corrected", False)
        (first if present else last).extend(guarantee.get("sentences") or guarantee_sentences(guarantee))
    already_stated = open_told and check is not None and check["state"] == "open"
    if check is not None and not already_stated and (sentence := check_sentence(check)):
        (last if check["state"] == "aborted" else first).append(sentence)
    return first, last


def check_offer_sentences(offers: Mapping[str, Any]) -> list[str]:
    r"""Likely guarantees of checks of several sizes, and their costs.

    Args:
        offers: ``pool``, ``expected``, ``confidence``, ``probability``, ``tolerance``, ``offers`` (each with ``size``
            and ``at_most``), ``at_most``, ``target_check`` (``size``, ``low``, ``high`` and ``success``, or None) and
            ``seconds``; see
            :class:`suffice.project.check_offers.CheckOffers`.

    Examples:
        >>> sentences = check_offer_sentences({"pool": 4600, "expected": 0.02, "confidence": 0.95, "probability": 0.8,
        ...     "tolerance": None, "offers": [{"size": 100, "at_most": 0.0858}], "at_most": 0.05,
        ...     "target_check": {"size": 290, "low": 140, "high": 800, "success": 0.93}, "seconds": 4.0})
        >>> print(*sentences, sep="\n")
        A check draws unlabelled items at random. When they are labelled, it guarantees how many predictions are wrong.
        Estimate: about 2 % of the predictions for the 4,600 unlabelled items are wrong. If so, a check has an
        80 % chance of guaranteeing, with 95 % confidence:
        - 100 labels (about 7 minutes): at most 8.6 % are wrong.
        A check until at most 5 % is proven, your target, takes about 290 labels (140 to 800; about 19 minutes), and
        succeeds with a probability of 93 %.
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
    sentences = [
        draws,
        f"Estimate: about {share} of the predictions for the {pool} are {wrong}. If so, a check has an "
        f"{percent(offers['probability'])} chance of guaranteeing, with {sure} confidence:",
    ]
    sentences += [f"- {row['cost']}: {row['words']}." for row in rows]
    if words := target_check_words(offers):
        sentences.append(words)
    return [sentence.replace("\u00a0", " ") for sentence in [*sentences, "The model learns these labels afterwards."]]


def check_offer_rows(offers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each check that is offered: its ``size``, ``cost`` and likely guarantee, ``words``, smallest first.

    The argument is that of :func:`check_offer_sentences`.
    """
    wrong = "wrong" if offers["tolerance"] is None else f"off by more than {number(offers['tolerance'])}"
    rows = {offer["size"]: f"at most {percent_at_most(offer['at_most'])} are {wrong}" for offer in offers["offers"]}
    return [
        {"size": size, "cost": _label_time(size, offers["seconds"]), "words": rows[size].replace("\u00a0", " ")}
        for size in sorted(rows)
    ]


def target_check_words(offers: Mapping[str, Any]) -> str:
    """What a check for the target takes; empty without a target. The argument is that of check_offer_sentences."""
    check = offers["target_check"]
    if check is None:
        return ""
    size, low, high = (two_digits(check[name], offers["pool"]) for name in ("size", "low", "high"))
    time = "" if offers["seconds"] is None else f"; about {duration(size * offers['seconds'])}"
    takes = f"takes about {count(size, 'label')} ({low:,} to {high:,}{time})"
    lead = f"A check until at most {percent_at_most(offers['at_most'])} is proven, your target, {takes}"
    words = f"{lead}, and succeeds with a probability of {percent(check['success'])}."
    if check["success"] < _UNLIKELY:
        words = f"{lead}, and is not likely to succeed: label more items first."
    return words.replace("\u00a0", " ")


def class_offer_sentences(offers: Mapping[str, Any]) -> list[str]:
    r"""Cost of a check of the recall or precision of a class.

    Args:
        offers: ``quantity``, ``class_name``, ``pool``, ``expected``, ``confidence`` and ``offers`` (each with
            ``at_least`` and ``size``); see :class:`suffice.project.check_offers.ClassOffers`.

    Examples:
        >>> sentences = class_offer_sentences({"quantity": "recall", "class_name": "spam", "pool": 4000, "expected": 3,
        ...     "confidence": 0.95, "offers": [{"at_least": 0.9, "size": 1200}, {"at_least": 0.95, "size": None}]})
        >>> print(*sentences, sep="\n")
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
        f"- at least {percent_at_least(offer['at_least'])}: "
        + (
            f"not achievable without labelling all {pool}."
            if offer["size"] is None
            else f"{offer['size']:,} of {pool}."
        )
        for offer in offers["offers"]
    ]
    return [line.replace("\u00a0", " ") for line in (f"The model's own estimate: {lead}. {what}", *rows)]


def class_offer_rows(offers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each possible check of a class: its ``size``, its ``cost``, and its likely guarantee, ``words``.

    The argument is that of :func:`class_offer_sentences`.
    """
    name = repr(shortened(str(offers["class_name"]), 40))
    counted = "found" if not offers.get("predicted_as_found", True) else "labelled or predicted as such"
    what = f"of the items of class {name} are {counted}"
    if offers["quantity"] == "precision":
        what = f"of the items predicted as {name} belong to it"
    rows: dict[int, str] = {}
    for offer in offers["offers"]:
        if offer["size"] is not None:
            rows[offer["size"]] = f"likely to guarantee that at least {percent_at_least(offer['at_least'])} {what}"
    return [
        {"size": size, "cost": f"{size:,} of {count(offers['pool'], 'unlabelled item')}", "words": words}
        for size, words in sorted(rows.items())
    ]


def _label_time(labels: int, seconds: float | None) -> str:
    time = "" if seconds is None else f" (about {duration(labels * seconds)})"
    return f"{count(labels, 'label')}{time}"
