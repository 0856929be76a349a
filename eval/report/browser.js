"use strict";
// The browser of rows: filters, a list, and one row whole. `samples.py` writes what is read here:
//   types   [code, name, component]            samples [clean_id, source, category, output format]
//   texts, tools  each once
//   rows    [sample, type, [[role, text]], [tool], golden answers, error or -1, flags, generator]
//   runs    {label, mode, answers: [row, repeat, verdict, mode, reason, status, flags, finish, then text and total of
//           reply, calls, first reply, native calls; the error]}. Total: characters where it was cut, else 0.

const PAGE = 50;
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]+|[\u{e0000}-\u{e007f}]+/gu;
const SOME_HIDDEN = new RegExp(HIDDEN.source, "u");
const byId = (id) => document.getElementById(id);

/** Puts a text in; characters that are not seen, or turn its direction, are shown by their code. */
function put(into, text) {
  if (!SOME_HIDDEN.test(text)) { into.append(text); return into; }
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    const signs = [...found[0]];
    const code = signs[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    into.append(text.slice(from, found.index));
    into.append(make("span", "hiddensign", `[U+${code}${signs.length > 1 ? ` and ${signs.length - 1} more` : ""}]`));
    from = found.index + found[0].length;
  }
  into.append(text.slice(from));
  return into;
}

/** An id that may break after its separators only. */
function idText(into, id) {
  for (const part of id.split(/(?<=[_:/-])(?![_:/-])/)) {
    put(into, part);
    into.append(document.createElement("wbr"));
  }
  return into;
}

// --- what differs -----------------------------------------------------------------------------------

/** [kind, left words, right words] with kind "same" or "other", over words. */
function differences(left, right) {
  const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
  const a = words(left), b = words(right);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const parts = [];
  const add = (same, x, y) => {
    const last = parts.at(-1);
    if (last && last[0] === same) { last[1] += x; last[2] += y; } else if (x || y) parts.push([same, x, y]);
  };
  add(true, a.slice(0, start).join(""), b.slice(0, start).join(""));
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end);
  if (x.length * y.length > 1_000_000) add(false, x.join(""), y.join(""));
  else between(x, y, add);
  add(true, a.slice(a.length - end).join(""), b.slice(b.length - end).join(""));
  return parts;
}

/** The longest common subsequence of two short lists of words. */
function between(x, y, add) {
  const width = y.length + 1, table = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      const at = i * width + j;
      table[at] = x[i] === y[j] ? table[at + width + 1] + 1 : Math.max(table[at + width], table[at + 1]);
    }
  }
  let i = 0, j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) { add(true, x[i++], y[j++]); continue; }
    const down = i < x.length && (j === y.length || table[(i + 1) * width + j] >= table[i * width + j + 1]);
    if (down) add(false, x[i++], ""); else add(false, "", y[j++]);
  }
}

/** Both sides of two texts, what differs marked. */
function marked(left, right) {
  const sides = [make("div", "shown"), make("div", "shown")];
  for (const [same, a, b] of differences(left, right)) {
    for (const [side, text, tag] of [[0, a, "del"], [1, b, "ins"]]) {
      if (!text) continue;
      if (same) put(sides[side], text); else sides[side].append(put(make(tag), text));
    }
  }
  return sides;
}

// --- the data ---------------------------------------------------------------------------------------

let data, rows;
const state = { page: 0, row: -1, found: [] };

function prepare() {
  const cleanOf = new Map();
  rows = data.rows.map(([sample, type, messages, tools, gold, error, flags, generator], at) => {
    if (type === 0) cleanOf.set(sample, at);
    const [cleanId, source, category, format] = data.samples[sample];
    const id = `${cleanId}::${data.types[type][0]}`;
    return { at, id, sample, source, category, format, type, messages, tools, gold, error, flags, generator };
  });
  for (const row of rows) row.clean = cleanOf.get(row.sample) ?? -1;
  for (const run of data.runs) {
    run.of = rows.map(() => []);
    for (const one of run.answers) {
      const [row, repeat, verdict, mode, reason, status, flags, finish, ...rest] = one;
      const [reply, replyTotal, calls, callsTotal, first, firstTotal, native, nativeTotal, error] = rest;
      run.of[row].push({ repeat, verdict, mode, reason, status, flags, finish, error,
        reply: [reply, replyTotal], calls: [calls, callsTotal], first: [first, firstTotal],
        native: [native, nativeTotal] });
    }
  }
}

