// Hovering lights everything with the same key (a Python line, a thread, an offset); a click pins it and scrolls the
// other panes to it; Escape lets go. One style rule does the lighting, so its cost does not grow with the page.
"use strict";
const rule = document.head.appendChild(document.createElement("style"));
let pinned = null;
const keyOf = (event) => event.target.closest?.("[data-k]")?.dataset.k ?? null;
const light = (key) => {
  rule.textContent = key === null ? "" :
    `[data-k="${CSS.escape(key)}"] { background: var(--lit); stroke: var(--ink); stroke-width: 2.5; }`;
};
document.addEventListener("mouseover", (event) => { if (pinned === null) light(keyOf(event)); });
document.addEventListener("click", (event) => {
  if (event.target.closest("button, input, label")) return;
  const key = keyOf(event);
  pinned = key === pinned ? null : key;
  light(key);
  if (pinned === null) return;
  for (const pane of document.querySelectorAll(".code")) {
    const line = [...pane.querySelectorAll(`[data-k="${CSS.escape(key)}"]`)].find((each) => each.offsetParent);
    if (!line || pane.contains(event.target)) continue;
    pane.scrollTop += line.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
  }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") { pinned = null; light(null); } });
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.classList.contains("dark") ||
    (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.toggle("dark", !dark);
  root.classList.toggle("light", dark);
});
for (const box of document.querySelectorAll("input[data-pane]"))
  box.addEventListener("change", () => document.getElementById(box.dataset.pane).classList.toggle("off", !box.checked));
document.getElementById("removed")?.addEventListener("change", (event) =>
  document.querySelector(".panes").classList.toggle("gone-too", event.target.checked));
