"""The structure of the package in figures: modules, importers, cycles, names.

``python -m tests.structure`` prints them.
``python -m tests.structure FOLDER`` counts the package below another folder ``src``.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Structure:
    """The modules of a package and their imports of each other.

    Attributes:
        paths: Each module's file, by dotted name.
        imports: The modules of the package that each module imports, also within functions.
        classes: The names of all top-level classes, one entry for each definition.
    """

    paths: dict[str, Path]
    imports: dict[str, set[str]]
    classes: list[str]

    @property
    def modules(self) -> list[str]:
        """Modules other than package faces (``__init__``) and ``__main__``."""
        return sorted(name for name, path in self.paths.items() if not path.name.startswith("__"))

    def importers(self) -> dict[str, set[str]]:
        """The modules that import each module."""
        found: dict[str, set[str]] = defaultdict(set)
        for name, imported in self.imports.items():
            for other in imported:
                found[other].add(name)
        return found

    def single_importers(self) -> dict[str, str]:
        """Modules with exactly one importer that is not a package face, and that importer."""
        importers = self.importers()
        single = {name: next(iter(importers[name])) for name in self.modules if len(importers[name]) == 1}
        return {name: other for name, other in single.items() if not self.paths[other].name.startswith("__")}

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


def read_structure(source: Path) -> Structure:
    """Read the structure of the package in a folder ``src``."""
    package = next(path for path in sorted(source.iterdir()) if (path / "__init__.py").is_file())
    paths = {}
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
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in paths else node.module for name in full}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(paths)


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def main() -> None:
    """Print the figures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    structure = read_structure(folder / "src")
    single, modules = structure.single_importers(), structure.modules
    print(f"modules: {len(structure.paths)}, package faces included; {len(modules)} without")
    print(f"with a single importer (package faces aside): {len(single)}, {100 * len(single) / len(modules):.1f} %")
    print(f"import cycle: {' -> '.join(structure.cycle()) or 'none'}")
    print(f"module names used more than once: {len(structure.repeated_modules())} {structure.repeated_modules()}")
    print(f"class names used more than once: {len(structure.repeated_classes())} {structure.repeated_classes()}")
    if "--list" in sys.argv:
        for name, importer in single.items():
            print(f"  {name} <- {importer}")


if __name__ == "__main__":
    main()
