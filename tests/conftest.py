"""Every test runs on one BLAS thread: two make small fits slower, and results depend on the split."""

import gc
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from typer.main import get_command

from tests import remembered_losses, smaller_work
from tests.thoroughness import FAST, IN_CI, THOROUGH, thorough

for profile, number in (("fast", FAST), ("thorough", THOROUGH)):
    settings.register_profile(
        profile, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=number
    )
settings.load_profile("fast")


def _runs_programs(folder: Path) -> bool:
    return not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)


# Temporary files are in memory where there is room for them, unless TMPDIR says otherwise: projects write each label
# through to the disk, and a test would wait for that most of its time.
IN_MEMORY = Path("/dev/shm")
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= 2**31 and _runs_programs(IN_MEMORY):
    os.environ.setdefault("TMPDIR", str(IN_MEMORY))
    tempfile.tempdir = None

RESEARCH = Path(__file__).parent / "research"

# This script works with suffice 0.6.0 only.
collect_ignore = ["project/projects_of_0_6_0/create_projects.py"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without a search for garbage, and leave modules and tests out of every later one: all are kept.

    Later searches are rarer than usual, which saves about one percent of the time of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 10, 10)
        gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: compressed ones may hold the time, and processes must collect the same tests."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def _checks_repeat(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a seed each check is drawn anew; in a test the draw is that of seed 0, unless it is marked."""
    module = sys.modules.get("suffice.checks.random_source")
    if module is not None and request.node.get_closest_marker("draws_anew") is None:
        monkeypatch.setattr(module, "randbits", lambda _: 0)


@pytest.fixture(autouse=True)
def _json_fits_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints with ``--json`` is compared with its schema."""
    module = sys.modules.get("suffice.cli.json_output")
    if module is None:
        return
    from tests.json_schemas import require_fit

    text = module.json_text

    def compared(command: str, result: object) -> str:
        said: str = text(command, result)
        require_fit(command, said)
        return said

    monkeypatch.setattr(module, "json_text", compared)


#: What takes seconds to start and is shared by the tests of a process, in the order in which it is used.
SHARED = ("cluster", "browser", "postgresql", "postgres")


def _shared(item: pytest.Item) -> int:
    """The place of what a test shares with others in ``SHARED``, or its length."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    names = (*getattr(item, "fixturenames", ()), parameters.get("place"))
    return next((k for k, name in enumerate(SHARED) if name in names), len(SHARED))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what ``one_in`` leaves to the slow tests: of every so many cases, all but the first.

    Continuous integration has half of these cases, and every other slow case of each other test, because its time is
    limited. Tests that are marked with ``all_cases`` keep theirs.

    Tests of suffice-research do not count for the coverage of suffice.

    Tests with a cluster are slow, too: it takes seconds to start, and pools of several parts are tested without it.
    Tests that share a cluster, a browser or a server come first, one after the other: then one process starts it, and
    no other process needs to.
    """
    cases, slow_cases = Counter[str](), Counter[str]()
    left_out: set[str] = set()
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None and item.get_closest_marker("slow") is None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % mark.args[0]:
                item.add_marker(pytest.mark.slow)
                if IN_CI and cases[test] % 2 == 0:
                    left_out.add(item.nodeid)
            cases[test] += 1
        elif (
            IN_CI
            and item.get_closest_marker("slow") is not None
            and item.get_closest_marker("all_cases") is None
            and getattr(item, "callspec", None) is not None
        ):
            test = item.nodeid.partition("[")[0]
            if slow_cases[test] % 2:
                left_out.add(item.nodeid)
            slow_cases[test] += 1
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if RESEARCH in item.path.parents:
            item.add_marker("no_cover")
    items[:] = sorted((item for item in items if item.nodeid not in left_out), key=_shared)


class EmptyFolder:
    """A folder that is used again as long as the tests leave it empty, for making one for each test takes longer."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._path = factory.mktemp("empty")

    def path(self) -> Path:
        try:
            left = os.listdir(self._path)
        except OSError:
            # A test removed it, or its permissions.
            left = [""]
        if left:
            self._path = self._factory.mktemp("empty")
        return self._path


@pytest.fixture(scope="session")
def _empty_folder(tmp_path_factory: pytest.TempPathFactory) -> EmptyFolder:
    return EmptyFolder(tmp_path_factory)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(request: pytest.FixtureRequest, _empty_folder: EmptyFolder) -> Iterator[None]:
    """No test or documented example leaves a file behind; the folder is ``tmp_path`` for a test that asks for it."""
    before = os.getcwd()
    os.chdir(request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else _empty_folder.path())
    yield
    os.chdir(before)


@pytest.fixture(scope="session", autouse=True)
def _smaller_forests() -> Iterator[None]:
    """Compare models and rank labels with smaller forests and fewer folds."""
    assert {place: pkgutil.resolve_name(place) for place in smaller_work.SMALLER} == smaller_work.USUAL
    with pytest.MonkeyPatch.context() as patch:
        for place, number in smaller_work.SMALLER.items():
            patch.setattr(place, number)
        yield


@pytest.fixture(scope="session", autouse=True)
def _commands_built_once() -> Iterator[None]:
    """Build the command-line interface once, and not for each command that a test runs in its own process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def _remembered_losses() -> Iterator[None]:
    """Compare models once on the same labels."""
    with pytest.MonkeyPatch.context() as patch:
        computed = pkgutil.resolve_name(remembered_losses.PLACE)
        patch.setattr(remembered_losses.PLACE, remembered_losses.remembered(computed))
        yield


@pytest.fixture
def all_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use all trees and folds, in this process and in those that the test starts, if the tests are slow."""
    if thorough():
        monkeypatch.setattr(smaller_work, "all_trees", True)
        for place, number in smaller_work.USUAL.items():
            monkeypatch.setattr(place, number)


@pytest.fixture
def real_figure() -> None:
    """Render the figures of this test, see :func:`unrendered_figures`."""


@pytest.fixture
def never_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save figures without rendering them, which takes longer than most runs."""

    def save(_: object, to: str | Path | BinaryIO, **__: object) -> None:
        if isinstance(to, str | Path):
            Path(to).write_bytes(b"not rendered")
        else:
            to.write(b"not rendered")

    with suppress(ImportError):
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)


@pytest.fixture
def unrendered_figures(request: pytest.FixtureRequest) -> None:
    """Save figures without rendering them; the slow tests render them."""
    if not thorough() and "real_figure" not in request.fixturenames:
        request.getfixturevalue("never_rendered")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt this process and those that the test starts.

    A background job (``nohup``, a job runner, ``&`` in a script) ignores SIGINT, and its children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def _started_cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    config = pytest.importorskip("dask.config", reason="dask is not installed")
    # A fork of a process that has imported the package starts in a fraction of the time of a new process. The context
    # is asked for first, because it sets the modules to import, too.
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with config.set(method):
        context = distributed.utils.get_mp_context()
        context.set_forkserver_preload(["distributed", "pandas", "suffice.learner.active", "suffice.models"])
        with (
            distributed.LocalCluster(**options) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client


@pytest.fixture
def cluster(_started_cluster: Any) -> Any:
    """The client of a Dask cluster with two worker processes, which all tests of this process share."""
    # A worker that an earlier test has killed is replaced. A fork that hangs on a busy machine is given up.
    try:
        _started_cluster.wait_for_workers(2, timeout=30)
    except TimeoutError:
        _started_cluster.cluster.scale(0)
        _started_cluster.cluster.scale(2)
        _started_cluster.wait_for_workers(2, timeout=60)
    return _started_cluster
