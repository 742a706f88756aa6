"""DuckDB as the engine."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import Counts, Gradients, Sample, Scored, Splits, TableInfo
from dpforest_duckdb.engine.blocks import Place, blocks
from dpforest_duckdb.engine.dialect import DuckDBDialect, split_name, unsigned
from dpforest_duckdb.engine.spare import Spared, spared
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.forest import LEAF, MULTIWAY, SCALE, THRESHOLD, Tree
from dpforest_duckdb.privacy.ledger import Unit
from dpforest_duckdb.sql import Sql, render

Trace = Callable[[str], None]

MAX_JOINS = 32  # in one statement: DuckDB plans some time for each triple, and nests at most 1000
_NOTHING_TOLD: tuple[list[Counts], int] = ([np.zeros((0, 0, 0), np.int64)], 0)
MAX_COUNTED = 4  # trees in one statement: the rows that it counts of each are set aside meanwhile


class DuckDBEngine:
    """Runs the steps on one connection.

    `trace` is shown every statement before it runs. Errors of the database are replaced by our own
    sentences, because DuckDB's quote data.
    """

    dialect = DuckDBDialect()

    def __init__(self, connection: duckdb.DuckDBPyConnection, trace: Trace | None = None) -> None:
        self.connection = connection
        self.trace = trace
        self._shared: dict[tuple[object, ...], DuckDBRows] | None = None

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """Until the end, rows that are to be coded alike are coded once."""
        self._shared = {}
        try:
            yield
        finally:
            kept, self._shared = self._shared, None
            for rows in kept.values():
                rows.drop()

    def run(self, sql: str, values: Any = None, *, step: str = "", fetch: str = "fetchall") -> Any:
        """Run one statement and fetch all of it (`fetch`: fetchall or fetchnumpy).

        The statement runs in a thread of its own, so that Ctrl-C can interrupt it at once.
        """
        if self.trace:  # a statement that is no step reads the catalogue, models or settings
            self.trace(sql if step else f"-- reads private rows: no\n{sql}")
        outcome: dict[str, Any] = {}
        # an event, not Thread.join: after a signal join may say that a running thread has ended
        done = threading.Event()

        def work() -> None:
            try:
                cursor = self.connection.execute(sql, values or None)
                outcome["result"] = getattr(cursor, fetch)()
            except BaseException as error:
                outcome["error"] = error
            finally:
                done.set()

        threading.Thread(target=work, daemon=True).start()
        try:
            while not done.wait(timeout=0.2):  # a signal is seen at the latest then
                pass
        except BaseException:
            self.connection.interrupt()
            while not done.wait(timeout=0.2):
                self.connection.interrupt()  # again, in case the query had not begun
            raise
        if "error" in outcome:
            raise _plain_error(outcome["error"], step) from None
        return outcome["result"]

    def table(self, name: str) -> TableInfo:
        """Resolve a table name (`t`, `schema.t` or `catalog.schema.t`) to a base table.

        Raises `DpforestError` for a missing or ambiguous table, a view, or a base table that a
        temporary one hides.
        """
        parts = split_name(name)
        rows = self.run(
            "SELECT database_name, schema_name, table_name, temporary, comment, 'table' "
            "FROM duckdb_tables() UNION ALL "
            "SELECT database_name, schema_name, view_name, temporary, NULL, 'view' "
            "FROM duckdb_views() WHERE NOT internal"
        )
        home, path = self.run("SELECT current_database(), current_schema()")[0]
        wanted = [part.casefold() for part in parts]
        matches = [row for row in rows if wanted in _spellings(row[0], row[1], row[2])]
        if len(parts) == 1:
            matches = [r for r in matches if r[3] or (r[0] == home and r[1] in (path, "main"))]
        if any(row[3] for row in matches) and len(matches) > 1:
            raise DpforestError(
                f'"{name}" is hidden by a temporary table or view of the same name: drop that one.'
            )
        if not matches:
            raise DpforestError(f'There is no table "{name}" in the database: check --table.')
        if len(matches) > 1:
            raise DpforestError(f'"{name}" names several tables: write schema.table.')
        catalog, schema, table, temporary, note, kind = matches[0]
        if kind == "view":
            raise DpforestError(
                f'"{name}" is a view, whose rows the budget cannot follow: name its base table.'
            )
        if temporary:
            raise DpforestError(f'"{name}" is a temporary table: store it as a table first.')
        columns = self.run(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = ? "
            "AND schema_name = ? AND table_name = ? ORDER BY column_index",
            [catalog, schema, table],
        )
        return TableInfo(catalog, schema, table, dict(columns), note or "")

    def read_only(self) -> bool:
        """Whether the connection's own database cannot be written."""
        found = self.run(
            "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()"
        )
        return bool(found[0][0])

    def spills_plain(self, catalog: str) -> bool:
        """Whether a database is encrypted, but not what DuckDB spills of it: DuckDB's default."""
        found = self.run(
            "SELECT encrypted AND NOT current_setting('temp_file_encryption') "
            "FROM duckdb_databases() WHERE database_name = ?",
            [catalog],
        )
        return bool(found[0][0])

    def scored(self, name: str) -> Scored:
        """A table or view to score, with its columns. Raises `DpforestError` if there is none.

        Scoring is not private: views, temporary tables and attached ones are as good.
        """
        ident = self.dialect.ident(*split_name(name))
        try:
            rows = self.run(f"DESCRIBE SELECT * FROM {ident}")
        except DpforestError:
            raise DpforestError(
                f'There is no table "{name}" in the database: check --table.'
            ) from None
        return Scored(ident, {row[0]: row[1] for row in rows})

    def encode(
        self,
        table: TableInfo,
        domain: Domain,
        unit: Unit,
        *,
        trees: int,
        sample: Sample,
        salt: int,
        judges: Sequence[Sql] = (),
        heavy: int = 1,
    ) -> DuckDBRows:
        """Code the private rows once into a TEMP table; node i holds the rows of tree i's root.

        "disjoint" gives every privacy unit to one tree, by a hash of the unit (of the whole row,
        where rows are the units) and `salt`; "bootstrap" draws for each tree as many rows as there
        are, with replacement, which no guarantee survives; with "all" every tree sees all rows.
        A row that half of the `judges` or more, labels by released trees, get wrong counts `heavy`
        times; a bootstrap draws in proportion to the judges that get it wrong.
        """
        alike = (table.reference, domain, unit, sample, trees if sample == "disjoint" else 1)
        shared = self._shared if sample != "bootstrap" and not judges else None
        copies = trees if sample == "all" else 1
        if shared is not None and alike in shared:
            return shared[alike].again(copies)
        rows = DuckDBRows(self, domain, copies)
        try:
            rows.encode(
                table,
                unit,
                parts=1 if sample == "all" else trees,
                sample=sample,
                salt=salt,
                judges=judges,
                heavy=heavy,
            )
        except BaseException:  # Ctrl-C may come when the table is there already
            rows.drop()
            raise
        if shared is not None:
            shared[alike] = rows
            return rows.again(copies)
        return rows


