// The form of a configuration: built from the answer of a validation, and validated while it is filled in.

import { api, call, page } from "./api.js";
import { changesOf, differences, given } from "./changes.js";
import { confirm } from "./dialog.js";
import { element, table } from "./elements.js";
import { Fields } from "./fields.js";
import { FORMS } from "./forms.js";
import { pick, values } from "./picker.js";
import { show } from "./records.js";
import { localTime } from "./times.js";
import { guard, leave } from "./unsaved.js";

const DELAY = 400;
const LOOK = 4000;
const MOST_NAMED = 4;
const HIDDEN = "[hidden]";
const place = document.getElementById("edit");
const { name, class: plugin } = place.dataset;
const isNew = !name;
const text = document.getElementById("text");
const formOf = document.getElementById("form-of");
const save = document.getElementById("save");
const conflict = document.getElementById("conflict");
const mistakes = document.getElementById("mistakes");

let base = JSON.parse(document.getElementById("config").textContent);
let revision = place.dataset.revision;
let config = { ...base };
let secrets = new Set();
let timer = 0;
let checking = false;
let again = false;
let told = "";
let broken = null;
let warnings = [];

const fields = new Fields(document.getElementById("fields"), isNew, JSON.parse(place.dataset.framework), (key, value) => {
  if (value === "" || value === null) delete config[key];
  else config[key] = value;
  if (value === null && base[key] !== undefined) config[key] = base[key];
  changed();
}, choose);

function changed(fromText = false) {
  if (!fromText) showText();
  clearTimeout(timer);
  timer = setTimeout(check, DELAY);
}

// Of a connector that exists only what is changed is sent: its secrets are not known here.
async function answered(resource, query) {
  const asked = config["connector.class"] || plugin;
  const sent = isNew ? config : { "connector.class": asked, ...changesOf(base, config) };
  const words = new URLSearchParams(isNew ? query : { connector: name, ...query });
  const { document: found } = await call("PUT", `${api("connector-plugins", asked, "config", resource)}?${words}`, sent);
  return found;
}

const validated = (query = {}) => answered("validate", { choices: "true", ...query });

// The form stays as it is while the system is asked, and can be used again as soon as the dialog is closed.
function choose(key, noun, several) {
  pick({
    title: `${noun[0].toUpperCase()}${noun.slice(1)} for ${key}`,
    several,
    chosen: several ? values(config[key]) : [config[key]].filter(Boolean),
    ask: () => answered("choices", { key }),
    done: (chosen) => fields.fill(key, chosen.join(",")),
  });
}

// One validation at a time; changes made meanwhile are validated afterwards.
async function check() {
  if (checking) {
    again = true;
    return;
  }
  checking = true;
  mistakes.textContent = "Checking …";
  try {
    const infos = await validated();
    secrets = new Set(infos.configs.filter((one) => one.definition?.type === "PASSWORD").map((one) => one.definition.name));
    fields.show(infos, config);
    warnings = warned(infos);
    save.disabled = infos.error_count > 0 || broken !== null;
    save.title = infos.error_count ? "Correct the errors first" : "";
    tellMistakes();
    showText();
    if (broken !== null) tellBroken();
  } catch (error) {
    mistakes.textContent = error.message;
    save.disabled = true;
  }
  checking = false;
  if (again) {
    again = false;
    check();
  }
}

// What is still needed is no error until the reader has left its field.
function tellMistakes() {
  const { errors, needed } = fields.mistakes();
  const absent = document.getElementById("absent");
  absent.textContent = fields.absent().join("\n");
  absent.hidden = !absent.textContent;
  const shown = needed.slice(0, MOST_NAMED).join(", ") + (needed.length > MOST_NAMED ? ` and ${needed.length - MOST_NAMED} more` : "");
  const found = errors.length || !needed.length ? [many(errors.length, "error")] : [];
  mistakes.textContent = [...found, ...(needed.length ? [`still needed: ${shown}`] : []), ...warnings].join(", ");
}

const many = (count, noun) => `${count || "No"} ${noun}${count === 1 ? "" : "s"}`;

