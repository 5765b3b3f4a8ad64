// The box for an error message. Its module recognises the message and explains it, in a worker of this page: nothing that is pasted
// leaves the page. A book that was built without the module (`<meta name="errors-module">`) keeps the link to the list of errors.

"use strict";

(() => {
  const address = document.querySelector("meta[name=errors-module]")?.content;
  const boxes = document.querySelectorAll(".paste-error");
  if (!address || boxes.length === 0 || typeof WebAssembly === "undefined") return;
  const url = new URL(address, document.baseURI).href;
  let worker, asked = 0;
  const waiting = new Map();

  function start() {
    const made = new Worker(new URL("errors-worker.js", url));
    made.onmessage = ({ data: { id, html, error } }) => { waiting.get(id)?.(html, error); waiting.delete(id); };
    made.onerror = () => {
      for (const answer of waiting.values()) answer(undefined, "It could not be loaded. Are you offline?");
      waiting.clear();
      worker = undefined;
    };
    return made;
  }

  // What there is to say of a text, as HTML: the module escapes every text in it.
  function ask(text, pages, answer) {
    worker ??= start();
    waiting.set(++asked, answer);
    worker.postMessage({ id: asked, url, text, pages });
  }

  for (const [index, box] of [...boxes].entries()) {
    const form = document.createElement("form");
    const label = document.createElement("label"), area = document.createElement("textarea");
    const button = document.createElement("button"), note = document.createElement("span");
    const answer = document.createElement("div");
    label.textContent = "Paste an error";
    area.id = label.htmlFor = `paste-error-${index}`;
    // A traceback holds paths and names that nobody should translate, check or keep.
    Object.assign(area, { rows: 4, spellcheck: false, autocomplete: "off", translate: false, placeholder: "RuntimeError: …" });
    area.setAttribute("autocapitalize", "off");
    button.textContent = "Explain";
    note.className = "note";
    note.textContent = "One line or all of it. It stays in this page: nothing is sent.";
    answer.className = "explained";
    answer.setAttribute("role", "status");
    form.append(label, area, button, " ", note);
    form.addEventListener("submit", event => {
      event.preventDefault();
      answer.textContent = "…";
      ask(area.value, box.dataset.pages, (html, error) => {
        if (error === undefined) answer.innerHTML = html;
        else answer.textContent = error;
      });
    });
    // Keys belong to the text: mdBook's own turn the page, and open the search.
    area.addEventListener("keydown", event => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    box.prepend(form, answer);
    box.classList.add("is-live");
  }
})();