/** Whether a text holds the words searched for, by number; each text is looked at once. */
function holders(texts, lower, wanted) {
  const found = new Uint8Array(texts.length);
  for (let i = 0; i < texts.length; i++) {
    lower[i] ??= texts[i].toLowerCase();
    if (lower[i].includes(wanted)) found[i] = 1;
  }
  return found;
}

const lowered = { texts: [], tools: [] };

function answered(answer) {
  answer.lower ??= [answer.reply, answer.calls, answer.first, answer.native].map(([text]) => text)
    .concat(answer.error).join("\n").toLowerCase();
  return answer.lower;
}

/** Looks at every text in idle time, so that the first search is as quick as the next. */
function lowerAhead() {
  const work = [() => holders(data.texts, lowered.texts, "\n\n\n"), () => holders(data.tools, lowered.tools, "\n\n\n")];
  for (const run of data.runs) {
    for (let from = 0; from < run.of.length; from += 500) work.push(() => run.of.slice(from, from + 500).flat().forEach(answered));
  }
  const idle = window.requestIdleCallback ?? ((later) => setTimeout(later, 30));
  const next = () => { const one = work.shift(); if (one) { one(); idle(next); } };
  idle(next);
}

// --- filters ----------------------------------------------------------------------------------------

const right = (answers) => answers.length > 0 && answers.every((one) => one.verdict === 1);
const wrong = (answers) => answers.some((one) => one.verdict === 0);

const OUTCOMES = {
  "A right": (row, a) => right(a[row.at]),
  "A wrong": (row, a) => wrong(a[row.at]),
  "A lost: right on clean, wrong here": (row, a) => row.type > 0 && row.clean >= 0 && right(a[row.clean]) && wrong(a[row.at]),
  "A gained: wrong on clean, right here": (row, a) => row.type > 0 && row.clean >= 0 && wrong(a[row.clean]) && right(a[row.at]),
  "A without a verdict": (row, a) => !a[row.at].length || a[row.at].some((one) => one.verdict < 0),
  "A right, B wrong": (row, a, b) => b !== null && right(a[row.at]) && wrong(b[row.at]),
  "A wrong, B right": (row, a, b) => b !== null && wrong(a[row.at]) && right(b[row.at]),
};

const chosen = (name) => byId(`by-${name}`).value;

function runs() {
  const a = data.runs[Number(chosen("a"))], b = chosen("b") === "" ? null : data.runs[Number(chosen("b"))];
  return [a, b];
}

function filtered() {
  const [a, b] = runs(), used = b ? [a, b] : [a];
  const source = chosen("source"), type = chosen("type"), mode = chosen("mode"), flag = chosen("flag");
  const outcome = OUTCOMES[chosen("outcome")], wanted = chosen("text").trim().toLowerCase();
  const inTexts = wanted && holders(data.texts, lowered.texts, wanted);
  const inTools = wanted && holders(data.tools, lowered.tools, wanted);
  return rows.filter((row) => {
    if (source && row.source !== source) return false;
    if (type && data.types[row.type][0] !== type) return false;
    if (outcome && !outcome(row, a.of, b && b.of)) return false;
    const answers = used.length > 1 ? a.of[row.at].concat(b.of[row.at]) : a.of[row.at];
    if (mode && !answers.some((one) => one.mode === mode)) return false;
    if (flag && !row.flags.includes(flag) && !answers.some((one) => one.flags.includes(flag))) return false;
    return !wanted || row.id.toLowerCase().includes(wanted) || inTexts[row.gold] || inTexts[row.error]
      || row.messages.some(([, text]) => inTexts[text]) || row.tools.some((tool) => inTools[tool])
      || answers.some((one) => answered(one).includes(wanted));
  });
}

/** Filters and shows the list; the milliseconds stand at the list for who measures. */
function refresh() {
  const start = performance.now();
  state.found = filtered();
  state.page = Math.max(0, Math.floor(state.found.findIndex((row) => row.at === state.row) / PAGE));
  list();
  byId("found").offsetHeight; // lays it out, so that the time is that of what is seen
  byId("found").dataset.ms = (performance.now() - start).toFixed(2);
}

