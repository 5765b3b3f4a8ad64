// Starts a module of the book. It is the base of all labs, or of all exercises, and with it goes a piece: what only one chapter takes.
// A piece imports from the base, and puts its functions in the base's table and its data into memory when it starts. So nothing
// of it may be called before. See book/modules.

"use strict";

async function compile(url) {
  const answer = await fetch(url).catch(() => { throw new Error("It could not be loaded. Are you offline?"); });
  if (!answer.ok) throw new Error(`It could not be loaded: ${answer.status} for ${url}.`);
  return WebAssembly.compile(await answer.arrayBuffer());
}

// Beside the base, under its hash, and with its own name.
const addressOf = (piece, base) => base.replace(/[^/]+(-[0-9a-f]{8}\.wasm)$/, `${piece}$1`);

// Compiles a base and its piece, side by side: what is in `compiled`, by its address, is there already.
async function load(url, piece, compiled = {}) {
  const urls = piece === undefined ? [url] : [url, addressOf(piece, url)];
  const modules = await Promise.all(urls.map(url => compiled[url] ?? compile(url)));
  return Object.fromEntries(urls.map((url, at) => [url, modules[at]]));
}

// Starts them, and returns what the base exports.
async function startModules(modules, imports = {}) {
  const [base, piece] = Object.values(modules);
  const { exports } = await WebAssembly.instantiate(base, imports);
  if (piece) await WebAssembly.instantiate(piece, { base: exports });
  return exports;
}

// Calls a function of a module with words: the code that it returns, and what it says.
function called(wasm, name, words) {
  const input = new TextEncoder().encode(words.join("\0"));
  const start = wasm.input(input.length) >>> 0; // First: it may make the memory grow, and another buffer stand for it.
  new Uint8Array(wasm.memory.buffer, start, input.length).set(input);
  const code = wasm[name]();
  const text = part => wasm[part] === undefined ? ""
    : new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm[part]() >>> 0, wasm[`${part}_length`]()));
  return { code, answer: text("output"), errors: text("errors") };
}
