// Has the browser ask a security key what the server wants to know, and posts its answer. A form
// says with data-security-key whether a key is to be made one of somebody's ("create") or to prove
// that it is ("get"), and with data-asked what is asked. All else on a page works without it.

const REFUSED = {
  NotAllowedError: "No key answered: it was refused, took too long, or is none of yours.",
  InvalidStateError: "That key is yours already.",
  SecurityError: "Keys work only where Berth has a name: by an address of numbers they don't.",
  NotSupportedError: "That key can't do what is needed here.",
};

function say(form, words) {
  const told = form.querySelector("[data-said]");
  told.querySelector("span").textContent = words;
  told.hidden = !words;
}

// What hinders this browser, "" for nothing.
function hindrance() {
  if (!window.isSecureContext) return "Security keys need https. A code works without.";
  if (window.PublicKeyCredential?.parseCreationOptionsFromJSON) return "";
  return "This browser can't use security keys, or is too old to. A code works all the same.";
}

function ask(form) {
  const { publicKey } = JSON.parse(form.dataset.asked);
  if (form.dataset.securityKey === "create") {
    const options = PublicKeyCredential.parseCreationOptionsFromJSON(publicKey);
    return navigator.credentials.create({ publicKey: options });
  }
  const options = PublicKeyCredential.parseRequestOptionsFromJSON(publicKey);
  return navigator.credentials.get({ publicKey: options });
}

async function onSubmit(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const button = form.querySelector("[data-ask]");
  button.disabled = true;
  say(form, "");
  try {
    const answer = await ask(form);
    form.elements.credential.value = JSON.stringify(answer.toJSON());
    form.submit();
  } catch (error) {
    say(form, REFUSED[error.name] ?? `The key could not be asked: ${error.message}`);
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll("[data-security-key]")) {
  const hindered = hindrance();
  form.querySelector("[data-scriptless]").hidden = true;
  say(form, hindered);
  form.querySelector("[data-ask]").hidden = Boolean(hindered);
  form.addEventListener("submit", onSubmit);
}
