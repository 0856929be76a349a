// A board's rows beyond the first page come as a script when somebody searches, filters or sorts: so it works from a
// folder too. Rows are [rank, places, model, page, by, mark, [[text, small, interval], …]], put in as text.

const waiting = new Map();

/** What a file of rows calls. */
function boardRows(stem, rows) { waiting.get(stem)(rows); }

/** A text as a number, null where it is none. */
function numeric(text) {
  const found = parseFloat(text.replace("−", "-").replaceAll(",", ""));
  return Number.isNaN(found) || /^\d{4}-/.test(text) ? null : found;
}

function compare(a, b, down) {
  if ((a === "–") !== (b === "–")) return a === "–" ? 1 : -1; // what is not known comes last either way
  const [x, y] = [numeric(a), numeric(b)], order = x === null || y === null ? (a < b ? -1 : a > b ? 1 : 0) : x - y;
  return down ? -order : order;
}

function shown([rank, places, model, page, by, mark, cells]) {
  const link = make("a", "", model);
  link.href = page;
  const small = make("small", "", by);
  if (mark) small.append(" ", make("b", "mark", mark));
  if (places && places !== rank) small.append(` · may rank ${places}`);
  const head = make("th", "", make("span", "rank", rank), " ", link, small);
  head.scope = "row";
  return make("tr", "", head, ...cells.map(([text, below, span]) => make("td", "", text,
    ...(below ? [make("small", "", below)] : []), ...(span ? [make("small", "span", span)] : []))));
}

function board(section) {
  const table = section.querySelector("table"), form = section.querySelector("form"), pager = section.querySelector(".pager");
  if (!table) return;
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], size = Number(section.dataset.perPage);
  let rows = null, sort = null, page = 0, loading = null;

  const load = () => loading ??= new Promise((done) => {
    waiting.set(section.id, (found) => { rows = found; done(); });
    const script = make("script");
    script.src = section.dataset.rows;
    document.head.append(script);
  });

  const text = (row, at) => (at ? row[6][at - 1][0] : row[2].toLowerCase());

  async function show() {
    await load();
    const words = form.elements.search.value.toLowerCase().split(/\s+/), standing = form.elements.standing.value;
    const picks = [...form.querySelectorAll("select[data-at]")].filter((one) => one.value);
    let found = rows.filter((row) => (standing === "all" || (row[0] !== "–") === (standing === "ranked"))
      && picks.every((one) => text(row, Number(one.dataset.at)) === one.value)
      && words.every((word) => `${row[2]} ${row[4]}`.toLowerCase().includes(word)));
    if (sort) found = found.toSorted((a, b) => compare(text(a, sort.at), text(b, sort.at), sort.down));
    page = Math.max(0, Math.min(page, Math.ceil(found.length / size) - 1));
    const from = page * size, part = found.slice(from, from + size), count = found.length.toLocaleString("en");
    body.replaceChildren(...part.map(shown));
    section.querySelector(".count").textContent = part.length ? `${from + 1} to ${from + part.length} of ${count}` : "None fits.";
    pager.replaceChildren(step("Earlier", -1, page > 0), step("Later", 1, from + size < found.length));
  }

  function step(name, by, there) {
    const button = make("button", "", name);
    button.type = "button";
    button.disabled = !there;
    button.addEventListener("click", () => { page += by; show(); section.scrollIntoView(); });
    return button;
  }

  const again = () => { page = 0; show(); };
  heads.forEach((head, at) => {
    const button = make("button", "", ...head.childNodes);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      // Largest first, then smallest first, then by rank again; names the other way round.
      const first = at > 0;
      sort = sort?.at !== at ? { at, down: first } : sort.down === first ? { at, down: !first } : null;
      for (const one of heads) one.removeAttribute("aria-sort");
      if (sort) head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      again();
    });
  });
  form.addEventListener("input", again);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}

document.querySelectorAll("section.board").forEach(board);
