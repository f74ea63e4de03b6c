"""The demonstration of a check of predictions made elsewhere."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.cli.prediction_demo import TARGET, picture
from suffice.errors import InvalidValueError
from suffice.tables.example_data import predicted_digits
from tests.thoroughness import some

RUN = CliRunner()


@pytest.mark.parametrize("seed", some([0, 3], every=2))
def test_the_demonstration_proves_its_target_with_few_answers(seed: int) -> None:
    done = RUN.invoke(app, ["demo", "--predictions", "--seed", str(seed), "--json"], catch_exceptions=False)
    result = json.loads(done.stdout)
    assert result["guaranteed"]
    assert result["at_most"] == TARGET
    assert result["true_share"] <= result["wrong_at_most"] / result["rows"] <= TARGET
    assert result["checked"] < result["rows"] / 2
    again = RUN.invoke(app, ["demo", "--predictions", "--seed", str(seed), "--json"], catch_exceptions=False)
    assert json.loads(again.stdout) == result


def test_the_demonstration_says_what_a_person_sees() -> None:
    done = RUN.invoke(app, ["demo", "--predictions"], catch_exceptions=False)
    shown = done.stdout.replace("\xa0", " ")
    digits = predicted_digits()
    row = int(shown.split("Row ")[1].split(":")[0].replace(",", "")) - 1
    assert picture(digits.images[row]) in shown
    assert f"The person answers {digits.truth[row]}. The prediction was {digits.predicted[row]}: " in shown
    assert "without seeing the predictions" in shown
    assert "At most 10 % of the predictions for the 1,197 rows are wrong (95 % confidence)." in shown
    share = np.mean(digits.predicted != digits.truth)
    assert f"{100 * share:.2g} % of these predictions are in fact wrong" in shown
    assert "suffice check answers.csv --prediction llm --at-most 5%" in shown


def test_two_demonstrations_are_not_shown_together() -> None:
    with pytest.raises(InvalidValueError, match="--page and --predictions"):
        RUN.invoke(app, ["demo", "--page", "--predictions"], catch_exceptions=False)
