// A dialog to choose the values of a key among those that the connector's system has.

import { element } from "./elements.js";

const MOST_SHOWN = 500;
const dialog = document.getElementById("dialog");

// Commas separate values, but for those that a backslash makes part of one.
export const values = (text) => (text ?? "").split(/(?<!\\),/).map((one) => one.trim()).filter(Boolean);

// `ask` resolves to {values, total}. The dialog is there at once, and can be closed while the system is asked.
export async function pick({ title, several, chosen, ask, done }) {
  const told = element("p", { role: "status", "aria-live": "polite" }, "Asking the system of the connector …");
  const search = element("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  const searched = element("p", { hidden: true }, element("label", {}, "Search ", search));
  const list = element("ul", { class: "picks" });
  const use = element("button", { type: "submit", class: "primary", disabled: true }, "Use these");
  const close = element("button", { type: "button", click: () => dialog.close() }, "Cancel");
  const form = element(
    "form", { method: "dialog" },
    element("h2", { id: "dialog-title" }, title), told, searched, list,
    element("div", { class: "end" }, close, use),
  );
  dialog.replaceChildren(form);
  dialog.showModal();
  close.focus();
  let found;
  try {
    found = await ask();
  } catch (error) {
    told.className = "refusal";
    told.textContent = error.message;
    return;
  }
  if (!form.isConnected || !dialog.open) return;
  const picked = new Set(chosen);
  const known = new Set(found.values);
  const all = [...chosen.filter((one) => !known.has(one)), ...found.values];

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = all.filter((one) => words.every((word) => one.toLowerCase().includes(word)));
    list.replaceChildren(...matching.slice(0, MOST_SHOWN).map((one) => row(one)));
    told.textContent = said(matching.length);
  };
  const said = (count) => {
    if (!all.length) return "The system has none that its user may see.";
    const left = count > MOST_SHOWN ? `, of which ${MOST_SHOWN} are shown: search for others` : "";
    const beyond = found.total > found.values.length ? ` The system has ${found.total}, of which the first ${found.values.length} are listed.` : "";
    return `${picked.size} of ${all.length} chosen${count < all.length ? `, ${count} found` : ""}${left}.${beyond}`;
  };
  const row = (one) => {
    const box = element("input", { type: several ? "checkbox" : "radio", name: "pick", value: one });
    box.checked = picked.has(one);
    box.addEventListener("change", () => {
      if (!several) picked.clear();
      if (box.checked) picked.add(one);
      else picked.delete(one);
      told.textContent = said(list.children.length);
    });
    return element("li", {}, element("label", {}, box, one, known.has(one) ? null : element("span", { class: "faint" }, " (not a name that the system has)")));
  };

  search.addEventListener("input", show);
  // The return key in the search chooses nothing yet.
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  form.addEventListener("submit", () => done(all.filter((one) => picked.has(one))));
  use.disabled = !all.length;
  use.textContent = several ? "Use these" : "Use this";
  searched.hidden = !all.length;
  show();
  (all.length ? search : close).focus();
}
