"""Spelling and style of documentation, messages and code: codespell, line lengths, and phrases to avoid."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure import ROOT

CHECKED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "docs", "src", "research", "tests", "benchmarks")
# Written by benchmarks, and by the build of the documentation, which may run beside the tests.
GENERATED = tuple(ROOT / "docs" / name for name in ("measured", "_build", "api", "gallery", "notebooks"))
PAGES = [
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if not any(map(path.is_relative_to, GENERATED))
] + [ROOT / "benchmarks" / "README.md", ROOT / "research" / "README.md"]
CODE = [
    path
    for folder in ("src", "research", "tests", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".js", ".jinja", ".html"} and path != Path(__file__)
    if not any(map(path.is_relative_to, GENERATED))
]
LONGEST = 100

#: Mannered phrases, and what to write instead.
AVOIDED = {
    r"the present model": "the current model",
    r"in life": "in practice",
    r"whoever": "people who, a person who, everybody who",
    r"next to nothing": "almost nothing, or a number",
    r"hardly at all": "very little, or a number",
    r"right about itself": "if its probabilities are correct",
    r"to speak of": "leave it out",
    r"put right": "correct",
    r"the boss": "a report",
    r"anybody's": "any",
    r"come along": "are included",
    r"once and for all": "once",
    r"had no part": "were not used for",
    r"by no means": "not",
    r"so to speak": "leave it out",
    r"needless to say": "leave it out",
    r"it goes without saying": "leave it out",
    r"as it were": "leave it out",
    r"get up\b": "close the session",
    r"axes of matplotlib": "matplotlib Axes",
    r"dataframe of pandas": "a pandas DataFrame",
    r"network of skorch": "a skorch network",
    r"the notation of torch": "a PyTorch device",
    r"is not yours to use": "permission denied",
    r"must not sway": "do not influence",
}
#: Phrases that are avoided on pages only: code has names that contain them.
AVOIDED_ON_PAGES = {
    r"slips?": "error",
    r"who has seen": "a person who has seen",
    r"for who knows": "for a person who knows",
    r"there it is": "say what it is",
    r"all the same": "nevertheless, or leave it out",
    r"of course": "leave it out",
    r"simply": "leave it out",
    r"obviously": "leave it out",
    r"honest": "accurate, or leave it out",
    r"a table of pandas": "a pandas DataFrame",
    r"the present rule": "the current rule",
    r"present (?:labels|predictions|classes)": "current labels, predictions, classes",
    r"that of now": "that of the current one",
    r"causes no labels": "does not make the rule ask for more labels",
    r"that come at each step": "per step",
    r"as far as the model has them": "whichever of these the model provides",
}


def prose(page: Path) -> str:
    """The text of a page without its code; lines keep their numbers."""
    text = page.read_text(encoding="utf-8")
    without = re.compile(r"^(`{3})(?!\{tab|`).*?^\1$", flags=re.DOTALL | re.MULTILINE)
    text = without.sub(lambda block: "\n" * block[0].count("\n"), text)
    return re.sub(r"`[^`\n]+`", "", text)


def found(text: str, phrases: dict[str, str]) -> Iterator[str]:
    lower = text.lower()
    for phrase, better in phrases.items():
        # Most texts do not contain the longest word of the phrase, and that is known in a fraction of the time.
        if max(filter(str.isalpha, phrase.split()), key=len, default="") not in lower:
            continue
        pattern = phrase.replace(" ", r"[\s#*]+")
        for match in re.finditer(rf"\b{pattern}\b", text, flags=re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            yield f"line {line}: {match[0]!r}; better: {better}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_plain_phrases(page: Path) -> None:
    assert list(found(prose(page), AVOIDED | AVOIDED_ON_PAGES)) == []


def test_code_and_messages_use_plain_phrases() -> None:
    problems = [
        f"{path.relative_to(ROOT)}, {problem}"
        for path in CODE
        for problem in found(path.read_text(encoding="utf-8"), AVOIDED)
    ]
    assert problems == []


def long_lines(text: str) -> Iterator[int]:
    """Numbers of the lines that are too long. Tables, images, links, formulas and directives may be longer."""
    formula = False
    for number, line in enumerate(text.splitlines(), start=1):
        formula ^= line.count("$$") == 1
        shortened = re.sub(r"\]\([^)]*\)|<https?:\S+>", "]", line)
        exempt = formula or line.lstrip().startswith(("|", "![", "$$", ":")) or line.endswith("$$")
        if len(shortened) > LONGEST and not exempt:
            yield number


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_pages_are_short(page: Path) -> None:
    assert list(long_lines(page.read_text(encoding="utf-8"))) == []


def test_what_counts_as_a_long_line() -> None:
    words = "word " * 25
    assert list(long_lines(f"short\n{words}\n| {words} |\n![{words}](figure.png)\n[name](https://{'x' * 120})")) == [2]
    assert next(found("At a price\nWhoever reads", AVOIDED)).startswith("line 2: 'Whoever'")


def test_spelling() -> None:
    pytest.importorskip("codespell_lib")
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *CHECKED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
