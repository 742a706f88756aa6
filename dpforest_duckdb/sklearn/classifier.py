"""`DPForestClassifier`: `fit` trains a differentially private forest, `predict` costs nothing."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from decimal import Decimal
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from dpforest_duckdb.arguments import refuse_wrong_types
from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.types import BIGINT
from dpforest_duckdb.engine.columns.casts import selected
from dpforest_duckdb.engine.columns.read_types import categories_of
from dpforest_duckdb.engine.connection.connect import MEMORY, open_database
from dpforest_duckdb.engine.sources.engine import SourceEngine
from dpforest_duckdb.engine.sources.frames import Frame
from dpforest_duckdb.engine.sources.memory_database import GivenDatabase, MemoryDatabase
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import (
    BudgetError,
    DpforestError,
    NoBudgetWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
    PublicFactWarning,
    in_python,
    naming,
)
from dpforest_duckdb.ledger.accounts import AnyAccount, NoAccount
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.model.effects import importances
from dpforest_duckdb.model.figures import Evaluation
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.unit import requested_unit
from dpforest_duckdb.scoring.score_sql import Scored, score_sql, share_names
from dpforest_duckdb.sklearn.declared import Declared, assembled, missing, read_off
from dpforest_duckdb.sklearn.inputs import (
    Columns,
    Labels,
    class_list,
    classes_in,
    features,
    labels_of,
    refuse_other_length,
    target,
    texts,
)
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.training.evaluate import (
    EvaluationTerms,
    evaluate_table,
    warn_before_debit,
    warn_if_doubtful,
)
from dpforest_duckdb.training.prepare import prepare

UNRECORDED = (
    "Neither ledger nor dataset is given, so no budget is recorded: each fit spends its ε on these "
    "rows again. Give both to record the spending and to cap it."
)

# the parameters that stand for options of the command line in messages, and remedies
_PARAMETERS = {"trees": "n_estimators", "depth": "max_depth", "db": "domain"}
_REMEDIES = {
    "leave it out of the domain or pass --exclude": "leave it out of X, and of domain",
    "correct the domain, or leave it out with --exclude": "correct domain, or add it to X",
}
DECLARE = (
    "Declare what is public with bounds, categories and classes; leave ids out, or name the one "
    "that ε protects as privacy_unit."
)


class InvalidInputError(DpforestError, ValueError):
    """A refusal that scikit-learn expects as a `ValueError`."""


class DPForestClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A decision forest that is differentially private in the rows that it is fitted on.

    What is public must be declared: the classes, the bounds of numbers, and the categories of all
    other columns. What is not declared is taken from the data, with a `PrivacyLeakWarning`; then
    the model says that it is not private, and why. A column of numbers has bounds unless
    `categories` lists its values; other columns have categories. Missing values are allowed.

    Each `fit` costs ε, so cross-validation and parameter search pay once for each fit. `predict`
    and `predict_proba` cost nothing. `score`, and whatever else compares predictions with true
    classes (scorers by name, calibration), is not private; `evaluate` is. If the dataset has a cap,
    `score` is refused. scikit-learn's own scorers cannot be refused: their results are not private.

    In a pipeline, a step before the classifier that learns from the rows, such as a scaler, is not
    private, and the forest cannot know of it. Use steps with public parameters alone.

    Parameters
    ----------
    epsilon : float, str or Decimal, default=1.0
        ε of one fit.
    delta : float, str or Decimal, default=0
        δ of one fit; 0 is pure ε.
    recipe : str, default="auto"
        The system that trains; `dpforest recipes` lists them.
    n_estimators, max_depth : int, optional
        The number of trees, and the greatest depth, counted as in the recipe's paper; by default
        the recipe's.
    domain : Domain or path, optional
        A whole domain, by the names of the columns of X, instead of the next two.
    bounds : pair or dict, optional
        (lower, upper) of all numeric columns, as numbers or as one list each, or a pair by column.
        Numbers may have fractions; declare whole numbers of few values with `categories`.
    categories : dict, optional
        The values of columns that are no quantities, by the name of the column, or by its place
        from 0. If a DataFrame has numbers in the place of names, these count, not the places.
    classes : list, optional
        The classes, in the type that predictions have. Rows of other classes are left out, and so
        are those whose class is missing. With `domain`, its classes in that type; by default,
        classes that look like numbers, such as "0" and "1", are predicted as numbers.
    privacy_unit : str, optional
        A column of X that says whose row it is; by default each row is protected. It is no feature:
        `predict` takes DataFrames with and without it.
    rows_per_unit : int, optional
        The most rows of each privacy unit that are used; by default as the dataset's cap allows,
        or 1.
    ledger, dataset : path and str, optional
        The budget ledger, and the name that the budget belongs to. Several processes (`n_jobs`)
        need the ledger's absolute path. Fits on parts of the same rows add up under one name.
        `dpforest budget` caps it.
    random_state : int or RandomState, optional
        Makes the noise repeatable, and the model not private.

    Attributes
    ----------
    forest_ : Forest
        The model, with its guarantee.
    classes_, n_features_in_, feature_names_in_, feature_importances_
        As in scikit-learn; importances come from released figures.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from dpforest_duckdb.sklearn import DPForestClassifier
    >>> warnings.simplefilter("ignore")  # about the budget, which is not recorded here
    >>> X = np.arange(2000.0).reshape(-1, 1) % 100
    >>> y = X[:, 0] > 50
    >>> model = DPForestClassifier(bounds=(0, 100), classes=[False, True]).fit(X, y)
    >>> model.predict([[10], [90]])
    array([False,  True])
    >>> model.forest_.private
    True
    """

    _names: tuple[str, ...]
    _unit: str | None

    def __init__(
        self,
        *,
        epsilon: float | str | Decimal = 1.0,
        delta: float | str | Decimal = 0,
        recipe: str = "auto",
        n_estimators: int | None = None,
        max_depth: int | None = None,
        domain: Domain | str | Path | None = None,
        bounds: Any = None,
        categories: Any = None,
        classes: Any = None,
        privacy_unit: str | None = None,
        rows_per_unit: int | None = None,
        ledger: str | Path | None = None,
        dataset: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.recipe = recipe
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.domain = domain
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.privacy_unit = privacy_unit
        self.rows_per_unit = rows_per_unit
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DPForestClassifier:  # noqa: N803
        """Train on the rows of X and their classes; debits ε if a budget is recorded.

        X is an array, a pandas or polars DataFrame, or an Arrow table or record batch. Raises
        `ValueError` or `TypeError` for wrong input and `BudgetError` if the cap does not allow the
        fit. What is in y decides that only if the classes are not declared: then missing, infinite
        and fractional labels are refused, and objects that are not all text.
        """
        before = dict(self.__dict__)
        try:
            columns = features(self, X, reset=True)
            labels = target(y)
            refuse_other_length(columns, labels)
            with _as_value_errors():
                account = self._account()
                with _database() as memory:
                    named = getattr(y, "name", None)
                    forest = self._trained(columns, labels, account, memory, named)
        except BaseException:  # the model of an earlier fit stays as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self.forest_ = forest
        self._leave_out_unit()
        return self

    def _leave_out_unit(self) -> None:
        """Whose row it is says nothing about new rows: the privacy unit is no feature of theirs."""
        names = getattr(self, "feature_names_in_", np.empty(0))
        unit = self.forest_.guarantee.unit
        self._unit = unit if unit in names.tolist() else None
        if self._unit is not None:
            self.feature_names_in_ = names[names != unit]
            self.n_features_in_ -= 1
            self._names = tuple(name for name in self._names if name != unit)

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The probability of each class `[row, class]`, in the order of `classes_`.

        Raises `NotFittedError` before a fit, and `ValueError` if a column that the model needs is
        missing or has another type.
        """
        return self._probabilities(X)[:, self._order]

    def predict(self, X: Any) -> Labels:  # noqa: N803
        """The most probable class of each row.

        If several are, it is the first of them in the order of the domain, as in the model's SQL.
        Raises as `predict_proba`.
        """
        best = self._probabilities(X).argmax(axis=1)
        found: Labels = self.classes_[np.argsort(self._order)[best]]
        return found

    def _probabilities(self, X: Any) -> Floats:  # noqa: N803
        """The probability of each class `[row, class]`, in the order of the forest's domain."""
        check_is_fitted(self)
        columns = features(self, X, reset=False, unit=self._unit)
        with _as_value_errors(), _database() as memory:
            return _shares(self.forest_, columns, memory)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The accuracy on true classes, which is not private.

        Raises `BudgetError` if the dataset has a cap: `evaluate` gives noisy figures.
        """
        account = self._account(quiet=True)
        if account.budget().cap:
            raise BudgetError(
                f'Refused: dataset "{self.dataset}" has a cap, and an exact score is not private: '
                "ask for noisy figures with evaluate(X, y, epsilon=…)."
            )
        return float(super().score(X, y, sample_weight))

    def evaluate(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        epsilon: float | str | Decimal,
    ) -> Evaluation:
        """Noisy accuracy, log loss, AUC and confusion matrix on true classes, for another ε.

        They are private if the model is, and are debited as a fit is. X needs the privacy unit.
        Rows of other classes are left out. Raises as `fit`. Warns if the model is not private, and
        if the figures say nothing, because no row has a class of the model or because they are
        mostly noise.
        """
        check_is_fitted(self)
        labels = target(y)
        columns = features(self, X, reset=False, unit=self._unit)
        if self._unit not in (None, *columns.names):
            raise InvalidInputError(f'X has no column "{self._unit}", which says whose row it is.')
        refuse_other_length(columns, labels)
        forest = self.forest_
        with _as_value_errors():
            account = self._account()
            with _database() as memory:
                rows = columns.with_column(forest.domain.target, labels)
                frame = Frame.of(forest.table, rows, GivenDatabase(memory))
                engine = SourceEngine(frame, DuckDBEngine(memory.connection))
                table = engine.table(forest.table)
                figures = evaluate_table(
                    engine,
                    forest,
                    table,
                    account,
                    EvaluationTerms(epsilon=epsilon),
                    lambda consequence, _: warn_before_debit(consequence, ""),
                )
        warn_if_doubtful(figures)
        return figures

    def to_sql(self, table: str, **options: Any) -> str:
        """SQL that scores a table with the same columns (see `Forest.to_sql`).

        The table needs the types of the model: `attribute.type` for each attribute in
        `forest_.domain.attributes`. `predict` reads columns of other types as if they were in
        these, and the SQL does not: it may fail, or predict otherwise (docs/python.md).
        """
        check_is_fitted(self)
        return self.forest_.to_sql(table, **options)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, for `load_forest` and the command line.

        A model in a file of that name is replaced (see `Forest.save`).
        """
        check_is_fitted(self)
        self.forest_.save(path)

    @property
    def feature_importances_(self) -> Floats:
        """The importance of each column of X `[column]`, from released figures."""
        check_is_fitted(self)
        found = importances(self.forest_)
        place = {name: number for number, name in enumerate(self._names)}
        total = np.zeros(self.n_features_in_)
        for attribute, importance in zip(self.forest_.domain.attributes, found, strict=True):
            total[place[attribute.column]] += importance
        return total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _account(self, *, quiet: bool = False) -> AnyAccount:
        """The budget that fits are debited from."""
        if self.ledger is None and self.dataset is None:
            if not quiet:
                _warn_once()
            return NoAccount()
        if self.ledger is None or self.dataset is None:
            raise InvalidInputError(
                "A budget needs both: ledger, the file that records it, and dataset, the name that "
                "it belongs to."
            )
        if not isinstance(self.ledger, str | Path):
            raise InvalidInputError("ledger must be the path of a file.")
        if current_process().name != "MainProcess" and not Path(self.ledger).is_absolute():
            raise InvalidInputError(
                "With n_jobs, ledger must be an absolute path: processes may have other folders."
            )
        return DatasetAccount(Ledger(self.ledger), (), self.dataset)

    def _trained(
        self,
        columns: Columns,
        labels: Labels,
        account: AnyAccount,
        memory: MemoryDatabase,
        named: object,
    ) -> Forest:
        """The forest of a fit. It also sets the order of the classes and the names of the columns.

        `named` is the name of y, if it has one.
        """
        refuse_wrong_types({"privacy_unit": self.privacy_unit})
        cap = account.budget().cap
        unit = requested_unit(
            self.privacy_unit, None, usual=cap.unit if cap else None, columns=columns.names
        )
        declared = Declared(columns, self.domain, self.bounds, self.categories, unit)
        domain, leaks, classes = self._domain(declared, labels, account, memory, named)
        rows = columns.with_column(domain.target, labels)
        frame = Frame.of(self.dataset or "sklearn", rows, GivenDatabase(memory))
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with warnings.catch_warnings():
            # random_state is documented; a flaw of the recipe is not
            warnings.filterwarnings("ignore", "Seeded", NotPrivateWarning)
            if leaks:  # bounds that were taken from the data were written by nobody
                warnings.filterwarnings("ignore", "Whole numbers are read", PublicFactWarning)
            run = prepare(
                memory.connection,
                frame,
                epsilon=self.epsilon,
                delta=self.delta,
                domain=domain,
                recipe=self.recipe,
                trees=self.n_estimators,
                depth=self.max_depth,
                privacy_unit=self.privacy_unit,
                rows_per_unit=self.rows_per_unit,
                seed=seed,
                account=account,
                leaks=leaks,
            )
            forest = run.execute()
        order = np.argsort(classes, kind="stable")
        self.classes_, self._order, self._names = classes[order], order, columns.names
        return forest

    def _domain(
        self,
        declared: Declared,
        labels: Labels,
        account: AnyAccount,
        memory: MemoryDatabase,
        named: object,
    ) -> tuple[Domain, tuple[str, ...], Labels]:
        """The domain, why it is not public, and its classes as values of y."""
        whole = declared.whole()
        if whole is not None:
            _refuse_other_target(whole, declared.columns, named)
            said = None if self.classes is None else class_list(self.classes)
            return whole, (), labels_of(whole.classes, said)
        known = declared.features()
        unknown = missing(declared, known)
        leaks = self._leaks(unknown)
        if leaks and account.budget().cap:
            raise BudgetError(
                f'Refused: dataset "{self.dataset}" has a cap, and nothing may be read off its '
                f"rows for free: {' '.join(leaks)} {DECLARE}"
            )
        if leaks:
            warnings.warn(
                f"The model is not private: {' '.join(leaks)} {DECLARE}",
                PrivacyLeakWarning,
                stacklevel=4,
            )
        classes = classes_in(labels) if self.classes is None else class_list(self.classes)
        if len(classes) < 2:
            given = "y" if self.classes is None else "classes"
            raise InvalidInputError(
                f"A classifier needs at least two classes: {given} has "
                f"{'only one class' if len(classes) else 'no class'}."
            )
        if unknown:
            frame = Frame.of("sklearn", declared.columns.frame, GivenDatabase(memory))
            known.update(read_off(frame, unknown))
        columns = declared.columns
        name = columns.free_name(named if isinstance(named, str) and named else "target")
        return assembled(known, columns.names, name, texts(classes)), leaks, classes

    def _leaks(self, unknown: list[str]) -> tuple[str, ...]:
        """What is taken from the data because no parameter declares it."""
        found = []
        if unknown:
            some = ", ".join(f'"{name}"' for name in unknown[:3])
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            found.append(f"The bounds or categories of {some}{more} were taken from the data.")
        if self.classes is None:
            found.append("The classes were taken from the data.")
        return tuple(found)


def _refuse_other_target(domain: Domain, columns: Columns, named: object) -> None:
    """Raise `InvalidInputError` if y is what the domain takes for an attribute."""
    if not isinstance(named, str) or fold(named) == fold(domain.target):
        return
    if fold(named) in map(fold, domain.columns) and named not in columns.names:
        raise InvalidInputError(
            f'The domain predicts "{domain.target}", but y is named "{named}": load its file with '
            f'load_domain(path, target="{named}").'
        )


def _shares(forest: Forest, columns: Columns, memory: MemoryDatabase) -> Floats:
    """The probability of each class `[row, class]`, in the order of the forest's domain."""
    number = columns.free_name("number")  # of the row, because DuckDB may return them in any order
    numbered = columns.with_column(number, np.arange(len(columns)))
    frame = Frame.of("sklearn", numbered, GivenDatabase(memory))
    types = {a.column: a.type for a in forest.domain.attributes}
    categories = {a.column: categories_of(a) for a in forest.domain.attributes}
    unknown = set(types) - set(frame.columns)
    if unknown:
        raise InvalidInputError(f'X has no column "{min(unknown)}", which the model needs.')
    with frame.reading() as (_, view, stored):
        read = ", ".join(selected(stored, types, categories))
        rows = Sql(f'(SELECT {read}, "{number}" FROM {view})')
        scored = Scored(rows, {**types, number: BIGINT})
        sql = score_sql(forest, scored, keep=(number,), fast=True)
        found = memory.arrays(sql, step="score")
    shares = np.column_stack([np.asarray(found[str(name)]) for name in share_names(forest, "")])
    return shares[np.argsort(found[number])]


@contextlib.contextmanager
def _database() -> Iterator[MemoryDatabase]:
    """A private database in memory, for one call."""
    with open_database(MEMORY) as connection:
        yield MemoryDatabase(connection)


@contextlib.contextmanager
def _as_value_errors() -> Iterator[None]:
    """Refusals of the library as `ValueError`, which scikit-learn expects."""
    with naming(_PARAMETERS):
        try:
            yield
        except BudgetError:
            raise
        except DpforestError as error:
            sentence = error.sentence
            for remedy, python_remedy in _REMEDIES.items():
                sentence = sentence.replace(remedy, python_remedy)
            raise InvalidInputError(in_python(sentence)) from None


_warned: list[bool] = []


def _warn_once() -> None:
    """Warn once in a process that nothing records what is spent."""
    if not _warned:
        _warned.append(True)
        warnings.warn(UNRECORDED, NoBudgetWarning, stacklevel=4)
