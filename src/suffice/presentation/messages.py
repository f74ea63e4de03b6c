"""Sentences about the state of labelling, built from plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from suffice.presentation.number_format import (
    count,
    duration,
    number,
    numbers,
    percent,
    percents,
    rounded_percent,
    two_digits,
    utc_time,
    with_interval,
)
from suffice.presentation.shortening import shortened

#: The rule that compares an error ratio.
RATIO_RULE: Final = "ErrorStability"
#: The rules that compare what a label is worth with what it costs.
_WORTH_RULES: Final = frozenset({"LabelWorth", "ExpectedCost"})
#: The name under which a learner gives a verdict in place of its rule: before the model starts, and at the pool's end.
_LEARNER: Final = "ActiveLearner"
#: A fall of the error by less than this share is next to nothing.
_NEXT_TO_NOTHING: Final = 0.02
#: Labels that reduce the error to this share of its value are worth a sentence although the rule says stop.
_WORTHWHILE: Final = 0.8
#: Classes and people that are named.
_MOST_NAMES: Final = 20

ERROR_RATIO_EXPLAINED: Final = (
    "The rule bounds how much each label changed the error of the model, and compares that with the bound at first: "
    "the error ratio. It is 1 at the start and falls as the model learns. Once it is at the threshold, the last label "
    "changed next to nothing, and it is enough; that the next ones change no more is likely, and not certain."
)
NOT_GUARANTEED: Final = (
    "That every prediction is right. Some are not; the error above is an estimate of how many, or by how much.",
    "That the labels are right. The model learns the mistakes of people too, where they are alike.",
    "That it does as well on other items. All of this is about items like those of these data.",
    "That no number of labels would make it better. One more label changes little; a thousand more may change much, "
    "and so may another model.",
)


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
        coverage: How often the interval holds the truth, to be said too.

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
    """A decision in words, the same wherever it is shown.

    Attributes:
        headline: The answer in a few words.
        tone: Name of its colour: ``quiet``, ``on``, ``good`` or ``limit``.
        sentences: The answer with its numbers, the most important first.
    """

    headline: str
    tone: str
    sentences: list[str]


_HEADLINES: Final = {
    "too early": ("Too early to say", "quiet"),
    "keep going": ("Keep labelling", "on"),
    "enough": ("You can stop now", "good"),
    "limit": ("More labels will hardly help this model", "limit"),
    "complete": ("Every item is labelled", "good"),
}


def decision_words(decision: Mapping[str, Any], *, initial: int = 0) -> DecisionWords:
    r"""A decision in words.

    Args:
        decision: What :meth:`suffice.decision.Decision.as_dict` returns.
        initial: Number of labels with which the model starts.

    Examples:
        >>> error = {"value": 0.061, "low": 0.04, "high": 0.09, "random_labels": 30}
        >>> reason = "1 more label is expected to avoid 0.2 wrong predictions"
        >>> said = decision_words({"answer": "enough", "n_labelled": 300, "unlabelled": 4618, "share": True,
        ...     "since": 283, "error": error, "rule": "LabelWorth", "reason": reason})
        >>> print(said.headline, *said.sentences, sep="\n")
        You can stop now
        You can stop: about 6 % of the 4,618 unlabelled items are predicted wrong (estimate: 4 to 9 %).
        More labels are not worth their cost: 1 more label is expected to avoid 0.2 wrong predictions.
        The rule first said so at 283 labels.
    """
    answer = decision["answer"]
    headline, tone = _HEADLINES[answer]
    sentences = {
        "too early": _too_early_sentences,
        "keep going": _keep_going_sentences,
        "enough": _enough_sentences,
        "limit": _limit_sentences,
        "complete": _complete_sentences,
    }[answer](decision, initial)
    return DecisionWords(headline, tone, sentences)


def error_words(decision: Mapping[str, Any]) -> str:
    """The estimated error of the unlabelled items, as a part of a sentence; empty where there is none."""
    error = decision.get("error")
    if error is None:
        return ""
    left = f"the {count(decision['unlabelled'], 'unlabelled item')}"
    kind = "estimate" if error["random_labels"] else "the model's own estimate"
    if decision["share"]:
        value, low, high = percents(error["value"], error["low"], error["high"])
        return f"about {value} % of {left} are predicted wrong ({kind}: {low} to {high} %)"
    value, low, high = numbers(error["value"], error["low"], error["high"])
    return f"predictions for {left} are off by about {value} (root mean squared, {kind}: {low} to {high})"


def _error_or(decision: Mapping[str, Any], otherwise: str) -> str:
    return error_words(decision) or otherwise


def _too_early_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    missing = min(initial, decision["n_labelled"] + decision["unlabelled"]) - decision["n_labelled"]
    if missing > 0:
        are = "are" if missing > 1 else "is"
        return [f"Too early to say: {count(missing, 'more label')} {are} needed before the model starts."]
    if not decision.get("reason") or decision.get("rule") == _LEARNER:
        return ["Too early to say: the model is learning the first labels."]
    return [f"Too early to say: {decision['reason']}."]


def _keep_going_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    said = [f"Keep labelling: {_error_or(decision, 'the rule does not say stop yet')}."]
    doubt = _doubt_sentence(decision)
    if doubt:
        return [*said, doubt]
    forecast = decision.get("forecast")
    if forecast is None:
        return [*said, "How many more labels it takes is not yet predictable."]
    labels, low, high = forecast["labels"], forecast["low"], forecast["high"]
    if labels >= decision["unlabelled"]:
        return [*said, "It may take all of the remaining items."]
    more = as_sentence(more_labels(labels, low, high))[:-1]
    corrected, then = decision.get("corrected"), decision.get("error_then")
    if corrected:
        wrong = f"{corrected:,} of these {decision['wrong']:,} wrong predictions"
        return [*said, f"{more} would avoid about {wrong} (extrapolated); after that a label costs more than it saves."]
    if then is not None and not decision["share"]:
        return [*said, f"{more} would lower that to about {number(then)} (extrapolated); then more are not worth it."]
    return [*said, f"{more} until it is enough (extrapolated)."]


def _doubt_sentence(decision: Mapping[str, Any]) -> str:
    """Why to go on although the rule says stop; empty where it does not."""
    if decision.get("since") is None:
        return ""
    alternative = decision.get("alternative")
    if alternative is not None:
        return f"{_alternative_sentence(decision, alternative)} More labels will show whether that is chance."
    return "The error is not yet known well enough; some more random labels will show it."


def _enough_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    first = f"You can stop: {_error_or(decision, 'the rule says that it is enough')}."
    return [first, *_stop_reasons(decision)]


def _stop_reasons(decision: Mapping[str, Any]) -> list[str]:
    reason, said = decision.get("reason", ""), []
    if reason:
        lead = "More labels are not worth their cost: " if decision["rule"] in _WORTH_RULES else ""
        said.append(f"{lead}{reason}." if lead else as_sentence(reason))
    since = decision.get("since")
    if since is not None and since < decision["n_labelled"]:
        said.append(f"The rule first said so at {count(since, 'label')}.")
    return said


def _limit_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del initial
    said = [f"More labels will hardly help this model: {_error_or(decision, 'its error does not fall any more')}."]
    if decision.get("above_target"):
        target = decision["at_most"]
        said.append(f"You asked for at most {percent(target) if decision['share'] else number(target)}.")
    if decision.get("hardly_better"):
        baseline, common = decision["baseline"], decision.get("common")
        if decision["share"]:
            said.append(f"Always answering {shortened(str(common), 40)} would be wrong on {percent(baseline)}.")
        else:
            said.append(f"Always answering the mean of the labels would be off by {number(baseline)}.")
    alternative = decision.get("alternative")
    if alternative is None:
        said.append("Try other features or another model.")
    else:
        said.append(_alternative_sentence(decision, alternative))
    return [*said, *_stop_reasons(decision)]


def _alternative_sentence(decision: Mapping[str, Any], alternative: Mapping[str, Any]) -> str:
    """How much better another model is on the same labels."""
    name = alternative["description"]
    name = name[:1].upper() + name[1:]
    which = f"{count(alternative['labels'], 'label')} that it had not seen"
    if decision["share"]:
        theirs, ours = (percent(alternative[key]) for key in ("error", "present"))
        return f"{name} is wrong on {theirs} of {which}, the present model on {ours}."
    theirs, ours = (number(alternative[key]) for key in ("error", "present"))
    return f"{name} is off by {theirs} on {which}, the present model by {ours}."


def _complete_sentences(decision: Mapping[str, Any], initial: int) -> list[str]:
    del decision, initial
    return ["There is nothing left to do: every item is labelled or skipped."]


def status_sentences(words: DecisionWords, *, warning: str, problem: str, behind: int) -> list[str]:
    """The decision, a warning, that labels are still being learned, and a problem, as far as there are any.

    Args:
        words: The decision in words.
        warning: That the model may be getting worse; empty where it is not known to.
        problem: Why the model cannot learn; empty where it can.
        behind: Number of labels that the model has not learned yet.
    """
    said = [] if problem and words.tone == "quiet" else list(words.sentences)
    said += [warning] if warning else []
    if behind > 0 and words.tone != "quiet":
        last = f"{behind} labels" if behind > 1 else "label"
        said.append(f"The model is still learning the last {last}.")
    return said + ([problem] if problem else [])


def worsening_sentence(random_labels: int) -> str:
    """That the newest labels have made a model worse.

    Examples:
        >>> worsening_sentence(12)
        'The newest labels have made the model worse: it predicts the last 12 random labels worse than it did before.'
    """
    return (
        "The newest labels have made the model worse: it predicts the last "
        f"{random_labels} random labels worse than it did before."
    )


def estimated_with(random_labels: int) -> str:
    """What an estimate of the error rests on, as a part of a sentence.

    Examples:
        >>> estimated_with(24)
        'estimated with the help of 24 random labels'
    """
    return f"estimated with the help of {count(random_labels, 'random label')}"


def _is_next_to_nothing(now: float, then: float) -> bool:
    return now - then < _NEXT_TO_NOTHING * now


def progress_sentence(name: str, status: Mapping[str, Any]) -> str:
    """How much of a project is labelled.

    Examples:
        >>> progress_sentence("mails", {"n_labelled": 40, "size": 1200, "n_skipped": 2, "left": 1158})
        'mails: 40 of 1,200 items labelled, 2 skipped, 1,158 left.'
    """
    done = labelled_of(status["n_labelled"], status["size"], "labelled", status["n_skipped"])
    return f"{name}: {done}, {status['left']:,} left."


def given_sentence(given: int, n_labelled: int, size: int, skipped: int) -> str:
    """What a person did at the terminal, and how much of the project is labelled now.

    Examples:
        >>> given_sentence(1, 40, 1200, 0)
        'You gave 1 label; 40 of 1,200 items are labelled. Everything is saved.'
    """
    done = labelled_of(n_labelled, size, "are labelled", skipped)
    return f"You gave {count(given, 'label')}; {done}. Everything is saved."


def labelled_of(n_labelled: int, size: int, verb: str, skipped: int) -> str:
    """How many of the items are labelled and skipped, as a part of a sentence."""
    return f"{n_labelled:,} of {size:,} items {verb}{f', {skipped:,} skipped' if skipped else ''}"


def count_lines(status: Mapping[str, Any], source: str) -> list[str]:
    """Counts of classes and people, and the agreement of people, a line each.

    Args:
        status: The status of the project.
        source: Name of the file or folder that the data came from, which is the person of labels that came with it.
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
    """Names with their counts, as many as can be read."""
    names = [f"{name} {each:,}" for name, each in counts[:_MOST_NAMES]]
    more = len(counts) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def agreement_sentence(agreement: Mapping[str, Any]) -> str:
    """How far people agree where two of them labelled the same item.

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


def report_headline(status: Mapping[str, Any], *, stop: bool) -> tuple[str, str]:
    """Whether to stop: a name for the style sheet, and a sentence."""
    if not status["n_labelled"]:
        return "none", "Nothing is labelled yet."
    if not status["left"]:
        return "enough", "Every item is labelled or was skipped."
    if stop:
        return "enough", "Labelling can stop."
    if status["verdict"] is None or not status["verdict"]["ready"]:
        return "none", "It is too early to tell whether this is enough."
    return "more", "It is not enough yet."


def labelled_sentences(status: Mapping[str, Any], *, stop: bool) -> str:
    """How many items have a label, and what that means for the others."""
    done, left, forecast = status["n_labelled"], status["left"], status["forecast"]
    said = f"{done:,} of {count(status['size'], 'item')} {'has' if done == 1 else 'have'} a label."
    if stop and left:
        said += f" The other {left:,} need not be labelled by hand: the model predicts them."
    elif forecast is not None:
        said += f" It is expected to take {more_labels(**forecast)}."
        if forecast["labels"] > left:
            said += f" There are only {left:,} left, so it may be that all of them have to be labelled."
    return said


def ratio_sentences(ratio: float, threshold: float, *, stop: bool) -> str:
    """What an error ratio means, for somebody who does not know the rule."""
    limit = f"The limit that was set is {percent(threshold)}." if stop else f"It is enough at {percent(threshold)}."
    return (
        f"The most that the last label can have changed the error of the model is {percent(ratio)} of what it was at "
        f"the start. {limit}"
    )


def still_worth_sentence(next_labels: Mapping[str, Any], *, share: bool) -> str:
    """That more labels may be worth their cost although the rule says stop; empty where they are not."""
    if next_labels["then"] > _WORTHWHILE * next_labels["now"]:
        return ""
    ends = next_labels["low"], next_labels["high"]
    now, _ = with_interval(next_labels["now"], *ends, share=share)
    then, interval = with_interval(next_labels["then"], *ends, share=share)
    return (
        f"But {count(next_labels['labels'], 'more label')} may still be worth it: the model expects them to bring its "
        f"error from {now} to about {then} ({interval})."
    )


def summary_tiles(
    status: Mapping[str, Any], *, stop: bool, share: bool, seconds: float | None
) -> list[tuple[str, str]]:
    """The main numbers of a project, each with what it is.

    Args:
        status: The status of the project.
        stop: Whether the rule says stop.
        share: Whether the error is a share of the items.
        seconds: What a label took, typically, or None.
    """
    done, size, left, forecast = (status[name] for name in ("n_labelled", "size", "left", "forecast"))
    skipped = f", {status['n_skipped']:,} skipped" if status["n_skipped"] else ""
    tiles = [(f"{done:,}", f"of {size:,} items labelled ({percent(done / size)}){skipped}")]
    if stop and left:
        tiles.append((f"{left:,}", f"labels saved, {percent(left / size)} of the items"))
        if seconds is not None:
            tiles.append((duration(left * seconds), f"of labelling saved, at {seconds:.2g} seconds a label as so far"))
    elif forecast is not None:
        labels, low, high = (two_digits(forecast[name]) for name in ("labels", "low", "high"))
        tiles.append((f"{labels:,}", f"more labels expected ({low:,} to {high:,})"))
    if status["error"]["estimates"]:
        value, interval = with_interval(*status["error"]["estimates"][-1][1:], share=share)
        random_labels = status["error"]["random_labels"]
        if random_labels:
            what = "of the unlabelled items predicted wrong" if share else "error of a prediction"
            tiles.append((value, f"{what} ({interval}), {estimated_with(random_labels)}"))
        else:
            what = "of the items expected wrong" if share else "expected error of a prediction"
            tiles.append((value, f"{what} ({interval})"))
    agreement = status["agreement"]
    if agreement is not None and agreement["kappa"] is not None:
        same = f"{agreement['same']:,} of {agreement['both']:,}"
        tiles.append((same, "second opinions were the same as the first"))
    elif agreement is not None and agreement["difference"] is not None:
        what = f"average difference between two people, on {count(agreement['both'], 'item')}"
        tiles.append((number(agreement["difference"]), what))
    return tiles


def given_and_imported(given: int, first: str, last: str, *, imported: int, source: str) -> str:
    """How many labels people gave and when, and how many came with the data.

    Args:
        given: Labels that people gave.
        first: When the first was given, in ISO format; anything where there is none.
        last: When the last was given.
        imported: Labels that came with the data.
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
    """How many labels were corrected and how many items skipped; empty where none were.

    Examples:
        >>> corrections_and_skips(1, 2)
        '1 label was corrected. 2 items were skipped.'
    """
    counts = [(corrected, "label", "corrected"), (skipped, "item", "skipped")]
    return " ".join(f"{count(n, noun)} {'was' if n == 1 else 'were'} {verb}." for n, noun, verb in counts if n)


