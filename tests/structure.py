"""The structure of the packages in figures: modules, cycles, names.

``python -m tests.structure`` prints them for suffice and suffice_research.
``python -m tests.structure FOLDER`` counts the package below another folder ``src``.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Folders with the packages of both distributions.
SOURCES = (ROOT / "src", ROOT / "research" / "src")


@dataclass(frozen=True)
class Structure:
    """The modules of one or more packages and their imports of each other.

    Attributes:
        paths: Each module's file, by dotted name.
        imports: The modules of these packages that each module imports, also within functions.
        classes: The names of all top-level classes, one entry for each definition.
    """

    paths: dict[str, Path]
    imports: dict[str, set[str]]
    classes: list[str]

    @property
    def modules(self) -> list[str]:
        """Modules other than package faces (``__init__``) and ``__main__``."""
        return sorted(name for name, path in self.paths.items() if not path.name.startswith("__"))

    def cycle(self) -> list[str]:
        """The modules of one import cycle, or an empty list."""
        try:
            TopologicalSorter(self.imports).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def repeated_modules(self) -> list[str]:
        """Module names that are used more than once."""
        return _repeated(name.rpartition(".")[2] for name in self.modules)

    def repeated_classes(self) -> list[str]:
        """Class names that are used more than once."""
        return _repeated(self.classes)


def read_structure(*sources: Path) -> Structure:
    """Read the structure of the packages in folders ``src``, one package in each."""
    paths = {}
    for source in sources:
        package = next(path for path in sorted(source.iterdir()) if (path / "__init__.py").is_file())
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    imports: dict[str, set[str]] = {}
    classes: list[str] = []
    for name, path in paths.items():
        tree = ast.parse(path.read_text())
        classes += [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        imports[name] = _imported(tree, paths) - {name}
    return Structure(paths, imports, classes)


def _imported(tree: ast.Module, paths: dict[str, Path]) -> set[str]:
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            modules |= {name if name in paths else node.module for name in full}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return modules & set(paths)


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def main() -> None:
    """Print the figures."""
    structure = read_structure(*([Path(sys.argv[1]) / "src"] if len(sys.argv) > 1 else SOURCES))
    print(f"modules: {len(structure.paths)}, package faces included; {len(structure.modules)} without")
    print(f"import cycle: {' -> '.join(structure.cycle()) or 'none'}")
    print(f"module names used more than once: {len(structure.repeated_modules())} {structure.repeated_modules()}")
    print(f"class names used more than once: {len(structure.repeated_classes())} {structure.repeated_classes()}")


if __name__ == "__main__":
    main()
