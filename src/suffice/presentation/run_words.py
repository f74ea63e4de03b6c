"""Sentences of ``suffice run``, with and without screening."""

from collections.abc import Mapping
from typing import Any

from suffice.presentation.decision_words import NOT_WORTH
from suffice.presentation.error_words import error_value
from suffice.presentation.text_format import count, is_or_are, number, percent, percent_at_least, shortened, was_or_were


def with_labels(labels: int, pool: int) -> str:
    """Number of labels at the end of a run.

    Examples:
        >>> with_labels(300, 500), with_labels(500, 500)
        ('with 300 labels', 'with all 500 labels')
    """
    return f"with {'all ' if labels == pool else ''}{count(labels, 'label')}"


def run_headline(answer: str, labels: int, pool: int, reason: str, *, by_cost: bool = False) -> str:
    """Result of a run.

    Args:
        answer: The answer of the decision at the stop, or at the end; ``"check"`` if it is to check the model.
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
    if answer == "check":
        return f"Enough to check the model at {labels:,} of {pool:,} labels."
    if by_cost and answer in ("enough", "limit"):
        return f"{NOT_WORTH} after {labels:,} of {pool:,} labels."
    if answer == "enough":
        return f"Enough at {labels:,} of {pool:,} labels."
    if answer == "limit":
        return f"This model has reached its limit at {labels:,} of {pool:,} labels."
    return f"Not enough within {'all ' if labels == pool else ''}{count(labels, 'label')}: {reason}."


def labels_saved_sentence(labels: int, pool: int) -> str:
    """Number of labels that a stop saves."""
    saved = pool - labels
    return f"Labels that would have been saved: {saved} of {pool} ({100.0 * saved / pool:.3g}\u00a0%)."


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
        >>> sentence = true_error_sentence((0.0833, 0.079), "with all 300 labels", 100, share=True, baseline="")
        >>> sentence.replace("\xa0", " ")
        'Measured on 100 test rows: 8.3 % predicted wrong at the stop, 7.9 % with all 300 labels.'
    """
    at_stop, at_end = errors
    kind = " predicted wrong" if share else ""
    lead = f"Measured on {count(rows, 'test row')}{'' if share else ', typical error (root mean square)'}"
    than = f"; {baseline}" if baseline else ""
    if at_stop is None:
        return f"{lead}: {error_value(at_end, share=share)}{kind} {end}{than}."
    first = f"{error_value(at_stop, share=share)}{kind} at the stop"
    return f"{lead}: {first}, {error_value(at_end, share=share)} {end}{than}."


def measured_target_sentence(measured: float, at_most: float, *, share: bool) -> str:
    """Whether the measured error at the stop reaches the one that was asked for.

    Examples:
        >>> measured_target_sentence(0.018, 0.05, share=True).replace("\u00a0", " ")
        'By this measure the target of at most 5 % was reached at the stop.'
        >>> measured_target_sentence(2.5, 2.0, share=False)
        'By this measure the target of at most 2 was not reached at the stop.'
    """
    reached = "reached" if measured <= at_most else "not reached"
    return f"By this measure the target of at most {error_value(at_most, share=share)} was {reached} at the stop."


def off_share_sentence(shares: tuple[float | None, float], end: str, tolerance: float) -> str:
    r"""The share of the test rows whose prediction is off by more than a tolerance, at the stop and at the end.

    Examples:
        >>> off_share_sentence((0.25, 0.2), "with all 300 labels", 30.0).replace("\xa0", " ")
        'Off by more than 30: 25 % of the test rows at the stop, 20 % with all 300 labels.'
    """
    at_stop, at_end = (None if share is None else error_value(share, share=True) for share in shares)
    first = f"{at_end} of the test rows {end}"
    if at_stop is not None:
        first = f"{at_stop} of the test rows at the stop, {at_end} {end}"
    return f"Off by more than {number(tolerance)}: {first}."


def trivial_error_words(baseline: float, *, share: bool, common: str = "") -> str:
    r"""The error of the trivial prediction, as a part of a sentence.

    Examples:
        >>> trivial_error_words(0.37, share=True, common="benign").replace("\xa0", " ")
        'always predicting benign: 37 %'
    """
    what = shortened(common, 40) if share else "the mean"
    return f"always predicting {what}: {error_value(baseline, share=share)}"


def try_sentence(name: str, *, command: str) -> str:
    """Option that selects a better model.

    Args:
        name: Its name, one of the models of suffice.
        command: Name of the command.
    """
    return f"To try it: suffice {command} with --model {name}."


def raise_cost_sentence(*, ratio: bool) -> str:
    """Note that more labels lower the error, and the option for this.

    Args:
        ratio: Whether the rule compares an error ratio with a threshold, and not costs.
    """
    option = "a lower --threshold" if ratio else "a higher --mistake-cost"
    return f"Measured afterwards, more labels did lower the error; {option} makes the rule ask for them."


