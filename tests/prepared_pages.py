"""What each page needs so that its commands run, and the commands that do not run.

A page without an entry runs in an empty folder. Tables have 300 rows whose true labels are known.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

ROWS: Final = 300
_WORDS: Final = (("lunch", "meeting", "tomorrow", "report"), ("win", "prize", "free", "click"))

#: A column for each name.
Table = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Prepared:
    """The files of a page, and what people and servers do while its commands run.

    Attributes:
        files: Tables by the names of their files.
        labels: The true labels of tables that a simulated person labels, by file names without the ending.
        project: A command that creates a project before the first block; empty if none is needed.
        together: Whether each block follows the one before; otherwise each starts with files and project alone.
        answer: What people answer in the terminal, each time.
        answers: How often they answer before the input ends; None for no limit.
        server: The arguments of a server that runs during a block, by what the block contains.
        fails: Exit statuses of commands that are shown to fail.
    """

    files: Mapping[str, Table] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    project: str = ""
    together: bool = False
    answer: str = "ham"
    answers: int | None = None
    server: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fails: Mapping[str, int] = field(default_factory=dict)


def _texts(one: str, other: str, share: float) -> tuple[list[str], list[str]]:
    """Texts, and their classes: ``other`` has this share."""
    rng = random.Random(0)
    kinds = [int(rng.random() < share) for _ in range(ROWS)]
    texts = [f"{' '.join(rng.choices(_WORDS[kind], k=3))} {k}" for k, kind in enumerate(kinds)]
    return texts, [(one, other)[kind] for kind in kinds]


def _numbers() -> Table:
    """Columns of numbers, and what they decide: a number and two classes."""
    rng = random.Random(0)
    rooms, area = ([round(rng.gauss(0, 1), 3) for _ in range(ROWS)] for _ in range(2))
    sums = [round(3 * a + 2 * b, 3) for a, b in zip(rooms, area, strict=True)]
    return {"rooms": rooms, "area": area, "price": sums, "spam": ["yes" if each > 0 else "no" for each in sums]}


def _predictions(name: str, *, rows: int = ROWS, wrong: int = 1) -> Table:
    """Rows of the class ham: some are predicted wrong and with little confidence. A sample of them has answers."""
    texts = [f"mail number {k}" for k in range(rows)]
    return {
        "body": texts,
        name: ["spam" if k < wrong else "ham" for k in range(rows)],
        "p": [0.55 if k < wrong else round(0.7 + 0.0001 * k, 4) for k in range(rows)],
        "gold": ["ham"] * rows,
        "sample": ["ham" if k >= rows - 120 else "" for k in range(rows)],
    }


_TEXTS, _KINDS = _texts("ham", "spam", 0.5)
_ABSTRACTS, _INCLUDED = _texts("no", "yes", 0.2)
_IDS: Final = [f"mail-{k}" for k in range(ROWS)]
_MAILS: Final = {"body": _TEXTS}
_SERVE: Final = "suffice serve mails.csv --text body --classes ham,spam"
#: A project of which a person has labelled 20 items.
_PROJECT: Final = Prepared(
    files={"mails.csv": {"id": _IDS, **_MAILS}}, labels={"mails": _KINDS}, project=f"{_SERVE} --id id"
)
_IMPORTED: Final = {"id": _IDS[100:150], "kind": _KINDS[100:150]}

PAGES: Final[Mapping[str, Prepared]] = {
    "README.md": Prepared(
        files={"mails.csv": _MAILS, "posts.csv": _MAILS, "answers.xlsx": _predictions("llm")},
        labels={"mails": _KINDS, "posts": _KINDS},
    ),
    "check-predictions.md": Prepared(
        files=dict.fromkeys(("answers.csv", "june.csv", "july.csv"), _predictions("llm")),
        project="suffice check june.csv --prediction llm --text body --at-most 5%",
    ),
    "compare.md": Prepared(files={"houses.csv": _numbers(), "mails.csv": _numbers()}),
    "guarantee-project.md": _PROJECT,
    "http.md": replace(
        _PROJECT,
        server={"mails.suffice/token": ("serve", "mails.suffice"), "labels/token": ("serve", "--projects", "labels")},
    ),
    "json.md": replace(
        _PROJECT,
        files={**_PROJECT.files, "answers.csv": _predictions("llm")},
        fails={"suffice status nowhere --json": 1},
    ),
    "label-files.md": Prepared(
        files={**_PROJECT.files, "labels.csv": _IMPORTED, "old-model.csv": _IMPORTED, "new.csv": _MAILS},
        labels={"mails": _KINDS},
        project=f"{_SERVE} --id id --at-most 5% --of all",
        together=True,
    ),
    "label-people.md": replace(_PROJECT, answer="a long password"),
    "label-settings.md": replace(_PROJECT, project=f"{_PROJECT.project},advert,newsletter".replace(" --id id", "")),
    "label.md": Prepared(files={"mails.csv": _MAILS}, labels={"mails": _KINDS}, answers=20),
    "large-pools.md": Prepared(files={"big.parquet": {"rooms": _numbers()["rooms"], "y": _numbers()["price"]}}),
    "own-data.md": Prepared(files=dict.fromkeys(("houses.csv", "mails.csv", "labelled.csv"), _numbers())),
    "screening.md": Prepared(
        files={"records.csv": {"abstract": _ABSTRACTS, "included": _INCLUDED}}, labels={"records": _INCLUDED}
    ),
    "start-check.md": Prepared(files={"answers.xlsx": _predictions("gpt")}),
    "start-finish.md": Prepared(
        files={"old.csv": {**_MAILS, "kind": _KINDS}, "posts.csv": _MAILS}, labels={"posts": _KINDS}
    ),
    "start-label.md": Prepared(files={"mails.xlsx": _MAILS}, labels={"mails": _KINDS}),
    "tutorial.md": Prepared(
        files={"reviews.csv": {"review": _TEXTS}},
        labels={"reviews": ["bad" if each == "spam" else "good" for each in _KINDS]},
        together=True,
    ),
}

_MAKE: Final = "make creates an environment with packages from the package index"
_INSTALL: Final = "it installs packages from the package index"
_FETCH: Final = "it downloads data"
_DATA: Final = "it reads data sets that are downloaded"
_LONG: Final = "it takes minutes; tests/research/compare runs shorter comparisons"
_CLUSTER: Final = "it needs a cluster at this address"
_DOCKER: Final = "it needs Docker, and a network for the image"
_LABEL_STUDIO: Final = "it needs Label Studio; tests/integrations runs it against a stand-in"
#: The commands that do not run, as they are written, by page, and why.
NOT_RUN: Final[Mapping[str, Mapping[str, str]]] = {
    "README.md": {
        "make page     # label handwritten digits in the browser": _MAKE,
        "make test     # all checks and tests": _MAKE,
    },
    "index.md": {
        "make demo      # a simulated person labels real data in the terminal": _MAKE,
        "make page      # label handwritten digits yourself, in the browser": _MAKE,
    },
    "compare.md": {
        "suffice compare": _LONG,
        "suffice compare --data embedded --seeds 10": _LONG,
        "suffice compare --rules LabelWorth,ErrorStability,StabilizingPredictions": _LONG,
        "suffice data fetch && suffice compare --data paper --batch 1,10": _FETCH,
    },
    "data.md": {
        "suffice data fetch                       # all of them, 46 MB; the paper's eight are 26": _FETCH,
        "suffice data fetch power_plant skin      # or some": _FETCH,
        "suffice data check                       # are they still what they should be?": _DATA,
        "suffice data fetch --from /media/stick/downloads": _DATA,
        "suffice data fetch --from https://files.example.org/suffice-data": _FETCH,
    },
    "label-people.md": {
        "docker build -t suffice .": _DOCKER,
        'docker run -p 8000:8000 -v "$PWD/projects:/projects" -e SUFFICE_TOKEN=choose-a-long-secret suffice': _DOCKER,
    },
    "label-studio.md": {
        "pip install '.[web]'      # in a clone of the repository": _INSTALL,
        "suffice label-studio --url http://localhost:8080 --project 7": _LABEL_STUDIO,
        "suffice check label-studio-7.suffice --size 100": _LABEL_STUDIO,
    },
    "label.md": {"pip install '.[web]'": _INSTALL},
    "large-pools.md": {
        "suffice run big.parquet --target y --engine dask --scheduler tcp://10.0.0.1:8786": _CLUSTER,
    },
    "own-data.md": {"pip install suffice-research    # in a clone: pip install . ./research": _INSTALL},
    "paper.md": {
        "suffice data fetch power_plant protein": _FETCH,
        "suffice reproduce --only gpr/power_plant,brr/protein": _DATA,
        "suffice reproduce --protocol both --seeds 3 --only brr/protein": _DATA,
    },
    "start-check.md": {"pip install '.[web,excel]'": _INSTALL},
    "start-finish.md": {"pip install '.[web]'": _INSTALL},
    "start-label.md": {"pip install '.[web,excel]'": _INSTALL},
    "tutorial.md": {
        "python3 -m venv .venv": _INSTALL,
        ".venv/bin/pip install '.[web]'": _INSTALL,
        "source .venv/bin/activate": _INSTALL,
    },
    "upgrading.md": {
        "pip install --upgrade suffice": _INSTALL,
        "pip install suffice-research    # only if you use what is named below": _INSTALL,
    },
}
