"use strict";
// What every part of the page needs: embedded data, downloads, and a word where something is wider than the screen.
// Texts from runs are put in as text (textContent) and never as markup.

/** The value of an embedded part: JSON, deflated, in base64. */
async function embedded(id) {
  const coded = atob(document.getElementById(id).textContent.trim());
  const bytes = new Uint8Array(coded.length);
  for (let i = 0; i < coded.length; i++) bytes[i] = coded.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

/** An element with classes and children; strings become text. */
function make(tag, kind, ...inside) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...inside);
  return made;
}

function download(name, type, text) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Boxes that scroll sideways say so and can be scrolled by keyboard, the Tab key passes over those that do not. */
const watchBox = (() => {
  let count = 0;
  function look(box) {
    if (!box.clientWidth) return; // hidden
    const wide = box.scrollWidth > box.clientWidth + 1;
    const cut = wide || box.scrollHeight > box.clientHeight + 1;
    const hint = box.nextElementSibling?.classList.contains("hint") ? box.nextElementSibling : null;
    if (hint) hint.hidden = !wide;
    else if (wide && box.classList.contains("wide")) {
      box.after(make("p", "hint", "Wider than the screen: scroll sideways ↔"));
    }
    if (!cut) {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      return;
    }
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    if (!box.hasAttribute("aria-label")) {
      const title = box.closest("section, article")?.querySelector("h2, h3")?.textContent ?? "text";
      box.setAttribute("aria-label", `${title.slice(0, 80)}, part ${++count}: scrolls`);
    }
  }
  // A frame later: what it puts in changes sizes, and an observer may not.
  const observer = new ResizeObserver((seen) => requestAnimationFrame(() => seen.forEach((one) => look(one.target))));
  // Until it is looked at, a box can be reached: better a stop too many than text out of reach.
  return (box) => { box.tabIndex = 0; observer.observe(box); };
})();

for (const box of document.querySelectorAll(".wide")) watchBox(box);

// --- the menu ---------------------------------------------------------------------------------------

const menu = document.querySelector(".menu");

/** Closes once a section is chosen, and on a click elsewhere. */
addEventListener("click", (event) => {
  if (menu?.open && (event.target.closest(".menu a") || !menu.contains(event.target))) menu.open = false;
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && menu?.open) { menu.open = false; menu.firstElementChild.focus(); }
});

// --- downloads --------------------------------------------------------------------------------------

const KINDS = { csv: "text/csv", tex: "application/x-tex", json: "application/json", md: "text/markdown" };

for (const button of document.querySelectorAll("button[data-file]")) {
  button.addEventListener("click", async () => {
    const name = button.dataset.file;
    const files = await embedded("files");
    download(name, KINDS[name.split(".").pop()] ?? "text/plain", files[name]);
  });
}

const styles = document.getElementById("figures"); // a saved figure takes them with it

(styles ? document.querySelectorAll("svg[role=img]") : []).forEach((figure, at) => {
  const label = figure.getAttribute("aria-label");
  const button = make("button", "save", "SVG");
  button.type = "button";
  button.title = `Save this figure: ${label}`;
  button.setAttribute("aria-label", `Save as SVG, figure ${at + 1}: ${label}`);
  button.addEventListener("click", () => {
    const copy = figure.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = styles.textContent;
    copy.prepend(style);
    const name = label.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);
    download(`${name || "figure"}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(copy));
  });
  const box = figure.closest(".wide") ?? figure;
  box.after(button);
});
