// A configuration as text: JSON, a properties file, or a curl command.

const escaped = (text, alsoSpaces) => {
  const controls = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f" };
  const plain = text.replace(/\\/g, "\\\\").replace(/[\n\r\t\f]/g, (one) => controls[one]);
  return alsoSpaces ? plain.replace(/[ :=#!]/g, "\\$&") : plain.replace(/^ /, "\\ ");
};

export const FORMS = {
  json: (name, config) => JSON.stringify(config, null, 2),
  properties: (name, config) => Object.entries({ name, ...config }).map(([key, value]) => `${escaped(key, true)}=${escaped(value, false)}`).join("\n"),
  curl: (name, config, url) => `curl -X PUT ${quoted(url)} \\\n  -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify(config, null, 2))}`,
};

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