def not_started_sentence(initial: int, size: int) -> str:
    """When the rule begins to judge."""
    first = count(min(initial, size), "label")
    return f"The model begins once it has its first {first}, of items drawn at random; then the rule judges."


def stopping_sentences(status: Mapping[str, Any], reason: str, *, rule: str, stop: bool) -> list[str]:
    """Why the rule says stop or go on, and how far it is from being enough."""
    said = [reason]
    if rule == RATIO_RULE:
        said.append(ERROR_RATIO_EXPLAINED)
    if status["forecast"] is not None and not stop:
        said.append(f"At the pace so far it will take {more_labels(**status['forecast'])}.")
    if status["behind"]:
        said.append(
            f"The model has not yet learned the newest {status['behind']:,} of the labels and skips; all of this is "
            f"about the {status['learned']:,} labels before."
        )
    return said


def quantity_name(rule: str) -> str:
    """What the number that a rule compares is called."""
    if rule == RATIO_RULE:
        return "error ratio"
    return "worth of a label" if rule in _WORTH_RULES else f"value of {rule}"


def threshold_name(rule: str) -> str:
    """What the number that a rule compares is compared with."""
    return "cost" if rule in _WORTH_RULES else "threshold"


def curve_caption(rule: str, *, forecast: bool) -> str:
    """How to read the curve that a rule watches."""
    least = " (thin) and its least so far (bold)" if rule == RATIO_RULE else ""
    end = " The grey area is where it is expected to be enough." if forecast else ""
    limit = f"the {threshold_name(rule)} that it is compared with (dashed)"
    return f"The {quantity_name(rule)} after each label{least}, and {limit}.{end}"


