// The inbox of requests by keyboard. app.js moves between them and asks here, by `berth:key`, what
// else a key does: never while somebody types. The page works without it, by its fields and buttons.

const byId = (id) => document.getElementById(id);
const chosen = () => document.querySelectorAll('input[name="chosen"]:checked');

function choose(card) {
  card?.querySelector('input[name="chosen"]')?.click();
  return card !== null;
}

function open(card) {
  card?.querySelector(".impact a[href]")?.click();
  return card !== null;
}

// What is chosen goes before where the focus is; app.js asks back by the button's data-confirm.
function grant(card) {
  if (chosen().length) {
    byId("answers").requestSubmit(byId("answers").querySelector('[value="grant"]'));
    return true;
  }
  const form = card?.querySelector(".quota-request-form [value='grant']")?.form;
  if (!form) return false;
  const button = form.querySelector("[value='grant']");
  const amount = form.elements.amount.value;
  const question = `${button.textContent.trim()}: ${amount} ${card.dataset.request}?`;
  if (confirm(question)) form.requestSubmit(button);
  return true;
}

function deny(card) {
  const note = chosen().length ? byId("note-of-all") : card?.querySelector('[name="note"]');
  note?.focus();
  return Boolean(note);
}

function leave(card) {
  if (!card) return false;
  document.activeElement.blur();
  return true;
}

const KEYS = { x: choose, o: open, g: grant, d: deny, Escape: leave };

document.addEventListener("berth:key", (event) => {
  const card = event.target.closest("[data-request]");
  const act = event.detail === "Enter" && event.target === card ? open : KEYS[event.detail];
  if (act?.(card)) event.preventDefault();
});

function count() {
  const told = byId("chosen-count");
  const words = chosen().length ? `${chosen().length} chosen` : "None chosen";
  if (told && told.textContent !== words) told.textContent = words;
}

document.addEventListener("change", count);
document.addEventListener("htmx:after:swap", count);
count();