function badge(answers) {
  const n = answers.filter((one) => one.verdict >= 0).length, k = answers.filter((one) => one.verdict === 1).length;
  if (!n) return make("span", "badge none", "– none");
  const kind = k === n ? "right" : k ? "partly" : "wrong";
  return make("span", `badge ${kind}`, `${k === n ? "✓" : "✗"} ${n > 1 ? `${k}/${n}` : k ? "right" : "wrong"}`);
}

function list() {
  const [a, b] = runs(), found = state.found, from = state.page * PAGE;
  const shown = found.slice(from, from + PAGE);
  byId("found").replaceChildren(...shown.map((row) => {
    const link = idText(make("a"), row.id);
    link.href = address(row);
    if (row.at === state.row) link.setAttribute("aria-current", "true");
    const marks = [badge(a.of[row.at])];
    if (b) marks.push(badge(b.of[row.at]));
    return make("li", "", link, make("span", "marks", ...marks));
  }));
  const n = found.length.toLocaleString("en"), all = rows.length.toLocaleString("en");
  byId("count").textContent = found.length
    ? `${n} of ${all} rows; ${from + 1} to ${from + shown.length} shown` : `None of ${all} rows: take a filter back.`;
  byId("earlier").disabled = from === 0;
  byId("later").disabled = from + PAGE >= found.length;
}

// --- one row ----------------------------------------------------------------------------------------

const address = (row) => `#row=${encodeURIComponent(row.id)}`;

function box(text, total, kind = "shown") {
  const made = put(make("div", kind), text || "(nothing)");
  if (!text) made.classList.add("soft");
  watchBox(made);
  if (!total) return [made];
  const count = [...text].length.toLocaleString("en");
  return [made, make("p", "cutnote", `shown ${count} of ${total.toLocaleString("en")} characters`)];
}

/** Two texts beside each other, or one where they are equal. */
function beside(title, clean, mine, total) {
  const note = total ? [make("p", "cutnote", `cut: the whole text has ${total.toLocaleString("en")} characters`)] : [];
  if (clean === null || clean === mine) {
    const word = clean === null ? "" : " (as in clean)";
    return [make("h4", "", title + word), ...box(mine, 0), ...note];
  }
  const sides = marked(clean, mine);
  sides.forEach(watchBox);
  return [make("h4", "", title), make("div", "pair", make("div", "", make("h5", "", "clean"), sides[0]),
    make("div", "", make("h5", "", "perturbed"), sides[1])), ...note];
}

function messages(row, clean) {
  const out = [], most = Math.max(row.messages.length, clean ? clean.messages.length : 0);
  for (let i = 0; i < most; i++) {
    const mine = row.messages[i], before = clean?.messages[i];
    const title = `Message ${i + 1}, ${(mine ?? before)[0]}`;
    const total = mine ? data.text_totals[mine[1]] : 0;
    out.push(...beside(title, before ? data.texts[before[1]] : clean ? "" : null, mine ? data.texts[mine[1]] : "", total));
  }
  return out;
}

/** A tool as it is read: name, description, then its parameters. */
function readable(tool) {
  try {
    const { name, description, parameters } = JSON.parse(tool);
    return `${name}\n${description}\n${JSON.stringify(parameters, null, 1)}`;
  } catch { return tool; } // cut
}

const nameOf = (tool) => readable(data.tools[tool]).split("\n")[0];

function registry(row, clean) {
  const kept = clean ? row.tools.filter((tool) => clean.tools.includes(tool)) : row.tools;
  const added = clean ? row.tools.filter((tool) => !clean.tools.includes(tool)) : [];
  const gone = clean ? clean.tools.filter((tool) => !row.tools.includes(tool)) : [];
  const out = [make("h4", "", clean && !added.length && !gone.length ? `Tools: ${row.tools.length}, as in clean` : "Tools")];
  const order = (of) => of.map((tool, i) => `${i + 1}. ${nameOf(tool)}`).join("\n");
  if (clean && order(clean.tools) !== order(row.tools)) out.push(...beside("Order of the registry", order(clean.tools), order(row.tools)));
  for (const tool of added) {
    // Its partner: the one of the same name that is gone, else the one that stood at its place.
    const at = row.tools.indexOf(tool);
    let partner = gone.findIndex((one) => nameOf(one) === nameOf(tool));
    if (partner < 0) partner = gone.indexOf(clean.tools[at]);
    const [before] = partner < 0 ? [null] : gone.splice(partner, 1);
    const title = before === null ? `Added: ${nameOf(tool)}` : `Changed: ${nameOf(tool)}`;
    out.push(...beside(title, before === null ? "" : readable(data.tools[before]), readable(data.tools[tool]), data.tool_totals[tool]));
  }
  for (const tool of gone) out.push(...beside(`Removed: ${nameOf(tool)}`, readable(data.tools[tool]), ""));
  if (kept.length) {
    const inside = make("details", "", make("summary", "", `${kept.length} ${clean ? "unchanged " : ""}${kept.length === 1 ? "tool" : "tools"}`));
    inside.addEventListener("toggle", () => {
      if (inside.open && inside.children.length === 1) inside.append(...kept.flatMap((tool) => box(readable(data.tools[tool]), 0)));
    });
    out.push(inside);
  }
  return out;
}

