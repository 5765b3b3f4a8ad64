// Asks the module of labs/exercises/final/page: a new instance for each question, so that memory that code takes goes with it.
// `{ url, words }` comes in; `{ answer }` or `{ error }` goes back.

"use strict";

importScripts("start-module.js");

let compiled = {};

onmessage = async ({ data: { url, words } }) => {
  try {
    const modules = await load(url, undefined, compiled);
    Object.assign(compiled, modules);
    const wasm = await startModules(modules);
    const input = new TextEncoder().encode(words.join("\0"));
    const at = wasm.input(input.length) >>> 0; // First: it may make the memory grow, and another buffer stand for it.
    new Uint8Array(wasm.memory.buffer, at, input.length).set(input);
    if (wasm.answer() !== 0) throw new Error("There is no such program.");
    const text = new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length()));
    postMessage({ answer: JSON.parse(text) });
  } catch (error) {
    compiled = {};
    postMessage({ error: error.message });
  }
};