// The number of warnings, and those that concern no field.
function warned(infos) {
  const warnings = infos.warnings ?? [];
  const others = warnings.filter((one) => one.key === null).map((one) => one.message);
  return warnings.length ? [[many(warnings.length, "warning"), ...others].join(": ")] : [];
}

const shownConfig = () => Object.fromEntries(Object.entries(config).map(([key, value]) => [key, secrets.has(key) && !/^\$\{[^{}]*\}$/.test(value) ? HIDDEN : value]));

// Text that is no configuration stays as it is typed, whatever else changes, until it is corrected or discarded.
function tellBroken() {
  save.disabled = true;
  save.title = "Correct or discard the text first";
}

function setBroken(why) {
  const isBroken = why !== null;
  broken = isBroken ? text.value : null;
  text.toggleAttribute("aria-invalid", false);
  if (isBroken) text.setAttribute("aria-invalid", "true");
  const said = document.getElementById("text-said");
  said.classList.toggle("refusal", isBroken);
  said.classList.toggle("faint", !isBroken);
  said.textContent = isBroken ? `Not applied: ${why} ` : "Secrets stay hidden; unchanged secrets are kept.";
  if (isBroken) {
    said.append(element("button", { type: "button", click: discard }, "Discard this text"));
    tellBroken();
  }
}

function discard() {
  setBroken(null);
  showText();
  check();
}

function showText() {
  if (document.activeElement === text && formOf.value === "json") return;
  const target = config.name || name || "NAME";
  const isKept = broken !== null && formOf.value === "json";
  text.value = isKept ? broken : FORMS[formOf.value](target, shownConfig(), new URL(api("connectors", target, "config"), location.href).href);
  text.readOnly = formOf.value !== "json";
}

text.addEventListener("input", () => {
  try {
    const given = JSON.parse(text.value);
    const isConfig = given && typeof given === "object" && !Array.isArray(given) && Object.values(given).every((value) => ["string", "number", "boolean"].includes(typeof value));
    if (!isConfig) throw new Error("a configuration must be an object whose values are strings, numbers or booleans");
    config = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, value === HIDDEN && config[key] !== undefined ? config[key] : String(value)]));
    setBroken(null);
    changed(true);
  } catch (error) {
    setBroken(error.message);
  }
});
text.addEventListener("blur", showText);
formOf.addEventListener("change", showText);
document.getElementById("importance").addEventListener("change", (event) => fields.least(event.target.value, config));
document.getElementById("copy").addEventListener("click", async () => {
  const copied = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(text.value);
    copied.textContent = "Copied.";
  } catch {
    copied.textContent = "The browser does not allow copying: select the text instead.";
  }
});

document.getElementById("search").addEventListener("input", (event) => fields.search(event.target.value, config));
document.getElementById("fields").addEventListener("focusout", () => tellMistakes());

document.getElementById("test").addEventListener("click", async (event) => {
  const outcome = document.getElementById("connection");
  event.target.disabled = true;
  outcome.replaceChildren("Asking the system of the connector …");
  try {
    const infos = await validated({ connect: "true" });
    fields.show(infos, config);
    fields.reveal();
    tellMistakes();
    outcome.replaceChildren(...toldOf(infos.connection, fields.mistakes().errors));
  } catch (error) {
    outcome.replaceChildren(element("p", { class: "refusal" }, error.message));
  }
  outcome.scrollIntoView({ block: "nearest" });
  event.target.disabled = false;
});

function toldOf(connection, errors) {
  if (!connection?.checked) return [element("p", { class: "hint" }, connection?.reason ?? "The system was not asked.")];
  if (!errors.length) return [element("p", { class: "hint outcome-done" }, "The system answers, and nothing was found that would fail.")];
  return errors.map((error) => element("p", { class: "refusal" }, error));
}

save.addEventListener("click", () => (isNew ? create() : store()));

document.getElementById("try")?.addEventListener("click", async (event) => {
  const outcome = document.getElementById("tried");
  event.target.disabled = true;
  outcome.replaceChildren("Waiting for records …");
  try {
    const { document: found } = await call("POST", `${api("connector-plugins", config["connector.class"] || plugin, "config", "preview")}?limit=10&seconds=10`, config);
    show(outcome, found);
  } catch (error) {
    outcome.replaceChildren(element("p", { class: "refusal" }, error.message));
  }
  event.target.disabled = false;
});

