// Checks what somebody has chosen in an exercise, with the modules of labs/exercises/page: new ones each time, so that whatever
// code takes goes with it.

"use strict";

importScripts("start-module.js");

const text = new TextDecoder();
let compiled = {};

onmessage = async ({ data: { url, id, choice, form } }) => {
  try {
    const modules = await load(url, `chapter-${id.split("-")[0]}`, compiled);
    Object.assign(compiled, modules);
    const wasm = await startModules(modules);
    const input = new TextEncoder().encode([id, choice.join(" "), form].join("\0"));
    const at = wasm.input(input.length);
    new Uint8Array(wasm.memory.buffer, at, input.length).set(input);
    const code = wasm.check();
    if (code === 2) throw new Error("It knows no such choice.");
    const output = text.decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length()));
    postMessage({ passed: code === 0, parts: output.split("\0") });
  } catch (error) {
    compiled = {};
    postMessage({ error: error.message });
  }
};
