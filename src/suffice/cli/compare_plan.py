"""What ``suffice compare`` is asked for, in words: data sets, models, rules and settings by name, and the runs."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from os.path import isfile
from typing import TYPE_CHECKING, Final, TypeVar

from suffice.errors import InvalidValueError

if TYPE_CHECKING:
    from suffice.experiments.compare.recording import RecordingJob, RecordingSettings

#: Compared if nothing else is said: they need no download.
QUICK: Final = ("diabetes", "friedman", "breast_cancer", "wine")
#: Names for several data sets.
WORDS: Final = ("embedded", "paper", "all")
#: Shown beside any rule.
ALWAYS: Final = ("Budget", "AtOnce", "Never", "RandomStop", "Oracle")
#: Compared only where it is named: where it stops depends on how quick the machine was.
ASKED: Final = "TimeLimit"

N = TypeVar("N", int, float)


def chosen_models(text: str | None) -> list[str]:
    """The models of a list with commas; all if there is none.

    Raises:
        InvalidValueError: One is not known.

    Examples:
        >>> chosen_models("gp, ridge")
        ['gp', 'ridge']
    """
    from suffice.experiments.compare.recording import MODELS

    given = list(MODELS) if text is None else _split(text, "--model")
    for name in given:
        if name not in MODELS:
            raise InvalidValueError(f"there is no model {name!r}.{_nearest(name, MODELS)} There is {', '.join(MODELS)}")
    return given


def chosen_data(text: str | None, models: Sequence[str], target: str | None) -> list[str]:
    """The data sets of a list with commas; a quick set if there is none.

    A word for several stands for those that a model given can learn; a data set by its own name is taken as it is.

    Args:
        text: Names, words for several, or paths of tables.
        models: The models given.
        target: The column of a table to predict.

    Raises:
        InvalidValueError: One is not known, or there is a column and no table.

    Examples:
        >>> chosen_data(None, ["gp"], None), chosen_data("embedded,wine", ["logistic"], None)
        (['diabetes', 'friedman'], ['breast_cancer', 'digits', 'wine', 'iris'])
    """
    from suffice.experiments.compare.sources import SOURCES, source

    # A file may have a comma in its name.
    names = [text] if text is not None and isfile(text) else _split(text, "--data") if text is not None else [""]
    found: list[str] = []
    for name in names:
        if name in ("", *WORDS):
            found += [each for each in _meant(name) if _fits(each, models)]
        elif name not in SOURCES and (near := get_close_matches(name, WORDS, n=1, cutoff=0.8)):
            raise InvalidValueError(f"there is no data set {name!r}. Did you mean {near[0]}?")
        else:
            found.append(source(name).name)
    tables = [name for name in found if source(name).origin == "file"]
    if target is not None and not tables:
        raise InvalidValueError(f"--target {target!r} goes with the path of a table in --data, and there is none")
    return list(dict.fromkeys(found))


def chosen_rules(text: str | None) -> tuple[str, ...]:
    """The rules of a list with commas, and the references that are always there; all if there is none.

    Capitals, spaces, hyphens and underscores do not matter.

    Raises:
        InvalidValueError: One is not known.

    Examples:
        >>> chosen_rules("error_stability, PerformanceConvergence, window 20")
        ('ErrorStability', 'PerformanceConvergence, window 20', 'Budget', 'AtOnce', 'Never', 'RandomStop', 'Oracle')
    """
    from suffice.experiments.compare.rules import catalogue

    names = [entry.name for entry in catalogue()]
    if text is None:
        return tuple(name for name in names if name != ASKED)
    known, parts = {_plain(name): name for name in names}, _split(text, "--rules")
    asked: list[str] = []
    while parts:
        part = parts.pop(0)
        # Some names have a comma in them.
        if parts and _plain(part + parts[0]) in known:
            part += parts.pop(0)
        if _plain(part) not in known:
            near = get_close_matches(_plain(part), known, n=1)
            guess = f" Did you mean {known[near[0]]}?" if near else ""
            raise InvalidValueError(f"there is no rule {part!r}.{guess} The rules are {'; '.join(names)}")
        asked.append(known[_plain(part)])
    return tuple(dict.fromkeys((*asked, *ALWAYS)))


def numbers(text: str, option: str, kind: Callable[[str], N], least: N) -> list[N]:
    """Numbers with commas between.

    Args:
        text: They.
        option: The option they were given to, for an error.
        kind: ``int`` or ``float``.
        least: None may be below this.

    Raises:
        InvalidValueError: One is no such number.

    Examples:
        >>> numbers("1,10", "--batch", int, 1)
        [1, 10]
    """
    found = []
    for part in _split(text, option):
        try:
            value = kind(part)
        except ValueError:
            value = None
        # A number that is none compares with nothing.
        if value is None or not least <= value < float("inf"):
            what = "whole numbers" if kind is int else "numbers"
            raise InvalidValueError(f"{option} must be {what} of {least} or more with commas between, not {part!r}")
        found.append(value)
    return list(dict.fromkeys(found))


def planned(
    data: Sequence[str],
    models: Sequence[str],
    target: str | None,
    *,
    seeds: int,
    batches: Sequence[int],
    settings: "Sequence[RecordingSettings]",
) -> "list[RecordingJob]":
    """The runs, data set by data set.

    Where there are numbers to predict there is no rarest class, and runs that differ in its share alone are one.

    Raises:
        InvalidValueError: A table cannot be read, no model fits a data set, or too few labels are left.
    """
    from dataclasses import replace

    from suffice.experiments.compare.recording import MODELS, recordings

    for setting in settings:
        for batch in batches:
            _require_steps(setting, batch)
    found = []
    for name in data:
        for setting in settings:
            for job in recordings([name], models, seeds=seeds, batches=batches, setting=setting, target=target):
                numeric = MODELS[job.model] == "regression" and setting.imbalance is not None
                found.append(replace(job, setting=replace(setting, imbalance=None)) if numeric else job)
    return list(dict.fromkeys(found))


def _require_steps(setting: "RecordingSettings", batch: int) -> None:
    if setting.labels - setting.initial < 2 * batch:
        left = max(0, setting.labels - setting.initial)
        raise InvalidValueError(
            f"--labels {setting.labels} with --initial {setting.initial} leaves {left} to buy, and 2 steps of {batch} "
            "or more are required; raise --labels, or lower --initial or --batch"
        )


def _meant(word: str) -> list[str]:
    from suffice.data.catalogue import SETS
    from suffice.experiments.compare.sources import SOURCES

    if not word:
        return list(QUICK)
    if word == "embedded":
        return [name for name, each in SOURCES.items() if each.origin == "embedded"]
    if word == "paper":
        return [name for name, each in SOURCES.items() if each.data and SETS[each.data].models]
    return list(SOURCES)


def _fits(name: str, models: Sequence[str]) -> bool:
    from suffice.experiments.compare.recording import MODELS
    from suffice.experiments.compare.sources import source

    return any(MODELS[model] == source(name).kind for model in models)


def _split(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InvalidValueError(f"{option} is empty; give names with commas between, or leave it out")
    return parts


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name.lower(), list(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""
