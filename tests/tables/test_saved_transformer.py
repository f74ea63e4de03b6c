"""Fitted transformers that are saved and restored: the same features to the last bit, for all kinds of columns."""

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from suffice.errors import InvalidValueError
from suffice.saved_objects import restored_objects, saved_objects
from suffice.tables.saved_transformer import restored_transformer, transformer_state
from suffice.tables.transformers import PrincipalComponents, TableTransformer

N = 60


def rows(seed: int = 0, n: int = N) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    words = [" ".join(f"word{k}" for k in rng.integers(0, 30, 8)) for _ in range(n)]
    return {
        "number": [None if k % 9 == 2 else float(x) for k, x in enumerate(rng.normal(1e6, 3.0, n))],
        "day": [f"2024-03-{1 + k % 28:02d}" for k in rng.integers(0, 200, n)],
        "yes": ["yes" if k % 3 else "no" for k in range(n)],
        "colour": [("red", "green", "", "blue")[k] for k in rng.integers(0, 4, n)],
        "text": [None if k % 11 == 5 else text for k, text in enumerate(words)],
        "picture": [f"file{k % 7}" for k in range(n)],
        "same": ["one"] * n,
    }


def special() -> dict[str, Any]:
    return {"picture": make_pipeline(FunctionTransformer(_pixels), PrincipalComponents("picture", "pictures", 4))}


def _pixels(names: Any) -> Any:
    return np.array([np.random.default_rng(int(name[4:])).normal(size=10) for name in names])


def saved(fitted: Any) -> Any:
    """After a round trip through the form of a file."""
    return restored_objects(saved_objects(transformer_state(fitted), most_bytes=2**24))


@pytest.mark.parametrize("components", [None, 25])
def test_a_restored_transformer_returns_the_same_features(components: int | None) -> None:
    fitted = TableTransformer(special=special(), components=components, most_characters=1000).fit(rows())
    restored = restored_transformer(saved(fitted), special())
    assert restored.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    assert restored.component_groups() == fitted.component_groups()
    assert restored.notes_ == fitted.notes_
    for table in (rows(), rows(1, 5)):
        assert restored.transform(table).tobytes() == fitted.transform(table).tobytes()
    with pytest.raises(InvalidValueError, match="must have the columns"):
        restored.transform({"number": [1.0]})


def test_a_text_without_words_and_a_reduction_to_principal_components() -> None:
    data = rows() | {"empty": ["!" * (1 + k % 2) for k in range(N)]}
    fitted = TableTransformer(text="empty", special=special()).fit(data)
    X = fitted.transform(data)
    reduced = make_pipeline(fitted, PCA(5, random_state=0).fit(X))
    restored = restored_transformer(saved(reduced), special())
    assert restored.transform(rows(2) | {"empty": data["empty"]}).tobytes() == (
        reduced.transform(rows(2) | {"empty": data["empty"]}).tobytes()
    )


def test_other_transformers_are_not_saved() -> None:
    with pytest.raises(TypeError, match="is not saved"):
        transformer_state(StandardScaler())
    with pytest.raises(TypeError, match="is not saved"):
        transformer_state(make_pipeline(TableTransformer().fit(rows()), StandardScaler()))
    with pytest.raises(LookupError):
        restored_transformer({}, {})
