"use strict";
// Light or dark: the system's choice, unless the reader made one. Tells listeners with a "theme" event.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("coverlay-theme"); } catch { /* opened from disk, storage refused */ }
  const apply = () => {
    root.dataset.theme = chosen || (system.matches ? "dark" : "light");
    button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
    root.dispatchEvent(new Event("theme"));
  };
  button.onclick = () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("coverlay-theme", chosen); } catch { /* then only for this visit */ }
    apply();
  };
  system.addEventListener("change", apply);
  apply();
})();
