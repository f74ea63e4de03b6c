"""Golden: the rule on the divergences of the published experiments, against the published ratios and stops.

The files come from the authors' own scripts; SUFFICE_REFERENCE names their folder.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from suffice import ErrorStability, Step

FOLDER = os.environ.get("SUFFICE_REFERENCE")
RUNS = ["GPR_power_plant", "BRR_power_plant", "BLR_grid_stability_c"]


@pytest.mark.skipif(FOLDER is None, reason="reference runs: SUFFICE_REFERENCE is not set")
@pytest.mark.parametrize("name", RUNS)
def test_ratio_and_stops_of_the_published_run(name: str) -> None:
    run = np.load(Path(FOLDER or "") / f"{name}.npz")
    stops: dict[str, int | None] = json.loads(str(run["stop"]))
    # The authors take the minimum over m + 1 = 11 steps.
    rule = ErrorStability(0.0, calibration=11)
    values = np.array(
        [
            rule.observe(Step(n_labelled=11 + t, kl_new_old=a, kl_old_new=b)).value
            for t, (a, b) in enumerate(zip(run["kl_new_old"], run["kl_old_new"], strict=True))
        ]
    )
    assert values == pytest.approx(run["error_ratio"], rel=1e-7)
    for threshold, stop in stops.items():
        judge = ErrorStability(float(threshold), calibration=11)
        first = next(
            (
                t
                for t, (a, b) in enumerate(zip(run["kl_new_old"], run["kl_old_new"], strict=True))
                if judge.observe(Step(n_labelled=11 + t, kl_new_old=a, kl_old_new=b)).stop
            ),
            None,
        )
        assert first == stop
