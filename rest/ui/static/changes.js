// The differences between two configurations.

// A JSON merge patch: null removes a key.
export function changesOf(before, after) {
  const patch = {};
  for (const [key, value] of Object.entries(after)) if (before[key] !== value) patch[key] = value;
  for (const key of Object.keys(before)) if (!(key in after)) patch[key] = null;
  return patch;
}

// The rows of a table; a changed secret is listed but not shown.
export function differences(before, after, secrets) {
  return Object.entries(changesOf(before, after)).map(([key, value]) => {
    const secret = secrets.has(key) || before[key] === "[hidden]";
    const old = before[key] ?? null;
    return {
      key,
      before: old !== null && secret ? "[hidden]" : old,
      after: value !== null && secret ? "[hidden] (new value)" : value,
    };
  });
}

// What becomes of the connector of this page when it is given another configuration.
export const given = (what) =>
  document.querySelector("[data-facts]").dataset.state === "STOPPED" ? `stays stopped; ${what} counts when it is resumed` : `restarts once with ${what}`;
