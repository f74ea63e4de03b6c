"""The commands of README and pages: their options exist, and they run as they are written."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from suffice.cli.app import app
from tests.page_commands import (
    PAGES,
    ROOT,
    Block,
    blocks,
    commands_in_sentences,
    shell_blocks,
    suffice_arguments,
)
from tests.prepared_pages import NOT_RUN, Prepared
from tests.prepared_pages import PAGES as PREPARED
from tests.processes import run_suffice, start_suffice
from tests.simulated_person import SimulatedPerson
from tests.suffice_on_pages import SufficeOnPages, served

COMMANDS = [page for page in PAGES if shell_blocks(page)]
ADDRESS = "http://127.0.0.1:8000"
#: A request that fails ends the shell, and what fails is named.
SHELL = """
set -eE -o pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
curl() { command curl --fail-with-body "$@"; }
"""


def parse(arguments: list[str]) -> None:
    """Parse the arguments of a command without running it."""
    group: Any = get_command(app)
    context = group.make_context("suffice", list(arguments))
    name, command, rest = group.resolve_command(context, list(arguments))
    command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", [page for page in PAGES if suffice_arguments(page)], ids=lambda page: page.name)
def test_every_command_of_a_page_can_be_parsed(page: Path) -> None:
    for arguments in suffice_arguments(page):
        parse(arguments)


@pytest.mark.parametrize("page", [page for page in PAGES if commands_in_sentences(page)], ids=lambda page: page.name)
def test_options_of_commands_in_sentences_exist(page: Path) -> None:
    for arguments in commands_in_sentences(page):
        if arguments[0].startswith("--"):
            # Options of the program itself, such as --install-completion, have their effect when they are read.
            continue
        try:
            parse(arguments)
        except Exception as error:
            # A sentence may leave out the file or the value of an option.
            if not re.search("Missing (argument|option|parameter)|requires an argument", str(error)):
                raise


def test_a_command_with_an_unknown_option_cannot_be_parsed() -> None:
    assert sum(len(suffice_arguments(page)) for page in PAGES) >= 70
    with pytest.raises(Exception, match="No such option: --predictions"):
        parse(["check", "answers.csv", "--predictions", "llm"])
    with pytest.raises(Exception, match="unexpected extra argument"):
        parse(["status", "one.suffice", "two.suffice"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_in_blocks_of_bash_only(page: Path) -> None:
    for block in blocks(page):
        assert block.language not in {"", "sh", "shell", "console"}, f"{page.name}, line {block.line}"
        if block.language != "bash":
            assert not re.search(r"^(\$ |suffice |pip )", block.text, re.MULTILINE), f"{page.name}, line {block.line}"


def test_pages_that_are_prepared_and_commands_that_do_not_run_are_there() -> None:
    written = {page.name: {line for block in shell_blocks(page) for line in block.commands()} for page in PAGES}
    assert all(written[page] for page in PREPARED)
    for page, lines in NOT_RUN.items():
        assert set(lines) <= written[page]
    for page, prepared in PREPARED.items():
        assert set(prepared.fails) <= written[page]
        assert not any(key in "".join(NOT_RUN.get(page, ())) for key in prepared.fails)


def script(page: Path, block: Block, prepared: Prepared) -> str:
    """A block as a shell runs it: without the commands that do not run, and with the statuses of those that fail."""
    lines = []
    for line in block.text.splitlines():
        if (status := prepared.fails.get(line.strip())) is not None:
            lines.append(f"status=0; {line} || status=$?; [ $status = {status} ]")
        elif line.strip() not in NOT_RUN.get(page.name, {}):
            lines.append(line)
    return SHELL + "\n".join(lines) + "\n"


def write_tables(prepared: Prepared, folder: Path) -> None:
    """Write the files of a page into a folder."""
    pandas = pytest.importorskip("pandas")
    for name, table in prepared.files.items():
        frame = pandas.DataFrame(table)
        if name.endswith(".xlsx"):
            pytest.importorskip("openpyxl")
            frame.to_excel(folder / name, index=False)
        elif name.endswith(".parquet"):
            pytest.importorskip("pyarrow")
            frame.to_parquet(folder / name)
        else:
            frame.to_csv(folder / name, index=False)


@contextmanager
def beside(prepared: Prepared, text: str, folder: Path) -> Iterator[str]:
    """Start the server that a block needs, if it needs one; the block with the address of that server."""
    with ExitStack() as stack:
        for part, arguments in prepared.server.items():
            if part in text:
                (folder / "labels").mkdir(exist_ok=True)
                ready = stack.enter_context(served(arguments, str(folder)))
                assert ready is not None
                text = text.replace(ADDRESS, ready["url"].partition("/?")[0])
        yield text


def run_block(text: str, prepared: Prepared, folder: Path, programs: Path) -> "subprocess.CompletedProcess[str]":
    """Run a block in a shell; people answer what it asks."""
    limit = "" if prepared.answers is None else f" | head -n {prepared.answers}"
    (programs / "block.sh").write_text(text, encoding="utf-8")
    return subprocess.run(
        ["bash", "-c", f"yes '{prepared.answer}'{limit} | bash {programs / 'block.sh'}"],
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        start_new_session=True,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
@pytest.mark.all_cases
@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_run_as_they_are_written(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "failed"),
    [
        ("suffice status mails.suffice", "there is no project in mails.suffice"),
        ("suffice plan --pool 100 --at-most 5% | grep impossible", "failed: grep impossible"),
        ("suffice serve mails.csv --text body --classes ham,spam", "there is no file mails.csv"),
    ],
)
def test_a_new_page_whose_commands_do_not_run_fails(command: str, failed: str, tmp_path: Path) -> None:
    page = tmp_path / "new.md"
    page.write_text(f"# New\n\n```bash\nsuffice plan --pool 100 --at-most 5%\n{command}\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=failed):
        run_page(page, tmp_path)


def run_page(page: Path, tmp_path: Path) -> None:
    """Run all blocks of a page."""
    prepared = PREPARED.get(page.name, Prepared())
    texts = [script(page, block, prepared) for block in shell_blocks(page)]
    for program in {"curl", "jq"} & {word for text in texts for word in re.findall(r"\w+", text.removeprefix(SHELL))}:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    first, programs = tmp_path / "first", tmp_path / "programs"
    first.mkdir()
    programs.mkdir()
    write_tables(prepared, first)
    with SufficeOnPages(programs, prepared.labels) as suffice:
        if prepared.project:
            texts.insert(0, SHELL + prepared.project + "\n")
        for number, text in enumerate(texts):
            folder = first
            if not prepared.together and (number or not prepared.project):
                folder = tmp_path / f"block-{number}"
                shutil.copytree(first, folder)
            with beside(prepared, text, folder) as written:
                done = run_block(written, prepared, folder, programs)
            assert suffice.errors == []
            assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@contextmanager
def labelled_at(arguments: list[str], truth: list[str]) -> Iterator[SimulatedPerson]:
    """A person at the server that a command starts."""
    with start_suffice(*arguments, "--port", "0", "--no-token", "--json") as server:
        assert server.stdout is not None
        yield SimulatedPerson(json.loads(server.stdout.readline())["url"], truth)
        server.send_signal(signal.SIGINT)
        server.communicate()


@pytest.mark.slow
def test_the_commands_of_the_readme_lead_to_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    prepared = PREPARED["README.md"]
    write_tables(prepared, tmp_path)
    truth = list(prepared.labels["mails"])
    label, check, export, plan, predictions, finish, final = suffice_arguments(ROOT / "README.md")

    with labelled_at(label, truth) as person:
        person.label(20)
        assert run_suffice(*check).returncode == 0
        for _ in range(5):
            person.label(20)
        assert run_suffice(*export).returncode == 0
    assert json.loads(Path("mails.suffice/export/guarantee.json").read_text())["checked"] == 100

    assert "answers" in run_suffice(*plan).stdout
    assert "At most 5 % of the predictions" in run_suffice(*predictions, lines="ham\n" * 300).stdout

    with labelled_at(finish, truth) as person:
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
