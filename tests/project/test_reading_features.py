"""Features that are given, and texts as a language model sees them."""

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.project.item_features import given_features
from suffice.project.items import Items
from suffice.project.read_items import ReadingOptions, read_items
from suffice.tables.file_reader import read_columns
from suffice.tables.transformers import PrincipalComponents

TEXTS = ["good film", "bad film", "good book", "bad book", "a good song", ""]


def read(**options: Any) -> Items:
    rows = "".join(f"{text},{k}\n" for k, text in enumerate(TEXTS))
    Path("t.csv").write_text("review,n\n" + rows)
    return read_items(Path("t.csv"), ReadingOptions(classes=("a", "b"), **options))


# Features that are given


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_, ">f8"])
def test_given_features_are_taken_as_they_are(dtype: Any) -> None:
    X = np.array([[1, 0], [0, 0], [1, 1], [0, 1], [1, 0], [1, 1]], dtype=dtype)
    np.save("f.npy", X)
    items = read(features=Path("f.npy"))
    assert items.X.dtype == np.float64
    assert items.X.flags.c_contiguous
    assert (items.X == X).all()
    assert items.columns == ("review", "n")
    assert items.notes == ("features: 2 of f.npy, taken as they are, in the order of the items",)


def test_given_features_of_uneven_ranges_are_pointed_out() -> None:
    np.save("f.npy", np.array([[0.0, 0.0, 7.0], [1.0, 2000.0, 7.0]]))
    assert given_features(Path("f.npy"), 2).notes[1] == (
        "features: the range of a column goes from 1 to 2e+03, and large ones weigh more; "
        "standardise them if that is not meant"
    )
    np.save("f.npy", np.array([[0.0, -1.7e308], [5e-324, 1.7e308]]))
    assert "from 4.94e-324 to inf" in given_features(Path("f.npy"), 2).notes[1]
    np.save("f.npy", np.array([[0.0, 0.0], [1.0, 1000.0]]))
    assert len(given_features(Path("f.npy"), 2).notes) == 1


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((5, 2)), r"--features f\.npy has 5 rows, and there are 6 items"),
        (np.zeros(6), r"has the shape \(6,\); a row for each item .* x\.reshape\(-1, 1\)"),
        (np.zeros((6, 2, 2)), r"has the shape \(6, 2, 2\)"),
        (np.zeros((6, 0)), r"has the shape \(6, 0\)"),
        (np.zeros(()), r"has the shape \(\)"),
        (np.ones((6, 2)), "every item has the same features; some must differ"),
        (
            np.array([[1, 2]] * 2 + [[3, np.nan]] * 4),
            r"must hold finite numbers, and at row 3, column 2 \(from 1\) is nan",
        ),
        (np.array([[1, -np.inf]] * 6), "at row 1, column 2 .* is -inf"),
        (np.array([["a", "b"]] * 6), "holds values of type <U1; required is one array of numbers"),
        (np.ones((6, 2), dtype=complex), "holds values of type complex128"),
        (np.array([[None, 1]] * 6), "cannot be read: .*; required is one array of numbers, as numpy.save writes it"),
    ],
)
def test_given_features_that_cannot_be(array: Any, words: str) -> None:
    np.save("f.npy", array, allow_pickle=True)
    with pytest.raises(InvalidValueError, match=words):
        read(features=Path("f.npy"))


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", b"\x93NUMPY\x01\x00\x76\x00{'descr'", b"PK\x03\x04x"])
def test_files_that_are_no_features(content: bytes) -> None:
    Path("f.npy").write_bytes(content)
    with pytest.raises(InvalidValueError, match=r"--features f\.npy cannot be read: .*; required is one array"):
        read(features=Path("f.npy"))


def test_places_without_features() -> None:
    with pytest.raises(InvalidValueError, match=r"there is no file nowhere\.npy, given as --features"):
        read(features=Path("nowhere.npy"))
    with pytest.raises(InvalidValueError, match=r"--features \. cannot be read"):
        read(features=Path())
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000), }\n"
    Path("f.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(InvalidValueError, match=r"--features f\.npy does not fit into memory"):
        read(features=Path("f.npy"))
    np.savez("f.npz", a=np.eye(6))
    with pytest.raises(InvalidValueError, match=r"--features f\.npz is an archive of several arrays"):
        read(features=Path("f.npz"))


# Texts by a language model


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        MissingExtraError, match=r"--embed needs sentence-transformers.*-m pip install 'sentence-transformers>="
    ):
        read(text="review", embed="some-model")


