"""The report: one safe page, without a network, that a browser draws."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from models import forest_of, log_odds, one_split, two_attributes
from shell import dpforest, refused

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.model.json_format import fingerprint
from dpforest_duckdb.privacy.amounts import NANO, atto_delta
from dpforest_duckdb.privacy.wording import wording
from dpforest_duckdb.recipes import RECIPES, adaptation
from dpforest_duckdb.report import page as pages
from dpforest_duckdb.report.evaluated import Evaluated, load_evaluation
from dpforest_duckdb.report.page import Spent, report_html
from dpforest_duckdb.scoring.links import SHARES

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

LIBRARY = pages._library
HOSTILE = '</script><img src=x onerror=alert(1)> "quote"\n\x1b[31m\u202eright-to-left'


def made(name: str = "made", private: bool = True, hostile: bool = False) -> Forest:
    names = (HOSTILE, "size") if hostile else ("colour", "size")
    labels = ("no", HOSTILE) if hostile else ("no", "yes")
    domain = two_attributes(names, labels)
    return forest_of(
        domain,
        one_split(
            domain,
            0,
            log_odds([-2.0], [0.0], [2.0], [0.0]),
            [[90, 10], [50, 50], [10, 90], [0, 0]],
            noise=5.0,
        ),
        one_split(domain, 1, log_odds([-0.25], [0.25], [0.0])),
        private=private,
        name=name,
        table="visits",
    )


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports get the scripts for their charts, as they do without tests/conftest.py."""
    monkeypatch.setattr(pages, "_library", LIBRARY)