function answer(one, title) {
  const side = make("div", "answer", make("h5", "", title));
  if (!one) { side.append(make("p", "soft", "no answer in this run")); return side; }
  const said = one.verdict < 0 ? "no verdict" : one.verdict ? "right" : `wrong: ${one.mode}`;
  const why = one.verdict === 0 && one.reason ? `, ${one.reason}` : "";
  const kind = one.verdict < 0 ? "none" : one.verdict ? "right" : "wrong";
  side.append(make("p", "", put(make("span", `badge ${kind}`), `${one.verdict === 1 ? "✓" : one.verdict ? "–" : "✗"} ${said}`), why));
  const facts = [one.status !== "ok" && `status ${one.status}`, one.finish && `finish ${one.finish}`, ...one.flags.map((flag) => `flag ${flag}`)];
  const known = facts.filter(Boolean);
  if (known.length) side.append(put(make("p", "soft facts"), known.join(", ")));
  if (one.error) side.append(put(make("p", "facts"), `error: ${one.error}`));
  if (one.first[0]) side.append(make("h6", "", "First reply, answered with the error"), ...box(...one.first));
  side.append(make("h6", "", "Reply"), ...box(...one.reply));
  if (one.native[0]) side.append(make("h6", "", "Native calls"), ...box(...one.native));
  side.append(make("h6", "", "Calls read from it"), ...box(...one.calls));
  return side;
}

function answers(row, clean) {
  const out = [];
  runs().forEach((run, i) => {
    if (!run) return;
    const mine = run.of[row.at], before = clean ? run.of[clean.at] : [];
    const repeats = [...new Set([...mine, ...before].map((one) => one.repeat))].sort((x, y) => x - y);
    for (const repeat of repeats.length ? repeats : [0]) {
      const of = (all) => all.find((one) => one.repeat === repeat);
      const sides = clean ? [answer(of(before), "to clean"), answer(of(mine), "to perturbed")] : [answer(of(mine), "to clean")];
      const again = repeats.length > 1 ? `, repeat ${repeat + 1}` : "";
      out.push(put(make("h4"), `${"AB"[i]}: ${run.label}${again}`), make("div", clean ? "pair" : "", ...sides));
    }
  });
  return out;
}

function show(row) {
  const clean = row.type > 0 && row.clean >= 0 ? rows[row.clean] : null;
  const [, name, component] = data.types[row.type];
  const link = idText(make("a"), row.id);
  link.href = address(row);
  link.title = "Address of this row";
  const facts = [name, component, row.source, row.category, `asks for ${row.format}`, row.type ? row.generator : "", ...row.flags.map((flag) => `flag ${flag}`)];
  const gold = data.texts[row.gold];
  byId("row").replaceChildren(
    make("h3", "id", link), put(make("p", "soft facts"), facts.filter(Boolean).join(", ")),
    ...messages(row, clean), ...registry(row, clean),
    ...beside("Accepted answers", clean ? data.texts[clean.gold] : null, gold, data.text_totals[row.gold]),
    ...(row.error < 0 ? [] : [make("h4", "", "The first call is answered with"), ...box(data.texts[row.error], 0)]),
    ...answers(row, clean),
  );
}