class Encoder:
    """Speaks as sentence-transformers does: a vector for each text, here of how often each of three words is in it."""

    def __init__(self, name: str) -> None:
        if name != "three-words":
            raise OSError(f"there is no network to fetch {name}\nwith a second line")

    def encode(self, texts: Sequence[str], **options: Any) -> Any:
        assert options == {"normalize_embeddings": True, "convert_to_numpy": True, "show_progress_bar": False}
        counts = np.array([[1.0, *(text.split().count(word) for word in ("good", "film", "song"))] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> type[Encoder]:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Encoder  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return Encoder


def test_a_model_reads_the_text(encoder: type[Encoder]) -> None:
    items = read(text="review", embed="three-words")
    assert (items.shown, items.main) == ("text", "review")
    vectors = encoder("three-words").encode(
        TEXTS, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
    )
    centred = vectors - vectors.mean(axis=0)
    factor = 6 / np.linalg.svd(centred, compute_uv=False)[0] ** 2
    # The other column is a feature as ever.
    Z = items.X[:, :-1]
    assert pytest.approx(factor * centred @ centred.T, abs=1e-5) == Z @ Z.T
    assert items.X[:, -1] == pytest.approx((np.arange(6) - 2.5) / np.arange(6).std())
    assert items.notes[0] == "column 'review': embeddings by three-words, 4 components (100 % of the variance)"


@pytest.mark.usefixtures("encoder")
def test_a_model_that_cannot_be_loaded() -> None:
    with pytest.raises(SufficeError) as caught:
        read(text="review", embed="no-such-model")
    assert str(caught.value) == (
        "--embed: the model 'no-such-model' cannot be used: there is no network to fetch no-such-model; give the name "
        "of a sentence-transformers model, with network access, or the folder of one"
    )
    assert not isinstance(caught.value, InvalidValueError)


def test_a_model_that_gives_no_numbers(encoder: type[Encoder], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "encode", lambda _, texts, **__: np.full((len(texts), 2), np.nan))
    with pytest.raises(SufficeError, match="does not return finite numbers for these texts"):
        read(text="review", embed="three-words")


def test_a_model_needs_a_text() -> None:
    with pytest.raises(InvalidValueError, match="--embed reads a text, and no column is text; name the column with"):
        read(embed="three-words")
    long = [f"here are {k} words" for k in range(6)]
    Path("t.csv").write_text("a,b\n" + "".join(f"{text},{text}\n" for text in long))
    with pytest.raises(InvalidValueError, match="--embed reads a text, and 2 columns are text"):
        read_items(Path("t.csv"), ReadingOptions(classes=("a", "b"), embed="three-words"))


# New rows


def test_items_carry_a_transformer_of_new_rows() -> None:
    items = read(text="review")
    file = read_columns(Path("t.csv"))
    assert items.transformer.transform(file) == pytest.approx(items.X, abs=1e-12)
    new = pickle.loads(pickle.dumps(items.transformer)).transform({"n": [2], "review": ["good book"]})
    assert new[0] == pytest.approx(items.X[2], abs=1e-12)
    np.save("f.npy", np.eye(6))
    assert read(features=Path("f.npy")).transformer is None


@pytest.mark.usefixtures("encoder")
def test_a_transformer_of_embeddings() -> None:
    items = read(text="review", embed="three-words")
    loaded = pickle.loads(pickle.dumps(items.transformer))
    assert loaded.transform(read_columns(Path("t.csv"))) == pytest.approx(items.X, abs=1e-5)
    assert loaded.transform({"n": [5], "review": [None]})[0] == pytest.approx(items.X[5], abs=1e-5)


def test_a_text_column_of_digits_is_numbers() -> None:
    items = read(text="n")
    assert items.main == "n"
    assert items.X.shape[1] == read().X.shape[1]


def test_fewer_features_for_new_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 9))
    Path("t.csv").write_text("\n".join(",".join(map(str, row)) for row in [[f"v{k}" for k in range(9)], *X.tolist()]))
    items = read_items(Path("t.csv"), ReadingOptions(classes=tuple(f"c{k}" for k in range(150))))
    assert items.X.shape == (60, 5)
    assert items.transformer.transform(read_columns(Path("t.csv"))) == pytest.approx(items.X, abs=1e-9)


# Parts


def test_principal_components_of_few_items() -> None:
    vectors = np.array([[1.0, 2.0, 3.0], [1.0, 4.0, 3.0]], dtype=np.float32)
    made = PrincipalComponents("v", "vectors", 50)
    X = made.fit_transform(vectors)
    assert np.abs(X) == pytest.approx(np.ones((2, 1)))
    assert X.sum() == pytest.approx(0.0, abs=1e-6)
    assert made.notes() == ("vectors, 1 component (100 % of the variance)",)
    assert made.get_feature_names_out().tolist() == ["v[0]"]
    assert made.transform(vectors) == pytest.approx(X, abs=1e-6)
    none = PrincipalComponents("v", "vectors", 50)
    assert none.fit_transform(np.zeros((3, 2), dtype=np.float32)).shape == (3, 0)
    assert none.notes() == ("vectors left out: the same for every item",)
    assert none.transform(np.ones((2, 2), dtype=np.float32)).shape == (2, 0)
    assert none.get_feature_names_out().tolist() == []


def test_many_classes_get_fewer_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40)) * np.linspace(3.0, 0.1, 40)
    np.save(tmp_path / "X.npy", X)
    rows = tmp_path / "rows.csv"
    rows.write_text("a\n" + "\n".join(f"word{k} {k}" for k in range(300)))
    options: dict[str, Any] = {"features": tmp_path / "X.npy", "text": "a"}
    few = read_items(rows, ReadingOptions(classes=tuple(f"c{k}" for k in range(20)), **options))
    assert few.X.shape == (300, 40)
    many = read_items(rows, ReadingOptions(classes=tuple(f"c{k}" for k in range(50)), **options))
    assert many.X.shape == (300, 19)
    assert any("40 features for 50 classes" in note for note in many.notes)
    # Principal components keep the distances as far as their variance goes.
    centred = X - X.mean(axis=0)
    kept = np.linalg.svd(centred, compute_uv=False)[:19]
    assert np.sort(np.linalg.norm(many.X, axis=0))[::-1] == pytest.approx(kept)
    numbers = read_items(rows, ReadingOptions(task="regression", **options))
    assert numbers.X.shape == (300, 40)