class DuckDBRows:
    """The coded rows of one run, in a TEMP table: packed codes, and a seat for each tree copy.

    A row's seat is its node times the number of classes, plus its class: one narrow key, whose
    range DuckDB knows, where two would be hashed. The counts of one depth are kept until the next:
    of a split's children one is then known by subtraction.
    """

    def __init__(self, engine: DuckDBEngine, domain: Domain, copies: int) -> None:
        self._engine = engine
        self._ident = engine.dialect.ident
        self._domain = domain
        self._classes = len(domain.classes)
        self._blocks = blocks(domain.cells, self._classes)
        self._words = [self._ident(f"codes{w}") for w in range(self._blocks[-1].word + 1)]
        self._seats = [self._ident(f"seat{copy}") for copy in range(copies)]
        self._name = f"dpforest_{secrets.token_hex(6)}"
        self._seat_type = unsigned(copies * self._classes)
        self._version = 0
        self._scored = False
        self._told = _NOTHING_TOLD
        self._spared: Spared | None = None
        self._coded = self._ident(f"{self._name}_0")
        self._owned = True

    def again(self, copies: int) -> DuckDBRows:
        """The same rows for another run, which leaves the coded ones where they are."""
        other = DuckDBRows(self._engine, self._domain, copies)
        other._coded, other._owned = self._coded, False
        if copies == 1:  # else the seats are made anew
            other._seat_type = self._seat_type
        return other

    @property
    def _codes(self) -> Sql:
        return self._named(self._version)

    def _named(self, version: int) -> Sql:
        return self._ident(f"{self._name}_{version}") if version else self._coded

    def encode(
        self,
        table: TableInfo,
        unit: Unit,
        *,
        parts: int,
        sample: Sample,
        salt: int,
        judges: Sequence[Sql],
        heavy: int,
    ) -> None:
        dialect = self._engine.dialect
        self._seat_type = unsigned(max(parts, len(self._seats)) * self._classes)
        target = self._ident("t", self._domain.target)
        columns = [self._ident(f"label{judge}") for judge in range(len(judges))]
        by_column = None
        if unit.column != "row":
            name = self._ident("t", unit.column)
            kind = table.columns[unit.column]
            by_column = SimpleNamespace(
                canonical=dialect.canonical_unit(name, kind),
                key=Sql('CAST("unit" AS BLOB)' if kind == "VARCHAR" else '"unit"'),
                rows=unit.rows,
            )
        sql = render(
            "encode",
            codes=self._codes,
            words=[
                SimpleNamespace(column=column, code=self._word(number))
                for number, column in enumerate(self._words)
            ],
            seat=self._seats[0],
            seat_type=self._seat_type,
            classes=self._classes,
            parts=parts,
            bootstrap=sample == "bootstrap",
            judges=[
                SimpleNamespace(label=label, column=column)
                for label, column in zip(judges, columns, strict=True)
            ],
            wrong=Sql(" + ".join(f'CAST({column} <> "class" AS INTEGER)' for column in columns)),
            heavy=heavy,
            unit=by_column,
            row=Sql(", ".join(self._ident("t", name) for name in table.columns)),
            source=self._ident(table.catalog, table.schema, table.name),
            **{
                "class": dialect.class_code(self._domain.classes, self._domain.target_type, target),
                "class_type": unsigned(self._classes - 1),
            },
        )
        # the salt is bound, not written: it must not show where statements are shown
        # a name in the SQL may say $salt too
        needs_salt = by_column is not None or parts > 1 or sample == "bootstrap"
        self._engine.run(sql, {"salt": salt} if needs_salt else None, step="encode")

    def _place(self, attribute: int) -> Place:
        block = next(block for block in self._blocks if attribute in block.attributes)
        return block.place_of(attribute)

    def _word(self, word: int) -> Sql:
        """The codes of a column, each above the bits of those after it in its block."""
        own = [block for block in self._blocks if block.word == word]
        kind = unsigned(2 ** (own[-1].place.shift + own[-1].place.bits) - 1)
        codes = []
        for number in (number for block in own for number in block.attributes):
            attribute, place = self._domain.attributes[number], self._place(number)
            code = self._engine.dialect.code(attribute, self._ident("t", attribute.column))
            shifted = f"CAST({code} AS {kind})"
            codes.append(f"({shifted} << {place.shift})" if place.shift else shifted)
        return Sql("\n      | ".join(codes))

    def _code(self, place: Place) -> Sql:
        """A code out of its column, in the narrowest type: small keys are hashed faster."""
        shifted = f"({self._words[place.word]} >> {place.shift})"
        if not place.shift:
            shifted = self._words[place.word]
        return Sql(f"CAST({shifted} & {place.mask} AS {unsigned(place.mask)})")

    @property
    def _seated(self) -> Sql:
        """The codes with a seat for every copy: coded with one, as all hold the same at first."""
        if self._version or len(self._seats) == 1:
            return self._codes
        seats = ", ".join(
            f"CAST({self._seats[0]} + {copy * self._classes} AS {self._seat_type}) AS {seat}"
            for copy, seat in enumerate(self._seats)
        )
        return Sql(f"(SELECT {', '.join(self._words)}, {seats} FROM {self._codes})")

    @property
    def _counted(self) -> list[Sql]:
        """The seats to count: one before the first route, as every copy still holds the same."""
        return self._seats if self._version else self._seats[:1]

    def _of_all_copies(self, counts: Counts) -> Counts:
        """The counts of every copy's root, from those of the first."""
        return counts if self._version else np.repeat(counts, len(self._seats), axis=0)

    def count_classes(self, first: int, nodes: int) -> list[Counts]:
        nodes = nodes if self._version else nodes // len(self._seats)
        wanted = self._spared.counted(first, nodes) if self._spared else []
        counts = [np.zeros((nodes, size, self._classes), np.int64) for size in self._domain.cells]
        for start in range(0, len(self._counted), MAX_COUNTED):
            seats = self._counted[start : start + MAX_COUNTED]
            for whole, part in zip(counts, self._grids(first, nodes, seats, wanted), strict=True):
                whole += part
        counts = list(map(self._of_all_copies, counts))
        if self._spared:
            self._spared.fill(counts, first, *self._told)
        self._told, self._spared = (counts, first), None
        return counts

    def _grids(
        self, first: int, nodes: int, seats: Sequence[Sql], wanted: Sequence[int]
    ) -> list[Counts]:
        """The counts of rows in some of the seats, of the wanted nodes alone if there are such."""
        parts = [part for block in self._blocks for part in block.parts(nodes, self._classes)]
        sql = render(
            "count_classes",
            codes=self._codes,
            words=self._words,
            blocks=[
                SimpleNamespace(index=i, code=self._code(block.place))
                for i, block in enumerate(parts)
            ],
            seats=[
                SimpleNamespace(column=seat, rows=self._ident(f"rows{copy}"))
                for copy, seat in enumerate(seats)
            ],
            seat_type=self._seat_type,
            wanted=wanted and self._seats_of(wanted),
            first=first * self._classes,
        )
        found = self._engine.run(sql, step="count_classes", fetch="fetchnumpy")
        counts: list[Counts] = []
        for index, block in enumerate(parts):
            mine = found["block"] == index
            code, seat = (np.asarray(found[of][mine], dtype=np.int64) for of in ("value", "seat"))
            tables = block.marginals(
                code, seat - first * self._classes, found["rows"][mine], nodes * self._classes
            )
            counts += [t.reshape(nodes, self._classes, -1).transpose(0, 2, 1) for t in tables]
        return counts

    def _seats_of(self, nodes: Sequence[int]) -> Sql:
        labels = range(self._classes)
        return self._engine.dialect.column(
            n * self._classes + label for n in nodes for label in labels
        )

    def count_leaves(self, first: int, nodes: int) -> Counts:
        nodes = nodes if self._version else nodes // len(self._seats)
        sql = render(
            "count_leaves",
            codes=self._codes,
            seats=self._counted,
            first=first * self._classes,
        )
        found = self._engine.run(sql, step="count_leaves", fetch="fetchnumpy")
        node, label = self._taken_apart(found["seat"], first)
        return self._of_all_copies(_dense([node, label], found["rows"], (nodes, self._classes)))

    def count_scores(self, votes: Sequence[Counts], cuts: Sequence[int]) -> Counts:
        sql = render(
            "count_scores",
            codes=self._seated,
            seats=self._seats,
            classes=self._classes,
            scores=[
                SimpleNamespace(column=self._ident(f"score{number}"), votes=Sql(own.tolist()))
                for number, own in enumerate(votes)
            ],
            cuts=list(cuts),
        )
        found = self._engine.run(sql, step="count_scores", fetch="fetchnumpy")
        shape = (len(cuts) + 1,) * len(votes) + (self._classes,)
        keys = [found[f"bin{number}"] for number in range(len(votes))]
        return _dense([*keys, found["class"]], found["rows"], shape)

    @property
    def _scores(self) -> list[Sql]:
        """The columns of scores: one for each class, or for the second of two."""
        asked = range(self._classes) if self._classes > 2 else [1]
        return [self._ident(f"score{label}") for label in asked]

    def add_votes(self, trees: Sequence[Tree]) -> None:
        sql = render(
            "add_votes",
            voted=self._named(self._version + 1),
            codes=self._codes,
            kept=[*self._words, *self._seats],
            scores=self._scores,
            scored=self._scored,
            trees=[
                SimpleNamespace(
                    node=self._node(tree, 0),
                    leaf=self._ident(f"leaf{number}"),
                    votes=[Sql(own.tolist()) for own in _scores_of(tree.votes)],
                )
                for number, tree in enumerate(trees)
            ],
        )
        self._engine.run(sql, step="add_votes")
        self._scored = True
        self._next_version()

    def sum_gradients(self, trees: Sequence[Tree], unit: Gradients) -> list[Counts]:
        asked = range(self._classes) if self._classes > 2 else range(1, 2)
        scores = [*([Sql("0")] if self._classes == 2 else []), *self._scores]
        sql = render(
            "sum_gradients",
            codes=self._codes,
            seat=self._seats[0],
            scores=scores,
            highest=Sql(f"greatest({', '.join(scores)})"),
            asked=list(asked),
            scale=SCALE,
            whole=unit.whole,
            steep=unit.steep,
            flat=unit.flat,
            trees=[
                SimpleNamespace(node=self._node(tree, 0), leaf=self._ident(f"leaf{number}"))
                for number, tree in enumerate(trees)
            ],
        )
        found = self._engine.run(sql, step="sum_gradients", fetch="fetchnumpy")
        parts = [found[f"{part}{label}"] for label in asked for part in "gh"]
        sums = []
        for number, tree in enumerate(trees):
            mine = found["tree"] == number
            dense = np.zeros((tree.nodes, len(parts)), dtype=np.int64)
            dense[np.asarray(found["node"][mine])] = np.stack(
                [part[mine] for part in parts], axis=1
            )
            sums.append(dense)
        return sums

    def _node(self, tree: Tree, node: int) -> Sql:
        """The number of the leaf that a row comes to from a node of a tree, by its codes."""
        kind, first = int(tree.kind[node]), int(tree.first[node])
        if kind == LEAF:
            return Sql(node)
        code = self._code(self._place(int(tree.attribute[node])))
        children = tree.children(node, self._domain.cells)
        if kind == MULTIWAY:
            if all(tree.kind[child] == LEAF for child in children):
                return Sql(f"CAST({code} AS INTEGER) + {first}")
            ways = [f"WHEN {c - first} THEN {self._node(tree, c)}" for c in children]
            return Sql(f"CASE {code} {' '.join(ways)} END")
        test = f"{code} {'<=' if kind == THRESHOLD else '='} {int(tree.cell[node])}"
        ways = [self._node(tree, child) for child in children]
        return Sql(f"CASE WHEN {test} THEN {ways[0]} ELSE {ways[1]} END")

    def _next_version(self) -> None:
        self._version += 1
        self._drop(self._version - 1)

    def _taken_apart(self, seat: Any, first: int) -> tuple[Counts, Counts]:
        """Node, from 0 at `first`, and class of seats."""
        node, label = np.divmod(np.asarray(seat, dtype=np.int64), self._classes)
        return node - first, label

    def route(self, splits: Splits, nodes: int) -> None:
        for start in range(0, len(self._seats), MAX_JOINS):
            self._route(splits, nodes, self._seats[start : start + MAX_JOINS])
        self._seat_type = unsigned(nodes * self._classes)
        # only what was counted just before can be subtracted from
        oldest, newest = self._told[1], self._told[1] + len(self._told[0][0])
        known = all(oldest <= node < newest for node in splits.node)
        self._spared = spared(splits, self._domain.cells) if known else None

    def _route(self, splits: Splits, nodes: int, seats: Sequence[Sql]) -> None:
        """Route the rows in some of the seats; the other seats stay as they are."""
        places = [self._place(number) for number in range(len(self._domain.attributes))]
        where = [places[number] for number in splits.attribute]
        column = self._engine.dialect.column
        sql = render(
            "route",
            codes=self._seated,
            routed=self._named(self._version + 1),
            code=self._code_at,
            kept=[*self._words, *(seat for seat in self._seats if seat not in seats)],
            seats=[
                SimpleNamespace(column=seat, splits=self._ident(f"splits{copy}"))
                for copy, seat in enumerate(seats)
            ],
            classes=self._classes,
            splits=SimpleNamespace(
                node=column(splits.node),
                word=column(place.word for place in where),
                shift=column(place.shift for place in where),
                mask=column(place.mask for place in where),
                cell=column(splits.cell),
                first=column(splits.first),
                kind=column(splits.kind),
            ),
            old_type=self._seat_type,
            type=unsigned(nodes * self._classes),
            multiway=MULTIWAY,
            threshold=THRESHOLD,
        )
        self._engine.run(sql, step="route")
        self._next_version()

    def _code_at(self, split: Sql) -> Sql:
        """The code that lies where a split says."""
        word = f"c.{self._words[0]}"
        if len(self._words) > 1:
            whens = " ".join(f"WHEN {w} THEN c.{column}" for w, column in enumerate(self._words))
            word = f'CASE {split}."word" {whens} END'
        return Sql(f'(({word} >> {split}."shift") & {split}."mask")')

    def drop(self) -> None:
        # the version before and the one after too: Ctrl-C may have come between two statements
        for version in range(max(0, self._version - 1), self._version + 2):
            self._drop(version)
        self._told = _NOTHING_TOLD

    def _drop(self, version: int) -> None:
        if version or self._owned:
            self._engine.run(f"DROP TABLE IF EXISTS {self._named(version)}")


