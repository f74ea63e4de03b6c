"""Posteriors of fitted scikit-learn models: against brute force, against the models themselves, and what is refused."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.posteriors import (
    Gaussian,
    GaussianProcessPosterior,
    IndependentPosteriors,
    fitted_models,
    fitted_posterior,
    posterior_pair,
)
from suffice.posteriors.fitted_models import model_prior, same_rows
from suffice.testing import check_posterior

RNG = np.random.default_rng(3)
N = 40
X = RNG.normal(size=(N, 2))
Y = np.where(X[:, 0] + 0.8 * RNG.normal(size=N) > 0.0, "yes", "no")
Y3 = np.where(X[:, 1] + 0.5 * RNG.normal(size=N) > 0.5, "other", Y)
Z = 3.0 + 2.0 * X[:, 0] + 0.4 * RNG.normal(size=N)
OLD = 30


def exact(**options: Any) -> LogisticRegression:
    return LogisticRegression(**{"tol": 1e-10, "max_iter": 10_000, **options})


# Laplace's approximation is an estimate.


def integrated_kl(inputs: Any, y: Any, before: int) -> float:
    """``KL[new||old]`` of the exact posteriors of two weights with the prior N(0, 1), summed over a fine grid."""
    side = np.linspace(-9.0, 9.0, 301)
    weights = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    signs = np.where(y == "yes", 1.0, -1.0)
    each = -np.logaddexp(0.0, -(weights @ inputs.T) * signs)
    prior = -0.5 * (weights**2).sum(axis=1)
    old, new = (prior + each[:, :n].sum(axis=1) for n in (before, len(y)))
    old, new = (log - np.logaddexp.reduce(log) for log in (old, new))
    return float((np.exp(new) * (new - old)).sum())


@pytest.mark.parametrize(("labels", "close"), [(6, False), (40, True)])
def test_the_divergence_of_a_logistic_regression_is_an_estimate(labels: int, close: bool) -> None:
    """With 6 labels it is clearly off; with more labels less so. It is marked in both cases."""
    # Both classes are among the first labels.
    order = np.r_[np.flatnonzero(Y == "yes")[:2], np.flatnonzero(Y == "no")[:2]]
    order = np.r_[order, np.setdiff1d(np.arange(N), order)][:labels]
    inputs, y = X[order], Y[order]
    pair = posterior_pair(
        exact(fit_intercept=False).fit(inputs, y), (inputs[: labels - 1], y[: labels - 1]), (inputs, y)
    )
    found, truth = sf.kl(pair.new, pair.old), integrated_kl(inputs, y, labels - 1)
    off = abs(found / truth - 1.0)
    assert 1e-3 < off < 1.0
    assert (off < 0.1) == close
    why = "the posterior of LogisticRegression is Laplace's approximation, so the divergence is an estimate"
    assert (found.kind, found.how) == ("estimate", why)
    assert sf.Step.between(*pair, n_labelled=labels).estimated == why


@pytest.mark.parametrize("relative", [True, False])
def test_a_verdict_beside_a_logistic_regression_says_that_it_is_an_estimate(relative: bool) -> None:
    rule = sf.ErrorStability(0.9, relative=relative, calibration=3)
    monitor = sf.StopMonitor(X, rule)
    for n in range(20, 28):
        verdict = monitor.update(LogisticRegression().fit(X[:n], Y[:n]), np.arange(n), Y[:n])
    assert f"the estimated {'error ratio' if relative else 'change of error'} " in str(verdict)
    assert "certified" not in str(verdict)
    assert verdict.certificate is not None
    assert verdict.certificate.statement == (
        "Nothing is guaranteed: the posterior of LogisticRegression is Laplace's approximation, so the divergence is "
        "an estimate."
    )
    assert verdict.certificate.change is None


def test_exact_posteriors_are_not_marked() -> None:
    pair = posterior_pair(BayesianRidge().fit(X, Z), (X[:OLD], Z[:OLD]), (X, Z))
    assert sf.kl(pair.new, pair.old).kind == "exact"
    process = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, Y3)
    estimate = sf.kl(*posterior_pair(process, (X[:OLD], Y3[:OLD]), (X, Y3)))
    assert estimate.kind == "estimate"
    assert "GaussianProcessClassifier" in estimate.how


# Logistic regression.


def label_weights(y: Any, class_weight: Any) -> Any:
    if class_weight is None:
        return np.ones(len(y))
    if class_weight == "balanced":
        counts = {name: (y == name).sum() for name in set(y.tolist())}
        return np.array([len(y) / (len(counts) * counts[name]) for name in y.tolist()])
    return np.array([class_weight.get(name, 1.0) for name in y.tolist()])


def hessian_by_differences(model: Any, inputs: Any, y: Any, weights: Any, precisions: Any) -> tuple[Any, Any]:
    """Gradient and Hessian of the penalised loss by all weights of the model, from differences with 40 digits.

    The weights of each class come first, then its intercept.
    """
    names, flat = model.classes_.tolist(), np.column_stack([model.coef_, model.intercept_]).ravel()
    outputs, width = model.coef_.shape[0], model.coef_.shape[1] + 1

    def objective(w: list[Any]) -> Any:
        total = mpmath.mpf(0)
        for row, label, weight in zip(inputs.tolist(), y.tolist(), weights.tolist(), strict=True):
            z = [
                mpmath.fsum(a * b for a, b in zip(w[k * width : (k + 1) * width], [*row, 1.0], strict=True))
                for k in range(outputs)
            ]
            logits = [mpmath.mpf(0), z[0]] if outputs == 1 else z
            total += weight * (mpmath.log(mpmath.fsum(map(mpmath.exp, logits))) - logits[names.index(label)])
        return total + mpmath.fsum(p * v**2 for p, v in zip(precisions, w, strict=True)) / 2

    with mpmath.workdps(40):
        at, h = [mpmath.mpf(float(v)) for v in flat], mpmath.mpf(10) ** -9

        def moved(*steps: tuple[int, int]) -> Any:
            w = list(at)
            for place, sign in steps:
                w[place] += sign * h
            return objective(w)

        size = len(at)
        gradient = np.array([float((moved((i, 1)) - moved((i, -1))) / (2 * h)) for i in range(size)])
        hessian = np.zeros((size, size))
        for i in range(size):
            for j in range(i + 1):
                four = moved((i, 1), (j, 1)) - moved((i, 1), (j, -1)) - moved((i, -1), (j, 1)) + moved((i, -1), (j, -1))
                hessian[i, j] = hessian[j, i] = float(four / (4 * h * h))
    return gradient, hessian


@pytest.mark.parametrize(
    ("options", "intercept"),
    [
        ({"C": 0.7}, 0.0),
        ({"C": 5.0, "class_weight": {"yes": 3.0}}, 0.0),
        ({"class_weight": "balanced"}, 0.0),
        ({"C": np.inf}, 0.0),
        ({"C": 0.5, "solver": "liblinear", "intercept_scaling": 2.0}, 1.0 / (0.5 * 4.0)),
        ({"C": 0.5, "solver": "newton-cholesky"}, 0.0),
    ],
)
def test_two_classes_have_the_hessian_of_the_penalised_loss(options: dict[str, Any], intercept: float) -> None:
    inputs, y = X[:12], Y[:12]
    y = np.where(np.arange(12) == 3, "no", y)
    model = exact(**options).fit(inputs, y)
    precision = 1.0 / model.C
    weights = label_weights(y, options.get("class_weight"))
    gradient, hessian = hessian_by_differences(model, inputs, y, weights, [precision, precision, intercept])
    assert np.abs(gradient).max() < 1e-3
    found = fitted_posterior(model, inputs, y)
    np.testing.assert_allclose(found.factor @ found.factor.T, hessian, rtol=1e-3)
    np.testing.assert_allclose(found.mean, [*model.coef_[0], model.intercept_[0]], atol=1e-3)


def test_contrasts_of_many_classes_have_the_divergence_of_all_weights() -> None:
    """All K (D + 1) weights, with a proper prior on the sum of the intercepts, which no label tells anything about."""
    dense, exacts = [], []
    for n in (10, 14):
        model = exact(C=2.0).fit(X[:n], Y3[:n])
        precisions = [0.5, 0.5, 0.0] * 3
        gradient, hessian = hessian_by_differences(model, X[:n], Y3[:n], np.ones(n), precisions)
        assert np.abs(gradient).max() < 1e-6
        total = np.tile([0.0, 0.0, 1.0], 3)
        mean = np.column_stack([model.coef_, model.intercept_ - model.intercept_.mean()]).ravel()
        dense.append(Gaussian(mean, precision=hessian + np.outer(total, total)))
        exacts.append(fitted_posterior(model, X[:n], Y3[:n]))
        assert exacts[-1].dimension == 6
    assert sf.kl(exacts[1], exacts[0]) == pytest.approx(sf.kl(dense[1], dense[0]), rel=1e-5)
    assert sf.kl(exacts[0], exacts[1]) == pytest.approx(sf.kl(dense[0], dense[1]), rel=1e-5)


def test_the_mode_is_that_of_a_solver_that_has_converged() -> None:
    """A loose tolerance of the solver does not change the posterior."""
    loose, tight = LogisticRegression(tol=1e-2).fit(X, Y3), exact().fit(X, Y3)
    assert np.abs(loose.coef_ - tight.coef_).max() > 1e-4
    one, other = (fitted_posterior(model, X, Y3) for model in (loose, tight))
    assert sf.kl(one, other) < 1e-18
    np.testing.assert_allclose(one.factor, other.factor, rtol=1e-9, atol=1e-12)


def test_a_model_without_an_intercept() -> None:
    model = exact(fit_intercept=False).fit(X, Y)
    found = fitted_posterior(model, X, Y)
    np.testing.assert_allclose(found.mean, model.coef_[0], rtol=1e-6)
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(found.factor @ found.factor.T, X.T * (p * (1 - p)) @ X + np.eye(2), rtol=1e-6)


def test_a_search_has_the_posterior_of_its_best_model() -> None:
    options: dict[str, Any] = {"max_iter": 2000, "scoring": "neg_log_loss", "Cs": [0.01, 0.3, 10.0], "cv": 3}
    if hasattr(LogisticRegressionCV(), "use_legacy_attributes"):
        options |= {"l1_ratios": (0.0,), "use_legacy_attributes": True}
    searched = LogisticRegressionCV(**options).fit(X, Y)
    plain = exact(C=float(searched.C_[0])).fit(X, Y)
    expected = fitted_posterior(plain, X, Y)
    assert sf.kl(fitted_posterior(searched, X, Y), expected) < 1e-12
    grid = GridSearchCV(exact(), {"C": [float(searched.C_[0])]}, cv=2).fit(X, Y)
    assert sf.kl(fitted_posterior(grid, X, Y), expected) < 1e-12
    searched.refit = False
    with pytest.raises(InvalidValueError, match="averages over folds, which have no posterior; set refit=True"):
        fitted_posterior(searched, X, Y)
    searched.refit, searched.C_ = True, np.array([1.0, 2.0])
    with pytest.raises(InvalidValueError, match="another C for each class"):
        fitted_posterior(searched, X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": "l1"}, r"has an l1 penalty, whose posterior is not Gaussian; use an l2 penalty \(l1_ratio=0\)"),
        ({"penalty": "elasticnet", "l1_ratio": 0.5}, "has an l1 penalty"),
        ({"multi_class": "multinomial"}, "fits two classes as many, whose posterior is not known"),
    ],
)
def test_settings_without_a_posterior(change: dict[str, Any], message: str) -> None:
    model = LogisticRegression().fit(X, Y)
    for name, value in change.items():
        setattr(model, name, value)
    with pytest.raises(InvalidValueError, match=message):
        fitted_posterior(model, X, Y)
    many = LogisticRegression().fit(X, Y3)
    many.multi_class = "ovr"
    with pytest.raises(InvalidValueError, match="fits one class against the rest"):
        fitted_posterior(many, X, Y3)


def test_no_penalty_on_classes_that_are_separate_has_no_posterior() -> None:
    labels = np.where(X[:, 0] > 0.0, "yes", "no")
    model = LogisticRegression(C=1e8, max_iter=10_000).fit(X, labels)
    model.C = np.inf
    with pytest.raises(InvalidValueError, match=r"without a penalty its weights are not determined .*\(a finite C\)"):
        fitted_posterior(model, X, labels)


def test_extreme_penalties() -> None:
    for C in (1e-8, 1e8):
        found = fitted_posterior(exact(C=C).fit(X, Y), X, Y)
        assert np.isfinite(found.factor).all()
    separate = np.where(X[:, 0] > 0.0, "yes", "no")
    pair = posterior_pair(
        LogisticRegression(C=1e6, max_iter=10_000, solver="newton-cholesky").fit(X, separate),
        (X[:OLD], separate[:OLD]),
        (X, separate),
    )
    assert 0.0 < sf.kl(*pair) < np.inf


# Regression.


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [BayesianRidge, ARDRegression])
def test_linear_regression_predicts_as_the_model(kind: Any, fit_intercept: bool) -> None:
    inputs = np.column_stack([X + 4.0, RNG.normal(size=N)])
    # With a small threshold ARDRegression prunes a weight.
    options = {"threshold_lambda": 20.0} if kind is ARDRegression else {}
    model = kind(fit_intercept=fit_intercept, **options).fit(inputs, Z)
    kept = model.lambda_ < 20.0 if kind is ARDRegression else np.ones(3, dtype=bool)
    found = fitted_posterior(model, inputs, Z)
    assert found.dimension == kept.sum() + fit_intercept
    if kind is ARDRegression and fit_intercept:
        assert not kept.all()
    points = RNG.normal(size=(7, 3))
    rows = np.column_stack([points[:, kept], np.ones(7)]) if fit_intercept else points[:, kept]
    covariance = np.linalg.inv(found.factor @ found.factor.T)
    np.testing.assert_allclose(rows @ found.mean, model.predict(points), rtol=1e-6)
    # The covariance of the model leaves out the variance of the intercept at the mean of the inputs, noise / n. With an
    # intercept, older versions of scikit-learn do not centre the inputs before they predict a deviation.
    centred = points[:, kept] - (inputs.mean(axis=0)[kept] if fit_intercept else 0.0)
    own = np.einsum("ij,jk,ik->i", centred, model.sigma_, centred)
    if not fit_intercept:
        np.testing.assert_allclose(own, model.predict(points, return_std=True)[1] ** 2 - 1.0 / model.alpha_, rtol=1e-6)
    own += fit_intercept / (N * model.alpha_)
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", rows, covariance, rows), own, rtol=1e-5)


def test_the_intercept_is_in_the_posterior() -> None:
    """A label at the mean of the inputs moves the intercept alone."""
    inputs, y = X[:8].copy(), Z[:8].copy()
    inputs[7], y[7] = inputs[:7].mean(axis=0), 9.0
    model = BayesianRidge().fit(inputs, y)
    old, new = posterior_pair(model, (inputs[:7], y[:7]), (inputs, y))
    assert sf.kl(new, old) > 0.1
    assert sf.kl(new, old).kind == "exact"


def test_linear_regression_conditions_a_dense_gaussian() -> None:
    """Conditioning on the labels one after another, from a prior that is as good as flat for the intercept."""
    model = BayesianRidge().fit(X, Z)
    mean, covariance = np.zeros(3), np.diag([1.0 / model.lambda_] * 2 + [1e9])
    for row, label in zip(np.column_stack([X, np.ones(N)]), Z, strict=True):
        gain = covariance @ row / (row @ covariance @ row + 1.0 / model.alpha_)
        mean, covariance = mean + gain * (label - row @ mean), covariance - np.outer(gain, row @ covariance)
    found = fitted_posterior(model, X, Z)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.inv(found.factor @ found.factor.T), covariance, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("normalize_y", [True, False])
def test_a_gaussian_process_that_learns_its_kernel(normalize_y: bool) -> None:
    model = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), normalize_y=normalize_y).fit(X, Z)
    before = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), normalize_y=normalize_y).fit(X[:OLD], Z[:OLD])
    assert model.kernel_ != before.kernel_
    old, new = posterior_pair(model, (X[:OLD], Z[:OLD]), (X, Z))
    points = RNG.normal(size=(5, 2))
    centre, scale = float(np.squeeze(model._y_train_mean)), float(np.squeeze(model._y_train_std))
    mean, covariance = new.latent(points)
    expected, deviation = model.predict(points, return_std=True)
    np.testing.assert_allclose(centre + scale * mean, expected, rtol=1e-6)
    noise = model.kernel_.k2.noise_level
    np.testing.assert_allclose(scale**2 * (np.diag(covariance) + noise), deviation**2, rtol=1e-6)
    # The old labels under the new kernel are what scikit-learn gives with that kernel and no optimizer.
    if not normalize_y:
        fixed = [GaussianProcessRegressor(model.kernel_, optimizer=None).fit(X[:n], Z[:n]) for n in (OLD, N)]
        assert sf.kl(new, old) == pytest.approx(sf.kl(fixed[1], fixed[0]), rel=1e-9)
    assert 0.0 < sf.kl(new, old) < np.inf


# Gaussian process classifiers.


def test_a_binary_gaussian_process_classifier_has_the_latent_process_of_the_model() -> None:
    for kernel in (1.5 * RBF(1.2), 1.5 * RBF(1.2) + WhiteKernel(0.3)):
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, Y)
        found = fitted_posterior(model, X, Y)
        points = RNG.normal(size=(6, 2))
        mean, covariance = found.latent(points)
        base = model.base_estimator_
        v = np.linalg.solve(base.L_, base.W_sr_[:, None] * base.kernel_(X, points))
        np.testing.assert_allclose(mean, base.kernel_(X, points).T @ (base.y_train_ - base.pi_), atol=1e-4)
        np.testing.assert_allclose(covariance, base.kernel_(points, points) - v.T @ v, atol=1e-4)


def test_the_pseudo_observations_have_laplaces_marginal_likelihood() -> None:
    """At the mode, Laplace's log marginal likelihood is log p(y | f) - f'K^-1 f / 2 - log|I + W K| / 2."""
    model = GaussianProcessClassifier(1.5 * RBF(1.2), optimizer=None).fit(X, Y)
    found = fitted_posterior(model, X, Y)
    K, signs = np.asarray(found.kernel(X, X)), np.where(Y == "yes", 1.0, -1.0)
    a = np.linalg.solve(K + np.diag(found.noise), found.y)
    f = K @ a
    evidence = -np.logaddexp(0.0, -signs * f).sum() - 0.5 * a @ f
    evidence -= 0.5 * np.linalg.slogdet(np.eye(N) + K / found.noise)[1]
    assert evidence == pytest.approx(model.log_marginal_likelihood(model.kernel_.theta), rel=1e-6)
    # The mode: the gradient of the log posterior is 0.
    np.testing.assert_allclose(a, signs / (1.0 + np.exp(signs * f)), atol=1e-9)


def test_the_divergence_of_classifiers_is_that_of_dense_gaussians() -> None:
    model = GaussianProcessClassifier(1.5 * RBF(0.7), optimizer=None).fit(X[:12], Y[:12])
    old, new = posterior_pair(model, (X[:9], Y[:9]), (X[:12], Y[:12]))
    dense = [Gaussian(*each.latent(X[:12])) for each in (old, new)]
    assert sf.kl(new, old) == pytest.approx(sf.kl(dense[1], dense[0]), rel=1e-5)
    assert sf.kl(old, new) == pytest.approx(sf.kl(dense[0], dense[1]), rel=1e-5)


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_many_classes_are_independent_binary_processes(scheme: str) -> None:
    model = GaussianProcessClassifier(1.0 * RBF(1.0), multi_class=scheme).fit(X, Y3)
    old, new = posterior_pair(model, (X[:OLD], Y3[:OLD]), (X, Y3))
    total, names = 0.0, model.classes_.tolist()
    for k, base in enumerate(model.base_estimator_.estimators_):
        positive = [names[k]] if scheme == "one_vs_rest" else [[names[1]], [names[2]], [names[2]]][k]
        classes = names if scheme == "one_vs_rest" else [[0, 1], [0, 2], [1, 2]][k]
        used = np.isin(Y3, classes if scheme == "one_vs_rest" else [names[c] for c in classes])
        binary = GaussianProcessClassifier(base.kernel_, optimizer=None).fit(X[used], np.isin(Y3[used], positive))
        rows = np.flatnonzero(used)
        first = rows[rows < OLD]
        sides = posterior_pair(binary, (X[first], np.isin(Y3[first], positive)), (X[rows], np.isin(Y3[rows], positive)))
        total += sf.kl(sides.new, sides.old)
    assert isinstance(new, IndependentPosteriors)
    assert sf.kl(new, old) == pytest.approx(total, rel=1e-9)
    # A class without old labels is no obstacle: the prior of a process is proper.
    without = Y3[:OLD] != "other"
    late = posterior_pair(model, (X[:OLD][without], Y3[:OLD][without]), (X, Y3))
    assert 0.0 < sf.kl(*late) < np.inf


def test_independent_posteriors_conform() -> None:
    one, other = Gaussian([0.0, 1.0], diagonal=[1.0, 2.0]), Gaussian([0.5, 1.0], diagonal=[1.5, 2.0])
    check_posterior(IndependentPosteriors([one, other]), IndependentPosteriors([other, one]))
    model = GaussianProcessClassifier().fit(X, Y3)
    check_posterior(*posterior_pair(model, (X[:OLD], Y3[:OLD]), (X, Y3)))


def test_parts_must_match() -> None:
    one = Gaussian(0.0, 1.0)
    assert sf.kl(IndependentPosteriors([one, one]), IndependentPosteriors([one, Gaussian(1.0, 1.0)])) == 0.5
    with pytest.raises(InvalidValueError, match="1 and 2 parts"):
        sf.kl(IndependentPosteriors([one]), IndependentPosteriors([one, one]))
    with pytest.raises(InvalidValueError, match="at least one posterior"):
        IndependentPosteriors([])


# Pipelines and wrappers.


def test_a_pipeline_has_the_posterior_of_its_last_step() -> None:
    model = make_pipeline(StandardScaler(), "passthrough", exact()).fit(5.0 + 3.0 * X, Y)
    inner = exact().fit(model[0].transform(5.0 + 3.0 * X), Y)
    expected = fitted_posterior(inner, model[0].transform(5.0 + 3.0 * X), Y)
    assert sf.kl(fitted_posterior(model, 5.0 + 3.0 * X, Y), expected) < 1e-18


def test_old_labels_are_transformed_as_new_ones() -> None:
    texts = [f"{'good' if label == 'yes' else 'bad'} word{i % 5} and {i % 7}" for i, label in enumerate(Y)]
    model = make_pipeline(TfidfVectorizer(), exact()).fit(texts, Y)
    old, new = posterior_pair(model, (texts[:OLD], Y[:OLD]), (texts, Y))
    features = model[0].transform(texts).toarray()
    plain = posterior_pair(model[1], (features[:OLD], Y[:OLD]), (features, Y))
    assert sf.kl(new, old) == sf.kl(plain.new, plain.old)
    before = make_pipeline(TfidfVectorizer(), exact()).fit(texts[:OLD], Y[:OLD])
    assert sf.kl(old, fitted_posterior(model, texts[:OLD], Y[:OLD], refit=True)) == 0.0
    assert before[0].idf_.tolist() != model[0].idf_.tolist()


@pytest.mark.filterwarnings("ignore")
def test_wrappers_of_scikit_activeml() -> None:
    classifiers = pytest.importorskip("skactiveml.classifier")
    regressors = pytest.importorskip("skactiveml.regressor")
    codes = np.where(Y == "yes", 7.0, 3.0)
    some, numbers = codes.copy(), Z.copy()
    some[OLD:] = numbers[OLD:] = np.nan
    for model, wrapped, labels, given_labels in (
        (exact(), classifiers.SklearnClassifier(exact(), classes=[3, 7]), codes, some),
        (
            make_pipeline(StandardScaler(), exact()),
            classifiers.SklearnClassifier(make_pipeline(StandardScaler(), exact()), classes=[3, 7]),
            codes,
            some,
        ),
        (BayesianRidge(), regressors.SklearnRegressor(BayesianRidge()), Z, numbers),
        (BayesianRidge(), regressors.SklearnNormalRegressor(BayesianRidge()), Z, numbers),
    ):
        plain = model.fit(X[:OLD], labels[:OLD])
        wrapped.fit(X, given_labels)
        one, other = (fitted_posterior(each, X[:OLD], labels[:OLD]) for each in (plain, wrapped))
        assert sf.kl(one, other) < 1e-18
        assert model_prior(wrapped) == model_prior(plain)


class _Wrapped:
    """A wrapper that fits its model on the numbers of its classes."""

    __module__ = "skactiveml.classifier"

    def __init__(self, model: Any, classes: Any) -> None:
        self.estimator_, self.classes_ = model, np.array(classes)


def test_a_wrapper_that_numbers_its_classes() -> None:
    inner = exact(class_weight={1: 2.0}).fit(X, np.where(Y == "yes", 1, 0))
    plain = exact(class_weight={"yes": 2.0}).fit(X, Y)
    found = fitted_posterior(_Wrapped(inner, ["no", "yes"]), X, Y)
    assert sf.kl(found, fitted_posterior(plain, X, Y)) < 1e-12


def test_models_of_suffice() -> None:
    for model, labels in (
        (sf.models.BayesianLogistic(), Y3),
        (sf.models.GaussianProcess(), Z),
        (sf.models.BayesianRidge(), Z),
        (make_pipeline(sf.models.RadialBasis(4), sf.models.BayesianRidge()), Z),
    ):
        model.fit(X, labels)
        new = fitted_posterior(model, X, labels)
        assert sf.kl(new, fitted_posterior(model, X, labels, refit=True)) < 1e-9
        old, again = posterior_pair(model, (X[:OLD], labels[:OLD]), (X, labels))
        assert sf.kl(again, new) == 0.0
        assert 0.0 < sf.kl(new, old) < np.inf
    # A class without old labels has a proper prior here.
    late = sf.models.BayesianLogistic(alpha=1.0).fit(X, Y3)
    without = Y3 != "other"
    assert sf.kl(*posterior_pair(late, (X[without], Y3[without]), (X, Y3))) > 0.0
    with pytest.raises(InvalidValueError, match="fourth"):
        fitted_posterior(late, X[:1], ["fourth"], refit=True)


# Many features.


@pytest.mark.parametrize("kind", ["two", "many", "ridge", "ard", "sparse"])
def test_the_span_of_the_labels_gives_the_same_divergences(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wide: Any = RNG.normal(size=(12, 30)) / 5.0
    wide[5] = wide[4]
    targets = {"two": Y, "many": Y3, "sparse": Y}.get(kind, Z)[:12]
    model = {"ridge": BayesianRidge(), "ard": ARDRegression(threshold_lambda=1e9)}.get(kind, exact(C=3.0))
    inputs = sparse.csr_matrix(wide) if kind == "sparse" else wide
    model.fit(inputs, targets)
    pair = posterior_pair(model, (inputs[:9], targets[:9]), (inputs, targets))
    outputs = 2 if kind == "many" else 1
    monkeypatch.setattr(fitted_models, "MOST_WEIGHTS", outputs * 13)
    reduced = posterior_pair(model, (inputs[:9], targets[:9]), (inputs[:12], targets))
    assert reduced.new.dimension == outputs * 12 < pair.new.dimension
    assert sf.kl(reduced.new, reduced.old) == pytest.approx(sf.kl(pair.new, pair.old), rel=1e-6)
    assert sf.kl(reduced.old, reduced.new) == pytest.approx(sf.kl(pair.old, pair.new), rel=1e-6)


def documents(n: int) -> Any:
    """Rows of 20,000 features, 30 of which are not 0."""
    words = np.random.default_rng(0).integers(0, 20_000, size=30 * n)
    return sparse.csr_matrix((np.full(30 * n, 0.2), (np.repeat(np.arange(n), 30), words)), shape=(n, 20_000))


def test_twenty_thousand_features() -> None:
    rows, labels = documents(60), np.where(np.arange(60) % 2, "a", "b")
    model = LogisticRegression().fit(rows, labels)
    old, new = posterior_pair(model, (rows[:50], labels[:50]), (rows, labels))
    assert new.dimension <= 111
    assert 0.0 < sf.kl(new, old) < np.inf
    message = r"20,001 weights, whose precision would take 3.2 GB, and at most 2,000 are possible.*TruncatedSVD\(100\)"
    model.C = np.inf
    with pytest.raises(InvalidValueError, match=message):
        posterior_pair(model, (rows[:50], labels[:50]), (rows, labels))
    model.C = 1.0
    many = documents(2100)
    with pytest.raises(InvalidValueError, match=r"20,001 weights.*The 2,100 labels do not reduce them"):
        posterior_pair(model, (many[:5], labels[:5]), (many[5:], np.resize(labels, 2095)))
    three = np.resize(["a", "b", "c"], 60)
    model = LogisticRegression().fit(rows, three)
    with pytest.raises(InvalidValueError, match="the posteriors of two sets of labels cannot be compared otherwise"):
        fitted_posterior(model, rows, three)


# Properties.

FAMILIES: dict[str, Callable[[], Any]] = {
    "logistic": LogisticRegression,
    "process": lambda: GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None),
    "one_vs_one": lambda: GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None, multi_class="one_vs_one"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(6, 14), st.integers(1, 5))
def test_divergences_do_not_depend_on_the_names_of_classes(
    family: str, seed: int, classes: int, n: int, more: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs, codes = rng.normal(size=(n + more, 2)), rng.integers(0, classes, size=n + more)
    codes[:classes] = np.arange(classes)
    values = []
    for names in (["a", "b", "c", "d"], ["z", "q", "b", "a"], [5, 1, 9, -2]):
        labels = np.array([names[code] for code in codes])
        model = FAMILIES[family]().fit(inputs, labels)
        old, new = posterior_pair(model, (inputs[:n], labels[:n]), (inputs, labels))
        values.append((sf.kl(new, old), sf.kl(old, new)))
        assert min(values[-1]) > 0.0
        same = posterior_pair(model, (inputs, labels), (inputs, labels))
        assert sf.kl(*same) == 0.0
    np.testing.assert_allclose(values[1:], [values[0]] * 2, rtol=1e-5, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(5, 14), st.integers(1, 5), st.booleans())
def test_divergences_of_regressions_do_not_depend_on_the_order_of_labels(
    seed: int, n: int, more: int, fit_intercept: bool
) -> None:
    rng = np.random.default_rng(seed)
    inputs, y = rng.normal(size=(n + more, 2)), rng.normal(size=n + more)
    model = BayesianRidge(fit_intercept=fit_intercept).fit(inputs, y)
    order = rng.permutation(n)
    one = posterior_pair(model, (inputs[:n], y[:n]), (inputs, y))
    other = posterior_pair(model, (inputs[order], y[order]), (inputs[::-1], y[::-1]))
    assert sf.kl(one.new, one.old) >= 0.0
    assert sf.kl(one.new, one.old) == pytest.approx(sf.kl(other.new, other.old), rel=1e-6, abs=1e-12)


# What is refused.


def test_labels_that_the_model_was_not_fitted_on() -> None:
    message = r"weights of LogisticRegression are not those that X and y give.*without sample_weight.*raise max_iter"
    model = LogisticRegression().fit(X, Y)
    wrong = np.where(Y == "yes", "no", "yes")
    with pytest.raises(InvalidValueError, match=message):
        fitted_posterior(model, X, wrong)
    assert fitted_posterior(model, X, wrong, refit=True).dimension == 3
    weighted = LogisticRegression().fit(X, Y, sample_weight=np.where(Y == "yes", 20.0, 1.0))
    with pytest.raises(InvalidValueError, match=message):
        fitted_posterior(weighted, X, Y)
    with pytest.raises(InvalidValueError, match="weights of BayesianRidge are not those"):
        fitted_posterior(BayesianRidge().fit(X, Z), X, Z[::-1])
    for each, labels in ((GaussianProcessRegressor(optimizer=None), Z), (GaussianProcessClassifier(), Y)):
        with pytest.raises(InvalidValueError, match=r"was fitted on 40 labels, and 30 came; fit it on all of them"):
            fitted_posterior(each.fit(X, labels), X[:OLD], labels[:OLD])


def test_classes_that_do_not_fit() -> None:
    model = LogisticRegression().fit(X, Y3)
    without = Y3 != "other"
    message = "class 'other' had no label before, and without one there is no posterior.*flat prior"
    with pytest.raises(InvalidValueError, match=message):
        posterior_pair(model, (X[without], Y3[without]), (X, Y3))
    with pytest.raises(InvalidValueError, match="classes 'no', 'other' had no label"):
        fitted_posterior(model, X[Y3 == "yes"], Y3[Y3 == "yes"], refit=True)
    for kind in (LogisticRegression(), GaussianProcessClassifier()):
        with pytest.raises(InvalidValueError, match=f"class 'other' had labels before, and {type(kind).__name__}"):
            posterior_pair(kind.fit(X, Y), (X, Y3), (X, Y))
    # Without an intercept every prior is proper.
    proper = LogisticRegression(fit_intercept=False).fit(X, Y3)
    assert sf.kl(*posterior_pair(proper, (X[without], Y3[without]), (X, Y3))) > 0.0


@pytest.mark.parametrize(
    "kind",
    [
        LogisticRegression,
        GaussianProcessClassifier,
        BayesianRidge,
        ARDRegression,
        GaussianProcessRegressor,
        sf.models.BayesianLogistic,
        sf.models.GaussianProcess,
    ],
)
def test_models_that_are_not_fitted(kind: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"this {kind.__name__} is not fitted yet; call fit"):
        fitted_posterior(kind(), X, Y)


def test_bad_arguments() -> None:
    with pytest.raises(InvalidTypeError, match=r"posterior of RandomForestClassifier is not known.*LogisticRegression"):
        fitted_posterior(RandomForestClassifier(), X, Y)
    with pytest.raises(InvalidTypeError, match="posterior of object is not known"):
        posterior_pair(object(), (X, Y), (X, Y))
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(InvalidValueError, match="X has 40 rows and y 39 labels"):
        fitted_posterior(model, X, Y[:-1])
    with pytest.raises(InvalidValueError, match="X has 0 rows and y 0 labels"):
        fitted_posterior(model, X[:0], Y[:0], refit=True)
    with pytest.raises(InvalidValueError, match="X has 1 features, and LogisticRegression was fitted on 2"):
        fitted_posterior(model, X[:, :1], Y)
    with pytest.raises(InvalidValueError, match="X must be a table of numbers for the posterior of LogisticRegression"):
        fitted_posterior(model, ["a text"] * N, Y)
    with pytest.raises(InvalidValueError, match="X has 1 features, and BayesianRidge was fitted on 2"):
        fitted_posterior(BayesianRidge().fit(X, Z), X[:, :1], Z)


def test_settings_of_regressions_that_are_refused() -> None:
    several = GaussianProcessRegressor(optimizer=None).fit(X, np.column_stack([Z, Z]))
    with pytest.raises(InvalidValueError, match="has 2 outputs; fit one model for each"):
        fitted_posterior(several, X, Z)
    noisy = GaussianProcessRegressor(alpha=np.full(N, 0.1), optimizer=None).fit(X, Z)
    with pytest.raises(InvalidValueError, match="alpha of this GaussianProcessRegressor is one number for each label"):
        fitted_posterior(noisy, X, Z)
    pruned = ARDRegression(fit_intercept=False).fit(X, Z)
    pruned.threshold_lambda = 0.0
    with pytest.raises(InvalidValueError, match="has no weights left: each precision is above threshold_lambda"):
        fitted_posterior(pruned, X, Z)


def test_kernels_of_texts_are_refused() -> None:
    class OfTexts(RBF):  # type: ignore[misc]
        requires_vector_input = False

    model = GaussianProcessRegressor(OfTexts(), optimizer=None).fit(X, Z)
    with pytest.raises(InvalidValueError, match="is not one of vectors"):
        fitted_posterior(model, X, Z)


def test_two_models_without_their_labels_are_refused_with_the_remedy() -> None:
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(InvalidTypeError, match=r"give suffice.posteriors.fitted_posterior\(model, X, y\)"):
        sf.kl(model, clone(model).fit(X[:OLD], Y[:OLD]))


def test_rows_are_compared_dense_and_sparse() -> None:
    one = sparse.csr_matrix(X)
    assert same_rows(one, one.copy())
    assert not same_rows(one, sparse.csr_matrix(X + 1.0))
    assert not same_rows(one, X)
    assert not same_rows(X, X[:3])


def test_posteriors_are_values() -> None:
    model = GaussianProcessClassifier().fit(X, Y)
    found = fitted_posterior(model, X, Y)
    assert isinstance(found, GaussianProcessPosterior)
    before = sf.kl(found, fitted_posterior(model, X[:OLD], Y[:OLD], refit=True))
    model.fit(X[:9], Y[:9])
    assert sf.kl(found, fitted_posterior(clone(model).fit(X, Y), X[:OLD], Y[:OLD], refit=True)) == before
