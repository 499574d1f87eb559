// An OpenID provider whose clients get access tokens that are JWTs: node provider.mjs PORT KEYS CLIENTS, the latter two JSON.

import Provider from "oidc-provider";

const [port, keys, clients] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: JSON.parse(keys) },
  clients: JSON.parse(clients).map(([id, secret]) => ({
    client_id: id,
    client_secret: secret,
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
  })),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, indicator) => ({
        scope: "",
        audience: new URL(indicator).pathname.slice(1),
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
        jwt: { sign: { alg: JSON.parse(keys)[0].alg } },
      }),
    },
  },
  extraTokenClaims: (_ctx, token) => ({ preferred_username: `service-${token.clientId}`, realm_access: { roles: ["operators"] } }),
});
provider.listen(Number(port), "127.0.0.1");