def classes_without_labels_sentence(unmet: int, classes: int) -> str:
    """Note that some classes have no label yet."""
    return f"Note: no label of {unmet} of the {classes} classes has been bought so far."


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


def screening_headline(screened: int, size: int, n_found: int, *, stopped: bool, reason: str) -> str:
    """Result of a screening.

    Args:
        screened: Rows screened.
        size: All rows.
        n_found: Relevant rows among those screened.
        stopped: Whether the rule said stop.
        reason: Reason of the last verdict, for a screening without a stop.

    Examples:
        >>> screening_headline(812, 3000, 88, stopped=True, reason="")
        'Enough: 812 of 3,000 rows are screened, and 88 relevant ones are found.'
        >>> screening_headline(100, 3000, 8, stopped=False, reason="8 are found")
        'Not enough within 100 of 3,000 rows, among which 8 relevant ones are found: 8 are found.'
    """
    found = f"{count(n_found, 'relevant one')} {is_or_are(n_found)} found"
    if stopped:
        return f"Enough: {screened:,} of {count(size, 'row')} {is_or_are(screened)} screened, and {found}."
    rows = f"{'all ' if screened == size else ''}{screened:,} of {size:,} rows"
    return f"Not enough within {rows}, among which {found}: {reason}."


def screening_sentences(screening: Mapping[str, Any]) -> list[str]:
    r"""Result of a screening, in sentences for a report, and the guarantee of a check of the rest.

    Args:
        screening: ``positive``, ``size``, ``screened``, ``found``, ``rule`` (its description), ``stopped``,
            ``recall`` (that was wanted), ``relevant`` (all rows of the class, None if that is not known), ``checks``
            (pairs of a size and the recall that a check of that size guarantees if it finds no relevant item),
            ``check_for_recall`` (the least size that guarantees the recall; None if there is none) and ``confidence``.

    Examples:
        >>> screening = {"positive": "yes", "size": 3000, "screened": 812, "found": 88, "relevant": 90,
        ...     "rule": "RecallTest", "stopped": True, "recall": 0.95, "checks": [(300, 0.81)],
        ...     "check_for_recall": 1240, "confidence": 0.95}
        >>> for sentence in screening_sentences(screening):
        ...     print(sentence.replace("\xa0", " "))
        Of 3,000 records, 812 (27 %) were screened in the order of their predicted relevance, until the rule RecallTest
        said stop; 88 of class 'yes' were found.
        By the labels of the file these are 98 % of the 90 records of the class; the target is 95 %.
        Without these labels only a random check of the 2,188 unscreened records can guarantee a recall. If it finds no
        record of the class: 300 records guarantee at least 81 %, and 1,240 the target of 95 % (95 % confidence).
    """
    size, screened, n_found, wanted = (screening[name] for name in ("size", "screened", "found", "recall"))
    name, rest = f"class {screening['positive']!r}", size - screened
    until = "until the rule {} said stop" if screening["stopped"] else "without a stop of the rule {}"
    share = f"{screened:,} ({percent(screened / size)})"
    sentences = [
        f"Of {count(size, 'record')}, {share} {was_or_were(screened)} screened in the order of their predicted "
        f"relevance, {until.format(screening['rule'])}; {n_found:,} of {name} {was_or_were(n_found)} found."
    ]
    if screening["relevant"]:
        reached = percent(n_found / screening["relevant"])
        sentences.append(
            f"By the labels of the file these are {reached} of the {count(screening['relevant'], 'record')} of the "
            f"class; the target is {percent(wanted)}."
        )
    if not rest:
        return [*sentences, "All records are screened, so nothing is missed."]
    sure = f"{percent(screening['confidence'])} confidence"
    least = screening["check_for_recall"]
    offers = [
        f"{_records_guarantee(labels)} at least {percent_at_least(value)}" for labels, value in screening["checks"]
    ]
    if least is not None:
        offers.append(f"{f'{least:,}' if offers else _records_guarantee(least)} the target of {percent(wanted)}")
    only = "Without these labels only" if screening["relevant"] else "Only"
    if offers:
        sentences.append(
            f"{only} a random check of the {count(rest, 'unscreened record')} can guarantee a recall. If it finds no "
            f"record of the class: {', and '.join(offers)} ({sure})."
        )
    if least is None:
        others = f"{'the' if rest == 1 else 'all'} {count(rest, 'other record')}"
        sentences.append(f"Only screening {others} guarantees {percent(wanted)}.")
    return sentences


def _records_guarantee(records: int) -> str:
    return f"{count(records, 'record')} {'guarantees' if records == 1 else 'guarantee'}"


def interrupted_sentence(checkpoint: str) -> str:
    """Message of an interrupted run with a checkpoint.

    Examples:
        >>> print(interrupted_sentence("run.json"))
        interrupted; the labels so far are saved in run.json. Give the same command with --checkpoint run.json to go on
        from there.
    """
    return (
        f"interrupted; the labels so far are saved in {checkpoint}. Give the same command with --checkpoint "
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
