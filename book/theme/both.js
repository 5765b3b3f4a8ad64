// Rust or PyTorch: where a page has both, they are tabs, and one choice holds for the whole book. head.hbs has read it; without
// JavaScript both stand one below the other.

"use strict";
(() => {
  const { dataset } = document.documentElement;
  const lists = [];

  const show = code => {
    dataset.code = code;
    for (const tab of lists.flat()) {
      const isShown = tab.dataset.code === code;
      tab.ariaSelected = `${isShown}`;
      tab.tabIndex = isShown ? 0 : -1;
    }
  };
  // All code of the page changes its height.
  const choose = tab => {
    keepPlace(tab, () => show(tab.dataset.code));
    try { localStorage.setItem("to-device-code", tab.dataset.code); } catch { /* for this page only */ }
    tab.focus({ preventScroll: true });
  };

  const chosenBy = {
    ArrowLeft: (tabs, at) => tabs.at(at - 1),
    ArrowRight: (tabs, at) => tabs[(at + 1) % tabs.length],
    Home: tabs => tabs[0],
    End: tabs => tabs.at(-1),
  };

  for (const [index, both] of document.querySelectorAll(".both").entries()) {
    const list = document.createElement("div");
    list.className = "tabs";
    list.role = "tablist";
    list.ariaLabel = "Language of this code";
    const tabs = [...both.querySelectorAll(".side")].map(side => {
      const { code } = side.dataset;
      const tab = document.createElement("button");
      tab.type = "button";
      tab.role = "tab";
      tab.id = `tab-${code}-${index}`;
      tab.dataset.code = code;
      tab.textContent = side.querySelector(".language").textContent;
      tab.addEventListener("click", () => choose(tab));
      side.id = `side-${code}-${index}`;
      side.role = "tabpanel";
      side.setAttribute("aria-labelledby", tab.id);
      tab.setAttribute("aria-controls", side.id);
      return tab;
    });
    list.addEventListener("keydown", event => {
      const next = chosenBy[event.key]?.(tabs, tabs.indexOf(event.target));
      if (!next) return;
      event.preventDefault();
      choose(next);
    });
    list.append(...tabs);
    both.prepend(list);
    lists.push(tabs);
  }
  show(dataset.code);
})();