def expected_error_sentence(error: Sequence[float], *, share: bool, random_labels: int = 0) -> str:
    r"""How good the model is, by its own estimate or with the help of random labels.

    Args:
        error: The estimate and the ends of its interval.
        share: Whether the error is a share of the items.
        random_labels: Number of random labels that calibrate the estimate.

    Examples:
        >>> expected_error_sentence((0.1234, 0.09, 0.16), share=True, random_labels=24).replace("\xa0", " ")
        'The model gets about 12 % of the unlabelled items wrong (9 to 16 %), estimated with the help of 24 random labels.'
    """  # noqa: E501 - one sentence
    value, interval = with_interval(error[0], error[1], error[2], share=share)
    root = "" if share else " (root of the mean squared error)"
    if random_labels:
        lead = (
            f"gets about {value} of the unlabelled items wrong ({interval})"
            if share
            else f"is off by about {value} on an unlabelled item{root}, {interval}"
        )
        return f"The model {lead}, {estimated_with(random_labels)}."
    lead = f"to get {value} of the items wrong" if share else f"to be off by about {value} on an item"
    return f"The model expects {lead}{root}; by its own account {interval}."


def expected_error_basis(items: int, random_labels: int = 0) -> str:
    """What the estimate of the error rests on.

    Args:
        items: Items that were looked at.
        random_labels: Number of random labels that calibrate the estimate.
    """
    if random_labels:
        return (
            "This is an estimate, and no guarantee. It is the error that the model expects of itself on "
            f"{count(items, 'unlabelled item')}, corrected by {count(random_labels, 'random label')}: by how wrong the "
            "model was on them, compared with what it had expected. Each was predicted before the model learned it. "
            "Their items were drawn at random, so they are like those without a label. The more random labels, the "
            "narrower the interval."
        )
    return (
        "This is what the model says of itself: no labels were held back to measure it. It comes from the model's own "
        f"probabilities on {count(items, 'item')} drawn at random, so it is right as far as the model suits the data; "
        "on real data it was often off by a factor of two. To be sure, have some more items drawn at random, label "
        "them, and compare."
    )