def _scores_of(votes: Counts) -> list[Counts]:
    """What `votes[node, class]` add to each score: to the one of two classes, what they lead by."""
    return [votes[:, 1] - votes[:, 0]] if votes.shape[1] == 2 else list(votes.T)


def _dense(keys: Sequence[Any], rows: Any, shape: tuple[int, ...]) -> Counts:
    """The full public grid, empty cells filled in: what GROUP BY leaves out must be noised too."""
    counts = np.zeros(shape, dtype=np.int64)
    counts[tuple(np.asarray(key, dtype=np.int64) for key in keys)] = rows
    return counts


def _spellings(catalog: str, schema: str, table: str) -> list[list[str]]:
    """The ways to write a table's name, in lower case; `catalog.table` means its main schema."""
    full = [name.casefold() for name in (catalog, schema, table)]
    short = [[full[0], full[2]]] if full[1] == "main" else []
    return [full, full[1:], full[2:], *short]


def _plain_error(error: BaseException, step: str) -> BaseException:
    """A sentence of our own for an engine error, whose text may quote data."""
    if isinstance(error, duckdb.InterruptException):
        return KeyboardInterrupt()
    if not isinstance(error, duckdb.Error):
        return error
    where = f" in step {step}" if step else ""
    if isinstance(error, duckdb.OutOfMemoryException):
        return DpforestError(
            f"DuckDB ran out of memory or temporary disk{where}: raise --memory-limit, name a "
            "larger --temp-dir, or free disk space."
        )
    # a commit that finds the disk full says so in words alone
    if isinstance(error, duckdb.IOException) or "Could not write file" in str(error):
        return DpforestError(f"DuckDB could not read or write its files{where}: check the disk.")
    return DpforestError(
        f"DuckDB refused a statement{where} ({type(error).__name__}); its message is withheld "
        "because it can quote data."
    )
