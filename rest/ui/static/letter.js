// Editing one dead letter, a dry run, and delivering it again.

import { api, call } from "./api.js";
import { confirm } from "./dialog.js";
import { element, table } from "./elements.js";
import { show } from "./records.js";
import { guard } from "./unsaved.js";

const NAMES = { text: "text", json: "JSON (through the converter)", base64: "base64", hex: "hexadecimal", null: "null" };

const form = document.getElementById("letter");
const forms = JSON.parse(document.getElementById("forms").textContent);
const { name, record } = form.dataset;
const outcome = document.getElementById("outcome");
const to = document.getElementById("to");
const deliver = document.getElementById("deliver");
const parts = Object.fromEntries([...form.querySelectorAll("[data-part]")].map((field) => [field.dataset.part, partOf(field, forms[field.dataset.part])]));
const rows = form.querySelector("#headers .rows");
rows.append(...forms.headers.map(({ key, value }) => headerRow(key, value)));
const headersBefore = JSON.stringify(headers());

// The text of a field and its format; until something is typed, choosing another format shows the same part in it.
function partOf(field, given) {
  const select = field.querySelector("select");
  const area = field.querySelector("textarea");
  const texts = given === null ? {} : Object.fromEntries(Object.entries({ text: given.text, json: given.json, base64: given.base64, hex: hexOf(given.base64) }).filter(([, text]) => text !== null));
  const kinds = given === null ? ["null", "text", "base64", "hex"] : [...Object.keys(texts).filter((kind) => kind !== "text"), "text", "null"];
  const first = given === null ? "null" : ["text", "json", "base64"].find((kind) => kind in texts);
  select.append(...kinds.map((kind) => element("option", { value: kind, selected: kind === first }, NAMES[kind])));
  const isUntouched = () => area.value === (texts[area.dataset.kind] ?? "");
  const put = () => {
    if (isUntouched()) area.value = texts[select.value] ?? "";
    area.dataset.kind = select.value;
    area.disabled = select.value === "null";
  };
  area.dataset.kind = first;
  area.value = texts[first] ?? "";
  select.addEventListener("change", put);
  put();
  // Nothing, if it is to stay as it is.
  return () => {
    const kind = select.value;
    if (kind === "null") return given === null ? undefined : null;
    return kind in texts && area.value === texts[kind] ? undefined : { [kind]: area.value };
  };
}

function hexOf(base64) {
  return [...atob(base64)].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

function headerRow(key = "", value = { text: "" }) {
  const kind = value === null ? "null" : Object.keys(value)[0];
  const row = element(
    "div", { class: "row" },
    element("label", {}, "Name ", element("input", { type: "text", value: key, spellcheck: "false", autocomplete: "off" })),
    element("label", {}, "Format ", element("select", {}, ...["text", "base64", "hex", "null"].map((one) => element("option", { value: one, selected: one === kind }, NAMES[one])))),
    element("label", {}, "Value ", element("textarea", { rows: "1", spellcheck: "false", autocomplete: "off" }, value === null ? "" : value[kind])),
    element("button", { type: "button", click: () => { row.remove(); changed(); } }, "Remove", element("span", { class: "hidden-text" }, ` header ${key}`)),
  );
  return row;
}

function headers() {
  return [...rows.children].map((row) => {
    const [key, kind, value] = ["input", "select", "textarea"].map((tag) => row.querySelector(tag).value);
    return { key, value: kind === "null" ? null : { [kind]: value } };
  });
}

function body(dryRun) {
  const edit = { to: to.value, dry_run: dryRun };
  for (const [part, read] of Object.entries(parts)) {
    const given = read();
    if (given !== undefined) edit[part] = given;
  }
  const now = headers();
  if (JSON.stringify(now) !== headersBefore) edit.headers = now;
  return edit;
}

const ask = async (dryRun) => (await call("POST", api("connectors", name, "dlq", record, "repair"), body(dryRun))).document;

function changed() {
  deliver.disabled = true;
  deliver.title = "Do a dry run first";
}

function tell(done) {
  const failure = done.failed[0];
  const where = to.value === "task" ? "the connector" : done.replayed[0]?.topic;
  const flow = element("div");
  show(flow, {
    records: [done.record], tables: [], failed: Boolean(failure),
    end: failure ? `it would fail again: ${failure.error}` : `${done.dry_run ? "would be delivered" : "delivered"} to ${where}`,
  });
  const changes = done.changes.map(({ key, before, after }) => [
    key, before === null ? "" : element("del", {}, before), after === null ? element("i", {}, "removed") : element("ins", {}, after),
  ]);
  outcome.replaceChildren(
    changes.length ? table("Changes", ["Part", "Before", "After"], changes) : element("p", { class: "hint" }, "No changes."),
    flow,
  );
  return !failure;
}

form.addEventListener("input", changed);
const untouched = JSON.stringify(body(false));
let delivered = untouched;
guard(() => ![untouched, delivered].includes(JSON.stringify(body(false))));
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("add").addEventListener("click", () => {
  rows.append(headerRow());
  rows.lastElementChild.querySelector("input").focus();
});
document.getElementById("try").addEventListener("click", async () => {
  changed();
  outcome.textContent = "Waiting for the worker …";
  const asked = JSON.stringify(body(true));
  try {
    const works = tell(await ask(true));
    // What was typed meanwhile was not tried.
    if (works && JSON.stringify(body(true)) === asked) {
      deliver.disabled = false;
      deliver.title = "";
    }
  } catch (error) {
    outcome.replaceChildren(element("p", { class: "refusal" }, error.message));
  }
});
deliver.addEventListener("click", () => confirm({
  title: `Deliver dead letter ${record} of ${name}?`,
  says: to.value === "topic" ? "Every consumer of the topic gets this record, not only this connector. The record in the queue does not change." : "Only this connector gets this record. The record in the queue does not change.",
  steps: [{
    name,
    says: "the edited record is delivered",
    run: async () => {
      const done = await ask(false);
      if (!tell(done)) throw new Error(done.failed[0].error);
      delivered = JSON.stringify(body(false));
      return `delivered to ${to.value === "task" ? "the connector" : done.replayed[0].topic}`;
    },
  }],
  button: "Deliver",
  danger: true,
  done: () => changed(),
}));
