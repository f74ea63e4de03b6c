"""The notebooks of the four jobs: ``notebooks/NAME.ipynb`` with what their cells show, and a page of each.

As a Sphinx extension, this module writes the pages before the build, to ``docs/notebooks``. As a program, it executes
notebooks and prints which shown outputs differ from the stored ones::

    .venv/bin/python docs/notebook_pages.py [--write] [NAME ...]

``--write`` stores the outputs anew. Cells are plain Python: no kernel is needed. The value of a last expression is
shown as Jupyter shows it, by ``_repr_html_`` if it has that, and each open figure of matplotlib as a picture.
"""

import ast
import contextlib
import io
import json
import sys
from base64 import b64decode, b64encode
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from generated_pages import asked_names, before_build, write_changed

DOCS: Final = Path(__file__).parent
FOLDER: Final = DOCS.parent / "notebooks"
#: In the order of the jobs.
NAMES: Final = ("label_your_data", "check_labels", "finish_a_data_set", "your_own_loop")
#: The notebooks state the version of this package: its models decide which items are asked for.
MODELS: Final = "scikit-learn"
_DPI: Final = 80


class Notebook:
    """A notebook, as its file has it.

    Args:
        name: Its name without the ending.

    Attributes:
        content: The JSON of the file.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = FOLDER / f"{name}.ipynb"
        self.content: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))

    def outputs(self) -> list[list[dict[str, Any]]]:
        """Return the stored outputs of each code cell."""
        return [cell["outputs"] for cell in self.content["cells"] if cell["cell_type"] == "code"]

    def made_with(self) -> str:
        """Return the version of the package of models with which the outputs were made."""
        return str(self.content["metadata"]["made_with"][MODELS])

    def run(self) -> list[list[dict[str, Any]]]:
        """Execute the code cells in their order, and return the outputs of each."""
        place = ModuleType(self.name)
        before = sys.modules.get(self.name)
        sys.modules[self.name] = place
        try:
            codes = [cell for cell in self.content["cells"] if cell["cell_type"] == "code"]
            return [_execute("".join(cell["source"]), place, count) for count, cell in enumerate(codes, 1)]
        finally:
            del sys.modules[self.name]
            if before is not None:
                sys.modules[self.name] = before

    def store(self, outputs: list[list[dict[str, Any]]]) -> None:
        """Write the file with these outputs of its code cells."""
        codes = [cell for cell in self.content["cells"] if cell["cell_type"] == "code"]
        for count, (cell, shown) in enumerate(zip(codes, outputs, strict=True), 1):
            cell |= {"execution_count": count, "outputs": shown}
        self.content["metadata"]["made_with"] = {MODELS: version(MODELS)}
        self.path.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def page(self) -> str:
        """Return the page of the notebook, in Markdown; pictures are files beside it."""
        title, *rest = self.content["cells"]
        link = f"Download the {{download}}`notebook <../../notebooks/{self.name}.ipynb>`. Its output is stored with it."
        parts = ["".join(title["source"]), link]
        for number, cell in enumerate(rest):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
                continue
            parts.append(f"```python\n{source}\n```")
            parts += [self._shown(output, cell, number) for output in cell["outputs"]]
        return "\n\n".join(parts) + "\n"

    def pictures(self) -> dict[str, bytes]:
        """Return the pictures by the names of their files."""
        return {
            self._picture(number): b64decode(output["data"]["image/png"])
            for number, cell in enumerate(self.content["cells"][1:])
            for output in cell.get("outputs", ())
            if "image/png" in output.get("data", ())
        }

    def _picture(self, number: int) -> str:
        return f"{self.name}-{number}.png"

    def _shown(self, output: dict[str, Any], cell: dict[str, Any], number: int) -> str:
        """An output in Markdown."""
        if output["output_type"] == "stream":
            return f"```text\n{''.join(output['text'])}```"
        data = output["data"]
        if "image/png" in data:
            return f"![{cell['metadata']['alt']}]({self._picture(number)})"
        if "text/html" in data:
            return "````{raw} html\n" + "".join(data["text/html"]) + "\n````"
        return "```text\n" + "".join(data["text/plain"]) + "\n```"


def _execute(source: str, place: ModuleType, count: int) -> list[dict[str, Any]]:
    """Execute a cell in a module, and return what it shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place.__name__, "exec"), place.__dict__)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place.__name__, "eval"), place.__dict__)
    if source.rstrip().endswith(";"):
        value = None
    shown: list[dict[str, Any]] = []
    if printed.getvalue():
        shown.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        shown.append({"data": _data(value), "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return shown + _figures()


def _data(value: Any) -> dict[str, list[str]]:
    """A value as a notebook stores it: as text, and as HTML if it has that."""
    found = {"text/plain": repr(value).splitlines(keepends=True)}
    html = getattr(value, "_repr_html_", None)
    return found if html is None else {"text/html": html().splitlines(keepends=True), **found}


def _figures() -> list[dict[str, Any]]:
    """The open figures as pictures; they are closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot as plt

    shown = []
    for number in plt.get_fignums():
        made = io.BytesIO()
        plt.figure(number).savefig(made, format="png", dpi=_DPI, metadata={"Software": None})
        data = {"image/png": b64encode(made.getvalue()).decode(), "text/plain": ["<Figure>"]}
        shown.append({"data": data, "metadata": {}, "output_type": "display_data"})
    plt.close("all")
    return shown


def told(outputs: list[list[dict[str, Any]]]) -> list[list[str]]:
    """Return what cells say in words: printed text, HTML or text of a value; "a picture" for each picture."""
    return [
        ["a picture" if "image/png" in output.get("data", ()) else _words(output) for output in cell]
        for cell in outputs
    ]


def _words(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return "".join(output["text"])
    return "".join(output["data"].get("text/html", output["data"]["text/plain"]))


def write_pages(_: Any = None) -> None:
    """Write pages and pictures where they changed."""
    for name in NAMES:
        notebook = Notebook(name)
        write_changed(DOCS / "notebooks", {f"{name}.md": notebook.page().encode(), **notebook.pictures()})


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before the build."""
    return before_build(app, write_pages)


def main() -> None:
    """Execute the notebooks that are asked for."""
    names, write = asked_names(__doc__, NAMES)
    for name in names:
        notebook = Notebook(name)
        outputs = notebook.run()
        same = told(outputs) == told(notebook.outputs())
        print(f"{name}: {'as stored' if same else 'differs from what is stored'}", flush=True)
        if write:
            notebook.store(outputs)


if __name__ == "__main__":
    main()
