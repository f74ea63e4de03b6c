"""The first part of the report: whether to stop, how much was labelled, and what that saved."""

from html import escape
from typing import Final

from suffice.report.labelling.contents import Contents
from suffice.report.labelling.saying import ahead, count, effort, number, percent, two_digits, with_interval

#: Labels that would bring the error to this share of what it is are worth a word.
_WORTHWHILE: Final = 0.8


def summary(told: Contents) -> str:
    """Whether to stop, how much was labelled, and what that saved."""
    kind, head = _decision(told)
    lines = [f"<p>{escape(line)}</p>" for line in _short(told)]
    tiles = "\n".join(f"<li><b>{escape(big)}</b> {escape(small)}</li>" for big, small in _tiles(told))
    return (
        f'<div class="verdict {kind}"><strong>{escape(head)}</strong>\n{"".join(lines)}</div>\n'
        f'<ul class="tiles">\n{tiles}\n</ul>'
    )


def _decision(told: Contents) -> tuple[str, str]:
    status = told.status
    if not status["n_labelled"]:
        return "none", "Nothing is labelled yet."
    if not status["left"]:
        return "enough", "Every item is labelled or was skipped."
    if told.stop:
        return "enough", "Labelling can stop."
    verdict = status["verdict"]
    if verdict is None or not verdict["ready"]:
        return "none", "It is too early to tell whether this is enough."
    return "more", "It is not enough yet."


def _short(told: Contents) -> list[str]:
    status = told.status
    done, size, left = status["n_labelled"], status["size"], status["left"]
    lines = [f"{done:,} of {count(size, 'item')} {'has' if done == 1 else 'have'} a label."]
    if told.stop and left:
        lines[0] += f" The other {left:,} need not be labelled by hand: the model predicts them."
    elif status["forecast"] is not None:
        lines[0] += f" It is expected to take {ahead(status['forecast'])}."
        if status["forecast"]["labels"] > left:
            lines[0] += f" There are only {left:,} left, so it may be that all of them have to be labelled."
    return list(filter(None, [*lines, why(told) if done else "", _caution(told), status["problem"]]))


def why(told: Contents) -> str:
    """Why the rule says stop or go on, for somebody who does not know the rule."""
    ratio, threshold = told.ratio, None if told.verdict is None else told.verdict.threshold
    if ratio is None or threshold is None:
        return told.reason
    if told.stop:
        return (
            f"The most that the last label can have changed the error of the model is {percent(ratio)} of what it was "
            f"at the start. The limit that was set is {percent(threshold)}."
        )
    return (
        f"The most that the last label can have changed the error of the model is {percent(ratio)} of what it was at "
        f"the start. It is enough at {percent(threshold)}."
    )


def _caution(told: Contents) -> str:
    """That more labels may be worth their while though the rule says stop."""
    bought, share = told.status["purchase"], told.settings.task == "classification"
    if not told.stop or bought is None or bought["then"] > _WORTHWHILE * bought["now"]:
        return ""
    now, _ = with_interval(bought["now"], bought["low"], bought["high"], share=share)
    then, ends = with_interval(bought["then"], bought["low"], bought["high"], share=share)
    return (
        f"But {count(bought['labels'], 'more label')} may still be worth it: the model expects them to bring its error "
        f"from {now} to about {then} ({ends})."
    )


def _tiles(told: Contents) -> list[tuple[str, str]]:
    status = told.status
    done, size, left = status["n_labelled"], status["size"], status["left"]
    skipped = f", {status['n_skipped']:,} skipped" if status["n_skipped"] else ""
    tiles = [(f"{done:,}", f"of {size:,} items labelled ({percent(done / size)}){skipped}")]
    if told.stop and left:
        tiles.append((f"{left:,}", f"labels saved, {percent(left / size)} of the items"))
        if told.pace is not None:
            tiles.append(
                (effort(left * told.pace), f"of labelling saved, at {told.pace:.2g} seconds a label as so far")
            )
    elif status["forecast"] is not None:
        labels, low, high = (two_digits(status["forecast"][name]) for name in ("labels", "low", "high"))
        tiles.append((f"{labels:,}", f"more labels expected ({low:,} to {high:,})"))
    tiles += _error(told)
    alike = status["agreement"]
    if alike is not None and alike["kappa"] is not None:
        tiles.append((f"{alike['same']:,} of {alike['both']:,}", "second opinions were the same as the first"))
    elif alike is not None and alike["difference"] is not None:
        what = f"average difference between two people, on {count(alike['both'], 'item')}"
        tiles.append((number(alike["difference"]), what))
    return tiles


def _error(told: Contents) -> list[tuple[str, str]]:
    if not told.status["error"]["estimates"]:
        return []
    share = told.settings.task == "classification"
    value, interval = with_interval(*told.status["error"]["estimates"][-1][1:], share=share)
    what = "of the items expected wrong" if share else "expected error of a prediction"
    return [(value, f"{what} ({interval})")]