function create() {
  const made = config.name?.trim();
  if (!made) {
    mistakes.textContent = "Enter a name";
    return;
  }
  const state = document.getElementById("initial").value;
  confirm({
    title: `Create ${made}?`,
    steps: [{ name: made, says: `a connector of class ${config["connector.class"]}, initially ${state.toLowerCase()}`, run: async (waiting) => { await call("POST", api("connectors"), { name: made, config, initial_state: state }, { waiting }); } }],
    button: "Create",
    done: (failures) => { if (!failures) leave(page("connectors", made)); },
  });
}

function store() {
  const patch = changesOf(base, config);
  const half = Object.entries(patch).find(([, value]) => value !== null && value.includes(HIDDEN));
  if (half) {
    mistakes.textContent = `${half[0]} still contains ${HIDDEN}: enter the whole value, or undo the change`;
    return;
  }
  if (!Object.keys(patch).length) {
    mistakes.textContent = "No changes";
    return;
  }
  confirm({
    title: `Change ${name}?`,
    steps: [{
      name,
      says: given("the new configuration"),
      run: async (waiting) => {
        await call("PATCH", api("connectors", name, "config"), patch, { headers: { "If-Match": `"${revision}"` }, waiting });
      },
    }],
    button: "Save",
    done: (failures) => { if (!failures) leave(page("connectors", name)); else look(); },
  });
  const list = document.querySelector("#dialog ul");
  list.before(table("Changes", ["Key", "Before", "After"], differences(base, config, secrets).map(({ key, before, after }) => [
    key,
    before === null ? "" : element("del", {}, before),
    after === null ? element("i", {}, "removed") : element("ins", {}, after),
  ])));
}

// Somebody else may save meanwhile: the ETag of the configuration tells, without reading secrets.
async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(api("connectors", name, "config"), { method: "HEAD", cache: "no-store" });
    if (answer.status === 404) tellConflict("This connector has been deleted.", false);
    else if (answer.ok && answer.headers.get("ETag") !== `"${revision}"` && told !== answer.headers.get("ETag")) {
      told = answer.headers.get("ETag");
      tellConflict(`${await who()} has changed this configuration since you opened it. `, true);
    }
  } catch {
    // The worker does not answer: the next look, or saving, tells.
  }
}

// The author of the last change, if known.
async function who() {
  try {
    const { document: found } = await call("GET", api("connectors", name, "config", "history"));
    const last = found.versions[0];
    return last?.author ? `${last.author} (${localTime(last.at)})` : "Somebody else";
  } catch {
    return "Somebody else";
  }
}

function tellConflict(message, canTake) {
  if (!conflict.hidden && conflict.dataset.message === message) return;
  conflict.dataset.message = message;
  conflict.hidden = false;
  conflict.replaceChildren(message);
  if (canTake) conflict.append(element("button", { type: "button", click: take }, "Show their changes and keep mine on top"));
}

async function take() {
  const fresh = new DOMParser().parseFromString(await (await fetch(location.href, { cache: "no-store" })).text(), "text/html");
  const theirs = JSON.parse(fresh.getElementById("config").textContent);
  const mine = changesOf(base, config);
  const rows = differences(base, theirs, secrets).map(({ key, before, after }) => [key, before ?? "", after ?? "removed", key in mine ? "you changed it, too: your value is kept" : ""]);
  base = theirs;
  revision = fresh.getElementById("edit").dataset.revision;
  config = { ...theirs };
  for (const [key, value] of Object.entries(mine)) {
    if (value === null) delete config[key];
    else config[key] = value;
  }
  conflict.dataset.message = "";
  conflict.replaceChildren("Their changes; yours are kept on top of them:", table("Their changes", ["Key", "Before", "After", ""], rows));
  fields.forget();
  check();
}

guard(() => broken !== null || Object.keys(changesOf(base, config)).length > 0);
if (!isNew) setInterval(look, LOOK);
showText();
check();
