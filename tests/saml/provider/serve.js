// A real SAML 2.0 identity provider for the tests: Auth0's samlp. Its key, the one that it serves, its people and what it
// tells of them stand in the file that is named, and are read anew each time. Any password will do.
//   node serve.js <port> <file>      prints a line once it answers

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import samlp from "samlp";

const [port, file] = process.argv.slice(2);
const AUTHN_FAILED = "urn:oasis:names:tc:SAML:2.0:status:AuthnFailed";
const LOGIN = `<form method="post"><input name="login"><input name="password" type="password"><button>Sign in</button></form>`;

function mapper(person) {
  return {
    getClaims: () => person.attributes,
    getNameIdentifier: () => ({ nameIdentifier: person.name_id, nameIdentifierFormat: person.format }),
  };
}

function answer(told, request, response) {
  const options = {
    issuer: told.entity_id,
    key: told.key,
    cert: told.certificate,
    destination: told.answer_url,
    recipient: told.answer_url,
    lifetimeInSeconds: 60,
    signResponse: told.signs_response,
    encryptionCert: told.encrypts_for?.certificate,
    encryptionPublicKey: told.encrypts_for?.key,
    authnContextClassRef: "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport",
    profileMapper: mapper,
    getUserFromRequest: () => told.people[request.login],
    // As it is registered, and to nobody else.
    getPostURL: (audience, _dom, _request, next) => next(null, audience === told.audience ? told.answer_url : null),
  };
  const fails = (error) => {
    response.statusCode = 400;
    response.end(String(error));
  };
  if (told.people[request.login]) return samlp.auth(options)(request, response, fails);
  samlp.parseRequest(request, options, (error, asked) => {
    if (error) return fails(error);
    const refusal = { ...options, inResponseTo: asked.id, error: { code: AUTHN_FAILED, description: "nobody" } };
    samlp.sendError({ ...refusal, RelayState: request.query.RelayState, getPostURL: (_, next) => next(null, told.answer_url) })(
      request, response, fails,
    );
  });
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  request.query = Object.fromEntries(new URL(request.url, "http://here").searchParams);
  response.set = (name, value) => response.setHeader(name, value); // as Express has them
  response.send = (body) => response.end(String(body));
  if (request.method === "GET") return response.setHeader("Content-Type", "text/html").end(LOGIN);
  request.login = new URLSearchParams(Buffer.concat(chunks).toString()).get("login");
  answer(JSON.parse(readFileSync(file, "utf8")), request, response);
});

server.listen(Number(port), "127.0.0.1", () => console.log("answers"));
