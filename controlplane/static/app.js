// Page behaviour that HTML and htmx do not have: theme switch, keyboard, polling manners, menus.
// Every page works without it. Nothing is evaluated from strings; no element gets a style attribute.

const HIDDEN_TAB_MS = 30_000;
const FAILURES_SHOWN = 3;
const BACK_OFF_MAX_MS = 60_000;

const root = document.documentElement;
const byId = (id) => document.getElementById(id);

function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // storage may be forbidden; the choice then lasts as long as the page
  }
}

function recall(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

// Theme: auto -> light -> dark -> auto.

const THEMES = ["auto", "light", "dark"];

function showTheme() {
  const choice = root.dataset.themeChoice;
  const next = THEMES[(THEMES.indexOf(choice) + 1) % THEMES.length];
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    button.hidden = false;
    button.setAttribute("aria-label", `Theme: ${choice}. Switch to ${next}`);
    button.title = `Theme: ${choice}`;
  }
}

function switchTheme() {
  remember("berth-theme", THEMES[(THEMES.indexOf(root.dataset.themeChoice) + 1) % THEMES.length]);
  dispatchEvent(new Event("berth:theme"));
  showTheme();
}

// Keyboard: one key at a time, off by choice (WCAG 2.1.4), never while typing.

let afterG = 0;

function typing(target) {
  return target.closest?.(
    "input:not([type=checkbox]), textarea, select, [contenteditable], dialog[open]",
  );
}

// Rows, each with what gets its focus: itself where it can have it, else its first link.
function rows() {
  return [...document.querySelectorAll("[data-rows] > *")]
    .map((row) => [row, row.matches("[tabindex]") ? row : row.querySelector("a[href]")])
    .filter(([, focusable]) => focusable);
}

function moveRow(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex(([row]) => row.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step;
  all[Math.min(Math.max(next, 0), all.length - 1)][1].focus();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || recall("berth-keys") === "off") return;
  if (typing(event.target)) return;
  const key = event.key;
  if (Date.now() - afterG < 1500) {
    afterG = 0;
    const link = [...document.querySelectorAll("[data-key]")].find((a) => a.dataset.key === key);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  if (takenByPage(event) || takenByRow(event)) event.preventDefault();
  else if (key === "g") afterG = Date.now();
  else if (key === "j") moveRow(1);
  else if (key === "k") moveRow(-1);
  else if (key === "?") byId("keys")?.showModal();
  else if (key === "/") {
    const filter = document.querySelector("[data-filter]");
    if (!filter) return;
    event.preventDefault();
    filter.focus();
  }
}

// A page's own script prevents the default of what it takes.
function takenByPage(event) {
  const asked = { bubbles: true, cancelable: true, detail: event.key };
  return !event.target.dispatchEvent(new CustomEvent("berth:key", asked));
}

// Arrows move only from a row that has the focus itself; elsewhere they scroll.
function takenByRow(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !event.target.matches("[data-rows] > [tabindex]")) return false;
  moveRow(step);
  return true;
}

// Polling: slower in a hidden tab, back-off after failures, age shown when the data is old.

const polls = new WeakMap(); // element -> {failures, notBefore, asked}
let freshAt = new Date();

function poll(element) {
  if (!polls.has(element)) polls.set(element, { failures: 0, notBefore: 0, asked: 0 });
  return polls.get(element);
}

function clockTime(date) {
  const two = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  return date.toLocaleTimeString([], two);
}

function showAge(stale) {
  const fresh = byId("fresh");
  const time = fresh?.querySelector("time");
  if (time) {
    time.textContent = clockTime(freshAt);
    time.dateTime = freshAt.toISOString();
    fresh.classList.toggle("is-stale", stale);
  }
  const banner = byId("stale");
  if (!banner) return;
  if (stale && banner.hidden) {
    banner.querySelector("[data-as-of]").textContent = clockTime(freshAt);
  }
  banner.hidden = !stale;
}

function isPoll(ctx) {
  return ctx?.sourceEvent?.type === "every";
}

function beforePoll(event) {
  const { ctx } = event.detail;
  if (!isPoll(ctx)) return;
  const state = poll(ctx.sourceElement);
  const now = Date.now();
  if (now < state.notBefore || (document.hidden && now - state.asked < HIDDEN_TAB_MS)) {
    event.preventDefault();
    return;
  }
  state.asked = now;
}

function pollFailed(ctx) {
  if (!isPoll(ctx)) return;
  const state = poll(ctx.sourceElement);
  state.failures += 1;
  if (state.failures < FAILURES_SHOWN) return;
  const pause = Math.min(5000 * 2 ** (state.failures - FAILURES_SHOWN + 1), BACK_OFF_MAX_MS);
  state.notBefore = Date.now() + pause;
  showAge(true);
}

function answered(event) {
  const { ctx } = event.detail;
  if (!isPoll(ctx)) return;
  if (ctx.response.status >= 400) {
    pollFailed(ctx);
    return;
  }
  poll(ctx.sourceElement).failures = 0;
  freshAt = new Date();
  showAge(false);
}

// fetch follows redirects by itself, so a fragment request of a signed-out user brings the sign-in
// page: go there as a page instead of swapping it into the block.
function redirected(event) {
  const { ctx } = event.detail;
  const answer = ctx.response.raw;
  if (!answer.redirected) return;
  event.preventDefault();
  if (ctx.request.method === "GET") location.reload();
  else location.assign(answer.url);
}

function pollNow() {
  if (document.hidden) return;
  for (const element of document.querySelectorAll('[hx-trigger*="every"]')) {
    element.dispatchEvent(new CustomEvent("every"));
  }
}

// Menus, dialogs, small buttons.

function onClick(event) {
  const button = event.target.closest("[data-theme-toggle], [data-open], [data-close]");
  if (button?.matches("[data-theme-toggle]")) switchTheme();
  else if (button?.dataset.open) byId(button.dataset.open)?.showModal();
  else if (button?.matches("[data-close]")) button.closest("dialog")?.close();
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
}

// Copying needs a secure context; without one the button stays hidden, and a click on the text
// marks all of it.
function showCopy() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}

async function onCopy(event) {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(byId(button.dataset.copy).textContent);
  button.textContent = "Copied";
}

function onEscape(event) {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

function onSubmit(event) {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
}

showTheme();
showCopy();
document.addEventListener("click", onClick);
document.addEventListener("click", onCopy);
document.addEventListener("htmx:after:swap", showCopy);
document.addEventListener("keydown", onKey);
document.addEventListener("keydown", onEscape);
document.addEventListener("submit", onSubmit, true);
document.addEventListener("visibilitychange", pollNow);
document.addEventListener("htmx:config:request", beforePoll);
document.addEventListener("htmx:before:response", redirected);
document.addEventListener("htmx:after:request", answered);
document.addEventListener("htmx:error", (event) => pollFailed(event.detail.ctx));

const keysSwitch = byId("keys-on");
if (keysSwitch) {
  keysSwitch.checked = recall("berth-keys") !== "off";
  keysSwitch.addEventListener("change", () => {
    remember("berth-keys", keysSwitch.checked ? "on" : "off");
  });
}
if (document.querySelector('[hx-trigger*="every"]')) {
  byId("fresh")?.removeAttribute("hidden");
  showAge(false);
}

// Lets the server write local times: see "Time zone" in templates/README.md.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `berth_tz=${zone}; path=/; max-age=31536000; samesite=lax`;
