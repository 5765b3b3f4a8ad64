// Explains pasted messages beside the page: `{ id, url, text, pages }` comes in, where `pages` is the way to the pages of the errors;
// `{ id, html }` or `{ id, error }` goes back.

"use strict";

importScripts("start-module.js");

let instance;

function explain(wasm, pages, text) {
  const input = new TextEncoder().encode(`${pages}\0${text}`);
  const start = wasm.input(input.length) >>> 0; // First: it may make the memory grow, and another buffer stand for it.
  new Uint8Array(wasm.memory.buffer, start, input.length).set(input);
  wasm.explain();
  return new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length()));
}

// One after the other, though starting takes time.
let last = Promise.resolve();
onmessage = ({ data: { id, url, text, pages } }) => {
  last = last.then(async () => {
    try {
      instance ??= await startModules(await load(url));
      // The end of a long log has the error.
      postMessage({ id, html: explain(instance, pages, text.slice(-262144)) });
    } catch (error) {
      // What trapped is of no more use.
      if (error instanceof WebAssembly.RuntimeError) instance = undefined;
      postMessage({ id, error: error.message });
    }
  });
};
