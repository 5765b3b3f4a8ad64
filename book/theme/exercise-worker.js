// Checks what somebody has chosen in an exercise, with the module of labs/exercises/page: a new one each time, so that whatever
// code takes goes with it.

"use strict";

const text = new TextDecoder();
let module;

async function load(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error("this book has no module for it");
  return WebAssembly.compile(await answer.arrayBuffer());
}

onmessage = async ({ data: { url, id, choice, form } }) => {
  try {
    module ??= load(url);
    const { exports: wasm } = await WebAssembly.instantiate(await module, {});
    const input = new TextEncoder().encode([id, choice.join(" "), form].join("\0"));
    const at = wasm.input(input.length);
    new Uint8Array(wasm.memory.buffer, at, input.length).set(input);
    const code = wasm.check();
    if (code === 2) throw new Error("it knows no such choice");
    const output = text.decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length()));
    postMessage({ passed: code === 0, parts: output.split("\0") });
  } catch (error) {
    module = undefined;
    postMessage({ error: error.message });
  }
};
