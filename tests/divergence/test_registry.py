import json
import math
import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from suffice import Step, kl, register_kl
from suffice.divergence import Divergence, known_pairs
from suffice.errors import InfiniteDivergenceError, InvalidTypeError, InvalidValueError
from suffice.posteriors import Draws, Gaussian


@dataclass(frozen=True)
class Exponential:
    rate: float


@dataclass(frozen=True)
class Special(Exponential):
    pass


@register_kl(Exponential, Exponential)
def exponential_kl(p: Exponential, q: Exponential) -> float:
    return math.log(p.rate / q.rate) + q.rate / p.rate - 1.0


def test_an_outside_type_joins_by_registering() -> None:
    assert kl(Exponential(1.0), Exponential(2.0)) == pytest.approx(1 - math.log(2))
    assert kl(Special(1.0), Exponential(2.0)) == pytest.approx(1 - math.log(2))
    assert "Exponential || Exponential" in known_pairs()


def test_the_nearest_pair_of_bases_decides() -> None:
    class Base:
        pass

    class Child(Base):
        pass

    register_kl(Base, Base)(lambda p, q: 1.0)
    register_kl(Child, Base)(lambda p, q: 2.0)
    assert [kl(a, b) for a in (Base(), Child()) for b in (Base(), Child())] == [1.0, 1.0, 2.0, 2.0]


def test_an_unknown_pair_lists_what_is_known() -> None:
    with pytest.raises(InvalidTypeError, match=r"int \|\| Gaussian. Known: .*Gaussian \|\| Gaussian.*register_kl"):
        kl(3, Gaussian(0.0, 1.0))


def test_an_outside_function_that_is_wrong_is_caught() -> None:
    class Wrong:
        pass

    for value, error in ((-1.0, InvalidValueError), (math.nan, InvalidValueError), (math.inf, InfiniteDivergenceError)):
        register_kl(Wrong, Wrong)(lambda p, q, value=value: value)
        with pytest.raises(error, match=r"KL\[Wrong \|\| Wrong\]"):
            kl(Wrong(), Wrong())


def test_divergence_is_a_float_that_remembers() -> None:
    value = kl(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))
    assert isinstance(value, float)
    assert json.dumps(value) == "0.5"
    again = pickle.loads(pickle.dumps(value))
    assert isinstance(again, Divergence)
    assert (again, again.kind, again.how) == (value, value.kind, value.how)


