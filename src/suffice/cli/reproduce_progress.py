"""The summary of a run of the paper, printed when it is done."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.experiments.paper.outcome import RunOutcome


def outcome_summary(found: "RunOutcome") -> str:
    """Return the summary of a run, on one line."""
    correlation = "undefined" if found.correlation is None else f"{found.correlation:.4f}"
    published = "" if found.published_correlation is None else f" (published {found.published_correlation:.4f})"
    stops = ", ".join(f"{name} {'never' if at is None else f'at {at}'}" for name, at in list(found.stops.items())[:3])
    return f"correlation {correlation}{published}; stops {stops}; {found.seconds:.1f} s"
