"""A decision in words: headline, sentences and figures, the same in all places that show it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from suffice.presentation.check_words import guarantee_sentences
from suffice.presentation.error_words import error_figure, error_value, error_words
from suffice.presentation.finish_words import finish_words
from suffice.presentation.plan_words import (
    NOT_LEARNED,
    forecast_sentence,
    labels_to_give,
    more_labels,
    no_check_sentence,
    outlook,
    plan_sentence,
)
from suffice.presentation.rule_words import RANKED_LAST, RATIO_RULE, WORTH_RULES
from suffice.presentation.text_format import (
    as_sentence,
    count,
    is_or_are,
    number,
    percent,
    percents,
    shortened,
    two_digits,
    two_digits_of,
)

#: The answers that are reasons to stop.
STOPS: Final = frozenset({"enough", "limit", "complete"})
#: Used in place of the name of the rule while a model learns the labels of a project again.
CATCHING_UP: Final = "BackgroundLearner"
_LEARNING: Final = "The model is being prepared"
#: The name under which a learner gives a verdict in place of its rule: before the model starts, and at the pool's end.
_LEARNER: Final = "ActiveLearner"
#: Names in place of the name of a rule, while no rule gives the verdict.
NO_RULES: Final = frozenset({CATCHING_UP, _LEARNER})
_HEADLINES: Final = {
    "too early": ("Too early to say", "quiet"),
    "keep going": ("Keep labelling", "on"),
    "enough": ("You can stop now", "good"),
    "limit": ("More labels will not help this model much", "limit"),
    # Nothing is left to predict, so there is no error to show.
    "complete": ("Nothing is left to label", "quiet"),
}
#: Headline of a stop with a large error; its colour is not green.
NOT_WORTH: Final = "More labels are not worth their cost"
_OUT_OF_REACH: Final = "Your target is out of reach for this model"
# What a sentence about a withdrawn stop states for each cause.
_CAUSES: Final = {
    "worth": "1 more label is now worth more than it costs",
    "class": "class {name} is new",
    "corrected": "a label was corrected",
    "removed": "labels were removed",
    "relearned": "the model has learned its hyper-parameters again",
    "guarantee": "the model has learned more labels since, and the guarantee is about the model before",
    "model": "the model was fitted again",
    "items": "items were added",
    "switched": "another model was chosen",
    "settings": "the settings were changed",
}
# A share below this one is not stated in percent. The predictions find a rare class well from this recall on.
_SMALL_SHARE: Final = 0.005
_GOOD_RECALL: Final = 0.8
_EXTRAPOLATED: Final = (
    "This is extrapolated: it assumes that the error continues to fall as before. After these labels, more would not "
    "be worth their cost."
)


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
        next_step: What comes next, in a few words after the headline; empty if the headline says it.
        remedy: Why the error is too large and what to try, if the answer is that the model has reached its limit; of
            a screening that can stop, what only a random check covers.
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
    next_step: str = ""


def decision_words(decision: Mapping[str, Any], *, initial: int = 0) -> DecisionWords:
    r"""A decision in words.

    Args:
        decision: The result of :meth:`suffice.session.decision.Decision.as_dict`.
        initial: Number of labels with which the model starts.

    Examples:
        >>> error = {"value": 0.061, "low": 0.04, "high": 0.09, "random_labels": 30}
        >>> words = decision_words({"answer": "enough", "n_labelled": 300, "unlabelled": 4618, "share": True,
        ...     "since": 283, "error": error, "rule": "LabelWorth"})
        >>> print(words.headline, *words.sentences, words.error_figure.replace("\xa0", " "), sep="\n")
        You can stop now
        You can stop now: about 6 % of the 4,618 unlabelled items are predicted wrong (estimate; probably 4 to 9 %).
        More labels are not worth their cost: each further label is expected to avoid too few wrong predictions.
        The rule first said so at 283 labels.
        6 %
    """
    answer = decision["answer"]
    if decision.get("of") == "all" and answer != "too early":
        return _data_set_words(decision)
    if decision.get("screening") is not None and answer in ("keep going", "enough"):
        return _screening_words(decision)
    headline, tone = _HEADLINES[answer]
    planned = decision.get("plan")
    if answer == "too early" and decision.get("rule") == CATCHING_UP and not _missing(decision, initial):
        headline = _LEARNING
    if answer == "enough" and decision.get("target_guaranteed"):
        headline = "Your target is guaranteed"
    elif answer == "enough" and decision.get("large_error"):
        headline, tone = NOT_WORTH, "limit"
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
    figure, note = ("", "") if answer == "complete" else error_figure(decision)
    if tone == "good" and not figure:
        tone = "quiet"
    effect = outlook(decision)
    by_forecast = effect and decision.get("forecast") is not None
    outlook_note = _EXTRAPOLATED if by_forecast else _outlook_note(decision, sentences)
    summary = as_sentence(sentences[0].removeprefix(f"{headline}: "))
    remedy = " ".join(_remedy_sentences(decision)) if answer == "limit" else ""
    better = better_model_sentence(decision)
    added = [*_change_sentences(decision), *_rare_sentences(decision), *([better] if better else [])]
    sentences = [*_guarantee_sentences(decision), *sentences, *added]
    step = next_step(decision, initial=initial)
    return DecisionWords(headline, tone, sentences, figure, note, effect, outlook_note, summary, remedy, step)


def next_step(decision: Mapping[str, Any], *, initial: int = 0) -> str:
    r"""What comes next, in a few words after the headline; empty if the headline says it, or if it is not known.

    Args:
        decision: As for :func:`decision_words`.
        initial: As for :func:`decision_words`.

    Examples:
        >>> plan = {"expected_total": 118, "check_now": False, "more_labels": 32}
        >>> next_step({"answer": "keep going", "plan": plan})
        'about 32 more labels, then a check'
        >>> next_step({"answer": "keep going", "forecast": {"labels": 401, "low": 73, "high": 1177}})
        'about 400 more labels (73 to 1,200)'
        >>> next_step({"answer": "too early", "n_labelled": 6, "unlabelled": 90}, initial=10)
        '4 more labels, then the model starts'
    """
    if decision["answer"] == "too early":
        missing = min(initial, decision["n_labelled"] + decision["unlabelled"]) - decision["n_labelled"]
        return f"{count(missing, 'more label')}, then the model starts" if missing > 0 else ""
    if decision["answer"] != "keep going" or decision.get("check_pending"):
        return ""
    planned = decision.get("finish") or decision.get("plan")
    if planned is not None:
        if planned["check_now"] or not planned.get("more_labels"):
            return ""
        return f"about {count(two_digits(planned['more_labels']), 'more label')}, then a check"
    predictable = decision.get("forecast") is not None and not decision.get("held_back")
    labels, low, high = labels_to_give(decision) if predictable else (0, 0, 0)
    rest = decision.get("unlabelled", math.inf)
    return more_labels(labels, low, high) if 0 < labels < rest else ""


def _data_set_words(decision: Mapping[str, Any]) -> DecisionWords:
    """The decision for a goal about all final labels in words."""
    headline, tone, sentences = finish_words(decision)
    figure, note = ("", "") if decision["answer"] in ("enough", "complete") else error_figure(decision)
    if decision.get("screening") is not None and decision["answer"] == "keep going":
        figure, note = _found_figure(decision)
    summary = as_sentence(sentences[0].removeprefix(f"{headline}: "))
    return DecisionWords(
        headline,
        tone,
        sentences,
        figure,
        note,
        summary=summary,
        outlook_note=" ".join(sentences[1:]),
        next_step=next_step(decision),
    )


def _screening_words(decision: Mapping[str, Any]) -> DecisionWords:
    """The decision of a screening in words."""
    screening, screened = decision["screening"], decision["n_labelled"]
    size, n_found = screened + decision["unlabelled"], screening["found"]
    relevant = count(_about_all(screening), "relevant item")
    progress = f"{n_found:,} of about {relevant} {is_or_are(n_found)} found (estimate)"
    done, uncovered = f"{screened:,} of {count(size, 'item')} {is_or_are(screened)} screened", ""
    if decision["answer"] == "keep going" and decision.get("check_pending"):
        headline, tone = "A check is running", "on"
        pending = decision["check_pending"]
        waiting = f"{count(pending, 'item')} of it {is_or_are(pending)} not yet labelled"
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
            uncovered = as_sentence(RANKED_LAST)
            sentences += [f"By the rule {decision['rule']}, {wanted}, which is no guarantee.", uncovered]
        if decision.get("since") is not None and decision["since"] < screened:
            sentences.append(f"The rule first said so at {count(decision['since'], 'label')}.")
    figure, note = _found_figure(decision)
    next_ones = "The likeliest items come first, so the next ones are less often relevant than those so far."
    # The sentences say already what the stop does not cover.
    reason = decision.get("reason", "").removesuffix(f"; {RANKED_LAST}")
    judged = f"The rule {decision['rule']}: {as_sentence(reason)}" if reason else ""
    summary = as_sentence(sentences[0].removeprefix(f"{headline}: "))
    return DecisionWords(
        headline,
        tone,
        [*_guarantee_sentences(decision), *sentences],
        figure,
        note,
        outlook_note=f"{next_ones} {judged}".rstrip(),
        summary=summary,
        remedy=uncovered,
    )


def _found_figure(decision: Mapping[str, Any]) -> tuple[str, str]:
    """Items of the class that are found, of the estimated number of all, as a figure; and a note."""
    screening, screened = decision["screening"], decision["n_labelled"]
    size, about = screened + decision["unlabelled"], _about_all(screening)
    note = f"of {shortened(str(screening['positive']), 20)} found (estimate), {screened:,} of {size:,} screened"
    return f"{screening['found']:,} of ≈ {about:,}", note


def _about_all(screening: Mapping[str, Any]) -> int:
    """The estimated number of all items of the class, in two digits."""
    return max(int(screening["found"]), two_digits(round(screening["estimated"])))


def _change_sentences(decision: Mapping[str, Any]) -> list[str]:
    """Why the last stop was withdrawn; empty if none was, or if a stop stands again."""
    withdrawn = decision.get("withdrawn")
    return [] if withdrawn is None else [withdrawal_sentence(withdrawn)]


def _rare_sentences(decision: Mapping[str, Any]) -> list[str]:
    """How much of a rare class the predictions find; empty if no class is rare, or nothing is left to predict."""
    rare = decision.get("rare_class")
    known = rare is not None and decision["answer"] in ("keep going", "enough", "limit")
    return rare_class_sentences(rare) if known and rare is not None else []


def _guarantee_sentences(decision: Mapping[str, Any]) -> list[str]:
    """Guarantee for the predictions of the current model; empty if there is none."""
    guarantee = decision.get("guarantee")
    return [] if guarantee is None else guarantee_sentences(guarantee)


def _outlook_note(decision: Mapping[str, Any], sentences: Sequence[str]) -> str:
    """Effect of more labels in words, if there are no figures; the sentences are those of the decision."""
    answer = decision["answer"]
    if answer == "too early":
        return "This is known once the model has learned a few labels."
    if answer == "complete":
        return "There are no more labels to give."
    return sentences[1] if answer == "keep going" else next(iter(_stop_reasons(decision)), "")


def _error_or(decision: Mapping[str, Any], otherwise: str) -> str:
    return error_words(decision) or otherwise


def _missing(decision: Mapping[str, Any], initial: int) -> int:
    """Number of labels that are needed before the model starts."""
    return max(0, min(initial, int(decision["n_labelled"] + decision["unlabelled"])) - int(decision["n_labelled"]))


def _too_early_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    missing = _missing(decision, initial)
    if missing:
        needed = f"{count(missing, 'more label')} {is_or_are(missing)} needed"
        return [f"Too early to say: {needed} before the model starts."]
    if decision.get("rule") == CATCHING_UP:
        return [f"{_LEARNING}: {decision['reason']}. You can continue to label meanwhile."]
    if decision.get("far_behind"):
        learned = decision["n_labelled"]
        total = count(learned + decision["not_learned"], "label")
        return [f"Too early to say: the model has learned {learned:,} of the {total}.", NOT_LEARNED]
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
        return [first, plan_sentence(planned, decision["unlabelled"])]
    if decision.get("target_missed"):
        missed = f"The check has not shown your target of at most {percent(decision['at_most'])}"
        return [first, f"{missed}. Continue to label: the model learns the labels of the check first."]
    if planned is not None:
        return [first, no_check_sentence(planned)]
    held = decision.get("held_back")
    if held is not None:
        unless = f"If it may be missed, declare {shortened(held['name'], 40)!r} as a class that may be missed."
        return [first, f"The rule says stop, but {held_back_reason(held)}.", unless]
    return [first, _doubt_sentence(decision) or forecast_sentence(decision)]


def held_back_reason(held: Mapping[str, Any]) -> str:
    """Reason why a stop is held back by a rare class, after "the rule says stop, but".

    Args:
        held: The fields of :class:`suffice.session.standing_stop.ScarceClass`.

    Examples:
        >>> print(held_back_reason({"name": "spam", "labels": 2, "wanted": 5, "until": 628}))
        only 2 labels of class 'spam' are known; it waits for 5 of them, or for 628 labels in all
    """
    n, name = held["labels"], shortened(str(held["name"]), 40)
    known = {0: f"no label of class {name!r} is", 1: f"only 1 label of class {name!r} is"}.get(
        n, f"only {n} labels of class {name!r} are"
    )
    return f"{known} known; it waits for {held['wanted']} of them, or for {count(held['until'], 'label')} in all"


def withdrawal_sentence(withdrawn: Mapping[str, Any]) -> str:
    """Why a stop was withdrawn.

    Args:
        withdrawn: The fields of :class:`suffice.session.standing_stop.StopWithdrawal`.

    Examples:
        >>> print(withdrawal_sentence({"stopped_at": 120, "withdrawn_at": 134, "cause": "worth", "ratio": 2.13}))
        The advice to stop at 120 labels was withdrawn at 134, because 1 more label is now worth 2.1 times its cost.
    """
    cause, ratio = withdrawn["cause"], withdrawn.get("ratio")
    said = _CAUSES[cause].format(name=repr(shortened(str(withdrawn.get("class_name")), 40)))
    if ratio is not None and ratio > 1.0 and cause not in ("class", "guarantee"):
        worth = f"1 more label is now worth {two_digits_of(ratio)} times its cost"
        said = worth if cause == "worth" else f"{said}, and {worth}"
    at = count(withdrawn["stopped_at"], "label")
    return f"The advice to stop at {at} was withdrawn at {withdrawn['withdrawn_at']:,}, because {said}."


def _rare_share(rare: Mapping[str, Any]) -> str:
    """The estimated share of a rare class, with its interval if that is known."""
    if rare["share"] < _SMALL_SHARE:
        return f"below {percent(_SMALL_SHARE)} of the items"
    if rare.get("low") is None:
        return f"about {percent(rare['share'])} of the items"
    share, low, high = percents(rare["share"], rare["low"], rare["high"])
    return f"about {share}\u00a0% of the items (estimate; probably {low} to {high}\u00a0%)"


def rare_class_sentences(rare: Mapping[str, Any]) -> list[str]:
    r"""How much of a rare class the predictions find, and what to do if that is too little.

    Args:
        rare: The fields of :class:`suffice.session.decision.RareClass`.

    Examples:
        >>> rare = {"name": "spam", "labels": 12, "share": 0.02, "recall": 0.42, "low": 0.012, "high": 0.034}
        >>> for sentence in rare_class_sentences(rare)[0].replace("\xa0", " ").split(". "):
        ...     print(sentence)
        Class 'spam' is rare: about 2.0 % of the items (estimate; probably 1.2 to 3.4 %), 12 labels so far
        The predictions find about 42 % of its unlabelled items (estimate).
    """
    name, recall = repr(shortened(str(rare["name"]), 40)), rare["recall"]
    sentence = f"Class {name} is rare: {_rare_share(rare)}, {count(rare['labels'], 'label')} so far."
    if recall is None:
        known = "It is not known how many of its unlabelled items the predictions find."
    else:
        part = "almost none" if recall < _SMALL_SHARE else f"about {percent(recall)}"
        known = f"The predictions find {part} of its unlabelled items (estimate)."
    if recall is not None and recall >= _GOOD_RECALL:
        return [f"{sentence} {known}"]
    screen = f"make a project with --positive {name}, which asks for the likeliest ones first, and import these labels"
    return [f"{sentence} {known}", f"If its items matter, screen for them: {screen}."]


def _doubt_sentence(decision: Mapping[str, Any]) -> str:
    """Reason to continue because of a target, although the rule says stop; empty if it does not."""
    if decision.get("since") is None:
        return ""
    alternative = decision.get("alternative")
    if alternative is not None and not alternative["clear"]:
        return f"{_alternative_sentence(decision, alternative)} More labels will show whether that is chance."
    asked = error_value(decision["at_most"], share=decision["share"])
    return f"The error is still above your target of at most {asked}; more labels will show whether it falls."


def _enough_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    error = _error_or(decision, "the rule says stop")
    if decision.get("target_guaranteed"):
        asked = f"you asked for at most {percent(decision['at_most'])} of wrong predictions"
        return [
            f"Your target is guaranteed: {asked}; {error}.",
            "Export the predictions now: more labels change the model, and a guarantee is about predictions as they "
            "are now.",
        ]
    if decision.get("large_error"):
        reasons = [as_sentence(reason.removeprefix(f"{NOT_WORTH}: ")) for reason in _stop_reasons(decision)]
        remedy = "try other features or another model"
        if decision["rule"] in WORTH_RULES:
            remedy = f"say that a wrong prediction costs more, or {remedy}"
        return [f"{NOT_WORTH}: {error}.", *reasons, f"If this error is too large for you, {remedy}."]
    return [f"You can stop now: {error}.", *_stop_reasons(decision)]


def _stop_reasons(decision: Mapping[str, Any]) -> list[str]:
    reason, reasons = decision.get("reason", ""), []
    if decision["rule"] == RATIO_RULE:
        reasons.append("The last labels changed the model so little that the stopping rule says stop.")
    elif decision["rule"] in WORTH_RULES:
        reasons.append(_worth_sentence(decision))
    elif reason:
        reasons.append(as_sentence(reason))
    since = decision.get("since")
    if since is not None and since < decision["n_labelled"]:
        reasons.append(f"The rule first said so at {count(since, 'label')}.")
    return reasons


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
    per_label = avoided if wrong is None else min(avoided, wrong)
    few = "less than 0.01" if per_label < 0.01 else f"about {two_digits_of(per_label)}"
    if two_digits_of(per_label) == two_digits_of(price):
        # Rounded, the numbers are equal.
        few = f"less than {two_digits_of(price)}"
    predictions = "wrong prediction" if few.endswith(" 1") else "wrong predictions"
    return (
        f"More labels are not worth their cost: 1 more label would avoid {few} {predictions}, and it costs as much "
        f"as {two_digits_of(price)}."
    )


def _limit_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    # An error above the one asked for does not mean that the model cannot learn more.
    lead = _HEADLINES["limit"][0] if _model_at_limit(decision) else _OUT_OF_REACH
    first = f"{lead}: {_error_or(decision, 'the error does not fall any more')}."
    return [first, *_remedy_sentences(decision), *_stop_reasons(decision)]


def _model_at_limit(decision: Mapping[str, Any]) -> bool:
    """Whether the model is the reason for the answer "limit", and not the target alone."""
    target = decision.get("above_target") or decision.get("target_out_of_reach")
    return decision.get("alternative") is not None or not target


def _remedy_sentences(decision: Mapping[str, Any]) -> list[str]:
    """Why the error is too large, and what to try."""
    sentences = []
    target = decision.get("at_most") or 0.0
    if decision.get("above_target"):
        asked, error = (error_value(value, share=decision["share"]) for value in (target, decision["error"]["value"]))
        sentences.append(f"You asked for at most {asked}{', which is slightly less' if asked == error else ''}.")
    if decision.get("target_out_of_reach") and decision["share"]:
        sentences.append(f"A check has shown that more than {percent(target)} of its predictions are wrong.")
    if decision.get("hardly_better"):
        baseline, common = decision["baseline"], decision.get("common")
        if decision["share"]:
            sentences.append(f"Always predicting {shortened(str(common), 40)} would be wrong on {percent(baseline)}.")
        else:
            sentences.append(f"Always predicting the mean of the labels would be off by {number(baseline)}.")
    alternative = decision.get("alternative")
    if alternative is None and not decision.get("hardly_better"):
        sentences.append("A higher cost of a wrong prediction leads to more labels; another model may need fewer.")
    elif alternative is None:
        sentences.append("Try other features or another model.")
    else:
        sentences.append(_switch_sentence(decision, alternative))
    return sentences


def better_model_sentence(decision: Mapping[str, Any]) -> str:
    """The clearly better model of a decision to keep labelling, with what a switch gains; empty if there is none."""
    alternative = decision.get("alternative")
    if alternative is None or not alternative["clear"] or decision["answer"] != "keep going":
        return ""
    return _switch_sentence(decision, alternative)


def _switch_sentence(decision: Mapping[str, Any], alternative: Mapping[str, Any]) -> str:
    """A better model, what a switch to it gains, and that the labels stay."""
    parts = [_alternative_sentence(decision, alternative), _gain_sentence(decision, alternative)]
    return " ".join(part for part in [*parts, "Switch to that model: all labels stay."] if part)


def _gain_sentence(decision: Mapping[str, Any], alternative: Mapping[str, Any]) -> str:
    """What a better model gains for the unlabelled items, as estimated; empty if that is not known."""
    error, now = decision.get("error"), alternative.get("error_now")
    if error is None or now is None or now >= error["value"]:
        return ""
    share = decision["share"]
    before, after = error_value(error["value"], share=share), error_value(now, share=share)
    if before == after:
        return ""
    gain = f"With it the error of the unlabelled items would be about {after} instead of {before}"
    if alternative.get("avoided"):
        avoided = two_digits(alternative["avoided"])
        gain += f", which is about {count(avoided, 'wrong prediction')} fewer"
    worth, saved = alternative.get("worth"), alternative.get("saved")
    if worth and decision["rule"] in WORTH_RULES:
        gain += f", worth {two_digits_of(worth)} by your prices"
    if saved:
        gain += f"; with the current model that would take about {count(two_digits(saved), 'label')}"
    return f"{gain} (estimate)."


def _alternative_sentence(decision: Mapping[str, Any], alternative: Mapping[str, Any]) -> str:
    """Comparison with a better model on the same labels."""
    name, items = alternative["description"], count(alternative["labels"], "labelled item")
    if decision["share"]:
        theirs, ours = (f"{round(alternative[key] * alternative['labels']):,}" for key in ("error", "present"))
        compared = f"Tested on {items} without knowing their labels, it predicts {theirs} wrong"
        return f"Another model is better: {name}. {compared}, the current model {ours}."
    theirs, ours = (number(alternative[key]) for key in ("error", "present"))
    compared = f"Tested on {items} without knowing their labels, it is typically off by {theirs}"
    return f"Another model is better: {name}. {compared}, the current model by {ours}."


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
    early = words.headline in (_HEADLINES["too early"][0], _LEARNING)
    first, last = checked
    sentences = [*first, *([] if problem and early else words.sentences), *last]
    sentences += [warning] if warning else []
    if behind > 0 and not early:
        newest = f"{behind:,} labels" if behind > 1 else "label"
        sentences.append(f"The model is still learning the last {newest}.")
    return sentences + ([problem] if problem else [])
