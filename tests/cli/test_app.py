"""The commands by name: listed without being loaded, loaded when used, completed by the shell."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from suffice import __version__
from suffice.acquisition.scores import NAMES
from suffice.cli.app import COMMANDS, app, command_location
from suffice_research.data.catalogue import SETS
from tests.thoroughness import some, thorough

MODULE = [sys.executable, "-m", "suffice"]


def suffice(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*MODULE, *arguments], capture_output=True, text=True, check=False, env=os.environ | environment
    )


def completed(line: str) -> list[str]:
    """What bash is offered at the end of a line."""
    words = line.split(" ")
    asked = {"_SUFFICE_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = CliRunner().invoke(app, env=asked, prog_name="suffice")
    assert done.stderr == ""
    return done.stdout.split()


def test_as_a_module_it_is_the_command() -> None:
    if thorough():
        assert suffice("--version").stdout == f"suffice {__version__}\n"
    assert "Usage: suffice run [OPTIONS] " in suffice("run", "--help", COLUMNS="80").stdout
    wrong = suffice("runn", COLUMNS="80")
    assert wrong.returncode == 2
    assert "Usage: suffice [OPTIONS] COMMAND" in wrong.stderr
    assert "No such command 'runn'" in wrong.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_the_beginning_of_its_own_help(name: str) -> None:
    module, attribute = command_location(name).split(":")
    command = getattr(import_module(module), attribute)
    own = command.info.help if isinstance(command, typer.Typer) else str(inspect.getdoc(command))
    assert str(own).startswith(COMMANDS[name].summary)
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert COMMANDS[name].summary in " ".join(shown.output.split())


def test_the_list_of_commands_loads_none_of_them() -> None:
    code = (
        "import sys; from suffice.cli.app import app; app(['--help'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith(('suffice.cli.', 'suffice_research', 'scipy.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
    assert "needs suffice-research" not in done.stdout
    assert done.stdout.splitlines()[-1] == "['suffice.cli.app']"


#: Runs the command as in an environment without suffice-research.
WITHOUT_RESEARCH = """
import importlib.metadata, sys
sys.modules["suffice_research"] = None
importlib.metadata.entry_points = lambda **_: ()
from suffice.cli import main
sys.argv[0] = "suffice"
sys.exit(main())
"""
RESEARCH_COMMANDS = [name for name, entry in COMMANDS.items() if entry.location is None]


def without_research(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_RESEARCH, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )


def test_the_commands_of_research_are_entry_points() -> None:
    assert set(RESEARCH_COMMANDS) == {"recommend", "reproduce", "compare", "data"}
    assert {command_location(name).partition(".")[0] for name in RESEARCH_COMMANDS} == {"suffice_research"}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", RESEARCH_COMMANDS)
def test_without_research_its_commands_name_the_pip_command(name: str) -> None:
    for arguments in ([name], [name, "--help"], [name, "list", "--json"])[: 3 if thorough() else 1]:
        done = without_research(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        if "--json" in arguments:
            error = json.loads(line)
            assert (error["code"], error["exit_status"]) == ("missing_research", 2)
            line = f"suffice: {error['error']}"
        assert line.startswith(f"suffice: The command {name} needs suffice-research, which is not installed. Run: ")
        assert re.search(r"-m pip install (-e )?\S*(suffice-research|research)'?$", line)


def test_without_research_its_commands_are_listed_with_what_they_need() -> None:
    done = without_research("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("(needs suffice-research)") == len(RESEARCH_COMMANDS)
    for name in COMMANDS:
        assert f" {name} " in done.stdout


def test_without_research_its_commands_complete_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.cli.app._entry_points", dict)
    assert completed("suffice ") == list(COMMANDS)
    assert completed("suffice data ") == []
    assert completed("suffice run --acq") == ["--acquisition"]


CALLED_WRONGLY = """
import sys
from contextlib import suppress
from suffice.cli import main
from suffice.cli.late_modules import LateModule

command = sys.argv[1:]
for option in ("--help", "--no-such-option", "--threshold=7"):
    sys.argv = ["suffice", *command, option]
    with suppress(SystemExit):
        main()
heavy = ("sklearn", "pandas", "scipy.stats", "matplotlib", "torch")
print([name for name in heavy if type(sys.modules.get(name, LateModule(name))) is not LateModule])
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "command", some([["run", "t.csv", "--target=y"], ["audit", "t.csv", "--target=y"], ["demo"]], every=2)
)
def test_help_and_wrong_options_load_nothing_heavy(command: list[str]) -> None:
    called = [sys.executable, "-c", CALLED_WRONGLY, *command]
    done = subprocess.run(called, capture_output=True, text=True, check=True)
    assert f"Usage: suffice {command[0]} " in done.stdout
    assert "No such option" in done.stderr
    assert "suffice: threshold must be a number from 0 to 1, not 7.0" in done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_loads_no_other_one() -> None:
    code = (
        "import sys; from suffice.cli.app import app; app(['data', 'list', '--json'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith('suffice.cli.') or name.endswith('_command')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout.splitlines()[-1]
        == "['suffice.cli.app', 'suffice.cli.json_output', 'suffice_research.data.data_command']"
    )


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("suffice ", list(COMMANDS)),
        ("suffice re", ["repair", "review", "report", "recommend", "reproduce"]),
        ("suffice run --acq", ["--acquisition"]),
        (
            "suffice run --model ",
            ["gp", "ridge", "logistic", "kernel", "components", "dropout", "forest", "boosting", "auto"],
        ),
        ("suffice run --acquisition b", ["bald", "batchbald"]),
        ("suffice run --rule Stab", ["StabilizingPredictions"]),
        ("suffice audit --rule Label", ["LabelWorth"]),
        ("suffice label mails.csv --rule MaxV", ["MaxVariance"]),
        ("suffice recommend --task ", ["regression", "classification"]),
        ("suffice data ", ["list", "fetch", "check"]),
        ("suffice data fetch ", list(SETS)),
        ("suffice compare --data wine,breast", ["wine,breast_cancer"]),
        ("suffice compare --model gp,", ["gp,gp", "gp,ridge", "gp,logistic"]),
        ("suffice compare --rules ErrorS", ["ErrorStability"]),
        ("suffice reproduce --only gpr/p", ["gpr/power_plant", "gpr/protein"]),
        ("suffice run ", []),  # bash then offers files
    ],
)
def test_the_shell_completes_commands_options_and_names(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_acquisitions_that_are_offered_exist() -> None:
    assert set(completed("suffice run --acquisition ")) <= {name for names in NAMES.values() for name in names}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_script_that_is_shown_works_in_bash(tmp_path: Path) -> None:
    program = tmp_path / "suffice"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m suffice "$@"\n')
    program.chmod(0o755)
    script = suffice("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout
    asked = 'COMP_WORDS=(suffice run --rule Err); COMP_CWORD=3; _suffice_completion suffice; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{asked}"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.stdout.split() == ["ErrorStability"]
