// What a preview has found: records on their way, before and after each step, and tables.

import { element, table } from "./elements.js";

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export function show(outcome, found) {
  outcome.replaceChildren(
    element("p", { class: found.failed ? "refusal" : "hint" }, `${found.records.length} records. ${found.end ?? ""}`),
    found.trace ? element("details", { class: "trace" }, element("summary", {}, "Trace"), element("pre", { tabindex: "0" }, found.trace)) : null,
    ...found.tables.map(tableOf),
    ...found.records.map(recordOf),
  );
}

function recordOf(record, number) {
  const origin = record.origin ? text(record.origin).replace(/\s+/g, " ") : "made by the task itself";
  let before = null;
  const steps = record.steps.map((step) => {
    const shown = stepOf(step, before);
    if (step.record) before = step.record;
    return shown;
  });
  return element(
    "section", { "aria-label": `Record ${number + 1}` },
    element("h2", {}, `Record ${number + 1}`),
    element("p", { class: "code faint" }, record.task === null || record.task === undefined ? origin : `task ${record.task}: ${origin}`),
    record.cut ? element("p", { class: "hint" }, "It is larger than what is shown.") : null,
    element("div", { class: "steps flow" }, ...steps),
  );
}

function stepOf(step, before) {
  const after = step.record ?? null;
  const changed = after ? Object.keys(after).filter((key) => before && JSON.stringify(before[key]) !== JSON.stringify(after[key])) : [];
  const facts = after ? Object.entries(after).map(([key, value]) => element(
    "div", {},
    element("dt", {}, key, changed.includes(key) ? " (changed)" : ""),
    element("dd", { class: "code" }, changed.includes(key) ? element("ins", {}, text(value)) : text(value)),
  )) : [];
  const chosen = step.predicate ? `${step.predicate}${step.negate ? ", negated," : ""} ${step.chosen ? "chose it" : "left it alone"}` : null;
  return element(
    "article", { class: "step" },
    element("h3", {}, step.step, step.plugin ? element("span", { class: "code faint" }, ` ${step.plugin}`) : null),
    chosen ? element("p", { class: "faint" }, chosen) : null,
    step.note ? element("p", { class: "faint" }, step.note) : null,
    step.dropped ? element("p", { class: "hint" }, "Dropped: it goes no further.") : null,
    step.error ? element("p", { class: "refusal" }, `${step.error}\n${step.outcome ?? ""}`) : null,
    facts.length ? element("dl", {}, ...facts) : null,
  );
}

function tableOf(made) {
  const names = made.columns.map((column) => column.name);
  return element(
    "section", { "aria-label": `Table ${made.table}` },
    element("h2", {}, `Table ${made.table}`),
    element("p", { class: "code faint" }, [made.place, ...(made.folders ?? [])].filter(Boolean).map(text).join("  ")),
    table(`${made.rows.length} rows`, made.columns.map((column) => `${column.name}: ${column.type}`), made.rows.map((row) => (Array.isArray(row) ? row : names.map((name) => row[name])).map((value) => (value === null || value === undefined ? "null" : text(value))))),
  );
}