def payload(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="payload">(.*?)</script>', page)
    assert found, "the page holds its figures as JSON"
    return json.loads(found[1])


def test_the_page_says_what_was_promised_and_spent() -> None:
    page = report_html(made(), spent=Spent(cap=3.0, spent=1.5, left=1.5))
    assert "by a factor of at most 2.72" in page
    assert "ε = 1.5 of a cap of 3, 1.5 left" in page
    assert "This model cost ε = 1." in page
    assert "<td>count the rows of each class in leaves</td><td>by hand</td><td>ε = 1</td>" in page
    assert "not private" not in page
    assert "SELECT" in page
    assert [effect["name"] for effect in payload(page)["effects"]] == ["colour", "size"]


@pytest.mark.parametrize(
    ("epsilon", "factor"), [("0.0001", "1.00011"), ("0.5", "1.65"), ("5", "148.5"), ("20", "e^20")]
)
def test_the_promised_factor_is_not_rounded_down(epsilon: str, factor: str) -> None:
    forest = made()
    promised = replace(forest, guarantee=replace(forest.guarantee, epsilon=epsilon))
    assert f"by a factor of at most {factor}." in report_html(promised)


def luminance(colour: str) -> float:
    """The relative luminance of #rrggbb (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_texts_and_marks_have_the_contrast_of_level_aa() -> None:
    """Text 4.5:1, edges of controls and marks of charts 3:1, on the light and the dark page."""
    folder = files("dpforest_duckdb.report")
    style, script = (folder.joinpath(f"page.{end}").read_text("utf-8") for end in ("html", "js"))
    rules = re.findall(r":root {(.*?)}", style)
    themes = [dict(re.findall(r"--([\w-]+): (#\w{6})", rule)) for rule in rules]
    (colours,) = re.findall(r"const COLOURS = \[(.*?)\]", script)
    marks = re.findall(r"#\w{6}", colours)
    assert len(themes) == 2
    assert len(marks) == 10
    for theme in themes:
        for text in ("text", "soft", "link"):
            for ground in ("page", "card"):
                assert contrast(theme[text], theme[ground]) >= 4.5
        assert contrast(theme["warn"], theme["warn-page"]) >= 4.5
        assert contrast(theme["edge"], theme["page"]) >= 3
        assert min(contrast(mark, theme["page"]) for mark in marks) >= 3


def test_a_page_of_a_boosted_model_has_bands() -> None:
    forest = made()
    noisy = tuple(
        replace(tree, counts=None, noise=None, vote_noise=np.full(tree.votes.shape, 250_000.0))
        for tree in forest.trees
    )
    page = report_html(replace(forest, trees=noisy))
    assert "The pale bar" in page
    assert "another training may share it differently" in page
    assert "another training" not in report_html(forest)
    rows = [r for rows in payload(page)["effects"][0]["chart"]["datasets"].values() for r in rows]
    first = next(row for row in rows if "effect" in row)
    # 0.25 in the log-odds of each class, of which the two are opposite: 0.5, two deviations are 1
    assert first["high"] - first["effect"] == pytest.approx(1.0)


def test_a_model_that_is_not_private_carries_a_banner() -> None:
    page = report_html(made(private=False))
    assert 'role="alert"' in page
    assert "The noise comes from a seed." in page
    assert "Nothing: the model is not private." in page


@pytest.mark.usefixtures("library")
def test_the_page_has_the_scripts_for_its_charts_and_needs_no_network() -> None:
    page = report_html(made())
    assert "vegaEmbed" in page
    assert page.count("</script>") == page.count("<script")
    assert "default-src 'none'" in page
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!#)', own)


def test_hostile_names_and_labels_stay_text() -> None:
    page = report_html(made(name=HOSTILE, hostile=True))
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "<img" not in own
    assert page.count("</script>") == page.count("<script")
    assert payload(page)["model"]["classes"][1] == HOSTILE
    steps = [rule["rule"] for rule in payload(page)["rules"] if HOSTILE in rule["rule"]]
    assert steps
    assert all(f"\u2068{HOSTILE}\u2069" in step for step in steps), "it turns no other text"
    body = re.sub(r"<pre.*?</pre>", "", own.partition("<body>")[2], flags=re.DOTALL)
    written = html.escape(HOSTILE).replace("&quot;", "&#34;")
    assert body.count(written) == body.count(f"<bdi>{written}</bdi>") > 2


def test_an_attribute_may_have_the_name_of_a_scored_column() -> None:
    domain = two_attributes(("Prediction", "scored_p_yes"))
    forest = forest_of(domain, one_split(domain, 0, log_odds([0.0], [0.0], [1.0], [0.0])))
    page = report_html(replace(forest, table="visits"))
    assert 'AS "scored_scored_p_yes"' in html.unescape(page)


@pytest.mark.parametrize("classes", [2, 100])
def test_many_classes_and_attributes_and_a_single_leaf_have_a_page(classes: int) -> None:
    labels = tuple(f"class {number}" for number in range(classes))
    domain = two_attributes(labels=labels)
    votes = [[1 + number + cell for number in range(classes)] for cell in range(4)]
    forest = forest_of(domain, one_split(domain, 0, votes), link=SHARES)
    page = report_html(forest)
    assert labels[-1] in page
    rows = [r for rows in payload(page)["effects"][0]["chart"]["datasets"].values() for r in rows]
    drawn = {row["class"] for row in rows if "class" in row}
    assert payload(page)["model"]["asked"] == [0]
    assert "Attributes that no tree uses are left out" in page
    assert max(abs(row[end]) for row in rows if "low" in row for end in ("low", "high")) <= 1
    assert len(drawn) == (1 if classes == 2 else 6)
    assert ("for the 6 classes that change most" in page) == (classes == 100)
    single = forest_of(domain, forest.trees[0].cut(forest.trees[0].kind > 0, domain.cells))
    assert "No tree splits" in report_html(single)
    assert "1 tree, 1 node, depth 0" in report_html(single)


def test_the_verb_writes_the_page_whole_or_not_at_all(db: Path, tmp_path: Path) -> None:
    out = tmp_path / "risk.html"
    words = ("report", "--db", db, "--model", "risk", "--out", out)
    assert dpforest(*words, "--json").facts == {
        "report": str(out),
        "model": "risk",
        "private": True,
    }
    assert "On the <bdi>table</bdi> so far: ε = 1; there is no cap" in out.read_text(
        encoding="utf-8"
    )
    assert "already" in dpforest(*words).err
    assert dpforest(*words, "--replace").code == 0
    wrong = dpforest("report", "--db", db, "--model", "risk", "--out", tmp_path / "risk.txt")
    assert wrong.code == 2
    assert "must end in .html" in wrong.err
    assert not (tmp_path / "risk.txt").exists()


def evaluated(**changed: Any) -> Evaluated:
    bins = ((0, 0),) * 4 + ((80, 20), (1, -2)) + ((0, 0),) * 12 + ((10, 90), (0, 3))
    edges = tuple(number / 20 for number in range(21))
    figures = Evaluated("visits", 200, 0.85, 0.4, 0.9, 0.75, True, 0.5, 2.0, bins, edges)
    return replace(figures, **changed)


def test_figures_that_were_paid_for_are_drawn_with_their_noise() -> None:
    page = report_html(made(), evaluated=evaluated())
    assert "for ε = 0.5 of its budget" in page
    assert "<td>0.8500</td><td>0.7500</td><td>0.4000</td><td>0.9000</td>" in page
    found = payload(page)
    points = [row for rows in found["calibration"]["datasets"].values() for row in rows]
    shares = {row["probability"]: row for row in points if "share" in row}
    assert set(shares) == {0.225, 0.925}, "bins with fewer rows than noise are left out"
    assert shares[0.225]["share"] == 0.2
    assert shares[0.225]["low"] == pytest.approx(0.2 - 2 * 2 * math.hypot(0.2, 0.8) / 100)
    (curve,) = [rows for rows in found["roc"]["datasets"].values() if "false" in rows[0]]
    for before, after in pairwise(curve):
        assert before["false"] <= after["false"] <= 1
        assert before["true"] <= after["true"] <= 1


def test_the_promise_leaves_out_the_figures_of_an_evaluation() -> None:
    alone, noisy = report_html(made()), report_html(made(), evaluated=evaluated())
    exact = report_html(made(), evaluated=evaluated(private=False, noise=0.0, epsilon=None))
    assert "this page included" in alone
    assert "figures under" not in alone
    for page, what in ((noisy, "have an ε of their own"), (exact, "are exact and not private")):
        assert "this page included" not in page
        assert what in page


def test_exact_figures_carry_a_banner() -> None:
    page = report_html(made(), evaluated=evaluated(private=False, noise=0.0, epsilon=None))
    assert "These figures are not private." in page
    assert "0 of its budget" not in page


def test_figures_of_several_classes_have_no_curves() -> None:
    page = report_html(made(), evaluated=evaluated(bins=(), auc=None))
    assert payload(page)["calibration"] is None
    assert payload(page)["roc"] is None
    assert "Calibration" not in page


def test_the_verb_shows_what_evaluate_printed(db: Path, tmp_path: Path) -> None:
    figures, out = tmp_path / "figures.json", tmp_path / "risk.html"
    words = ("evaluate", "--db", db, "--model", "risk", "--table", "fresh", "--json")
    figures.write_text(dpforest(*words).out, encoding="utf-8")
    report = ("report", "--db", db, "--model", "risk", "--out", out)
    said = dpforest(*report, "--evaluation", figures)
    assert said.code == 0
    assert "These figures are not private." in out.read_text(encoding="utf-8")
    assert "The page has figures that are not private: do not publish it" in said.err
    assert stat.S_IMODE(out.stat().st_mode) == 0o600, "its owner alone can read it"
    again = dpforest(*report, "--evaluation", figures, "--replace", "--json")
    assert again.facts["private"] is False
    assert dpforest(*report, "--replace", "--json").facts["private"] is True
    with duckdb.connect(str(db)) as con:
        con.execute("ALTER TABLE visits RENAME TO renamed")
    said = dpforest(*report, "--replace")
    assert 'shows no budget, because the database has no table "visits"' in said.err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "\x00",
        '{"model": "risk", "table": "t", "rows": 1.5}',
        '{"model": "risk", "table": "t", "rows": 1, "accuracy": NaN, "log_loss": null, '
        '"auc": null, "private": true}',
        '{"model": "risk", "table": "t", "rows": 1, "accuracy": 1, "log_loss": null, '
        '"auc": null, "private": true, "bins": [[1]]}',
        '{"model": "other", "table": "t", "rows": 1, "accuracy": 1, "log_loss": null, '
        '"auc": null, "private": true}',
        *(
            f'{{"model": "risk", "table": "t", "rows": {rows}, "accuracy": {accuracy}, '
            f'"log_loss": {loss}, "auc": null, "private": true}}'
            for rows, accuracy, loss in (
                (-1, 1, 0),
                (1, -0.1, 0),
                (1, 2, 0),
                (1, 1, "1" + "0" * 400),
                (1, "NaN", 0),
                ("1" + "0" * 400, 1, 0),
            )
        ),
        '{"model": "risk", "table": "\\ud800", "rows": 1, "accuracy": 1, "log_loss": 0, '
        '"auc": null, "private": true}',
    ],
)
def test_a_file_that_is_no_evaluation_of_the_model_is_refused(
    db: Path, tmp_path: Path, text: str
) -> None:
    file, out = tmp_path / "figures.json", tmp_path / "risk.html"
    file.write_text(text, encoding="utf-8")
    words = ("report", "--db", db, "--model", "risk", "--out", out, "--evaluation", file)
    refused(dpforest(*words), "--evaluation")
    assert not out.exists()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium; skipped, and said so, where it is not installed."""
    selenium = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no Chromium: install Debian's chromium and chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for word in ("headless", "no-sandbox", "disable-gpu", "disable-background-networking"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = selenium.Chrome(options, selenium.ChromeService(driver))
    yield started
    started.quit()


@pytest.mark.browser
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("hostile", [False, True])
def test_a_browser_draws_the_page_and_explains_a_row(
    browser: Any, tmp_path: Path, hostile: bool
) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select, WebDriverWait

    forest = made(hostile=hostile)
    page = tmp_path / "page.html"
    page.write_text(report_html(forest, evaluated=evaluated()), encoding="utf-8")
    browser.get(page.as_uri())
    assert browser.execute_script("return document.images.length") == 0
    for colour in ("red", "blue"):
        Select(browser.find_element(By.ID, "value0")).select_by_visible_text(colour)
        row = {forest.domain.attributes[0].name: colour, "size": "small"}
        votes = forest.votes([row])
        reasons = browser.find_elements(By.CSS_SELECTOR, "#because td:nth-child(2)")
        *adds, total = [float(reason.text) for reason in reasons]
        best = forest.probabilities(votes)[0].max()
        assert total == pytest.approx(math.log(best / (1 - best)), abs=0.002)
        assert sum(adds) == pytest.approx(total, abs=0.002)
        answer = browser.find_element(By.ID, "answer").text
        assert f"{forest.probabilities(votes)[0].max():.3f}" in answer
    browser.find_element(By.ID, "search").send_keys("size = large")
    rows = browser.find_elements(By.CSS_SELECTOR, "#rule-table tbody tr")
    assert len(rows) == 1
    for chart in ("importance", "calibration", "roc"):
        WebDriverWait(browser, 20).until(
            lambda b, chart=chart: b.find_elements(By.CSS_SELECTOR, f"[data-chart={chart}] svg")
        )
    Select(browser.find_element(By.ID, "effect")).select_by_visible_text("size")
    WebDriverWait(browser, 20).until(
        lambda b: "large" in b.find_element(By.ID, "effect-chart").text
    )
    errors = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert errors == []


@pytest.mark.parametrize(
    ("cost", "with_delta"), [("μ² = 0.001", True), ("ρ = 0.0005", True), ("ε = 0.5", False)]
)
def test_steps_that_use_a_delta_are_explained(cost: str, with_delta: bool) -> None:
    """Models of earlier versions have costs in ρ."""
    forest = made()
    step = f"sweep: rounded Gaussian on gradients, {cost} × 3 attributes"
    guarantee = replace(forest.guarantee, plan=(step,))
    page = report_html(replace(forest, guarantee=guarantee))
    assert f"<td>{cost} × 3 attributes</td>" in page
    assert ("use the δ" in page) == with_delta


def test_every_query_of_every_recipe_has_words() -> None:
    numbers = tuple(Attribute(f"n{i}", "numeric", lower=0, upper=1e6) for i in range(20))
    colours = tuple(Attribute(f"c{i}", "categorical", ("red", "blue")) for i in range(8))
    asked = set()
    for attributes, kind in ((numbers, DOUBLE), (colours, VARCHAR)):
        for classes in (2, 7):
            domain = Domain(attributes, "k", tuple(map(str, range(classes))))
            domain = domain.bind({**{each.name: kind for each in attributes}, "k": VARCHAR})
            for recipe in RECIPES.values():
                for delta in ("0", "1e-5"):
                    request = recipe.request(domain, NANO, rows_per_unit=1, delta=atto_delta(delta))
                    asked |= {
                        q.purpose
                        for plan in adaptation.plans(recipe, request)
                        for q in plan.queries
                    }
    assert len(asked) > 15
    assert not [purpose for purpose in asked if wording(purpose).step == purpose]


def test_figures_of_another_model_of_the_same_name_are_refused(tmp_path: Path) -> None:
    """Models of data files all have the name of the file."""
    forest, path = made(), tmp_path / "figures.json"
    figures = {"model": forest.name, "table": "t", "private": False, "rows": 1}
    for of in (forest, replace(forest, table="elsewhere")):
        facts = {**figures, "forest": fingerprint(of)}
        path.write_text(json.dumps({**facts, "accuracy": 1.0, "log_loss": None, "auc": None}))
        if of is forest:
            assert load_evaluation(path, forest).rows == 1
        else:
            with pytest.raises(DpforestError, match="the figures of another model"):
                load_evaluation(path, forest)


def test_figures_of_a_model_that_was_renamed_are_taken(tmp_path: Path) -> None:
    forest, path = made(), tmp_path / "figures.json"
    figures = {"model": forest.name, "table": "t", "private": False, "rows": 1}
    facts = {**figures, "accuracy": 1.0, "log_loss": None, "auc": None}
    path.write_text(json.dumps({**facts, "forest": fingerprint(forest)}))
    assert load_evaluation(path, forest.named("renamed")).rows == 1
    path.write_text(json.dumps(facts))  # an older file, which has only the name
    with pytest.raises(DpforestError, match="the figures of another model"):
        load_evaluation(path, forest.named("renamed"))
