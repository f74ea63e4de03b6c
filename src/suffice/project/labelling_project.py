"""A labelling project: the public interface to its journal, its items, and everything that people do with them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from suffice.files import make_private
from suffice.numerics import Floats
from suffice.project.account_editor import AccountEditor
from suffice.project.accounts import Account, Role
from suffice.project.assignment import Assignment, ItemAssigner
from suffice.project.check_runner import CheckRunner, Predict
from suffice.project.class_editor import ClassEditor
from suffice.project.data_set_goal import ProjectLabels, ReachedGoal
from suffice.project.events import Draft, Event, EventKind, Label, checked_person
from suffice.project.items import Item
from suffice.project.journal import ConflictError, ProjectJournal, WriteReceipt
from suffice.project.label_writer import LabelWriter
from suffice.project.learned_files import FOLDER, LearnedFiles
from suffice.project.model_results import ModelResults
from suffice.project.project_check import ProjectCheck, ProjectGuarantee
from suffice.project.project_contents import ProjectContents
from suffice.project.row_importer import RowImporter
from suffice.project.settings import Settings
from suffice.project.settings_editor import SettingsEditor
from suffice.project.state import PredictedLabel, ProjectState
from suffice.project.storage import FILE, Database
from suffice.project.stored_sessions import StoredSessions
from suffice.session.decision import Decision
from suffice.session.goals import TargetOf

if TYPE_CHECKING:
    from suffice.project.incoming_rows import Conflicts, ImportReport, MatchBy
    from suffice.session.suspicious_labels import SuspiciousLabel

__all__ = ["ConflictError", "Project", "WriteReceipt"]


class Project:
    """An existing project, for one or many people, threads and processes.

    When a method returns, its changes are on the disk. If it raises an error, nothing was written, with one exception:
    if the connection to a database server was lost, the changes may have been written. Then send the request again with
    the same ``request``.

    Each method calls the object of its subject, which is an attribute.

    Args:
        database: Database of the project.
        size: Number of items.

    Attributes:
        journal: Events of the project, and the state and settings that follow from them.
        contents: Items and features.
        assigner: Assigns items to people.
        label_writer: Writes labels, skips and corrections.
        importer: Adds rows, and imports labels and predictions.
        model_results: Results of the model.
        settings_editor: Changes settings and the model.
        class_editor: Changes classes.
        account_editor: Changes accounts.
        check_runner: Starts and aborts checks.
        stored_sessions: Sessions of people who are signed in on the page.
        place: Location of the project, for messages.
        lock: Hold this lock while reading the state.
    """

    def __init__(self, database: Database, size: int) -> None:
        journal = ProjectJournal(database, size)
        contents = ProjectContents(journal)
        self.journal, self.contents = journal, contents
        self.assigner, self.label_writer = ItemAssigner(journal), LabelWriter(journal)
        self.importer, self.model_results = RowImporter(journal, contents), ModelResults(journal, contents)
        self.settings_editor, self.class_editor = SettingsEditor(journal), ClassEditor(journal)
        self.account_editor, self.check_runner = AccountEditor(journal), CheckRunner(journal, contents)
        self.stored_sessions = StoredSessions(database)
        self.place, self.lock = journal.place, journal.lock
        _restrict_files(database.file)

    @property
    def size(self) -> int:
        """Number of items."""
        return self.journal.size

    def __enter__(self) -> "Project":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database of the project."""
        self.journal.close()

    # Settings and journal.

    @property
    def settings(self) -> Settings:
        """Settings of the project, with the current classes and the original model.

        They belong to the state that was read last. Hold :attr:`lock` to read settings and state that are consistent.
        """
        return self.journal.settings

    @property
    def current_settings(self) -> Settings:
        """The settings with the current model; :attr:`settings` contain the original model."""
        return self.contents.current_settings

    @property
    def first_settings(self) -> Settings:
        """The settings that the project was made with."""
        return self.journal.first_settings

    @property
    def made_with(self) -> Mapping[str, Any]:
        """Options with which the data was read; empty in projects of version 0.11 or older."""
        return self.contents.made_with

    @property
    def deferred_features(self) -> Mapping[str, Any] | None:
        """How the features are computed after the project was made; None if they were computed before."""
        return self.contents.deferred_features

    @property
    def n_items_made(self) -> int:
        """Number of items that the project was made with; others were added later."""
        return self.contents.n_items_made

    def state(self) -> ProjectState:
        """Present state of the project, with the events of other processes. Hold :attr:`lock` while reading it."""
        return self.journal.state()

    def events(self, after: int = 0) -> list[Event]:
        """The events of the journal after a number."""
        return self.journal.events(after)

    def resume(self, person: str) -> None:
        """Record that somebody continues the project."""
        name = checked_person(person)
        self.journal.write(lambda _, __: ([Draft(EventKind.resumed, name)], None))

    # Items and features.

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of the items, ``n x D``. Large arrays are a memory map of a file in the folder of the project.

        Features that are missing are computed first, which may take minutes.

        Raises:
            SufficeError: They cannot be computed.
        """
        return self.contents.X

    @property
    def features_missing(self) -> bool:
        """Whether the features of the items are not computed yet; :attr:`X` computes them."""
        return self.contents.features_missing

    @property
    def folder(self) -> Path | None:
        """The folder of the project; None if it is in PostgreSQL."""
        return self.contents.folder

    @property
    def learned_files(self) -> LearnedFiles:
        """Files with the state of the learner; a project in PostgreSQL has none."""
        return self.contents.learned_files

    def item(self, position: int) -> Item:
        """One item.

        Raises:
            InvalidValueError: There is none at that position.
        """
        return self.contents.items([position])[0]

    def items(self, positions: Sequence[int]) -> list[Item]:
        """Several items, in the order asked for.

        Raises:
            InvalidValueError: There is none at a position.
        """
        return self.contents.items(positions)

    def rows(self, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Names of several items, each with its cells, in the order asked for.

        Raises:
            InvalidValueError: There is none at a position.
        """
        return self.contents.rows(positions)

    def transformer(self) -> Any:
        """The fitted transformer from a table with the project's columns to features, ``n x D``.

        A project does not store the transformer, because loading it would need pickle. It is fitted again to the items
        with which the project was made. Its output is then compared with the stored features.

        Raises:
            SufficeError: The features were given as a file, or cannot be computed again.
        """
        return self.contents.transformer()

    def row_transformer(self) -> Any:
        """A transformer for ``transform`` only: :meth:`transformer` as it was saved, or fitted again.

        Raises:
            SufficeError: As :meth:`transformer`.
        """
        return self.contents.row_transformer()

    # Assignment of items.

    def next(self, person: str, n: int = 1, *, queue: Sequence[int] = ()) -> list[Assignment]:
        """The next items for a person, reserved for a while.

        Items that the person was asked for and has not answered are returned first. A repeated call returns the same
        items.

        Args:
            person: The person who will label.
            n: Number of items.
            queue: Items chosen by the model, the most useful first.

        Returns:
            At most ``n`` items; an empty list if all items are labelled, skipped or reserved for other people.
        """
        return self.assigner.next(person, n, queue=queue)

    # Answers of people.

    def label(  # noqa: PLR0913 - all but the first two by keyword
        self,
        position: int,
        label: Label,
        *,
        person: str,
        request: str | None = None,
        saw_prediction: bool = False,
        correction: str = "",
        outside_range: bool = False,
    ) -> WriteReceipt:
        """Write the label that a person gives an item.

        If somebody else has labelled it, this is a second opinion: the first label counts until it is corrected.

        Args:
            position: The item.
            label: The class, or the number.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.
            saw_prediction: Whether the person saw a prediction for the item before answering. Such a label is learned
                like any other, but it does not count as a random label.
            correction: What is right, if people say whether a prediction made elsewhere is right and this one is not.
            outside_range: Whether a number outside of the plausible range of the project is confirmed.

        Raises:
            InvalidValueError: There is no such item, or the label cannot be used: a number outside of the plausible
                range needs ``outside_range``.
            ConflictError: The person has given it another label, or saw a prediction for an item of a check.
        """
        return self.label_writer.label(
            position,
            label,
            person=person,
            request=request,
            saw_prediction=saw_prediction,
            correction=correction,
            outside_range=outside_range,
        )

    def skip(self, position: int, *, person: str, reason: str = "", request: str | None = None) -> WriteReceipt:
        """Never ask for an item again; the other arguments are those of :meth:`label`.

        An item that somebody else has labelled keeps that label. Then only this person is not asked for it again.

        Args:
            position: The item.
            person: Who skips it.
            reason: Why, in at most 500 characters.
            request: A name for this message.

        Raises:
            InvalidValueError: There is no such item, or the reason is too long.
            ConflictError: The person has labelled it.
        """
        return self.label_writer.skip(position, person=person, reason=reason, request=request)

    def unsure(self, position: int, *, person: str, reason: str = "", request: str | None = None) -> WriteReceipt:
        """Record that a person does not know the label. The item is listed for review, and not requested again.

        The item counts as skipped until somebody labels it. The arguments are those of :meth:`skip`.

        Raises:
            InvalidValueError: There is no such item, or the reason is too long.
            ConflictError: The person has labelled it.
        """
        return self.label_writer.skip(position, person=person, reason=reason, request=request, unsure=True)

    def correct(  # noqa: PLR0913 - all but the first two by keyword
        self,
        position: int,
        label: Label,
        *,
        person: str,
        request: str | None = None,
        saw_prediction: bool = False,
        only_own: bool = False,
        correction: str = "",
        outside_range: bool = False,
    ) -> WriteReceipt:
        """Change the label that counts; the arguments are those of :meth:`label`.

        Args:
            position: The item.
            label: The class, or the number.
            person: The person who acts.
            request: A name for this message.
            saw_prediction: Whether the person saw a prediction for the item.
            only_own: Refuse to correct an item that somebody else has labelled or corrected.
            correction: As for :meth:`label`.
            outside_range: As for :meth:`label`.

        Raises:
            ConflictError: The item has no label, or the person saw a prediction for an item of a check.
            suffice.SufficeError: Somebody else has labelled it, with ``only_own``.
        """
        return self.label_writer.correct(
            position,
            label,
            person=person,
            request=request,
            saw_prediction=saw_prediction,
            only_own=only_own,
            correction=correction,
            outside_range=outside_range,
        )

    def confirm(self, position: int, *, person: str, request: str | None = None) -> WriteReceipt:
        """Record that the current label is correct, so that :meth:`suspicious_labels` does not list it again.

        If the label is changed later, the confirmation does not hold for the new label.

        Args:
            position: The item.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: There is no such item.
            ConflictError: The item has no label.
        """
        return self.label_writer.confirm(position, person=person, request=request)

    def undo(self, *, person: str, request: str | None = None) -> WriteReceipt:
        """Take back the newest label, skip or correction of a person.

        The person is asked for that item again, before all other items.

        Raises:
            ConflictError: There is nothing to take back.
        """
        return self.label_writer.undo(person=person, request=request)

    def take_back(self, position: int, *, person: str) -> int:
        """Take back all answers of a person for an item: label, skip and corrections.

        Unlike :meth:`undo` it concerns one item, and nobody is asked for the item immediately.

        Args:
            position: The item.
            person: Who takes it back.

        Returns:
            Number of labels, skips and corrections that were taken back; 0 if there was nothing.

        Raises:
            InvalidValueError: There is no such item.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog"])
            >>> written = project.label(0, "cat", person="ann"), project.label(1, "dog", person="ann")
            >>> project.take_back(0, person="ann"), project.state().label_of(0), project.state().label_of(1)
            (1, None, 'dog')
            >>> project.close(); folder.cleanup()
        """
        return self.label_writer.take_back(position, person=person)

    def show_prediction(self, position: int, *, person: str) -> PredictedLabel | None:
        """Record that a person is shown a prediction for an item, and return the imported prediction if there is one.

        Labels and corrections of this item by this person have ``saw_prediction`` from now on.

        Args:
            position: The item.
            person: Who sees it.

        Raises:
            InvalidValueError: There is no such item.
            ConflictError: The item belongs to a check.
        """
        return self.label_writer.show_prediction(position, person=person)

    # Results of the model.

    def pipeline(self) -> Any:
        """The current model as a scikit-learn pipeline: transformers of the columns, and the fitted model.

        It predicts from a DataFrame, or a mapping from names to values, with the project's columns. If the features of
        the project were given as a file, it predicts from features. The pipeline is a copy: it does not change when the
        project learns more labels. It can be saved with joblib. Load such a file only if you trust its author, because
        loading it runs the code that it contains. ``suffice predict`` needs no such file.

        Raises:
            SufficeError: There are too few labels for a model, the model cannot learn them, or the features cannot be
                computed again.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> x = [k / 100 for k in range(100)]
            >>> project = create_project(f"{folder.name}/sides", {"x": x}, classes=["left", "right"])
            >>> for item in range(0, 100, 5):
            ...     written = project.label(item, "left" if x[item] < 0.5 else "right", person="ann")
            >>> pipeline = project.pipeline()
            >>> pipeline.predict({"x": [-3.0, 7.0]}).tolist()
            ['left', 'right']
            >>> project.close(); folder.cleanup()
        """
        return self.model_results.pipeline()

    def suspicious_labels(self, n: int | None = None) -> "list[SuspiciousLabel]":
        """The labels, ranked by how unlikely they are to models that have not learned them, the least likely first.

        See :func:`suffice.session.suspicious_labels.suspicious_labels`. The first labels should be reviewed; not all of
        them are wrong. Confirmed labels are left out. Items of checks are left out too: their labels are the evidence
        for a guarantee, and a review of only the labels that the model disagrees with would bias it.

        Args:
            n: How many labels to return; all if left out.

        Raises:
            InvalidValueError: ``n`` is not a whole number of at least 1.
            SufficeError: There are too few labels for a model, or the model cannot learn them.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> x = [k / 200 for k in range(200)]
            >>> project = create_project(f"{folder.name}/sides", {"x": x}, classes=["left", "right"])
            >>> for item in range(0, 200, 5):
            ...     label = "left" if x[item] < 0.5 or item == 150 else "right"
            ...     written = project.label(item, label, person="ann")
            >>> found = project.suspicious_labels(1)[0]
            >>> found.item, found.label, found.prediction
            (150, 'left', 'right')
            >>> written = project.confirm(150, person="ann")
            >>> project.suspicious_labels(1)[0].item == 150
            False
            >>> project.close(); folder.cleanup()
        """
        return self.model_results.suspicious_labels(n)

    def open_to_review(self, ranked: "Sequence[SuspiciousLabel]") -> "list[SuspiciousLabel]":
        """The given labels, without those that were changed or confirmed and without items of a check."""
        return self.model_results.open_to_review(ranked)

    def advise(self, decision: Decision) -> bool:
        """Record a change of the decision to stop. A decision from before the newest labels is ignored.

        Args:
            decision: The decision; its first sentence is the reason that is written.

        Returns:
            Whether an event was written.
        """
        return self.model_results.advise(decision)

    # Rows from files and tables.

    def add_items(  # noqa: PLR0913 - the options of ``suffice add``, by keyword
        self,
        data: Any,
        *,
        person: str,
        id: str | None = None,
        features: Any = None,
        check: bool = False,
        tell: Callable[[str], None] | None = None,
        request: str | None = None,
    ) -> int:
        """Add rows to the project, and return how many.

        The rows must have the columns of the project. Their features are computed by the transformers that were fitted
        when the project was made, see :meth:`transformer`. A column with the name of the target contains existing
        labels. Either all rows are added or none, also if the program is killed during the call. Other processes that
        have the project open read the new rows. The model learns all labels again, with the larger pool.

        A guarantee covers the items that existed when its check was drawn, and not items that are added later. An open
        check continues with its own items.

        Args:
            data: Path of a table (CSV, Excel, JSON lines or Parquet), a DataFrame, a mapping from names of columns to
                values, or a list of texts.
            person: Who adds them.
            id: Column that names the items. By default the column that named the items of the project, if there is one,
                or a column called id; otherwise they are numbered.
            features: Features of the rows, or the path of a .npy file, if those of the project were given as a file.
            check: Change nothing, and return the number of rows that would be added.
            tell: Called with each note about how a file was read, such as which sheet of a workbook.
            request: A name for this message: sent again under the same name, it is not processed again.

        Raises:
            InvalidValueError: The rows cannot be used, or an id exists already.
            ConflictError: ``request`` was used for something else.
            SufficeError: Features of new rows cannot be computed.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/sizes", {"x": [1.0, 2.0, 3.0]}, classes=["small", "large"])
            >>> project.add_items({"x": [2.5, 7.0], "label": ["", "large"]}, person="ann")
            2
            >>> project.size, project.state().label_of(4), project.item(4).id
            (5, 'large', '5')
            >>> project.close(); folder.cleanup()
        """
        report = self.importer.add_items(
            data, person=person, id=id, features=features, check=check, tell=tell, request=request
        )
        return report.added

    def import_labels(  # noqa: PLR0913 - the options of ``suffice import``, by keyword
        self,
        data: Any,
        *,
        label: str,
        person: str,
        id: str | None = None,
        by: "MatchBy | None" = None,
        conflicts: "Conflicts" = "keep",
        check: bool = False,
        request: str | None = None,
    ) -> "ImportReport":
        """Import labels from a table.

        All labels are written together, or none. Importing the same file again changes nothing. Imported labels do not
        count as random labels unless their items were drawn at random.

        Args:
            data: Path of a table (CSV, Excel, JSON lines or Parquet), a DataFrame, or a mapping from names of columns
                to values.
            label: Column of labels. Empty cells are left out.
            person: Who gave the labels.
            id: Column with the ids of the items; with ``by="text"`` the column with their texts.
            by: How rows are matched with items: by ``"id"``, by their order (``"row"``), or by the exact ``"text"``,
                which gives the label to all items with this text. By default a column of ids is used if there is
                one, else the text, else the order.
            conflicts: What to do if an item has another label: ``"keep"`` it, ``"replace"`` it by a correction, or
                add the new one as an ``"opinion"`` of the person.
            check: Write nothing, and return what would happen.
            request: A name for this message: sent again under the same name, it is not processed again, and the report
                is the same.

        Raises:
            InvalidValueError: The table cannot be read, a column is missing, no row belongs to an item, or an argument
                is wrong.
            ConflictError: ``request`` was used for something else.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> texts = ["win a free prize", "see you at lunch", "free money now", "are you home yet"]
            >>> project = create_project(f"{folder.name}/mails", texts, classes=["spam", "ham"])
            >>> found = {"text": ["free money now", "see you at lunch"], "kind": ["spam", "egg"]}
            >>> for sentence in project.import_labels(found, label="kind", person="ann").sentences():
            ...     print(sentence)
            2 of 2 rows belong to items, matched by their text.
            Items: 1 newly labelled.
            Rows that belong to no item: 0.
            Conflicts with what the project has: 0.
            Rows with a label that cannot be used: 1 (egg 1).
            The classes are 'spam', 'ham'.
            >>> project.close(); folder.cleanup()
        """
        return self.importer.import_labels(
            data, label=label, person=person, id=id, by=by, conflicts=conflicts, check=check, request=request
        )

    def import_predictions(  # noqa: PLR0913 - as above
        self,
        data: Any,
        *,
        prediction: str,
        person: str,
        id: str | None = None,
        by: "MatchBy | None" = None,
        probability: str | None = None,
        source: str | None = None,
        check: bool = False,
        request: str | None = None,
    ) -> "ImportReport":
        """Import predictions of another model from a table. They are shown on request, and used for nothing else.

        Args:
            data: As for :meth:`import_labels`.
            prediction: Column of predictions.
            person: Who imports them.
            id: As for :meth:`import_labels`.
            by: As for :meth:`import_labels`.
            probability: Column with the probability of the predicted class. By default it is taken from columns
                ``p(class)``, as exported predictions have them, if there are such columns.
            source: What the predictions are called when they are shown; the name of the file by default.
            check: Write nothing, and return what would happen.
            request: A name for this message: sent again under the same name, it is not processed again, and the report
                is the same.

        Raises:
            InvalidValueError: The table cannot be read, a column is missing, no row belongs to an item, or an argument
                is wrong.
            ConflictError: ``request`` was used for something else.
        """
        return self.importer.import_predictions(
            data,
            prediction=prediction,
            person=person,
            id=id,
            by=by,
            probability=probability,
            source=source,
            check=check,
            request=request,
        )

    # Changes of settings.

    def switch_model(self, model: str, *, person: str, request: str | None = None) -> WriteReceipt:
        """Replace the model. The new model learns all labels of the project; no label is lost.

        Args:
            model: One of :meth:`suffice.project.settings.Settings.models`.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: The project cannot have this model, or its rule cannot judge by it.
            ConflictError: The project has this model already.
        """
        return self.settings_editor.switch_model(model, person=person, request=request)

    def change_settings(self, changes: Mapping[str, Any], *, person: str, request: str | None = None) -> WriteReceipt:
        """Change settings: the name, the guidelines, descriptions of classes, costs, the target error, the overlap.

        After a change of the costs or of the target error, the model learns all labels again, and the rule is applied
        with the new values from the first label on. The journal records who changed what.

        Args:
            changes: As for :meth:`suffice.project.settings.Settings.checked_changes`.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: A value cannot be used, or the setting cannot be changed.
            ConflictError: Nothing changes.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog"])
            >>> receipt = project.change_settings({"mistake_cost": 5.0, "at_most": 0.1}, person="ann")
            >>> project.settings.costs(), project.settings.at_most
            ((1.0, 5.0), 0.1)
            >>> project.close(); folder.cleanup()
        """
        return self.settings_editor.change(changes, person=person, request=request)

    def setting_changes(self) -> list[Event]:
        """The events that changed settings, classes or the model, the newest first."""
        return self.settings_editor.history()

    # Accounts.

    def accounts(self) -> tuple[Account, ...]:
        """The accounts, in the order in which they were made; none if everybody may choose a name.

        Accounts decide who may do what on the page. People who can write the files of the project can do everything.
        """
        return self.account_editor.all()

    def add_account(self, name: str, *, role: Role, person: str, password: str | None = None) -> str | None:
        """Make an account. With the first one, the page asks people to sign in.

        The journal contains a salted scrypt hash of a password, and a SHA-256 hash of the token of a personal link.
        Neither the password nor the token can be computed from them.

        Args:
            name: The name. It is also the name of the person in labels.
            role: ``"label"``, ``"review"`` or ``"manage"``.
            person: Who makes the account.
            password: The password, 8 to 200 characters. If it is left out, the person signs in with a personal link.

        Returns:
            The token of the personal link, which cannot be read again later; None with a password.

        Raises:
            InvalidValueError: The name, the role or the password cannot be used.
            ConflictError: There is an account of this name.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog"])
            >>> project.add_account("ann", role="manage", person="ann", password="correct horse")
            >>> token = project.add_account("bob", role="label", person="ann")
            >>> [(each.name, each.role, each.sign_in) for each in project.accounts()]
            [('ann', 'manage', 'password'), ('bob', 'label', 'link')]
            >>> project.close(); folder.cleanup()
        """
        return self.account_editor.add(name, role=role, person=person, password=password)

    def reset_account(self, name: str, *, person: str, password: str | None = None) -> str | None:
        """Give an account a new password, or a new personal link if ``password`` is left out, and end its sessions.

        The arguments and the returned value are those of :meth:`add_account`.

        Raises:
            InvalidValueError: There is no such account, or the password cannot be used.
        """
        return self.account_editor.reset(name, person=person, password=password)

    def change_role(self, name: str, role: Role, *, person: str) -> None:
        """Give an account another role, from its next request on.

        Raises:
            InvalidValueError: There is no such account or role.
            ConflictError: It has this role, or nobody else could manage.
        """
        self.account_editor.change_role(name, role, person=person)

    def remove_account(self, name: str, *, person: str) -> None:
        """Remove an account: its next request is refused. Its labels stay, with its name.

        Raises:
            InvalidValueError: There is no such account.
            ConflictError: Nobody else could manage, and there are other accounts.
        """
        self.account_editor.remove(name, person=person)

    # Classes.

    def change_classes(
        self,
        classes: Sequence[str],
        moved: Mapping[str, str] | None = None,
        *,
        person: str,
        before: Sequence[str] | None = None,
        request: str | None = None,
    ) -> WriteReceipt:
        """Add, rename, merge, reorder or remove classes, all at once. No label is lost.

        Labels of a moved class have the new name from now on, and the model learns all labels again. The documentation
        of the labelling page describes the effect on checks and guarantees.

        Args:
            classes: Names of the classes from now on, in the order of their keys.
            moved: Mapping from present names to the new names of their labels. A new name renames the class; the name
                of another class merges the two classes.
            person: Who makes the change.
            before: The classes that the caller has read; the current classes if left out. If the classes were changed
                meanwhile, nothing is changed.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: The labels are numbers, or a name cannot be used.
            ConflictError: The classes were changed meanwhile, a class that is left out has labels, a check is open and
                its answers could change, or nothing changes.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog", "puppy"])
            >>> receipt = project.label(0, "puppy", person="ann")
            >>> receipt = project.change_classes(["cat", "dog", "eel"], {"puppy": "dog"}, person="ann")
            >>> project.settings.classes, project.state().label_of(0)
            (('cat', 'dog', 'eel'), 'dog')
            >>> project.close(); folder.cleanup()
        """
        return self.class_editor.change(classes, moved, person=person, before=before, request=request)

    def add_class(self, name: str, *, person: str) -> WriteReceipt:
        """Add a class, after the others. See :meth:`change_classes`."""
        return self.class_editor.add(name, person=person)

    def rename_class(self, old: str, new: str, *, person: str) -> WriteReceipt:
        """Give a class another name that no other class has. See :meth:`change_classes`."""
        return self.class_editor.rename(old, new, person=person)

    def merge_classes(self, names: Sequence[str], into: str, *, person: str) -> WriteReceipt:
        """Merge several classes: all their labels become labels of ``into``. See :meth:`change_classes`.

        Args:
            names: The classes to merge.
            into: The merged class: one of them, another class, or a new name.
            person: The person who acts.
        """
        return self.class_editor.merge(names, into, person=person)

    def reorder_classes(self, order: Sequence[str], *, person: str) -> WriteReceipt:
        """Change the order of the classes, and with it their keys. See :meth:`change_classes`."""
        return self.class_editor.reorder(order, person=person)

    def remove_class(self, name: str, *, person: str) -> WriteReceipt:
        """Remove a class that nobody has used. See :meth:`change_classes`."""
        return self.class_editor.remove(name, person=person)

    # Checks.

    def start_check(  # noqa: PLR0913 - one quantity of several, by keyword
        self,
        size: int | None = None,
        *,
        person: str,
        at_most: float | None = None,
        expected: float | None = None,
        request: str | None = None,
        recall_of: str | None = None,
        precision_of: str | None = None,
        tolerance: float | None = None,
        share: float | None = None,
        unlabelable_as: str = "wrong",
        predicted_as_found: bool = True,
        confidence: float | None = None,
        earlier_checks: int | None = None,
        of: TargetOf | None = None,
        annotator_error: float | None = None,
        predict: Predict | None = None,
    ) -> WriteReceipt:
        """Draw a random check of the unlabelled items, to guarantee predictions of the current model for them.

        The model learns all answers first. The check and the predictions are written to the journal. People are asked
        for the items of the check before all other items. When all of them are labelled or skipped, :meth:`guarantee`
        returns the guarantee.

        With a target, ``at_most``, the check is sequential: it ends by itself as soon as the target is proven. It can
        be paused at any time, because people may label when they want.

        Args:
            size: Number of items to draw, for a check of fixed size. It cannot be changed later.
            person: Who starts the check.
            at_most: The target, for a sequential check: the largest acceptable share of wrong predictions for the items
                that are unlabelled now.
            expected: With ``at_most``, the expected share of wrong predictions, to plan the check.
            request: A name for this message: sent again under the same name, it is not done again.
            recall_of: Guarantee the share of the items of this class that are labelled or predicted as such.
            precision_of: Guarantee the share of the items predicted as this class that belong to it.
            tolerance: Largest acceptable distance between number and prediction.
            share: Share of the predictions that may exceed the tolerance that the check finds.
            unlabelable_as: Whether skipped items count as ``"wrong"`` or are ``"excluded"``.
            predicted_as_found: Whether items predicted as the class count as found, for ``recall_of``.
            confidence: Confidence of all checks of the project together; that of the settings if left out at the first
                check, which is 0.95 if nothing else was stated, and that of the first check afterwards.
            earlier_checks: Number of checks of these items that were started outside the project, and were not stated
                before; those of the settings if left out. Each check of the same items has a smaller error probability.
            of: With ``at_most``: what it is a share of. ``"rest"``: the items that are unlabelled now. ``"all"``: all
                final labels. Then the items that the check finds wrong count as corrected, skipped items are left out,
                and :meth:`final_labels` returns the result. By default that of the settings. If that is ``"all"``,
                ``at_most`` may be left out too.
            annotator_error: With ``of="all"``: share of the labels by people that may be wrong; that of the settings if
                left out.
            predict: Returns the predictions of a model that has learned some answers, for all items of the project, as
                an array or :class:`suffice.project.learning_status.Predictions`. By
                default a new model learns them, from the first on; pass
                :meth:`suffice.project.background_learner.BackgroundLearner.predictions_after` if there is one.

        Raises:
            InvalidValueError: An argument cannot be used; nothing is spent.
            ConflictError: Another check is open, or answers come faster than the model predicts.
            SufficeError: The model has no prediction yet.

        Examples:
            A project with its first labels asks for 50 random items, and states what they prove:

            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> x = [k / 200 for k in range(200)]
            >>> project = create_project(f"{folder.name}/sides", {"x": x}, classes=["left", "right"])
            >>> def label() -> None:
            ...     item = project.next("ann")[0].position
            ...     written = project.label(item, "left" if x[item] < 0.5 else "right", person="ann")
            >>> for _ in range(20):
            ...     label()
            >>> started = project.start_check(50, person="ann")
            >>> for _ in range(50):
            ...     label()
            >>> print(project.guarantee())
            Guaranteed: at most 7.7 % of the predictions for the 130 unlabelled items are wrong (95 % confidence).
            >>> project.close(); folder.cleanup()
        """
        return self.check_runner.start(
            size,
            person=person,
            at_most=at_most,
            expected=expected,
            request=request,
            recall_of=recall_of,
            precision_of=precision_of,
            tolerance=tolerance,
            share=share,
            unlabelable_as=unlabelable_as,
            predicted_as_found=predicted_as_found,
            confidence=confidence,
            earlier_checks=earlier_checks,
            of=of,
            annotator_error=annotator_error,
            predict=predict,
        )

    def reached_goal(self) -> ReachedGoal | None:
        """What is guaranteed about all final labels; None if there is no such goal, or it is not reached.

        The goal is ``at_most`` of the settings with ``of="all"``.
        """
        return self.model_results.reached_goal()

    def final_labels(self, *, predict: Predict | None = None) -> ProjectLabels:
        """All labels of the project: those of people, and for the other items predictions that a check has covered.

        The predictions are those of the model when the check started, whatever the model has learned since. Labels that
        people gave since replace them. Skipped items have no label, and do not count. Items that were added since have
        a label only if somebody gave one, and are not covered. The same project returns the same labels.

        Args:
            predict: As for :meth:`start_check`; for predictions that need no check.

        Raises:
            SufficeError: The goal is not reached; the message says what is missing.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> x = [k / 400 for k in range(400)]
            >>> goal = {"at_most": 0.05, "of": "all"}
            >>> project = create_project(f"{folder.name}/sides", {"x": x}, classes=["left", "right"], seed=0, **goal)
            >>> def label(items: int) -> None:
            ...     for _ in range(items):
            ...         item = project.next("ann")[0].position
            ...         written = project.label(item, "left" if x[item] < 0.5 else "right", person="ann")
            >>> label(30)
            >>> started = project.start_check(person="ann")
            >>> while project.reached_goal() is None:
            ...     label(1)
            >>> final = project.final_labels()
            >>> final.guarantee.wrong_at_most, sorted(set(final.source))
            (20, ['check', 'model', 'person'])
            >>> project.close(); folder.cleanup()
        """
        return self.model_results.final_labels(predict)

    def abort_check(self, *, person: str, request: str | None = None) -> WriteReceipt:
        """Abort the open check: it yields no guarantee, and its error probability stays spent.

        The model learns the answers that were given so far.

        Args:
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not done again.

        Raises:
            ConflictError: No check is open.
        """
        return self.check_runner.abort(person=person, request=request)

    def checks(self) -> list[ProjectCheck]:
        """All checks in the order in which they started, aborted ones included, with the answers that count now."""
        return self.check_runner.all()

    def guarantee(self) -> ProjectGuarantee | None:
        """The newest guarantee, and whether it covers the current model; None if there is none."""
        return self.check_runner.guarantee()

    def require_no_open_check(self) -> None:
        """Raise an error if a check is open.

        Raises:
            ConflictError: One is open.
        """
        self.check_runner.require_none_open()

    def checks_alpha(self, confidence: float | None = None) -> float:
        """The error probability of all checks of the project together.

        Args:
            confidence: The confidence. If left out, that of the first check, or that of the settings if there is no
                check yet.

        Raises:
            InvalidValueError: It is not between 0 and 1, or not that of the first check.
        """
        return self.check_runner.alpha(confidence)


def _restrict_files(file: Path | None) -> None:
    """Restrict the files of a project to their owner, including files that earlier versions wrote."""
    # A file that was opened by its own name may be in a folder with other files.
    if file is not None and file.name == FILE:
        names = [path.name for path in file.parent.iterdir() if path.name.startswith(file.stem)]
        make_private(file.parent, [*names, FOLDER])
