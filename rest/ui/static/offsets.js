// Changing offsets: first what would change, then the change.

import { api, call } from "./api.js";
import { confirm, request } from "./dialog.js";
import { element, table } from "./elements.js";
import { guard, leave } from "./unsaved.js";

const { name, type } = document.getElementById("move").dataset;
const outcome = document.getElementById("outcome");
const reload = (failures) => { if (!failures) leave(); };

document.getElementById("forget").addEventListener("click", () =>
  confirm({
    title: `Delete all offsets of ${name}?`,
    typed: name,
    steps: [{
      name,
      says: type === "sink" ? "the consumer group's offsets are deleted; the connector begins where auto.offset.reset says" : "the connector starts over and reads everything again",
      run: request("DELETE", api("connectors", name, "offsets")),
    }],
    button: "Delete all offsets",
    danger: true,
    done: reload,
  }),
);

if (type === "sink") moveSink();
else setSource();

function moveSink() {
  const form = document.getElementById("reset");
  const apply = document.getElementById("apply");
  const url = api("connectors", name, "offsets", "reset");
  let body = null;

  form.addEventListener("input", () => { apply.disabled = true; });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    outcome.textContent = "Waiting for the worker …";
    try {
      body = bodyOf(form);
      const { document: changes } = await call("POST", `${url}?dry_run=true`, body);
      const stopped = form.dataset.stopped;
      outcome.replaceChildren(table(
        changes.length ? `Changes of ${changes.length} partition${changes.length === 1 ? "" : "s"}` : "No partition to move",
        ["Topic", "Partition", "Before", "After"],
        changes.map((row) => [row.topic, String(row.partition), String(row.before ?? "none"), String(row.after)]),
      ));
      if (!stopped) outcome.append(element("p", {}, "Stop the connector to make this change."));
      apply.disabled = !stopped || !changes.length;
      apply.title = stopped ? "" : "Stop the connector first";
    } catch (error) {
      outcome.replaceChildren(element("p", { class: "refusal" }, error.message));
    }
  });
  apply.addEventListener("click", () =>
    confirm({
      title: `Move ${name}?`,
      typed: name,
      steps: [{ name, says: "the consumer group gets the offsets of the table", run: request("POST", url, body) }],
      button: "Move",
      danger: true,
      done: reload,
    }),
  );
}

// Numbers are sent as they were typed: they may exceed what a JavaScript number can hold.
function bodyOf(form) {
  const fields = new FormData(form);
  const way = fields.get("way");
  const text = (fields.get(way) || "").trim();
  const members = [];
  if (["earliest", "latest", "current"].includes(way)) members.push(`"to": "${way}"`);
  else if (["to_offset", "shift_by"].includes(way)) {
    if (!/^[+-]?\d+$/.test(text)) throw new Error("Enter a whole number.");
    members.push(`"${way}": ${text.replace(/^\+/, "").replace(/^(-?)0+(?=\d)/, "$1")}`);
  } else members.push(`"${way}": ${JSON.stringify(text)}`);
  const topics = fields.get("topics").split(",").map((topic) => topic.trim()).filter(Boolean);
  if (topics.length) members.push(`"topics": ${JSON.stringify(topics)}`);
  return `{${members.join(", ")}}`;
}

function setSource() {
  const area = document.getElementById("offsets-text");
  guard(() => area.value !== area.defaultValue);
  document.getElementById("alter").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = area.value;
    let count;
    try {
      count = JSON.parse(text).length;
    } catch (error) {
      outcome.replaceChildren(element("p", { class: "refusal" }, `This is not JSON: ${error.message}`));
      return;
    }
    confirm({
      title: `Set offsets of ${name}?`,
      steps: [{ name, says: `the offsets of ${count} source partition${count === 1 ? "" : "s"} are set`, run: request("PATCH", api("connectors", name, "offsets"), `{"offsets": ${text}}`) }],
      button: "Set",
      danger: true,
      done: reload,
    });
  });
}
