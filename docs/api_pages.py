"""Sphinx extension: the API reference, one page per public name, from the lists of names in ``api.md``.

Each list is a directive with a module and one name per line, relative to the module. The members of a class to show
follow a colon; ``*`` shows all that have a docstring::

    ```{api-names} suffice.learner
    ActiveLearner: ask, tell
    simulate
    ```

The pages are written to ``docs/api`` before the build, and only where they changed. The directive itself becomes a
table of the names with the first sentence of their docstrings.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from generated_pages import before_build, write_changed
from sphinx.ext.autodoc.mock import mock

from suffice.criteria import RULES

#: The documentation is built without torch.
MOCKED: Final = ["torch"]
_SOURCE: Final = Path(__file__).parent / "api.md"
_FOLDER: Final = Path(__file__).parent / "api"
_LIST: Final = re.compile(r"^```\{api-names\} (\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ALL_RULES: Final = "(all rules)"


@dataclass(frozen=True)
class Entry:
    """A documented name.

    Attributes:
        module: The module that it is documented in.
        name: Its name within the module.
        members: What to show of a class: nothing, names with commas between, or an asterisk for all.
    """

    module: str
    name: str
    members: str = ""

    @property
    def path(self) -> str:
        """The full name, which is the name of the page too."""
        return f"{self.module}.{self.name}"

    @property
    def value(self) -> Any:
        """The object."""
        return _found(self.path)

    @property
    def imported(self) -> str:
        """The statement that imports it, from the package itself where that has it."""
        parts = self.module.split(".")
        modules = [".".join(parts[:length]) for length in range(1, len(parts))]
        short = (each for each in modules if self.name in getattr(_found(each), "__all__", ()))
        same = (each for each in short if _found(f"{each}.{self.name}") is self.value)
        return f"from {next(same, self.module)} import {self.name}"

    @property
    def summary(self) -> str:
        """The first sentence of the docstring as plain text; empty for a constant, which has a comment instead."""
        value = self.value
        text = (inspect.getdoc(value) or "") if callable(value) and hasattr(value, "__name__") else ""
        first = " ".join(text.split("\n\n")[0].split())
        plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?([^`]+)`", r"\1", first).replace("``", "")
        return re.split(r"(?<=[.?])\s", plain)[0].replace("|", "\\|").replace("*", "\\*").replace("$", "\\$")

    def page(self) -> str:
        """Return the page in reStructuredText."""
        value = self.value
        lines = [":orphan:", "", self.name, "=" * len(self.name), ""]
        lines += [f":doc:`API reference </api>` · ``{self.imported}``", "", f".. currentmodule:: {self.module}", ""]
        if inspect.isclass(value):
            lines.append(f".. auto{'exception' if issubclass(value, BaseException) else 'class'}:: {self.path}")
            if self.members:
                lines.append("   :members:" + ("" if self.members == "*" else f" {self.members}"))
        elif inspect.isroutine(value):
            lines.append(f".. autofunction:: {self.path}")
        else:
            lines += [f".. autodata:: {self.path}", "   :no-value:"]
        return "\n".join(lines) + "\n"


def _fields(value: Any) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(value)) if dataclasses.is_dataclass(value) else ()


@cache
def _found(path: str) -> Any:
    """Import an object by its full name; AttributeError or ModuleNotFoundError if there is none."""
    first, *others = path.split(".")
    value, module = import_module(first), first
    with mock(MOCKED):
        for name in others:
            module += f".{name}"
            if name in _fields(value):
                value = getattr(value, name, None)  # a field without a default is no attribute of its class
            elif inspect.ismodule(value) and not hasattr(value, name):
                value = import_module(module)
            else:
                value = getattr(value, name)
    return value


def entries(module: str, text: str) -> list[Entry]:
    """Read the content of a directive; a line that begins with a blank continues the one before it."""
    found = []
    for line in re.sub(r"\n\s+", " ", text.strip()).splitlines():
        if line == _ALL_RULES:
            found += [Entry(module, name, ", ".join(_makers(rule))) for name, rule in RULES.items()]
            continue
        name, _, members = line.partition(":")
        inner, _, last = name.strip().rpartition(".")
        found.append(Entry(f"{module}.{inner}" if inner else module, last, members.strip()))
    return found


def _makers(rule: type) -> list[str]:
    """Name the alternative constructors of a rule."""
    return [name for name, value in vars(rule).items() if isinstance(value, classmethod)]


def all_entries() -> Iterator[Entry]:
    """Yield every documented name, in the order of the page."""
    for module, text in _LIST.findall(_SOURCE.read_text(encoding="utf-8")):
        yield from entries(module, text)


class ApiNames(Directive):
    """A table of names with their summaries, and the links to their pages."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Parse the module's description and the table.

        The pages are in no table of contents: the sidebar of each page would list all of them, which takes longer to
        build than everything else.
        """
        module = self.arguments[0]
        listed = entries(module, "\n".join(self.content))
        lines = ["```{eval-rst}", f".. automodule:: {module}", "   :no-members:", "```", ""]
        lines += ["| name | |", "| --- | --- |"]
        lines += [f"| [`{entry.name}`](api/{entry.path}) | {entry.summary} |" for entry in listed]
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, source="api_pages.py"), self.content_offset, parent)
        for table in parent.findall(nodes.table):
            table["classes"].append("api-table")
        return parent.children


def write_pages(_: Any = None) -> None:
    """Write the pages that changed, and remove those of names that are gone."""
    pages = {f"{entry.path}.rst": entry.page() for entry in all_entries()}
    for old in set(_FOLDER.glob("*.rst")) - {_FOLDER / name for name in pages}:
        old.unlink()
    write_changed(_FOLDER, {name: text.encode() for name, text in pages.items()})


def resolve_alias(app: Any, env: Any, node: nodes.Element, shown: nodes.Element) -> nodes.Node | None:
    """Resolve a reference by the object that it names, whatever path it uses.

    ``suffice.ActiveLearner`` is documented as ``suffice.learner.ActiveLearner``. A reference to an object that exists
    but is not public is shown without a link. One to nothing stays unresolved, which Sphinx reports.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    for path in _candidates(node, target):
        try:
            value = _found(path)
        except (AttributeError, ModuleNotFoundError):
            continue
        documented = _documented(value, path)
        if documented is None:
            return shown
        domain = env.get_domain("py")
        found = domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], documented, node, shown)
        return found or shown
    return None