def next_labels_outlook(next_labels: Mapping[str, Any], *, share: bool) -> str:
    """What the next labels are expected to change, for the report."""
    then, ends = with_interval(next_labels["then"], next_labels["low"], next_labels["high"], share=share)
    little = _is_next_to_nothing(next_labels["now"], next_labels["then"])
    change = "change next to nothing in that" if little else f"bring that to about {then} ({ends})"
    return f"{count(next_labels['labels'], 'more label')} would {change}, if it goes on as it did."


def no_certificate_sentence(rule: str) -> str:
    """That nothing is guaranteed."""
    return f"Nothing so far: the rule {rule} has given no certificate."


def certified_change_sentence(change: float) -> str:
    """What a certificate means, for somebody who does not know the theory."""
    return (
        "In plain words: whatever the error of the model is, the newest label can have moved it by no more than "
        f"{percent(change)} of the distance between the best and the worst that it could be."
    )


# Sentences of ``suffice run``, ``suffice audit`` and ``suffice recommend``.


def with_labels(labels: int, pool: int) -> str:
    """With how many labels a run ended.

    Examples:
        >>> with_labels(300, 500), with_labels(500, 500)
        ('with 300 labels', 'with all 500 labels')
    """
    return f"with {'all ' if labels == pool else ''}{labels} labels"


