"""``suffice status``: the state of a labelling project and its advice."""

import json
from typing import Any

import typer
from rich.console import Console

from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, Reading, plain_console, reading, shown_place
from suffice.presentation.messages import STOPS, count_lines, progress_sentence
from suffice.presentation.number_format import utc_time


def status_command(place: Place, as_json: AsJson = False) -> None:
    """Say where a labelling project stands: whether it is enough, the estimated error, counts, people, agreement.

    Nothing is written to the journal, so it may be asked while people label.

    Example: suffice status mails.suffice
    """
    from suffice.project.status_summary import status

    with reading(place) as found:
        told = status(found.project, found.learning_status)
        if as_json:
            typer.echo(json.dumps(told, allow_nan=False))
            return
        _tell(plain_console(), found, told)


def _tell(console: Console, found: Reading, told: dict[str, Any]) -> None:
    from suffice.cli.labeller.labeller import TONE_STYLES
    from suffice.cli.labeller.visible_text import one_line

    decision = told["decision"]
    name = one_line(found.project.settings.name, console.encoding)
    console.print(progress_sentence(name, told))
    guaranteed = {*told["guarantee"]["sentences"][:1]} if told["guarantee"] is not None else set()
    for sentence in told["words"]:
        first = sentence in decision["sentences"][:1] or sentence in guaranteed
        style = TONE_STYLES[decision["tone"]] if first or sentence == told["words"][0] else None
        console.print(one_line(sentence, console.encoding), style=style)
    console.print(one_line(f"Model: {told['model']['description']}.", console.encoding))
    for line in [*count_lines(told, found.project.settings.source), *_activity(found), *_next(found, told)]:
        console.print(one_line(line, console.encoding))


def _activity(found: Reading) -> list[str]:
    with found.project.lock:
        last = found.project.state().seq
    events = found.project.events(after=last - 1)
    return [f"Last activity: {utc_time(events[0].when)} ({events[0].kind.value})."] if events else []


def _next(found: Reading, told: dict[str, Any]) -> list[str]:
    decision, place = told["decision"], shown_place(found.place)
    go_on, take = f"Go on with: suffice label {place}", f"Take the results: suffice export {place}"
    if told["check"] is not None and told["check"]["state"] == "open":
        return [go_on, f"Stop the check: suffice check {place} --abort", take]
    better = decision["alternative"] if decision["answer"] == "limit" else None
    if better is not None and better["name"] in found.project.settings.models():
        return [f"Switch the model: suffice switch {place} --model {better['name']}", take, go_on]
    return [take, go_on] if decision["answer"] in STOPS else [go_on, take]