def _candidates(node: nodes.Element, target: str) -> Iterator[str]:
    """Yield the full names that a reference may mean: as it is, or relative to the object that it is printed for."""
    if target.startswith("suffice"):
        yield target
        return
    _, _, page = node["refdoc"].partition("api/")
    if page:
        yield f"{page}.{target}"
        yield f"{getattr(_found(page), '__module__', 'suffice')}.{target}"
    yield f"{node.get('py:module', 'suffice')}.{target}"


@cache
def _paths() -> dict[int, str]:
    """Return the full name of every documented object, by its identity."""
    return {id(entry.value): entry.path for entry in all_entries()}


def _documented(value: Any, path: str) -> str | None:
    """Return the full name by which an object, or the member of one, is documented."""
    by_identity = _paths()
    if id(value) in by_identity:
        return by_identity[id(value)]
    owner, _, member = path.rpartition(".")
    try:
        held = by_identity.get(id(_found(owner))) if owner else None
    except (AttributeError, ModuleNotFoundError):
        return None
    return f"{held}.{member}" if held else None


def setup(app: Any) -> dict[str, bool]:
    """Register the directive, the generator and the resolver."""
    app.add_directive("api-names", ApiNames)
    app.connect("missing-reference", resolve_alias)
    return before_build(app, write_pages)
