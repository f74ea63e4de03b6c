"""Options of ``suffice label-studio``, without a server of Label Studio."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.cli.label_studio_command import TOKEN_VARIABLE, ConnectionOptions, NewTasksOptions
from suffice.cli.project_options import ProjectModel
from suffice.errors import InvalidValueError, SufficeError
from suffice.project import create_project

RUN = CliRunner()
START = ("label-studio", "--url", "http://localhost:1", "--project")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(TOKEN_VARIABLE, "0123456789abcdef0123456789abcdef01234567")


def test_only_given_options_are_passed_on() -> None:
    assert NewTasksOptions().arguments() == {}
    options = NewTasksOptions(model=ProjectModel("kernel"), at_most="5%", seed=0)
    assert options.arguments() == {"model": "kernel", "at_most": 0.05, "seed": 0}


@pytest.mark.parametrize(
    ("given", "reached"),
    [
        (None, None),
        ("https://labels.example", "https://labels.example/webhook"),
        ("https://labels.example/here", "https://labels.example/here"),
    ],
)
def test_the_address_of_the_webhook(given: str | None, reached: str | None) -> None:
    assert ConnectionOptions("http://localhost:8080", 1, webhook_url=given).reached == reached


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("0",), "--project must be the number of a project of Label Studio, 1 or more, not 0"),
        (("1", "--once", "--remove"), "--once and --remove exclude each other"),
        (("1", "--at-most", "2"), "--at-most must be a share of wrong predictions"),
        (("1", "--folder", "p", "--random-share", "0.5"), "exists already, and --random-share is for a new one"),
    ],
)
def test_options_that_cannot_be_used(arguments: tuple[str, ...], words: str) -> None:
    texts = ["win a free prize now", "see you at lunch", "free money, click now", "are you home yet"]
    create_project("p", texts, classes=["spam", "ham"]).close()
    result = RUN.invoke(app, [*START, *arguments])
    assert isinstance(result.exception, InvalidValueError)
    assert words in str(result.exception)


def test_a_project_is_created_with_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def created(place: Path, server: Any, number: int, **options: Any) -> Any:
        calls.append((place, server.url, number, options))
        raise SufficeError("this is enough")

    monkeypatch.setattr("suffice.integrations.label_studio.created_project", created)
    result = RUN.invoke(app, [*START, "7", "--initial", "5", "--mistake-cost", "3", "--once"])
    assert str(result.exception) == "this is enough"
    options = {"mistake_cost": 3.0, "initial": 5}
    assert calls == [(Path("label-studio-7.suffice"), "http://localhost:1", 7, options)]
