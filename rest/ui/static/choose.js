// Searching among the classes of connectors.

const search = document.getElementById("search");
const choices = [...document.querySelectorAll(".choice")];

search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of choices) one.hidden = !words.every((word) => one.textContent.toLowerCase().includes(word));
  const count = choices.filter((one) => !one.hidden).length;
  document.getElementById("found").textContent = words.length ? `${count} of ${choices.length}` : "";
});