class TestDraws:
    rng = np.random.default_rng(0)
    p = rng.normal(size=(4000, 2))
    q = rng.normal(size=(3000, 2)) * 1.5 + [1.0, 0.0]
    exact = kl(Gaussian([0, 0], np.eye(2)), Gaussian([1, 0], 2.25 * np.eye(2)))

    @pytest.mark.parametrize("method", ["gaussian", "knn"])
    def test_the_estimate_is_near_the_truth_and_says_how(self, method: str) -> None:
        value = kl(Draws(self.p, method=method), Draws(self.q, method=method))  # type: ignore[arg-type]
        assert value == pytest.approx(self.exact, abs=0.06)
        assert value.kind == "estimate"
        assert {"gaussian": "Gaussian fits", "knn": "nearest neighbours, k=5"}[method] in value.how
        assert "4000 and 3000 draws" in value.how

    def test_neighbours_see_what_a_gaussian_fit_cannot(self) -> None:
        rng = np.random.default_rng(1)
        two_humps = np.sign(rng.normal(size=4000)) * 3 + rng.normal(size=4000)
        one_hump = rng.normal(size=4000) * np.sqrt(10)
        fits, neighbours = (
            kl(Draws(two_humps[:, None], method=m), Draws(one_hump[:, None], method=m)) for m in ("gaussian", "knn")
        )
        grid = np.linspace(-15, 15, 4001)
        density = [np.exp(-0.5 * (grid - c) ** 2) / np.sqrt(2 * np.pi) / 2 for c in (-3, 3)]
        p, q = sum(density), np.exp(-(grid**2) / 20) / np.sqrt(20 * np.pi)
        truth = float(np.sum(p * np.log(p / q)) * (grid[1] - grid[0]))
        assert fits < 0.01
        assert neighbours == pytest.approx(truth, abs=0.06)

    def test_a_negative_estimate_is_set_to_zero_and_said(self) -> None:
        rng = np.random.default_rng(3)
        values = [kl(*(Draws(rng.normal(size=(60, 1)), method="knn") for _ in range(2))) for _ in range(20)]
        clipped = [v for v in values if v == 0.0]
        assert clipped
        assert all("the raw estimate was -" in v.how for v in clipped)

    def test_identical_draws_and_mixed_methods_are_refused(self) -> None:
        stuck = Draws(np.repeat(self.p[:10], 8, axis=0), method="knn")
        with pytest.raises(InvalidValueError, match="thin the chain"):
            kl(stuck, Draws(self.q, method="knn"))
        with pytest.raises(InvalidValueError, match="both sets of draws must use one method"):
            kl(Draws(self.p, method="knn"), Draws(self.q, method="gaussian"))
        with pytest.raises(InvalidValueError, match="2 and 1 parameters"):
            kl(Draws(self.p, method="knn"), Draws(self.q[:, :1], method="knn"))

    def test_a_step_made_of_estimates_says_so(self) -> None:
        old, new = (Draws(a, method="gaussian") for a in (self.p, self.q))
        assert "Gaussian fits" in Step.between(old, new, n_labelled=3).estimated
        assert "Gaussian fits" in Step(n_labelled=3, kl_new_old=kl(new, old), kl_old_new=0.1).estimated
        assert Step(n_labelled=3, kl_new_old=0.1, kl_old_new=0.1).estimated == ""


def test_nothing_is_imported_that_was_not_given() -> None:
    code = (
        "import sys, suffice as sf; from suffice.posteriors import Gaussian\n"
        "sf.kl(Gaussian([0., 0.], [[1., .5], [.5, 1.]]), Gaussian([1., 0.], precision=[[1., .5], [.5, 1.]]))\n"
        "try: sf.kl(object(), object())\n"
        "except sf.SufficeError: pass\n"
        "print([m for m in ('sklearn', 'torch', 'matplotlib', 'typer', 'rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_registration_that_is_mistyped_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="kind must be one of 'exact', 'bound', 'estimate', not 'estimated'"):
        register_kl(Exponential, Exponential, kind="estimated")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="p_type must be a class, not 'Exponential'"):
        register_kl("Exponential", Exponential)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="kind must be one of"):
        Divergence(0.1, kind="excat", how="by hand")  # type: ignore[arg-type]


def test_a_function_that_returns_no_number_is_refused() -> None:
    class Odd:
        pass

    register_kl(Odd, Odd)(lambda p, q: np.zeros(3))  # type: ignore[type-var]
    with pytest.raises(InvalidTypeError, match=r"registered for Odd \|\| Odd must return one number"):
        kl(Odd(), Odd())


def test_rounding_counts_relative_to_the_terms_that_a_function_names() -> None:
    class Summed:
        pass

    register_kl(Summed, Summed)(lambda p, q: Divergence(-1e-7, kind="exact", how="a long sum", terms=1e4))
    assert kl(Summed(), Summed()) == 0.0


def test_a_sum_is_no_surer_than_its_least_sure_part() -> None:
    exact, rough = (Divergence(v, kind=k, how=k) for v, k in ((0.25, "exact"), (0.5, "estimate")))  # type: ignore[arg-type]
    total = sum([exact, rough])
    assert isinstance(total, Divergence)
    assert (total, total.kind, total.how) == (0.75, "estimate", "exact; estimate")
    assert Step(n_labelled=1, kl_new_old=exact + rough, kl_old_new=0.1).estimated == "exact; estimate"
    assert type(exact + 1.0) is float
    assert type(1.0 + exact) is float
