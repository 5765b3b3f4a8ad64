// Why something does not run in this page, said where it would run: its module is not in the book, or is being compiled, or the browser
// lacks what a module takes.

"use strict";

// A paragraph that says why nothing runs of this module, "labs" or "exercises"; null if it runs. While the local server compiles
// the module, a script of the server keeps the paragraph up to date.
function missing(module) {
  const content = name => document.querySelector(`meta[name=${module}-${name}]`)?.content;
  const isThere = content("module") !== undefined;
  if (isThere && typeof WebAssembly === "object" && typeof Worker === "function") return null;
  const note = document.createElement("p");
  note.className = "run-missing";
  if (!isThere) note.dataset.module = module;
  note.textContent = isThere
    ? "Nothing runs in this page, because this browser has no WebAssembly. The commands work in a terminal."
    : content("missing") || "This book was built without what runs in its pages. cargo run --bin book -- serve builds it with that.";
  return note;
}
