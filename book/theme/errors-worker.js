// Explains pasted messages beside the page: `{ id, url, text, pages }` comes in, where `pages` is the way to the pages of the errors;
// `{ id, html }` or `{ id, error }` goes back.

"use strict";

importScripts("start-module.js");

let instance;

// One after the other, though starting takes time.
let last = Promise.resolve();
onmessage = ({ data: { id, url, text, pages } }) => {
  last = last.then(async () => {
    try {
      instance ??= await startModules(await load(url));
      // The end of a long log has the error.
      postMessage({ id, html: called(instance, "explain", [pages, text.slice(-262144)]).answer });
    } catch (error) {
      // What trapped is of no more use.
      if (error instanceof WebAssembly.RuntimeError) instance = undefined;
      postMessage({ id, error: error.message });
    }
  });
};
