"""``suffice status``: where a labelling project stands, and whether it is enough."""

import json
from typing import Any, Final

import typer
from rich.console import Console

from suffice.cli.project_reading import Place, Reading, plain_console, reading, shown_place
from suffice.cli.table_run import AsJson

#: Classes and people that are named.
_MOST_NAMES: Final = 20


def status_command(place: Place, as_json: AsJson = False) -> None:
    """Say where a labelling project stands: counts, verdict, forecast, expected error, people and their agreement.

    Nothing is written, so it may be asked while people label.

    Example: suffice status mails.suffice
    """
    from suffice.session.summary import status

    with reading(place) as found:
        told = status(found.project, found.learning_status)
        if as_json:
            typer.echo(json.dumps(told, allow_nan=False))
            return
        _tell(plain_console(), found, told)


def _tell(console: Console, found: Reading, told: dict[str, Any]) -> None:
    from suffice.cli.labeller.visible import one_line

    stop = told["verdict"] is not None and told["verdict"]["stop"]
    name = one_line(found.project.settings.name, console.encoding)
    skipped = f", {told['n_skipped']:,} skipped" if told["n_skipped"] else ""
    console.print(f"{name}: {told['n_labelled']:,} of {told['size']:,} items labelled{skipped}, {told['left']:,} left.")
    for at, sentence in enumerate(told["words"]):
        style = ("bold green" if stop else "bold") if not at else None
        console.print(one_line(sentence, console.encoding), style=style)
    for line in [*_counted(told, found.project.settings.source), *_activity(found), *_next(found, stop=stop)]:
        console.print(one_line(line, console.encoding))


def _counted(told: dict[str, Any], source: str) -> list[str]:
    lines = []
    if told["classes"]:
        lines.append(f"Classes: {_some(told['classes'], 'count')}")
    if told["people"]:
        people = [
            each | {"name": f"{source} (with the data)"} if each["name"] == source else each for each in told["people"]
        ]
        lines.append(f"People: {_some(people, 'labels')}")
    alike = told["agreement"]
    if alike is not None and alike["kappa"] is not None:
        lines.append(
            f"Agreement: two people said the same of {alike['same']:,} of {alike['both']:,} items "
            f"(kappa {alike['kappa']:.2f})."
        )
    elif alike is not None and alike["difference"] is not None:
        lines.append(
            f"Agreement: on {alike['both']:,} item{'s' * (alike['both'] != 1)} two people are "
            f"{alike['difference']:.4g} apart on average."
        )
    return lines


def _some(counted: list[dict[str, Any]], what: str) -> str:
    """Names with their counts, as many as can be read."""
    names = [f"{each['name']} {each[what]:,}" for each in counted[:_MOST_NAMES]]
    more = len(counted) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _activity(found: Reading) -> list[str]:
    from suffice.report.labelling.saying import day

    with found.project.lock:
        last = found.project.state().seq
    events = found.project.events(after=last - 1)
    return [f"Last activity: {day(events[0].when)} ({events[0].kind.value})."] if events else []


def _next(found: Reading, *, stop: bool) -> list[str]:
    place = shown_place(found.place)
    go_on, take = f"Go on with: suffice label {place}", f"Take the results: suffice export {place}"
    return [take, go_on] if stop else [go_on, take]
