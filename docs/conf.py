"""Sphinx configuration, and the directives that list the stopping rules."""

import inspect
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

import suffice
from suffice.criteria import RULES, Criterion
from suffice.criteria.rule_info import rule_info, rule_sources, rule_summary

project = "suffice"
author = "the suffice developers"
copyright = "the suffice developers"
version = release = suffice.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",  # tabs
    "sphinx-mathjax-offline",  # formulas without a network
]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "measured"]

# The documentation is built without torch; a stand-in knows no "|", so unions with its types are in quotes.
autodoc_mock_imports = ["torch"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Reference", "returns_style")]

html_theme = "furo"
html_title = f"suffice {release}"
html_static_path = []


class _Generated(Directive):
    """A directive whose content is generated in the language of the page that uses it."""

    def lines(self) -> list[str]:
        """Return the content."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Parse the content in place of the directive."""
        parent = nodes.Element()
        self.state.nested_parse(StringList(self.lines(), source="conf.py"), self.content_offset, parent)
        return parent.children


class RuleTable(_Generated):
    """A table of all stopping rules, in Markdown: what each does, what it requires, and its source."""

    def lines(self) -> list[str]:
        """Return the table, family by family."""
        lines = ["| rule | what it does | requires | source |", "| --- | --- | --- | --- |"]
        family = ""
        for rule in RULES.values():
            info = rule_info(rule)
            if info.family != family:
                family = info.family
                lines.append(f"| **{family}** | | | |")
            call = f"{{class}}`{rule.__name__}({_arguments(rule)}) <suffice.criteria.{rule.__name__}>`"
            requires = ", ".join(f"`{name}`" for name in sorted(rule.requires)) or "nothing"
            source = ", ".join(f"[{key}](bibliography.md)" for key in rule_sources(rule)) or info.origin
            lines.append(f"| {call} | {rule_summary(rule)} | {requires} | {source} |")
        return lines


class RuleReference(_Generated):
    """The reference of all stopping rules, in reStructuredText."""

    def lines(self) -> list[str]:
        """Return an autodoc directive for each rule, with its alternative constructors."""
        lines = []
        for rule in RULES.values():
            lines.append(f".. autoclass:: suffice.criteria.{rule.__name__}")
            makers = [name for name, value in vars(rule).items() if isinstance(value, classmethod)]
            lines += [f"   :members: {', '.join(makers)}"] if makers else []
            lines.append("")
        return lines


def _arguments(rule: type[Criterion]) -> str:
    """Return the positional arguments of a rule with their defaults."""
    given = [each for each in inspect.signature(rule).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return ", ".join(each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in given)


def setup(app: Any) -> None:
    """Register the directives."""
    app.add_directive("rule-table", RuleTable)
    app.add_directive("rule-reference", RuleReference)
