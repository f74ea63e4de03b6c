"""The templates of the pages: everything is escaped, nothing may be missing, and the remedy is said without Jinja2."""

import re
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import suffice
import suffice_research
from suffice.errors import MissingExtraError
from suffice.report.html_page import _environment, rendered, require_jinja2

PACKAGES = [Path(str(package.__file__)).parent for package in (suffice, suffice_research)]
TEMPLATES = sorted(path for package in PACKAGES for path in package.rglob("*.jinja"))


def test_every_template_is_escaped() -> None:
    assert len(TEMPLATES) >= 6
    for package in ("suffice.report", "suffice_research", "suffice.web"):
        assert _environment(package).autoescape is True
    # What a template marks as safe is not escaped, so none may.
    assert [path.name for path in TEMPLATES if re.search(r"\|\s*safe\b|autoescape", path.read_text())] == []


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="headings"):
        rendered("page.html.jinja", title="t")


def test_whatever_an_error_says_stays_text() -> None:
    page = rendered("problem.html.jinja", package="suffice.web", sentence="""<script>"&'</script>""", back="")
    assert "<p>&lt;script&gt;&#34;&amp;&#39;&lt;/script&gt;</p>" in page


@pytest.mark.parametrize("extra", ["label", "plot"])
def test_without_jinja2_the_remedy_is_said(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"the report needs Jinja2.*pip install .*'jinja2>=3.1'"):
        require_jinja2(extra)
    with pytest.raises(MissingExtraError, match=r"pip install .*'jinja2>=3.1'"):
        rendered("page.html.jinja", title="t", headings={})


def test_no_html_is_built_by_format_strings() -> None:
    tag = re.compile(r"""f["'][^"'\n]*</?[a-z]+[ >]""")
    # These write numbers and escaped texts only, and work without jinja2, which is in an extra.
    plain = ("charts.py", "html_parts.py", "final_writer.py")
    modules = [path for package in PACKAGES for path in package.rglob("*.py")]
    assert [path for path in modules if tag.search(path.read_text()) and path.name not in plain] == []
