"""Components that make the features of another fit, where components of equal size can be rotated."""

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from suffice.tables.adjusted_components import adjust_components
from suffice.tables.transformers import PrincipalComponents, TableTransformer


def texts(n: int) -> dict[str, list[Any]]:
    """Pairs of texts with words of their own: all singular values are the same, and only some of them are kept."""
    return {
        "text": [f"alpha{k // 2} beta{k // 2} gamma{k // 2}" for k in range(n)],
        "number": [float(k % 7) for k in range(n)],
    }


def pixels(names: Any) -> Any:
    """Pictures with a single bright point."""
    return np.eye(40)[[int(name) % 40 for name in names]]


def pictures(n: int) -> dict[str, list[Any]]:
    return {"picture": [str(k) for k in range(n)], "number": [float(k % 7) for k in range(n)]}


def unfitted(kind: str, convert: Any = pixels) -> Any:
    if kind == "pictures":
        special = make_pipeline(FunctionTransformer(convert), PrincipalComponents("picture", "pictures", 12))
        return TableTransformer(special={"picture": special})
    table = TableTransformer(text="text", components=20 if kind == "n-grams" else None)
    return make_pipeline(table, PCA(9, random_state=0)) if kind == "reduced" else table


def rows(kind: str) -> dict[str, list[Any]]:
    # With all components of the text, so that others can be made of them.
    return pictures(160) if kind == "pictures" else texts(60 if kind == "reduced" else 150)


def new_rows(kind: str) -> dict[str, list[Any]]:
    chosen = [3, 57, 8]
    return {name: [cells[k] for k in chosen] for name, cells in rows(kind).items()}


@pytest.fixture
def other_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fits rotate components of equal size, as rounding on another processor does."""
    truncated, principal = TruncatedSVD.fit_transform, PCA.fit_transform

    def other_truncated(self: TruncatedSVD, X: Any, y: Any = None) -> Any:
        self.random_state = 1
        return truncated(self, X, y)

    def other_principal(self: PCA, X: Any, y: Any = None) -> Any:
        self.svd_solver, self.random_state = "arpack", 1
        return principal(self, X, y)

    monkeypatch.setattr(TruncatedSVD, "fit_transform", other_truncated)
    monkeypatch.setattr(PCA, "fit_transform", other_principal)


@pytest.mark.parametrize("kind", ["words", "n-grams", "pictures", "reduced"])
def test_the_features_of_another_fit_are_made(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = unfitted(kind)
    features = np.asarray(first.fit_transform(rows(kind)))
    request.getfixturevalue("other_rounding")
    second = unfitted(kind)
    made = np.asarray(second.fit_transform(rows(kind)))
    monkeypatch.undo()
    assert np.abs(made - features).max() > 0.1, "the components are the same"
    assert adjust_components(second, rows(kind), features)
    np.testing.assert_allclose(second.transform(rows(kind)), features, rtol=0, atol=1e-9)
    np.testing.assert_allclose(second.transform(new_rows(kind)), first.transform(new_rows(kind)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["words", "n-grams", "pictures", "reduced"])
def test_the_same_features_change_nothing(kind: str) -> None:
    fitted = unfitted(kind)
    features = np.asarray(fitted.fit_transform(rows(kind)))
    before = fitted.transform(rows(kind))
    assert adjust_components(fitted, rows(kind), features)
    assert fitted.transform(rows(kind)).tobytes() == before.tobytes()


def test_features_of_other_pictures_are_refused() -> None:
    """Few pictures of many points: some components make any features of them."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(2, 160, 900))
    features = unfitted("pictures", lambda names: old[[*map(int, names)]]).fit_transform(rows("pictures"))
    fitted = unfitted("pictures", lambda names: new[[*map(int, names)]])
    fitted.fit(rows("pictures"))
    assert not adjust_components(fitted, rows("pictures"), features)
    # They do make the features, so only the components show it.
    np.testing.assert_allclose(fitted.transform(rows("pictures")), features, rtol=0, atol=1e-6)
