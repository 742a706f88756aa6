"use strict";
const data = JSON.parse(document.getElementById("payload").textContent);
const isolated = (name) => `\u2068${name}\u2069`; // a right-to-left mark in a name ends with it
const byId = (id) => document.getElementById(id);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

// at least 3:1 against the light and the dark page, as marks need
const COLOURS = ["#4c78a8", "#c4621b", "#3f8f55", "#b5509b", "#8a6fc0", "#9a7424", "#d0485c", "#2f8f9d", "#7d7f86", "#6f8a1f"];

function draw(target, spec) {
  const mode = spec.$schema.includes("vega-lite") ? "vega-lite" : "vega";
  const text = getComputedStyle(document.body).color;
  if (mode === "vega") spec.signals.find((s) => s.name === "textColor").value = text;
  const config = { axis: { labelColor: text, titleColor: text, gridOpacity: 0.25 }, legend: { labelColor: text, titleColor: text }, rule: { color: text }, range: { category: COLOURS } };
  return vegaEmbed(target, spec, { mode, actions: false, renderer: "svg", config });
}

function choices(select, names, show) {
  names.forEach((name, number) => select.add(new Option(name, number)));
  select.addEventListener("change", () => show(Number(select.value)));
}

function drawAll() {
  for (const name of ["importance", "calibration", "roc"]) {
    const place = document.querySelector(`[data-chart=${name}]`);
    if (place && data[name]) draw(place, data[name]);
  }
  if (data.effects.length) showEffect(Number(byId("effect").value || 0));
  if (data.trees.length) showTree(Number(byId("tree").value || 0));
}

function showEffect(n) {
  byId("effect-name").textContent = data.effects[n].name;
  draw("#effect-chart", data.effects[n].chart);
}

function showTree(n) {
  byId("tree-name").textContent = `Tree ${data.trees[n].number}`;
  draw("#tree-chart", data.trees[n].chart);
}

if (data.effects.length) choices(byId("effect"), data.effects.map((e) => e.name), showEffect);
if (data.trees.length) {
  byId("trees").hidden = false;
  choices(byId("tree"), data.trees.map((tree) => tree.number), showTree);
}
drawAll();
dark.addEventListener("change", drawAll);

// one row through the trees
const model = data.model;
const MULTIWAY = 1, THRESHOLD = 2, SCALE = 1e6;
const softmax = model.link === "softmax";
const REASONS = 15, RULES = 50, LIKELIEST = 6, FIELDS = 24; // that are shown

function path(tree, codes) {
  let node = 0;
  const used = [];
  while (tree.kind[node] !== 0) {
    const attribute = tree.attribute[node], code = codes[attribute], cell = tree.cell[node];
    const binary = tree.kind[node] === THRESHOLD ? Number(code > cell) : Number(code !== cell);
    used.push(attribute);
    node = tree.first[node] + (tree.kind[node] === MULTIWAY ? code : binary);
  }
  return [node, used];
}

