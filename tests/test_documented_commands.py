"""The commands of README and pages: their options exist, and those of the README work as pasted."""

import csv
import json
import random
import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from suffice.cli.app import app
from tests.processes import run_suffice, start_suffice
from tests.simulated_person import SimulatedPerson

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(page: Path) -> list[list[str]]:
    """The arguments of all commands in blocks of a page, without comments and what follows a pipe."""
    blocks = re.findall(r"^```(?:bash)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    parts = [part.strip() for line in lines for part in re.split(r"\|\|?|&&", line)]
    return [shlex.split(part, comments=True)[1:] for part in parts if part.startswith("suffice ")]


def parse(arguments: list[str]) -> None:
    """Parse the arguments of a command without running it."""
    group: Any = get_command(app)
    context = group.make_context("suffice", list(arguments))
    name, command, rest = group.resolve_command(context, list(arguments))
    command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_every_command_of_a_page_can_be_parsed(page: Path) -> None:
    for arguments in commands(page):
        parse(arguments)


def test_a_command_with_an_unknown_option_cannot_be_parsed() -> None:
    assert sum(len(commands(page)) for page in PAGES) >= 50
    with pytest.raises(Exception, match="No such option: --predictions"):
        parse(["check", "answers.csv", "--predictions", "llm"])
    with pytest.raises(Exception, match="unexpected extra argument"):
        parse(["status", "one.suffice", "two.suffice"])


def mails(n: int) -> tuple[list[str], list[str]]:
    """Texts, and their classes."""
    rng = random.Random(0)
    truth = [rng.choice(["ham", "spam"]) for _ in range(n)]
    words = {"ham": ["lunch", "meeting", "tomorrow", "report"], "spam": ["win", "prize", "free", "click"]}
    return [f"{' '.join(rng.choices(words[each], k=3))} {k}" for k, each in enumerate(truth)], truth


@contextmanager
def served(arguments: list[str], truth: list[str]) -> Iterator[SimulatedPerson]:
    """A person at the server that a command starts."""
    with start_suffice(*arguments, "--port", "0", "--no-token", "--json") as server:
        assert server.stdout is not None
        yield SimulatedPerson(json.loads(server.stdout.readline())["url"], truth)
        server.send_signal(signal.SIGINT)
        server.communicate()


@pytest.mark.slow
def test_the_commands_of_the_readme_work_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    texts, truth = mails(300)
    for name in ("mails.csv", "posts.csv"):
        with open(name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["body"], *([text] for text in texts)])
    book = openpyxl.Workbook()
    for row in [["body", "llm"], *([text, "spam" if k < 3 else "ham"] for k, text in enumerate(texts))]:
        book.active.append(row)
    book.save("answers.xlsx")
    label, check, export, plan, predictions, finish, final = commands(ROOT / "README.md")

    with served(label, truth) as person:
        person.label(20)
        assert run_suffice(*check).returncode == 0
        for _ in range(5):
            person.label(20)
        assert run_suffice(*export).returncode == 0
    assert json.loads(Path("mails.suffice/export/guarantee.json").read_text())["checked"] == 100

    assert "answers" in run_suffice(*plan).stdout
    assert "At most 5 % of the predictions" in run_suffice(*predictions, lines="ham\n" * 300).stdout

    with served(finish, truth) as person:
        while not (found := person.label(10))["words"][0].startswith("Time for a check"):
            assert found["n_labelled"] < 250, found["words"]
        assert run_suffice("check", "posts.suffice", "--of", "all").returncode == 0
        while run_suffice(*final).returncode != 0:
            assert person.label(10)["n_labelled"] < 300
    rows = list(openpyxl.load_workbook("posts.xlsx").active.values)
    assert (len(rows), rows[0][:3]) == (301, ("id", "body", "label"))
    wrong = sum(row[2] != label for row, label in zip(rows[1:], truth, strict=True))
    assert wrong <= 0.05 * 300
    assert "at most" in Path("statement.html").read_text(encoding="utf-8")
