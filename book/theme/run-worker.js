// Runs one lab beside the page, in an instance of its own; the page ends the worker to stop it. `{ compiled, url, lab, call, words,
// files }` comes in. What the lab says goes back as it comes, in the kinds of player/src/lib.rs, then `{ code }` or `{ crash }`.

"use strict";

importScripts("start-module.js");

const text = new TextDecoder();
const KINDS = ["text", "begin", "block", "trouble", "name", "file", "over", "machine"];

onmessage = async ({ data: { compiled, url, lab, call, words, files } }) => {
  let wasm, name;
  const page = {
    tell(kind, start, length) {
      // A pointer is an unsigned index into the memory, which may have moved since it last grew.
      const bytes = new Uint8Array(wasm.memory.buffer, start >>> 0, length);
      switch (KINDS[kind]) {
        case "name": name = text.decode(bytes); break;
        case "file": postMessage({ file: { name, bytes: bytes.slice() } }); break;
        // The page ends this worker: what the lab would do after the section, nobody would see.
        case "over": postMessage({ code: 0 }); break;
        default: postMessage({ kind: KINDS[kind], html: text.decode(bytes) });
      }
    },
  };
  try {
    const modules = await load(url, lab, compiled);
    postMessage({ compiled: modules }); // The next run need not compile them again.
    wasm = await startModules(modules, { page });
  } catch (error) {
    postMessage({ crash: error.message });
    return;
  }
  const put = bytes => {
    // First: it may make the memory grow, and what stood for the memory until then is worth nothing.
    const start = wasm.input(bytes.length) >>> 0;
    new Uint8Array(wasm.memory.buffer, start, bytes.length).set(bytes);
  };
  const encode = words => new TextEncoder().encode(words);
  try {
    for (const { name, bytes } of files ?? []) {
      const head = encode(`${name}\0`);
      const all = new Uint8Array(head.length + bytes.byteLength);
      all.set(head);
      all.set(new Uint8Array(bytes), head.length);
      put(all);
      wasm.give();
    }
    put(encode(words.join("\0")));
    const code = wasm[call]();
    const output = call === "knobs_of"
      ? text.decode(new Uint8Array(wasm.memory.buffer, wasm.output() >>> 0, wasm.output_length())) : undefined;
    postMessage({ code, output });
  } catch (error) {
    // A trap: out of memory, most likely, since nothing in the labs panics.
    postMessage({ crash: `The lab ended early: ${error.message}` });
  }
};