function explain() {
  const codes = model.attributes.map((_, a) => Number(byId(`value${a}`)?.value)); // NaN: no tree asks
  const total = model.classes.map(() => 0), reasons = new Map();
  for (const tree of model.trees) {
    const [leaf, used] = path(tree, codes), votes = tree.votes[leaf];
    votes.forEach((vote, c) => { total[c] = model.voting === "sum" ? total[c] + vote : Math.max(total[c], vote); });
    const names = [...new Set(used)].sort((a, b) => a - b);
    const key = names.map((a) => `${isolated(model.attributes[a].name)}: ${isolated(label(a, codes[a]))}`).join(" and ") || "all rows";
    const mean = votes.reduce((sum, vote) => sum + vote, 0) / votes.length;
    const before = reasons.get(key) || model.classes.map(() => 0);
    reasons.set(key, before.map((sum, c) => sum + votes[c] - (softmax ? mean : 0)));
  }
  const highest = Math.max(...total);
  const weight = total.map((vote) => (softmax ? Math.exp((vote - highest) / SCALE) : vote));
  const all = weight.reduce((sum, w) => sum + w, 0) || 1;
  const best = total.indexOf(highest);
  const likeliest = weight.map((w, c) => [w / all, c]).sort((a, b) => b[0] - a[0]).slice(0, LIKELIEST);
  byId("answer").textContent = `${isolated(model.classes[best])}, with probability ${(weight[best] / all).toFixed(3)}. ` +
    likeliest.map(([share, c]) => `${isolated(model.classes[c])}: ${share.toFixed(3)}`).join("; ");
  byId("best").textContent = `Adds to the ${softmax ? "log-odds of" : "votes for"} ${isolated(model.classes[best])}; a hollow bar takes away`;
  const unit = softmax && total.length === 2 ? SCALE / 2 : SCALE; // of two classes, against the other
  const sorted = [...reasons].map(([key, votes]) => [key, votes[best] / unit]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const rows = sorted.slice(0, REASONS), others = sorted.slice(REASONS);
  if (others.length && model.voting === "sum") rows.push([`${others.length} more`, others.reduce((sum, row) => sum + row[1], 0)]);
  const most = Math.max(...rows.map((row) => Math.abs(row[1])), 1e-3);
  byId("because").replaceChildren(...rows.map(([key, value]) => line([key, value.toFixed(3)], value / most)));
  if (model.voting === "sum") byId("because").append(line(["Sum", rows.reduce((sum, row) => sum + row[1], 0).toFixed(3)]));
}

function line(texts, share) {
  const row = document.createElement("tr");
  for (const text of texts) row.insertCell().textContent = text;
  if (share !== undefined) {
    const bar = document.createElement("span");
    bar.className = share < 0 ? "bar against" : "bar";
    bar.style.width = `${Math.round(Math.abs(share) * 80)}px`;
    row.insertCell().append(bar);
  }
  return row;
}

const label = (attribute, cell) => model.attributes[attribute].cells.find(([code]) => code === cell)[1];
model.asked.forEach((number, place) => {
  const attribute = model.attributes[number];
  const field = document.createElement("label"), select = document.createElement("select");
  select.id = `value${number}`;
  for (const [code, text] of attribute.cells) select.add(new Option(text, code));
  select.addEventListener("change", explain);
  field.append(attribute.name, select);
  byId(place < FIELDS ? "row" : "more-row").append(field);
});
if (model.asked.length > FIELDS) byId("more").hidden = false;
explain();

// rules
const columns = ["tree", "rule", "prediction", "confidence", "support", "counts", "log_odds"]
  .filter((key) => data.rules.some((rule) => rule[key] !== null && rule[key] !== undefined));
let order = null, ascending = true;
const digits = (value) => Number.isInteger(value) ? String(value) : value.toPrecision(3);
const shownText = (value) => typeof value === "number" ? digits(value) : value === null || value === undefined ? "" : typeof value === "object"
  ? (Array.isArray(value) ? value.join(", ") : Object.entries(value).map(([k, v]) => `${isolated(k)} ${v}`).join(", ")) : String(value);

function listRules() {
  const wanted = byId("search").value.toLowerCase();
  let found = data.rules.filter((rule) => columns.some((key) => shownText(rule[key]).toLowerCase().includes(wanted)));
  if (order) found = [...found].sort((a, b) => {
    const [x, y] = [a[order], b[order]];
    const sign = typeof x === "number" && typeof y === "number" ? x - y : shownText(x).localeCompare(shownText(y));
    return ascending ? sign : -sign;
  });
  document.querySelector("#rule-table tbody").replaceChildren(...found.slice(0, RULES).map((rule) => line(columns.map((key) => shownText(rule[key])))));
  byId("shown").textContent = `${found.length} rule${found.length === 1 ? "" : "s"}${found.length > RULES ? `, the first ${RULES} shown` : ""}`;
}

for (const key of columns) {
  const head = document.createElement("th"), button = document.createElement("button");
  head.scope = "col";
  button.type = "button";
  button.textContent = key.replace("_", "-");
  button.addEventListener("click", () => {
    ascending = order === key ? !ascending : true;
    order = key;
    document.querySelectorAll("#rule-table th").forEach((th) => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    listRules();
  });
  head.append(button);
  document.querySelector("#rule-table thead tr").append(head);
}
byId("search").addEventListener("input", listRules);
listRules();

const copy = byId("copy");
if (copy) copy.addEventListener("click", () => {
  const selection = window.getSelection();
  selection.selectAllChildren(byId("sql-text"));
  let done = false;
  try { done = document.execCommand("copy"); } catch { done = false; }
  byId("copied").textContent = done ? "Copied." : "Press Ctrl-C to copy the selected text.";
});