def run_headline(answer: str, labels: int, pool: int, reason: str) -> str:
    """How a run came out.

    Args:
        answer: The answer of the decision at the stop, or at the end.
        labels: Labels there.
        pool: Rows to label.
        reason: What the rule said at the end, for a run without a stop.

    Examples:
        >>> run_headline("enough", 143, 1438, "")
        'Enough at 143 of 1,438 labels.'
        >>> run_headline("keep going", 60, 120, "the error ratio 0.3 is above the threshold 0.1")
        'Not enough within 60 labels: the error ratio 0.3 is above the threshold 0.1.'
    """
    if answer == "enough":
        return f"Enough at {labels:,} of {pool:,} labels."
    if answer == "limit":
        return f"This model has reached its limit at {labels:,} of {pool:,} labels."
    return f"Not enough within {'all ' if labels == pool else ''}{labels:,} labels: {reason}."


def labels_saved_sentence(labels: int, pool: int) -> str:
    """How many labels a stop saves."""
    saved = pool - labels
    return f"Labels that would have been saved: {saved} of {pool} ({100.0 * saved / pool:.3g}\u00a0%)."


def run_error_sentence(name: str, at_stop: float | None, at_end: float, end: str) -> str:
    """The error on the test set at the stop, where there is one, and at the end.

    Args:
        name: What the error is.
        at_stop: The error at the stop, or None.
        at_end: The error at the end.
        end: With how many labels that is.
    """
    if at_stop is None:
        return f"{name.capitalize()}: {at_end:.4g} {end}."
    change = f" ({100.0 * (at_stop - at_end) / at_end:+.1f}\u00a0%)" if at_end > 0.0 else ""
    return f"{name.capitalize()}: {at_stop:.4g} at the stop, {at_end:.4g} {end}{change}."


