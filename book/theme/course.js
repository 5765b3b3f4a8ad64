// What mdBook's pages lack for the keyboard and for screen readers. Each part works alone.

"use strict";

// What is said when a part that is loaded on its first use cannot be had.
const CANNOT_LOAD = "It could not be loaded. Are you offline?";

// An element with its properties and what is in it.
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Changes the page, and scrolls so that an element stays where it is. One that is below the window may move: nobody sees it.
function keepPlace(element, change) {
  const before = element.getBoundingClientRect().top;
  change();
  if (before < innerHeight) scrollBy({ top: element.getBoundingClientRect().top - before, behavior: "instant" });
}

// The first thing the Tab key reaches leads past the menu.
(() => {
  const main = document.querySelector("main");
  const skip = document.createElement("a");
  skip.className = "skip-link";
  skip.href = "#mdbook-content";
  skip.textContent = "Skip to the text";
  main.tabIndex = -1;
  skip.addEventListener("click", event => {
    // The 404 page has a <base>, with which the link would lead to another page.
    event.preventDefault();
    main.focus();
  });
  document.body.prepend(skip);
})();

// What the parts around the text are. The chapter's title is the page's heading, the book's is none.
document.getElementById("mdbook-menu-bar").role = "banner";
document.getElementById("mdbook-search-wrapper").role = "search";
document.querySelector(".menu-title").role = "none";
(() => {
  const help = document.getElementById("mdbook-help-popup");
  help.role = "dialog";
  help.ariaLabel = "Keyboard shortcuts";
})();

// The search field has only a placeholder, and describes itself by an element that mdBook names otherwise.
(() => {
  const field = document.getElementById("mdbook-searchbar");
  field.ariaLabel = "Search this book";
  field.setAttribute("aria-describedby", "mdbook-searchresults-header");
})();

// The sidebar's toggle is a label, which the keyboard does not reach: a button stands in for it.
(() => {
  const label = document.getElementById("mdbook-sidebar-toggle");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "icon-button sidebar-button";
  button.title = button.ariaLabel = label.title;
  button.setAttribute("aria-controls", "mdbook-sidebar");
  button.append(...label.childNodes);
  button.addEventListener("click", () => label.click());
  label.before(button);
  label.hidden = true;
  const tell = () => { button.ariaExpanded = label.ariaExpanded; };
  new MutationObserver(tell).observe(label, { attributeFilter: ["aria-expanded"] });
  tell();
})();

// A browser that translates the page leaves code and output as they are. Those that stand in the page are marked when the book is
// built; these are the ones that scripts write.
(() => {
  const kept = "pre, code, kbd, samp, .run-live, .picture svg";
  const mark = element => element.setAttribute("translate", "no");
  const markAll = root => {
    if (root.matches(kept)) mark(root);
    root.querySelectorAll(kept).forEach(mark);
  };
  markAll(document.documentElement);
  new MutationObserver(changes => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) markAll(node);
    }
  }).observe(document.body, { childList: true, subtree: true });
})();

// A browser breaks a line after any hyphen: in the middle of `--gpu`, too. A flag of a command, and a name such as lab-03, stays whole.
// A page also changes its commands: see run.js.
(() => {
  const keepWhole = text => {
    const parts = text.data.split(/(\S*-\S*)/);
    const isWhole = part => part.includes("-") && part.length <= 30;
    if (!parts.some(isWhole)) return;
    text.replaceWith(...parts.filter(Boolean).map(part => {
      if (!isWhole(part)) return part;
      const whole = document.createElement("span");
      whole.className = "whole";
      whole.textContent = part;
      return whole;
    }));
  };
  const commands = ":not(pre) > code, pre > code.language-sh";
  const keepAll = code => {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    texts.filter(text => !text.parentElement.classList.contains("whole")).forEach(keepWhole);
  };
  document.querySelectorAll(commands).forEach(keepAll);
  for (const caption of document.querySelectorAll("figcaption > code")) {
    new MutationObserver(() => keepAll(caption)).observe(caption, { childList: true });
  }
})();

// What scrolls sideways can be scrolled with the keyboard.
(() => {
  const blocks = [...document.querySelectorAll("pre > code, .table-wrapper, .picture")];
  // All are measured before one is changed, or each change would lay out the page once more.
  const mark = () => {
    const scroll = blocks.map(block => block.scrollWidth > block.clientWidth);
    for (const [at, block] of blocks.entries()) {
      if (scroll[at]) block.tabIndex = 0;
      else block.removeAttribute("tabindex");
    }
  };
  // At first, and when the window or the sidebar make the text narrower; the book's fonts make it wider.
  new ResizeObserver(mark).observe(document.querySelector("main"));
  document.fonts.ready.then(mark);
})();

// mdBook turns the page on the left and right arrow, and has other keys. In a question and among tabs the arrows choose;
// in what scrolls they scroll. On buttons and folds, in the list of themes, and where things are put in order, they do nothing: nobody
// there wants to leave the page.
document.body.addEventListener("keydown", event => {
  const arrow = event.key === "ArrowLeft" || event.key === "ArrowRight";
  if (event.target.closest(".questions, .choose") || (arrow && event.target.closest("pre, .table-wrapper, .picture, .order, .theme-popup, main :is(button, summary)"))) {
    event.stopPropagation();
  }
});
