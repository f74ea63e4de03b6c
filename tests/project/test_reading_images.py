"""Images in a folder or a column: which they are, what the model sees of them, and what is said of bad ones."""

import os
import pickle
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.project.images import _pixels, pixel_features
from suffice.project.items import Items
from suffice.project.read_items import ReadingOptions, read_items

Image: Any = pytest.importorskip("PIL.Image", reason="images: Pillow is not installed")
AB = ReadingOptions(classes=("a", "b"))


def paint(path: str | Path, colour: Any = "red", *, mode: str = "RGB", size: tuple[int, int] = (24, 20)) -> Path:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(place)
    return place


def table(paths: Sequence[str], name: str = "t.csv") -> Path:
    place = Path(name)
    place.write_text("photo,n\n" + "".join(f"{path},{k % 3}\n" for k, path in enumerate(paths)))
    return place


def read(path: Path, **options: Any) -> Items:
    return read_items(path, ReadingOptions(classes=("a", "b"), **options))


# A folder


def test_a_folder_of_images() -> None:
    for name, colour in [
        ("b.png", "red"),
        ("a/c.JPG", "blue"),
        ("a/b.gif", "green"),
        ("z.webp", "white"),
        ("y.bmp", 0),
    ]:
        paint(f"pictures/{name}", colour)
    paint("pictures/q.jpeg", "grey")
    paint("pictures/.hidden.png")
    paint("pictures/.cache/x.png")
    Path("pictures/notes.txt").write_text("hello")
    items = read_items(Path("pictures"), AB)
    names = ("a/b.gif", "a/c.JPG", "b.png", "q.jpeg", "y.bmp", "z.webp")
    assert items.ids == names
    assert (items.shown, items.main, items.columns) == ("image", "image", ("image",))
    assert [*items.cells] == [(name,) for name in names]
    assert items.root == Path("pictures").resolve()
    assert (items.labels, items.classes) == ({}, ("a", "b"))
    assert items.notes[0] == "1 file that is no image left out"
    assert items.notes[1].startswith("6 images: 16 x 16 pixels and SVD, ")
    assert items.X.shape[0] == 6
    assert np.isfinite(items.X).all()
    assert read_items(Path("pictures"), ReadingOptions(task="regression", target="age")).task == "regression"


def test_a_folder_without_images() -> None:
    Path("pictures").mkdir()
    with pytest.raises(
        InvalidValueError, match=r"there are 0 images in pictures; at least 2 are required, named \.png"
    ):
        read_items(Path("pictures"), AB)
    paint("pictures/a.png")
    with pytest.raises(InvalidValueError, match="there is 1 image in pictures; at least 2"):
        read_items(Path("pictures"), AB)


@pytest.mark.parametrize("options", [{"text": "t"}, {"image": "t"}, {"id": "t"}, {"ignore": ("t",)}, {"embed": "m"}])
def test_options_about_columns_do_not_go_with_a_folder(options: dict[str, Any]) -> None:
    option = next(iter(options))
    with pytest.raises(InvalidValueError, match=rf"--{option} is about a table, and \. is a folder of images"):
        read(Path(), **options)


def test_a_folder_needs_to_know_what_labels_are() -> None:
    with pytest.raises(InvalidValueError, match=r"no label yet.*--classes a,b,c, or --regression"):
        read_items(Path(), ReadingOptions())


def test_names_that_are_no_utf_8() -> None:
    paint("pictures/a.png")
    try:
        os.rename(b"pictures/a.png", b"pictures/\xff.png")
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    with pytest.raises(InvalidValueError, match=r"the name of the image '\\udcff\.png' must be plain UTF-8 text"):
        read_items(Path("pictures"), AB)


def test_links_out_of_a_folder_are_refused() -> None:
    paint("secret.png")
    paint("pictures/a.png", "blue")
    paint("pictures/b.png", "green")
    Path("pictures/inside.png").symlink_to("a.png")
    assert read_items(Path("pictures"), AB).ids == ("a.png", "b.png", "inside.png")
    # A linked folder is not entered.
    Path("others").mkdir()
    paint("others/o.png")
    Path("pictures/linked").symlink_to(Path("others").resolve())
    assert len(read_items(Path("pictures"), AB)) == 3
    Path("pictures/out.png").symlink_to(Path("secret.png").resolve())
    with pytest.raises(InvalidValueError, match=r"the image 'out\.png' lies outside of the folder .*; copy it into"):
        read_items(Path("pictures"), AB)
    Path("pictures/out.png").unlink()
    Path("pictures/gone.png").symlink_to("nowhere.png")
    with pytest.raises(InvalidValueError, match=r"there is no image 'gone\.png' in the folder"):
        read_items(Path("pictures"), AB)