def run_wrong_share_sentence(at_stop: float | None, at_end: float, end: str) -> str:
    r"""The share of wrong predictions on the test set at the stop, where there is one, and at the end.

    Args:
        at_stop: The share at the stop, or None.
        at_end: The share at the end.
        end: With how many labels that is.

    Examples:
        >>> run_wrong_share_sentence(0.0833, 0.079, "with all 300 labels").replace("\xa0", " ")
        '8.33 % of the test items predicted wrong at the stop, 7.9 % with all 300 labels.'
    """
    wrong = "of the test items predicted wrong"
    last = f"{100.0 * at_end:.3g}\u00a0%"
    if at_stop is None:
        return f"{last} {wrong} {end}."
    return f"{100.0 * at_stop:.3g}\u00a0% {wrong} at the stop, {last} {end}."


def true_error_sentence(errors: tuple[float | None, float], end: str, rows: int, *, share: bool, baseline: str) -> str:
    r"""The error measured on the test rows, at the stop and at the end.

    Args:
        errors: The error at the stop, or None, and at the end: a share of wrong predictions, or the root of the mean
            squared error.
        end: With how many labels the end is.
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
    lead = f"Measured on {count(rows, 'test row')}{'' if share else ', root of the mean squared error'}"
    than = f"; {baseline}" if baseline else ""
    if at_stop is None:
        return f"{lead}: {_error_value(at_end, share=share)}{kind} {end}{than}."
    first = f"{_error_value(at_stop, share=share)}{kind} at the stop"
    return f"{lead}: {first}, {_error_value(at_end, share=share)} {end}{than}."


def _error_value(error: float, *, share: bool) -> str:
    return (percent(error) if error else "0\u00a0%") if share else number(error)


def trivial_error_words(baseline: float, *, share: bool, common: str = "") -> str:
    r"""The error of the trivial prediction, as a part of a sentence.

    Examples:
        >>> trivial_error_words(0.37, share=True, common="benign").replace("\xa0", " ")
        'always answering benign: 37 %'
    """
    what = shortened(common, 40) if share else "the mean"
    return f"always answering {what}: {_error_value(baseline, share=share)}"


def try_sentence(name: str, *, command: str) -> str:
    """How to use another model that is better on the same labels.

    Args:
        name: Its name, one of the models of suffice or ``forest``.
        command: Name of the command.
    """
    if name == "forest":
        return "suffice has no such model: train it on the labelled rows, or add better features."
    return f"To try it: suffice {command} with --model {name}."


def classes_without_labels_sentence(unmet: int, classes: int) -> str:
    """That some classes have no label yet."""
    return f"Beware: no label of {unmet} of the {classes} classes has been bought up to there."


def counted_costs(label: float, mistake: float | None, error: float | None, *, what: str) -> str:
    """What is counted for labels and errors, as a part of a sentence.

    Args:
        label: Cost of a label.
        mistake: Cost of one wrong prediction; None if an error is counted as a whole.
        error: Cost of an error that is larger by 1; None if wrong predictions are counted.
        what: What a wrong prediction is, or what the error is.

    Examples:
        >>> counted_costs(1.0, 1.0, None, what="wrong prediction among the other rows")
        'counting 1 for a label and 1 for each wrong prediction among the other rows'
    """
    costs = f"{mistake:.6g} for each {what}" if mistake is not None else f"{error:.6g} for {what}"
    return f"counting {label:.6g} for a label and {costs}"


def best_stop_sentence(counted: str, here: tuple[int, float], best: tuple[int, float], *, stopped: bool) -> str:
    """What a stop costs, and where the best stop was in hindsight.

    Args:
        counted: What is counted, see :func:`counted_costs`.
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
    """When labelling could have stopped.

    Args:
        labels: Labels at the stop; None if there was none.
        rows: Labels in all.
        reason: What the rule said there, or at the end.

    Examples:
        >>> audit_headline(143, 500, "1 more label was worth less than it costs")
        'Labelling could have stopped at 143 of 500 labels: 1 more label was worth less than it costs.'
    """
    if labels is None:
        return f"Not enough within all {rows:,} labels: {reason}."
    return f"Labelling could have stopped at {labels:,} of {rows:,} labels: {reason}."


