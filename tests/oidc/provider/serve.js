// A real OpenID Connect provider for the tests: panva's oidc-provider, which is certified. Its people and what it tells
// of them stand in the file that is named, and are read anew each time. Any password will do.
//   node serve.js <port> <file>      prints a line once it answers

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import Provider from "oidc-provider";

const [port, file] = process.argv.slice(2);
const told = () => JSON.parse(readFileSync(file, "utf8"));
const start = told();

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: start.clients,
  cookies: { keys: ["only-for-tests"] },
  claims: {
    openid: ["sub"],
    profile: ["name", "preferred_username"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  conformIdTokenClaims: start.by_user_info, // without it the ID token has all of them
  features: { userinfo: { enabled: start.by_user_info } },
  pkce: { required: () => true },
  findAccount: (_, sub) => {
    const claims = told().people[sub];
    return claims && { accountId: sub, claims: () => ({ sub, ...claims }) };
  },
  // Nobody is asked whether Berth may know them: that is their administrator's business.
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope("openid profile email groups");
    await grant.save();
    return grant;
  },
  ttl: { Grant: 600, Session: 600, Interaction: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
});

createServer(provider.callback()).listen(Number(port), "127.0.0.1", () => console.log("answers"));