def test_a_folder_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Any) -> Any:
        raise PermissionError(13, "Permission denied", "pictures")

    # Not by chmod: the tests may run as root, who may read everything.
    Path("pictures").mkdir()
    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(InvalidValueError, match="the folder pictures cannot be read: Permission denied"):
        read_items(Path("pictures"), AB)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"%!PS-Adobe-3.0 EPSF-3.0\n"])
def test_what_is_no_image_is_named(content: bytes) -> None:
    paint("pictures/a.png")
    paint("pictures/c.png")
    Path("pictures/b.png").write_bytes(content)
    with pytest.raises(
        InvalidValueError, match=r"the image pictures/b\.png cannot be read: .*; mend it, or take it out"
    ):
        read_items(Path("pictures"), AB)


def test_half_an_image_is_named() -> None:
    rng = np.random.default_rng(0)
    for kind in ("png", "jpg"):
        noise = Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8))
        path = Path(f"half-{kind}.{kind}")
        noise.save(path)
        path.write_bytes(path.read_bytes()[:1500])
        with pytest.raises(InvalidValueError, match=rf"half-{kind}\.{kind} cannot be read"):
            pixel_features(Path(), [path.name, path.name])


def test_an_image_too_large_to_unpack_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    paint("a.png", size=(40, 40))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(InvalidValueError, match=r"the image a\.png cannot be read: .*exceeds limit"):
        pixel_features(Path(), ["a.png", "a.png"])
    # Up to twice the limit Pillow only warns.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    paint("b.png", "blue", size=(40, 40))
    assert pixel_features(Path(), ["a.png", "b.png"]).X.shape == (2, 1)


def test_images_that_all_look_the_same() -> None:
    paint("pictures/a.png")
    paint("pictures/b.png")
    with pytest.raises(
        InvalidValueError, match="left out: the same for every item; give features that tell them apart"
    ):
        read_items(Path("pictures"), AB)


def test_images_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    paint("pictures/a.png")
    paint("pictures/b.png", "blue")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"Reading images needs Pillow.*-m pip install .*'pillow>="):
        read_items(Path("pictures"), AB)
    np.save("f.npy", np.eye(2))
    assert (np.eye(2) == read(Path("pictures"), features=Path("f.npy")).X).all()


# What the model sees


def colours(path: Path) -> list[float]:
    pixels = _pixels(Image, path)
    assert pixels.shape == (16, 16, 3)
    assert np.ptp(pixels, axis=(0, 1)).max() < 0.02
    mean: list[float] = pixels.mean(axis=(0, 1)).round(2).tolist()
    return mean


@pytest.mark.parametrize(
    ("name", "mode", "colour", "wanted"),
    [
        ("a.png", "RGB", (255, 0, 51), [1.0, 0.0, 0.2]),
        ("a.png", "L", 51, [0.2, 0.2, 0.2]),
        ("a.png", "1", 1, [1.0, 1.0, 1.0]),
        ("a.png", "RGBA", (255, 0, 0, 0), [1.0, 1.0, 1.0]),
        ("a.png", "RGBA", (255, 0, 0, 255), [1.0, 0.0, 0.0]),
        ("a.png", "LA", (0, 0), [1.0, 1.0, 1.0]),
        ("a.png", "I;16", 13107, [0.2, 0.2, 0.2]),
        ("a.gif", "P", 0, [0.0, 0.0, 0.0]),
        ("a.jpg", "CMYK", (0, 0, 0, 0), [1.0, 1.0, 1.0]),
        ("a.jpg", "L", 51, [0.2, 0.2, 0.2]),
        ("a.webp", "RGB", (255, 255, 255), [1.0, 1.0, 1.0]),
        ("a.bmp", "RGB", (0, 255, 0), [0.0, 1.0, 0.0]),
    ],
)
def test_every_kind_of_image_becomes_colours(name: str, mode: str, colour: Any, wanted: list[float]) -> None:
    assert colours(paint(name, colour, mode=mode)) == pytest.approx(wanted, abs=0.011)
    assert colours(paint(f"small/{name}", colour, mode=mode, size=(1, 3))) == pytest.approx(wanted, abs=0.011)


def test_features_are_principal_components() -> None:
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (30, 16, 16, 3), dtype=np.uint8)
    for k, image in enumerate(pixels):
        Image.fromarray(image).save(f"{k:02}.png")
    made = pixel_features(Path(), [f"{k:02}.png" for k in range(30)])
    raw = pixels.reshape(30, -1) / 255.0
    centred = raw - raw.mean(axis=0)
    # 30 centred images have 29 directions, and all are kept: inner products are those of the pixels, times a factor.
    assert made.X.shape == (30, 29)
    assert made.names[:2] == ("image[0]", "image[1]")
    assert made.notes == ("30 images: 16 x 16 pixels and SVD, 29 components (100 % of the variance)",)
    factor = 30 / np.linalg.svd(centred, compute_uv=False)[0] ** 2
    assert pytest.approx(factor * centred @ centred.T, abs=1e-4) == made.X @ made.X.T
    assert made.X[:, 0].std() == pytest.approx(1.0)
    assert (np.diff(made.X.std(axis=0)) <= 1e-9).all()
    assert made.X.mean(axis=0) == pytest.approx(np.zeros(29), abs=1e-5)
    new = pickle.loads(pickle.dumps(made.transformer)).transform(["07.png"])
    assert new[0] == pytest.approx(made.X[7], abs=1e-4)