def raise_cost_sentence(*, ratio: bool) -> str:
    """That more labels do lower the error, and how to ask for them.

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
    lead = f"On the {count(rows, 'row')} labelled after that{'' if share else ', root of the mean squared error'}"
    end = "" if at_end is None else f", {_error_value(at_end, share=share)} with all other labels"
    return f"{lead}: {_error_value(error, share=share)}{kind} at the stop{end}."


def audit_orders_sentences(stops: Sequence[int | None], errors: Sequence[float], *, share: bool) -> list[str]:
    r"""How much the stop depends on the order of the rows.

    Args:
        stops: Labels at the stop in each order; None where there was none.
        errors: The error of the rows after it, of the orders with a stop and such rows.
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


def orders_skipped_sentence(orders: int, seconds: float) -> str:
    """That other orders were not tried, since that takes long."""
    return (
        f"How much this depends on the order was not tried: {count(orders, 'other order')} would take "
        f"{duration(seconds)}; ask for it with --orders {orders}."
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
    """How much dearer than the best stop a recommended rule is expected to be."""
    return (
        f"Expected: typically {rounded_percent(typical)} dearer than the best stop in hindsight, labels and error "
        f"together; at most {rounded_percent(median)} in half of the runs, at most {rounded_percent(p90)} in nine of "
        f"ten. (On average {rounded_percent(mean)}: the few worst runs weigh most there.)"
    )
