// The list of several clusters is filtered as soon as something is chosen.

document.addEventListener("change", (event) => {
  if (event.target.matches("form.filter select")) event.target.form.requestSubmit();
});
