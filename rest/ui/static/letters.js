// Selecting dead letters and replaying them.

import { api, call } from "./api.js";
import { confirm } from "./dialog.js";
import { element, table } from "./elements.js";

const bar = document.getElementById("letters");
if (bar) listen(bar.dataset.name);

function listen(name) {
  const all = document.getElementById("all");
  const outcome = document.getElementById("outcome");
  const to = document.getElementById("to");
  const boxes = [...document.querySelectorAll("input[data-select]")];
  const selection = () => boxes.filter((box) => box.checked).map((box) => {
    const { partition, offset } = box.closest("tr").dataset;
    return `{"partition": ${partition}, "offset": ${offset}}`;
  });
  const show = () => {
    const count = selection().length;
    document.getElementById("selected").textContent = count ? `${count} selected` : "None selected";
    for (const id of ["try", "replay"]) document.getElementById(id).disabled = !count;
    all.checked = count > 0 && count === boxes.length;
    all.indeterminate = count > 0 && !all.checked;
  };
  const replay = async (chosen, dryRun) => {
    const body = `{"to": "${to.value}", "selection": ${chosen}, "dry_run": ${dryRun}}`;
    let { document: done } = await call("POST", api("connectors", name, "dlq", "replay"), body);
    const whole = { replayed: [...done.replayed], failed: [...done.failed] };
    while (done.next) {
      ({ document: done } = await call("POST", api("connectors", name, "dlq", "replay"), done.next));
      whole.replayed.push(...done.replayed);
      whole.failed.push(...done.failed);
    }
    tell(whole, dryRun);
    if (!dryRun) mark(whole);
    outcome.prepend(element("p", { class: whole.failed.length ? "refusal" : "hint" }, dryRun ? `${whole.replayed.length} would be delivered, ${whole.failed.length} would fail again.` : `${whole.replayed.length} delivered, ${whole.failed.length} failed again.`));
    return `${whole.replayed.length} ${dryRun ? "would be delivered" : "delivered"}, ${whole.failed.length} ${dryRun ? "would fail again" : "failed again"}`;
  };
  // Kafka keeps where a replay of all has come to, but not which ones were chosen: their marks last as long as this page.
  const mark = (done) => {
    for (const [words, ones] of [["replayed", done.replayed], ["failed again", done.failed]]) {
      for (const { partition, offset } of ones) {
        const row = document.querySelector(`tr[data-partition="${partition}"][data-offset="${offset}"]`);
        if (row) row.querySelector(".mark").textContent = words;
      }
    }
  };
  const tell = (done, dryRun) => outcome.replaceChildren(table(
    dryRun ? "What a replay would do" : "Outcome of the replay",
    ["Position", "Outcome"],
    [
      ...done.replayed.map((one) => [`${one.partition}:${one.offset}`, `${dryRun ? "would be delivered" : "delivered"} to ${to.value === "task" ? "the connector" : one.topic}`]),
      ...done.failed.map((one) => [`${one.partition}:${one.offset}`, `${dryRun ? "would fail again" : "failed"}: ${one.error}`]),
    ],
  ));
  const ask = (chosen, title, typed) => confirm({
    title,
    typed,
    says: to.value === "topic" ? "Every consumer of the topics gets these records again, not only this connector." : "Only this connector gets these records.",
    steps: [{ name, says: "the dead letters are delivered again", run: () => replay(chosen, false) }],
    button: "Replay",
    danger: true,
    done: () => {},
  });

  document.addEventListener("change", (event) => {
    if (event.target === all) for (const box of boxes) box.checked = all.checked;
    show();
  });
  document.getElementById("try").addEventListener("click", async () => {
    outcome.textContent = "Waiting for the worker …";
    try {
      await replay(`[${selection()}]`, true);
    } catch (error) {
      outcome.replaceChildren(element("p", { class: "refusal" }, error.message));
    }
  });
  document.getElementById("replay").addEventListener("click", () => ask(`[${selection()}]`, `Replay ${selection().length} dead letters of ${name}?`, null));
  document.getElementById("replay-all").addEventListener("click", () => ask('"all"', `Replay all dead letters of ${name}?`, name));
}
