// The value of a graph under the pointer, or where the arrow keys have moved to.

const number = new Intl.NumberFormat();
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
let shown = null; // the graph's key, and the place in it, from 0 to 1

function draw() {
  for (const graph of document.querySelectorAll(".graph")) {
    const here = shown && shown.key === graph.dataset.key;
    const values = JSON.parse(graph.dataset.values);
    const index = here ? Math.round(shown.at * (values.length - 1)) : 0;
    const { width, height } = graph.querySelector("svg").viewBox.baseVal;
    graph.querySelector(".cursor").setAttribute("d", here ? `M${(index / (values.length - 1)) * width} 0V${height}` : "");
    graph.querySelector(".at").textContent = here ? said(graph.dataset, values, index) : "";
  }
}

function said({ end, step, unit }, values, index) {
  const at = (Number(end) - (values.length - 1 - index) * Number(step)) * 1000;
  const value = values[index] === null ? "unknown" : `${number.format(values[index])} ${unit}`;
  return `${value} at ${clock.format(new Date(at))}`;
}

function show(event, at) {
  const graph = event.target.closest(".graph");
  shown = graph && at !== null ? { key: graph.dataset.key, at: Math.min(Math.max(at, 0), 1) } : null;
  draw();
}

document.addEventListener("pointermove", (event) => {
  const chart = event.target.closest?.(".graph svg");
  if (!chart) return;
  const box = chart.getBoundingClientRect();
  show(event, (event.clientX - box.left) / box.width);
});
document.addEventListener("pointerout", (event) => { if (event.target.closest?.(".graph svg") && !event.relatedTarget?.closest?.(".graph svg")) show(event, null); });
document.addEventListener("focusout", (event) => { if (event.target.closest?.(".graph")) show(event, null); });
document.addEventListener("keydown", (event) => {
  const graph = event.target.closest?.(".graph");
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!graph || !step) return;
  event.preventDefault();
  const last = JSON.parse(graph.dataset.values).length - 1;
  show(event, (shown?.key === graph.dataset.key ? shown.at : 1) + step / last);
});
document.addEventListener("refreshed", draw);