def test_at_most_50_components() -> None:
    rng = np.random.default_rng(2)
    for k in range(60):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(f"{k}.png")
    paths = [f"{k}.png" for k in range(60)]
    first, second = pixel_features(Path(), paths), pixel_features(Path(), paths)
    assert first.X.shape == (60, 50)
    assert (first.X == second.X).all()


# A column of paths


def test_a_column_of_paths() -> None:
    for k, name in enumerate(["a.png", "deep/b.png", "deep/er/c.jpg"]):
        paint(f"data/{name}", (80 * k, 0, 255 - 80 * k))
    inside = Path("data/deep/b.png").resolve()
    path = table(["./a.png", "deep/../deep/b.png", "deep\\er\\c.jpg", str(inside), " a.png "], "data/t.csv")
    items = read(path, image="photo")
    assert (items.shown, items.main, items.columns) == ("image", "photo", ("photo", "n"))
    paths = ["a.png", "deep/b.png", "deep/er/c.jpg", "deep/b.png", "a.png"]
    assert [cells[0] for cells in items.cells] == paths
    assert [cells[1] for cells in items.cells] == ["0", "1", "2", "0", "1"]
    assert items.root == Path("data").resolve()
    assert tuple(items.ids) == ("1", "2", "3", "4", "5")
    # Two directions of the three colours, and the other column.
    assert items.X.shape == (5, 3)
    assert items.X[:, 2].std() == pytest.approx(1.0)
    assert items.X[1, :2] == pytest.approx(items.X[3, :2], abs=1e-6)
    assert items.notes == ("5 images: 16 x 16 pixels and SVD, 2 components (100 % of the variance)",)


def test_images_beside_texts() -> None:
    for k in range(4):
        paint(f"{k}.png", (60 * k, 0, 0))
    Path("t.csv").write_text("photo,caption\n0.png,red\n1.png,dark red\n2.png,red\n3.png,dark\n")
    items = read(Path("t.csv"), image="photo", text="caption")
    assert (items.shown, items.main) == ("image", "photo")
    assert [note.split(",")[0] for note in items.notes] == [
        "4 images: 16 x 16 pixels and SVD",
        "column 'caption': text",
    ]


def link_outside() -> str:
    paint("outside.png")
    Path("data/link.png").symlink_to(Path("outside.png").resolve())
    return "link.png"


def linked_folder() -> str:
    paint("others/x.png")
    Path("data/others").symlink_to(Path("others").resolve())
    return "others/x.png"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("", "line 3: there is no path of an image; give one, or take the line out"),
        ("gone.png", r"line 3: there is no image 'gone\.png' in the folder .*data; correct the path"),
        ("https://example.org/cat.png", r"line 3: there is no image 'https://example\.org/cat\.png'"),
        ("../secret.png", r"line 3: the image '\.\./secret\.png' lies outside of the folder .*data; copy it into that"),
        ("sub/../../secret.png", "line 3: .* lies outside of the folder"),
        (link_outside, r"line 3: the image 'link\.png' lies outside of the folder"),
        (linked_folder, r"line 3: the image 'others/x\.png' lies outside of the folder"),
        ("t.csv", r"line 3: the image 't\.csv' must be a file named \.png, \.jpg, "),
        ("folder.png", r"line 3: the image 'folder\.png' is not a file"),
        ("x" * 300 + ".png", "line 3: there is no image"),
    ],
)
def test_paths_that_are_refused(cell: Any, words: str) -> None:
    paint("data/a.png")
    paint("secret.png")
    Path("data/sub").mkdir()
    Path("data/folder.png").mkdir()
    path = table(["a.png", cell() if callable(cell) else cell, "a.png"], "data/t.csv")
    with pytest.raises(InvalidValueError, match=words):
        read(path, image="photo")


def test_absolute_paths_that_lead_outside_are_refused() -> None:
    paint("data/a.png")
    path = table(["a.png", str(paint("secret.png").resolve())], "data/t.csv")
    with pytest.raises(InvalidValueError, match=r"line 3: the image '/.* lies outside of the folder"):
        read(path, image="photo")


def test_the_first_broken_image_is_named() -> None:
    names = [f"{k:03}.png" for k in range(200)]
    for name in names:
        paint(name)
    random.Random(0).shuffle(names)
    for name in (names[3], names[1], names[150]):
        Path(name).write_bytes(b"nothing")
    with pytest.raises(InvalidValueError, match=f"the image {names[1]} cannot be read"):
        pixel_features(Path(), names)
