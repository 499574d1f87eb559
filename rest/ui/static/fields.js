// The fields of a form, one for each key in the answer of a validation.

import { element } from "./elements.js";

const RANK = { HIGH: 0, MEDIUM: 1, LOW: 2 };
const HIDDEN = "[hidden]";
const OTHER = "Other keys";
const OWN = "Options of this class";
const IDENTITY = "Name and class";
// Said of a package that is not installed (connect/internals/extras.py): no option can be set right without it.
const ABSENT = "which this worker does not have";
const CHAIN = /^(Transforms|Predicates): /;
const UNKNOWN = "No option has this name, but the connector may use it.";

export class Fields {
  // `framework` are the groups of what all connectors have.
  // `choose` lets the reader choose the values of a key that the system of the connector can be asked for.
  constructor(form, isNew, framework, changed, choose) {
    this.form = form;
    this.isNew = isNew;
    this.framework = new Set(framework);
    this.changed = changed;
    this.choose = choose;
    this.words = [];
    // Keys that the reader has left or typed in: until then, that an empty one is needed is no mistake.
    this.touched = new Set();
    this.groups = new Map();
    this.fields = new Map();
    this.shown = "HIGH";
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("focusout", (event) => this.touch(event.target.name));
  }

  forget() {
    this.form.replaceChildren();
    this.groups.clear();
    this.fields.clear();
  }

  // Fields that are there stay, with what is typed in them: only what is said of them changes.
  show(infos, config) {
    const told = infos.configs.map((one) => ({ name: one.value.name, definition: one.definition, value: one.value }));
    const names = new Set(told.map((one) => one.name));
    for (const key of Object.keys(config)) {
      if (!names.has(key)) told.push({ name: key, definition: null, value: { errors: [], recommended_values: [], visible: true } });
    }
    const known = new Set(told.map((one) => one.name));
    for (const [key, field] of this.fields) {
      if (!known.has(key)) {
        field.place.remove();
        this.fields.delete(key);
      }
    }
    const ordered = told.sort((a, b) => (a.definition?.order_in_group ?? 1e6) - (b.definition?.order_in_group ?? 1e6));
    for (const one of ordered) {
      const warnings = (infos.warnings ?? []).filter((warning) => warning.key === one.name).map((warning) => warning.message);
      this.put(one, config[one.name], infos.groups, warnings);
      this.offer(one.name, infos.choices?.[one.name], one.definition?.type === "LIST");
    }
    this.config = config;
    this.tellErrors();
    this.least(this.shown, config);
  }

  touch(key) {
    if (!this.fields.has(key) || this.touched.has(key)) return;
    this.touched.add(key);
    this.tellErrors();
  }

  // Show all mistakes, also of what was not typed in yet.
  reveal() {
    for (const key of this.fields.keys()) this.touched.add(key);
    this.tellErrors();
  }

  // A mistake of several keys is told once, at the first that is shown; the others are only marked.
  tellErrors() {
    const told = new Set();
    for (const [key, field] of this.fields) {
      const isSilent = this.isSilent(key);
      const fresh = isSilent ? [] : field.errors.filter((error) => !told.has(error) && !error.includes(ABSENT));
      for (const error of fresh) told.add(error);
      field.said.textContent = fresh.join("\n");
      field.said.hidden = !fresh.length;
      field.input.toggleAttribute("aria-invalid", false);
      if (field.errors.length && !isSilent) field.input.setAttribute("aria-invalid", "true");
    }
  }

  isSilent(key) {
    return this.isNew && !this.touched.has(key) && !this.config?.[key];
  }

  // The different mistakes, and the keys that are needed but were not typed in yet.
  mistakes() {
    const told = new Set(this.absent());
    for (const [key, field] of this.fields) if (!this.isSilent(key)) for (const error of field.errors) told.add(error);
    const needed = [...this.fields].filter(([key, field]) => this.isSilent(key) && field.errors.some((error) => !told.has(error)));
    return { errors: [...told], needed: needed.map(([key]) => key) };
  }

  // What is not installed here, in sentences that say how to install it.
  absent() {
    return [...new Set([...this.fields.values()].flatMap((field) => field.errors).filter((error) => error.includes(ABSENT)))];
  }

