"""How far the bounds are above the largest change of error that is possible, on 10,000 random pairs of posteriors.

The worst loss for a pair is 1 where one density is the larger and 0 elsewhere; its change is the total variation, here
exact: Gaussians of one parameter (by their cumulative distribution between the crossing points) of random distance.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from suffice.bounds import risk_gap, total_variation
from tables import publish, table

Floats = NDArray[np.float64]


def exact_total_variation(m: Floats, s: Floats) -> Floats:
    """Of N(m, s^2) and N(0, 1): the densities cross where a quadratic in theta is 0."""
    a, b, c = s**-2 - 1.0, -2.0 * m / s**2, m**2 / s**2 + 2.0 * np.log(s)
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    crossings = np.sort([(-b - root) / (2.0 * a), (-b + root) / (2.0 * a)], axis=0)
    inside = [ndtr((crossings[1] - mu) / sd) - ndtr((crossings[0] - mu) / sd) for mu, sd in ((m, s), (0.0 * m, 1.0))]
    return np.asarray(np.abs(inside[0] - inside[1]))


def main() -> None:
    rng = np.random.default_rng(0)
    n = 10_000
    size = 10.0 ** rng.uniform(-4, 0.5, n)
    m, s = size * rng.normal(size=n), np.exp(size * rng.normal(size=n) / 2)
    kl_pq = 0.5 * (s**2 - 1 - 2 * np.log(s) + m**2)
    kl_qp = 0.5 * (s**-2 - 1 + 2 * np.log(s) + (m / s) ** 2)
    true = exact_total_variation(m, s)
    both = np.asarray(risk_gap(kl_pq)) + np.asarray(risk_gap(kl_qp))
    one = np.maximum(np.asarray(risk_gap(kl_pq)), np.asarray(risk_gap(kl_qp)))
    tight = np.asarray(total_variation(kl_pq, kl_qp))
    bins = [(1e-5, 1e-3), (1e-3, 1e-2), (1e-2, 1e-1), (1e-1, 1.0)]
    rows = []
    for name, bound in (("paper, both directions (`r_t`)", both), ("paper, the larger", one), ("tight", tight)):
        held = float(np.mean(true <= bound * (1 + 1e-9)))
        medians = [np.median((bound / true)[(true >= low) & (true < high)]) for low, high in bins]
        rows.append([name, f"{100 * held:.2f} %", *(f"{r:.2f}" for r in medians), f"{100 * np.mean(bound < 1):.0f} %"])
    header = ["bound", "held", *(f"true {low:g} to {high:g}" for low, high in bins), "says something (below 1)"]
    publish("tightness", table(header, rows))


if __name__ == "__main__":
    main()
