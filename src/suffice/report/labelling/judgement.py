"""The parts of the report on the rule and the model: why it stops or goes on, how good it is, what is guaranteed."""

from html import escape
from itertools import accumulate
from typing import Final

from suffice.report.labelling.chart import Chart, both_widths
from suffice.report.labelling.contents import RATIO_RULE, Contents
from suffice.report.labelling.saying import ahead, count, percent, sentence, with_interval
from suffice.session.estimates import ITEMS

_RATIO: Final = (
    "The rule bounds how much each label changed the error of the model, and compares that with the bound at first: "
    "the error ratio. It is 1 at the start and falls as the model learns. Once it is at the threshold, the last label "
    "changed next to nothing, and it is enough; that the next ones change no more is likely, and not certain."
)
#: On a log scale, what falls far below the threshold would flatten the rest.
_FAR_BELOW: Final = 20.0
#: A fall of the error by less than this share is next to nothing.
_NOTHING: Final = 0.02
_NOT: Final = (
    "That every prediction is right. Some are not; the expected error above says how many, or by how much.",
    "That the labels are right. The model learns the mistakes of people too, where they are alike.",
    "That it does as well on other items. All of this is about items like those of these data.",
    "That no number of labels would make it better. One more label changes little; a thousand more may change much, "
    "and so may another model.",
)


def stopping(told: Contents) -> str:
    """The curve that the rule watches, and how far it is from being enough."""
    status = told.status
    if told.verdict is None or not status["n_labelled"]:
        first = count(min(told.settings.initial, status["size"]), "label")
        return f"<p>The model begins once it has its first {first}, of items drawn at random; then the rule judges.</p>"
    paragraphs = [told.reason]
    if told.rule == RATIO_RULE:
        paragraphs.append(_RATIO)
    if status["forecast"] is not None and not told.stop:
        paragraphs.append(sentence(f"at the pace so far it will take {ahead(status['forecast'])}"))
    if status["behind"]:
        paragraphs.append(
            f"The model has not yet learned the newest {status['behind']:,} of the labels and skips; all of this is "
            f"about the {status['learned']:,} labels before."
        )
    parts = [f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs]
    return "\n".join([*parts, _figure(curve_chart(told), _reading(told)) if status["curve"] else ""])


def curve_chart(told: Contents) -> Chart:
    """What the rule watched, as a chart."""
    status, ratio = told.status, told.rule == RATIO_RULE
    line = [(float(n), value) for n, value, _ in status["curve"]]
    limit = [(float(n), threshold) for n, _, threshold in status["curve"] if threshold is not None]
    values, rough = [value for _, value in (*line, *limit)], []
    if ratio:
        floor = min(threshold for _, threshold in limit) / _FAR_BELOW if limit else 0.0
        line = [(n, max(value, floor)) for n, value in line]
        rough, line = line, list(zip((n for n, _ in line), accumulate((value for _, value in line), min), strict=True))
    forecast, now = status["forecast"], status["learned"]
    expected = None
    if forecast is not None and not told.stop:
        expected = (now + forecast["low"], now + forecast["labels"], now + forecast["high"])
        limit += [(float(expected[2]), limit[-1][1])] if limit else []
    return Chart(
        title=f"{_name(told)} over the labels",
        name=_name(told),
        line=line,
        rough=rough,
        limit=limit,
        stop=told.enough,
        ahead=expected,
        log=min(values) > 0.0 and max(values) >= 10.0 * min(values),
    )


def _name(told: Contents) -> str:
    return "error ratio" if told.rule == RATIO_RULE else f"value of {told.rule}"


def _reading(told: Contents) -> str:
    end = " The grey area is where it is expected to be enough." if told.status["forecast"] and not told.stop else ""
    least = " (thin) and its least so far (bold)" if told.rule == RATIO_RULE else ""
    return f"The {_name(told)} after each label{least}, and the threshold that it is compared with (dashed).{end}"


def quality(told: Contents) -> str:
    """How good the model is, by its own estimate, and what that rests on."""
    status, task = told.status, told.settings.task
    estimates = status["error"]["estimates"]
    if not estimates:
        return "<p>The model has not begun to learn, so nothing can be said about its error.</p>"
    share = task == "classification"
    value, interval = with_interval(*estimates[-1][1:], share=share)
    lead = f"expects to get {value} of the items wrong" if share else f"expects to be off by about {value} on an item"
    root = "" if share else " (root of the mean squared error)"
    told_first = f"The model {lead}{root}; by its own account {interval}."
    parts = [f'<p class="lead">{escape(told_first)}</p>']
    drawn = min(ITEMS[task], status["size"])
    basis = (
        "This is what the model says of itself: no labels were held back to measure it. It comes from the model's own "
        f"probabilities on {count(drawn, 'item')} drawn at random, so it is right as far as the model suits the data; "
        "on real data it was often off by a factor of two. To be sure, have some more items drawn at random, label "
        "them, and compare."
    )
    parts.append(f"<p>{escape(basis)}</p>")
    chart = Chart(
        title="Expected error over the labels",
        name="expected share wrong" if share else f"expected error, in units of {_unit(told)}",
        line=[(float(n), middle) for n, middle, _, _ in estimates],
        band=[(float(n), least, most) for n, _, least, most in estimates],
        percent=share,
        zero=True,
    )
    parts.append(_figure(chart, "The error that the model expected of itself after so many labels, and its interval."))
    if status["purchase"] is not None:
        bought = status["purchase"]
        then, ends = with_interval(bought["then"], bought["low"], bought["high"], share=share)
        little = bought["now"] - bought["then"] < _NOTHING * bought["now"]
        change = "change next to nothing in that" if little else f"bring that to about {then} ({ends})"
        words = f"{count(bought['labels'], 'more label')} would {change}, if it goes on as it did."
        parts.append(f"<p>{escape(words)}</p>")
    return "\n".join(parts)


def _unit(told: Contents) -> str:
    return told.settings.target if len(told.settings.target) <= 20 else "the label"


def guarantee(told: Contents) -> str:
    """What is guaranteed, in plain words, and what is not."""
    verdict = told.status["verdict"]
    certificate = None if verdict is None else verdict["certificate"]
    if certificate is None:
        parts = [f"<p>{escape(f'Nothing so far: the rule {told.rule} has given no certificate.')}</p>"]
    else:
        parts = [f'<p class="lead">{escape(sentence(certificate["statement"]))}</p>']
        if told.change is not None and told.change < 1.0:
            parts.append(f"<p>{escape(_plain(told.change))}</p>")
        if told.change is None or told.change < 1.0:
            rests = escape(sentence(certificate["assumption"]))
            parts.append(f"<p><strong>What this rests on.</strong> {rests}</p>")
    lines = "\n".join(f"<li>{escape(line)}</li>" for line in _NOT)
    return "\n".join([*parts, "<h3>What is not guaranteed</h3>", f'<ul class="not">\n{lines}\n</ul>'])


def _plain(change: float) -> str:
    return (
        "In plain words: whatever the error of the model is, the newest label can have moved it by no more than "
        f"{percent(change)} of the distance between the best and the worst that it could be."
    )


def _figure(chart: Chart, caption: str) -> str:
    return (
        f'<figure>\n<div class="plot">{both_widths(chart)}</div>\n<figcaption>{escape(caption)}</figcaption>\n</figure>'
    )
