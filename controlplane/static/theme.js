// Sets the colour theme before the first paint: loaded in <head>, not deferred, nothing else in it.
// The choice is "light", "dark" or, for none stored, the system's.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    let choice = null;
    try {
      choice = localStorage.getItem("berth-theme");
    } catch {
      // storage may be forbidden; then the system decides
    }
    if (choice !== "light" && choice !== "dark") choice = "auto";
    const root = document.documentElement;
    root.dataset.themeChoice = choice;
    root.dataset.bsTheme = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
  addEventListener("berth:theme", apply);
})();