  search(text, config) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.least(this.shown, config);
  }

  least(importance, config) {
    this.shown = importance;
    for (const [key, field] of this.fields) {
      const isFound = this.words.every((word) => field.text.includes(word));
      const matters = this.words.length ? isFound : field.required || RANK[field.importance] <= RANK[importance] || config[key] !== undefined || field.errors.length > 0;
      field.place.hidden = !matters || (!field.visible && !field.errors.length);
    }
    for (const group of this.groups.values()) group.hidden = ![...group.querySelectorAll(".field")].some((field) => !field.hidden);
  }

  put({ name, definition, value }, given, order, warnings) {
    let field = this.fields.get(name);
    if (!field || (field.place.dataset.type !== (definition?.type ?? ""))) {
      field?.place.remove();
      field = this.make(name, definition);
      this.fields.set(name, field);
      this.group(groupOf(name, definition), order).append(field.place);
    }
    field.visible = value.visible;
    field.errors = value.errors;
    field.warned.textContent = warnings.join("\n");
    field.warned.hidden = !warnings.length;
    if (document.activeElement !== field.input && !("secret" in field.input.dataset)) field.input.value = given ?? "";
    if ("secret" in field.input.dataset) field.input.placeholder = given === HIDDEN ? "hidden; type to replace it" : "";
    const recommended = value.recommended_values.filter((one) => one !== null);
    if (field.list) field.list.replaceChildren(...recommended.slice(0, 200).map((one) => element("option", { value: one })));
  }

  // A button beside the label, where the system can be asked for values: `noun` says what they are.
  offer(name, noun, several) {
    const field = this.fields.get(name);
    if (!noun || field.chooser) return;
    const which = element("span", { class: "hidden-text" }, ` for ${name}`);
    field.chooser = element("button", { type: "button", class: "choose", click: () => this.choose(name, noun, several) }, `Choose ${noun}`, which);
    field.input.after(field.chooser);
  }

  // Fill in what was chosen, as if it had been typed.
  fill(name, value) {
    const { input } = this.fields.get(name);
    input.value = value;
    this.typed(name, value);
    input.focus();
  }

  make(name, definition) {
    const id = `key-${name}`;
    const type = definition?.type ?? "";
    const said = element("p", { class: "error", id: `${id}-error`, hidden: true });
    const warned = element("p", { class: "warning", id: `${id}-warning`, hidden: true });
    const about = definition ? definition.documentation : UNKNOWN;
    const doc = about ? element("p", { class: "doc", id: `${id}-doc` }, about) : null;
    const described = [doc ? `${id}-doc` : null, `${id}-error`, `${id}-warning`].filter(Boolean).join(" ");
    const list = type === "BOOLEAN" || type === "PASSWORD" ? null : element("datalist", { id: `${id}-list` });
    const input = this.input(id, name, definition, described);
    input.addEventListener(type === "BOOLEAN" ? "change" : "input", () => this.typed(name, type === "PASSWORD" && input.value === "" ? null : input.value));
    const label = definition?.display_name && definition.display_name !== name ? definition.display_name : name;
    const place = element(
      "div", { class: "field", "data-type": type, "data-field": name },
      element("label", { for: id }, label, definition?.required ? " (required) " : " ", label === name ? null : element("span", { class: "code" }, name)),
      input, list, said, warned, doc,
    );
    const text = `${label} ${name} ${about ?? ""}`.toLowerCase();
    return { place, input, said, warned, list, text, required: definition?.required ?? true, importance: definition?.importance ?? "HIGH", errors: [], visible: true };
  }

  typed(key, value) {
    this.touched.add(key);
    this.changed(key, value);
  }

  input(id, name, definition, described) {
    const type = definition?.type ?? "";
    const shared = { id, "aria-describedby": described, name };
    const usual = definition && ![null, undefined, ""].includes(definition.default_value) ? `default: ${definition.default_value}` : "";
    if (type === "BOOLEAN") {
      return element("select", shared, element("option", { value: "" }, usual || "not set"), element("option", { value: "true" }, "true"), element("option", { value: "false" }, "false"));
    }
    // No password of the reader's own: browsers should neither offer to keep it nor fill one in.
    if (type === "PASSWORD") return element("input", { ...shared, type: "text", class: "secret", autocomplete: "off", spellcheck: "false", "data-secret": true });
    const fixed = (name === "name" && !this.isNew) || name === "connector.class";
    const numeric = ["INT", "LONG", "SHORT"].includes(type);
    return element("input", { ...shared, type: "text", list: `${id}-list`, placeholder: usual, readonly: fixed, inputmode: numeric ? "numeric" : "text", spellcheck: "false", autocomplete: "off" });
  }

  group(name, order) {
    let group = this.groups.get(name);
    if (!group) {
      group = element("fieldset", { "data-group": name }, element("legend", {}, name));
      this.groups.set(name, group);
      const rank = (one) => this.rank(one, order);
      const after = [...this.form.children].find((other) => rank(other.dataset.group) > rank(name));
      this.form.insertBefore(group, after ?? null);
    }
    return group;
  }

  // The name first, then the options of the class, then what all connectors have.
  rank(group, order) {
    if (group === IDENTITY) return 0;
    if (group === OTHER) return 3000;
    const place = order.indexOf(group) + 1 || 900;
    return this.framework.has(group) || CHAIN.test(group) ? 1000 + place : place;
  }
}

function groupOf(name, definition) {
  if (["name", "connector.class"].includes(name)) return IDENTITY;
  return definition?.group ?? (definition ? OWN : OTHER);
}
