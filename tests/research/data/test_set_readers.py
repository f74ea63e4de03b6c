"""The extra data sets: what is left of a text, what a word becomes, and that nothing is read unchecked."""

import dataclasses
import hashlib
import io
import os
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import CorruptDataError, InvalidValueError, MissingDataError
from suffice_research.data import catalogue
from suffice_research.data.catalogue import SETS, FileState, set_status
from suffice_research.data.set_readers import body, read_set, read_texts, read_words

DATA = os.environ.get("SUFFICE_DATA")
EXTRA_SETS = ["sms_spam", "newsgroups", "letter", "adult"]


def require(name: str) -> None:
    if DATA is None:
        pytest.skip(f"{name}: SUFFICE_DATA is not set")
    if any(status.state is FileState.missing for status in set_status(name)):
        pytest.skip(f"{name}: not in the folder that SUFFICE_DATA names")


def stored(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes) -> Path:
    """Let a data set be this content, and put it where it belongs."""
    about = SETS[name]
    digest = hashlib.sha256(content).hexdigest()
    file = dataclasses.replace(about.files[0], sha256=digest, size=len(content), also=())
    monkeypatch.setattr(catalogue, "SETS", {**SETS, name: dataclasses.replace(about, files=(file,))})
    path = folder / file.path
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return folder


def packed(files: dict[str, bytes]) -> bytes:
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return stream.getvalue()


# What is left of a message


def test_the_body_is_what_the_author_wrote() -> None:
    message = (
        "From: ann@x.org\nSubject: snow\n\n"
        "In article <1@y.org>, bob@y.org (Bob) writes:\n> It rains.\n>> So it does.\n| Really?\n: Yes.\n"
        "No, it snows.\n\nWrote you not so?\n-- \nAnn\nNorway\n"
    )
    assert body(message) == "No, it snows.\n\nWrote you not so?"


def test_messages_of_which_nothing_is_left() -> None:
    for message in ("", "From: ann\nSubject: no end", "From: ann\n\n", "From: ann\n\n> quoted\n", "From: a\n\n--\nAnn"):
        assert body(message) == ""


WORDS = st.text("abcxyz ", min_size=1).map(str.strip)


@given(st.lists(WORDS), st.lists(WORDS), st.lists(WORDS))
def test_a_plain_text_stays_and_header_quotes_and_signature_go(
    header: list[str], text: list[str], rest: list[str]
) -> None:
    quotes = [f"> {line}" for line in rest]
    lines = ["From: ann", *(f"X-{line}: x" for line in header), "", *quotes, *text, *quotes, "--", *rest]
    assert body("\n".join(lines)) == "\n".join(text).strip()


# Made-up files


def test_a_message_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = 'ham\tGo "now"\tor\x85 later\nspam\tFREE £1\n'.encode()
    found = read_texts("sms_spam", stored(tmp_path, monkeypatch, "sms_spam", content))
    assert found.texts == ('Go "now"\tor\x85 later', "FREE £1")
    assert found.labels == ("ham", "spam")


def test_a_folder_a_class_whatever_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "data/20news-bydate-train/sci.med/2": b"From: a\n\ncaf\xe9",
        "data/20news-bydate-train/sci.med/.DS_Store": b"From: a\n\nnothing",
        "data/20news-bydate-test/rec.autos/7": b"From: b\n\nwheels",
        "data/20news-bydate-train/rec.autos/1": b"From: c\n\n> brakes?\nbrakes",
    }
    found = read_texts("newsgroups", stored(tmp_path / "one", monkeypatch, "newsgroups", packed(files)))
    assert found.texts == ("wheels", "brakes", "café")
    assert found.labels == ("rec.autos", "rec.autos", "sci.med")
    # As the public archive is packed: no folder around it, and another order.
    other = {name.removeprefix("data/"): files[name] for name in reversed(files)}
    assert read_texts("newsgroups", stored(tmp_path / "two", monkeypatch, "newsgroups", packed(other))) == found


def test_missing_words_are_a_category(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'"age","work","class"\n1,"a","x"\n2,NA,"y"\n3,"b","x"\n4,"a","y"\n'
    table = read_words("adult", stored(tmp_path, monkeypatch, "adult", content))
    assert table.columns == ("age", "work=a", "work=b", "work=missing")
    assert table.X[:, 1:].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert table.y.tolist() == ["x", "y", "x", "y"]


# The real ones


def test_the_real_messages() -> None:
    require("sms_spam")
    texts, labels = read_texts("sms_spam")
    assert Counter(labels) == {"ham": 4827, "spam": 747}  # as published
    assert texts[1] == "Ok lar... Joking wif u oni..."
    assert all(texts)


@pytest.mark.slow
def test_the_real_newsgroups() -> None:
    require("newsgroups")
    texts, labels = read_texts("newsgroups")
    assert len(texts) == 18_846
    counts = Counter(labels)
    assert len(counts) == 20
    # As counted by others: the largest and the smallest group.
    assert (counts["rec.sport.hockey"], counts["talk.religion.misc"]) == (999, 628)
    assert sum(not text for text in texts) < 200
    assert sum("Newsgroups: " in text for text in texts) < 200


@pytest.mark.slow
def test_the_real_tables_with_words() -> None:
    require("letter")
    letter = read_words("letter")
    assert letter.X.shape == (20_000, 16)
    assert len(np.unique(letter.y)) == 26
    assert letter.y[:2].tolist() == ["T", "I"]
    require("adult")
    adult = read_words("adult")
    assert Counter(adult.y.tolist()) == {"<=50K": 24_720, ">50K": 7_841}  # as published
    # As published: 1836, 1843 and 583 are unknown.
    missing = [adult.X[:, k].sum() for k, name in enumerate(adult.columns) if name.endswith("=missing")]
    assert missing == [1836.0, 1843.0, 583.0]
    assert np.isfinite(adult.X).all()


# Names and files that do not do


@pytest.mark.parametrize("name", EXTRA_SETS)
def test_nothing_is_read_unchecked(name: str, tmp_path: Path) -> None:
    read = read_texts if SETS[name].holds == "texts" else read_words
    with pytest.raises(MissingDataError, match=f"suffice data fetch {name}"):
        read(name, tmp_path)
    path = tmp_path / SETS[name].files[0].path
    path.parent.mkdir()
    path.write_bytes(b"a\tb\n")
    with pytest.raises(CorruptDataError, match="is corrupt"):
        read(name, tmp_path)


def test_names_of_other_kinds_of_data() -> None:
    with pytest.raises(InvalidValueError, match=r"adult is not texts; read it with suffice_research\.data\.read_words"):
        read_texts("adult")
    with pytest.raises(
        InvalidValueError, match=r"skin is not a table with words in it; .*suffice_research\.data\.read_set"
    ):
        read_words("skin")
    with pytest.raises(InvalidValueError, match=r"mnist is not texts; .*suffice_research\.data\.read_mnist"):
        read_texts("mnist")
    with pytest.raises(InvalidValueError, match=r"there is no data set 'sms-span'\. Did you mean sms_spam\?"):
        read_texts("sms-span")
    for name, reader in (("letter", "read_words"), ("newsgroups", "read_texts")):
        with pytest.raises(
            InvalidValueError, match=rf"{name} is no data set of the paper; .*suffice_research\.data\.{reader}"
        ):
            read_set(name)
