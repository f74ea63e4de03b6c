"""``suffice classes``: the classes of a labelling project, and changes of them."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli.project_options import ProjectOptions, place_of, require_store
from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, plain_console, shown_place
from suffice.errors import InvalidValueError
from suffice.presentation.number_format import count

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project


def classes_command(
    place: Place,
    add: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Add a class; can be given again.")] = None,
    rename: Annotated[
        tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="Give a class another name.")
    ] = None,
    merge: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A class to merge, with --into; can be given again.")
    ] = None,
    into: Annotated[str | None, typer.Option(metavar="NAME", help="The class that those of --merge become.")] = None,
    order: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="All classes in another order, which is that of their keys.")
    ] = None,
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Remove a class that has no labels.")] = None,
    person: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who changes them.", show_default="your login name")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the classes of a project, or add, rename, merge, reorder and remove them. No label is lost.

    One kind of change at a time. The model learns all labels again; a server that is running takes the change over
    within a second. While a check is open, classes can be renamed and reordered only.

    Example: suffice classes mails.suffice --merge advert --merge newsletter --into advert
    """
    require_store()
    from suffice.project.create import open_project

    options = ProjectOptions(place, person=person)
    found = place_of(options)[0]
    given = {"--add": add, "--rename": rename, "--merge": merge, "--order": order, "--remove": remove}
    kinds = [name for name, value in given.items() if value]
    if len(kinds) > 1:
        raise InvalidValueError(f"{' and '.join(kinds)} cannot be done at once; call the command once for each")
    if bool(merge) != (into is not None):
        raise InvalidValueError("--merge and --into belong together: --merge A --merge B --into B")
    with open_project(found) as project:
        before = project.settings.classes
        if kinds:
            _change(project, options.who, add=add, rename=rename, merge=(merge, into), order=order, remove=remove)
        with project.lock:
            counts, classes = project.state().counts(), project.settings.classes
    if as_json:
        listed = [{"name": name, "labels": counts.get(name, 0)} for name in classes]
        typer.echo(json.dumps({"classes": listed, "before": list(before)}, ensure_ascii=False))
        return
    console = plain_console()
    if not classes:
        console.print("The labels of this project are numbers, so it has no classes.")
    for name in classes:
        console.print(f"{name}: {count(counts.get(name, 0), 'label')}", markup=False, highlight=False)
    if kinds:
        console.print(f"The classes are changed; all labels stay. See: suffice status {shown_place(found)}")


def _change(
    project: "Project",
    person: str,
    *,
    add: list[str] | None,
    rename: tuple[str, str] | None,
    merge: tuple[list[str] | None, str | None],
    order: str | None,
    remove: str | None,
) -> None:
    names, into = merge
    if add:
        before = project.settings.classes
        project.change_classes([*before, *add], person=person, before=before)
    elif rename:
        project.rename_class(*rename, person=person)
    elif names and into is not None:
        project.merge_classes(names, into, person=person)
    elif order:
        from suffice.project.reading_options import parse_classes

        project.reorder_classes(parse_classes(order), person=person)
    elif remove:
        project.remove_class(remove, person=person)
