// Elements built from text only: nothing from a worker or a plugin is ever parsed as HTML.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function table(caption, heads, rows) {
  const cell = (tag, content) => element(tag, tag === "th" ? { scope: "col" } : {}, content);
  return element(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element(
      "table", {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads.map((head) => cell("th", head)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((item) => cell("td", item))))),
    ),
  );
}
