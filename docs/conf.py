"""Sphinx configuration, and the directive that lists the stopping rules."""

import inspect
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

import suffice
from suffice.criteria import RULES, Criterion
from suffice.criteria.base import rule_info, rule_sources, rule_summary

sys.path.insert(0, str(Path(__file__).parent))

project = "suffice"
author = "the suffice developers"
copyright = "the suffice developers"
version = release = suffice.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",  # tabs and cards
    "sphinx-mathjax-offline",  # formulas without a network
    "api_pages",
    "gallery_pages",
    "notebook_pages",
]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "measured", "examples"]

# Every reference to a name must lead somewhere; see resolve_alias for names that are not public.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|collections|pathlib|sklearn|scipy|torch|pandas)\..*"),
    ("py:class", r".* .*"),  # "What it is: more about it", which Sphinx takes for a type
]

# The documentation is built without torch; a stand-in knows no "|", so unions with its types are in quotes.
autodoc_mock_imports = ["torch"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 90
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Reference", "returns_style")]

html_theme = "furo"
html_title = f"suffice {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]


class RuleTable(Directive):
    """A table of all stopping rules, in Markdown: what each does, what it requires, and its source."""

    def run(self) -> list[nodes.Node]:
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
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, source="conf.py"), self.content_offset, parent)
        parent.children[0]["classes"].append("rule-table")
        return parent.children


def _arguments(rule: type[Criterion]) -> str:
    """Return the positional arguments of a rule with their defaults."""
    given = [each for each in inspect.signature(rule).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return ", ".join(each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in given)


def link_to_pages(_app: Any, _path: Path, _including: str, content: list[str]) -> None:
    """In files that are included from outside of this folder, lead links to ARCHITECTURE.md to its page."""
    content[0] = content[0].replace("](ARCHITECTURE.md)", "](docs/architecture.md)")


def setup(app: Any) -> None:
    """Register the directive, and where some links lead."""
    app.add_directive("rule-table", RuleTable)
    app.connect("include-read", link_to_pages)