/** Chooses a row; `write`: its address goes into the address bar. */
function choose(row, write = true) {
  state.row = row.at;
  const at = state.found.indexOf(row);
  if (at >= 0) state.page = Math.floor(at / PAGE);
  const within = byId("found").contains(document.activeElement);
  list();
  show(row);
  if (write) history.replaceState(null, "", address(row));
  const current = byId("found").querySelector("[aria-current]"), panel = byId("found");
  if (current) {
    const line = current.parentElement;
    panel.scrollTop = Math.max(0, line.offsetTop - panel.clientHeight / 2);
    if (within) current.focus({ preventScroll: true }); // the list was made again under it
  }
}

function step(by) {
  if (!state.found.length) return;
  const at = state.found.findIndex((row) => row.at === state.row);
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), state.found.length - 1);
  choose(state.found[next]);
}

// --- the page ---------------------------------------------------------------------------------------

/** What the address asks for: `#row=ID` a row, `#browser&type=CD&outcome=A wrong` filters. */
function follow() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.has("row")) {
    const row = rows.find((one) => one.id === asked.get("row"));
    if (!row) byId("row").replaceChildren(put(make("p"), `This page has no row ${asked.get("row").slice(0, 200)}.`));
    else choose(row, false);
  } else if (asked.has("browser")) {
    for (const name of ["a", "b", "source", "type", "outcome", "mode", "flag", "text"]) {
      const field = byId(`by-${name}`), value = asked.get(name) ?? (name === "a" || name === "b" ? field.value : "");
      field.value = value;
      if (field.value !== value && field.options) field.selectedIndex = 0;
    }
    refresh();
  } else return;
  byId("browser").scrollIntoView();
}

function options(name, values, every) {
  const field = byId(`by-${name}`);
  const items = values.map((one) => (Array.isArray(one) ? one : [one, one]));
  for (const [value, said] of [...(every ? [["", every]] : []), ...items]) {
    const made = put(make("option"), String(said).slice(0, 80));
    made.value = value;
    field.append(made);
  }
  field.addEventListener(field.type === "search" ? "input" : "change", () => {
    refresh();
    if (name.length === 1 && state.row >= 0) show(rows[state.row]); // other runs: their replies
  });
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !byId("keys").checked) return;
  const field = event.target.closest("input, select, textarea"), open = byId("help").open;
  if (event.key === "Escape" && field?.type === "search" && !open) {
    if (field.value) { field.value = ""; refresh(); }
    field.blur();
    return event.preventDefault();
  }
  if (field || open) return;
  const does = { j: () => step(1), k: () => step(-1), "/": () => byId("by-text").focus(), "?": () => byId("help").showModal(),
    Escape: () => { for (const one of ["source", "type", "outcome", "mode", "flag", "text"]) byId(`by-${one}`).value = ""; refresh(); } }[event.key];
  if (does) { event.preventDefault(); does(); }
}

async function start() {
  try {
    data = await embedded("rows");
  } catch (error) {
    byId("loading").textContent = `The rows of this page cannot be read in this browser (${error.message}).`;
    return;
  }
  prepare();
  const uses = (pick) => [...new Set(data.runs.flatMap((run) => run.answers.flatMap(pick)))].filter(Boolean).sort();
  const labels = data.runs.map((run, i) => [String(i), run.label]);
  const types = [...new Set(rows.map((row) => row.type))].sort((a, b) => a - b).map((type) => [data.types[type][0], data.types[type][1]]);
  options("a", labels);
  options("b", labels, "no other run");
  options("source", [...new Set(rows.map((row) => row.source))], "every source");
  options("type", types, "every type");
  options("outcome", Object.keys(OUTCOMES), "every outcome");
  options("mode", uses((one) => [one[3]]), "every error mode");
  options("flag", [...new Set([...rows.flatMap((row) => row.flags), ...uses((one) => one[6])])].sort(), "every flag");
  options("text", []);
  if (data.runs.length > 1) byId("by-b").value = "1";
  byId("earlier").addEventListener("click", () => { state.page--; list(); });
  byId("later").addEventListener("click", () => { state.page++; list(); });
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("about").addEventListener("click", () => byId("help").showModal());
  byId("close").addEventListener("click", () => byId("help").close());
  byId("found").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(rows.find((row) => address(row) === link.getAttribute("href")));
  });
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", follow);
  byId("loading").hidden = true;
  byId("rowbrowser").hidden = false;
  refresh();
  const first = state.found.find((row) => row.type > 0) ?? state.found[0];
  if (first) choose(first, false);
  follow();
  byId("rowbrowser").dataset.ready = "yes";
  lowerAhead();
}

if (byId("rows")) start();
