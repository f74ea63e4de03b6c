"""Draws the decision diagram on the page "Which rule should I use?".

From the root of the repository::

    .venv/bin/python docs/rule_diagram.py

writes ``docs/images/which-rule.svg``: questions on the left, from top to bottom, and the answer of each "yes" on the
right. It is black on white, so that it is readable in print and on dark pages.
"""

from html import escape
from pathlib import Path
from typing import Final

FIGURE: Final = Path(__file__).parent / "images" / "which-rule.svg"
#: A question in lines, and the rule for "yes" with what it is.
STEPS: Final = (
    (("Do you look for the items", "of a rare class?"), ("RecallTest", "screening")),
    (("Do you search for the best", "value of a function?"), ("RegretChange", "Bayesian optimisation")),
    (("Must the error be", "guaranteed?"), ("ErrorGuarantee", "and a random check")),
    (("Do you know what a label and", "a wrong prediction cost?"), ("LabelWorth", "the default")),
    (("Is the number of labels", "fixed?"), ("Budget", "stops at that number")),
    (("Do you have the posteriors", "of a Bayesian model?"), ("ErrorStability", "the rule of the paper")),
)
LAST: Final = ("StabilizingPredictions", "predictions no longer change")
WIDTH, ROW, BOX = 480, 78, 50
_QUESTION, _ANSWER = (8, 228), (282, 190)


def _box(x: int, y: int, width: int, lines: tuple[str, str], *, answer: bool) -> list[str]:
    """Return a box with two lines of text; an answer has a thick frame and its first line is code."""
    middle = x + width / 2
    first = (
        'font-family="DejaVu Sans Mono, monospace" font-weight="bold" font-size="13"' if answer else 'font-size="14"'
    )
    size = 12 if answer else 14
    return [
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX}" rx="{3 if answer else 12}" fill="white" '
        f'stroke="black" stroke-width="{2.5 if answer else 1}"/>',
        f'<text x="{middle}" y="{y + 21}" {first}>{escape(lines[0])}</text>',
        f'<text x="{middle}" y="{y + 39}" font-size="{size}">{escape(lines[1])}</text>',
    ]


def diagram() -> str:
    """Return the diagram as SVG."""
    height = ROW * len(STEPS) + BOX + 16
    words = "; ".join(f"{' '.join(question)} Yes: {answer[0]}" for question, answer in STEPS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" text-anchor="middle" font-family="DejaVu Sans, Arial, sans-serif">',
        f"<title>Which rule? {escape(words)}; otherwise {LAST[0]}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="white"/>',
    ]
    left, width = _QUESTION
    centre, right = left + width // 2, left + width
    for k, (question, answer) in enumerate(STEPS):
        y = 8 + k * ROW
        parts += _box(left, y, width, question, answer=False) + _box(_ANSWER[0], y, _ANSWER[1], answer, answer=True)
        line = 'stroke="black" marker-end="url(#tip)"'
        parts += [
            f'<path d="M{right} {y + BOX // 2}H{_ANSWER[0] - 2}" {line}/>',
            f'<text x="{(right + _ANSWER[0]) // 2 - 2}" y="{y + BOX // 2 - 6}" font-size="12">yes</text>',
            f'<path d="M{centre} {y + BOX}V{y + ROW - 2}" {line}/>',
            f'<text x="{centre + 14}" y="{y + BOX + 18}" font-size="12">no</text>',
        ]
    parts += _box(left, 8 + len(STEPS) * ROW, width, LAST, answer=True)
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    FIGURE.write_text(diagram(), encoding="utf-8")
