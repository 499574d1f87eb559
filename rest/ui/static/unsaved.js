// Asks before the reader leaves a page with changes that are not saved.

let saved = false;

export function guard(hasChanges) {
  window.addEventListener("beforeunload", (event) => {
    if (!saved && hasChanges()) event.preventDefault();
  });
}

// Leave without a question, since everything is saved.
export function leave(address = location.href) {
  saved = true;
  if (address === location.href) location.reload();
  else location.assign(address);
}
