// Answers the page's questions beside it, in a module of the labs: `{ id, url, words }` comes in, the words of a question as
// `labs::what_if::answer` knows it; `{ id, answer }` or `{ id, error }` goes back.

"use strict";

importScripts("start-module.js");

let instance;

// What pages experiment with is in the base of the labs.
async function start(url) {
  const modules = await load(url);
  // Experiments stream nothing: what the module would tell while it runs goes nowhere.
  return startModules(modules, { page: { tell() {} } });
}

function run(exports, words) {
  const { code, answer, errors } = called(exports, "answer", words);
  if (code !== 0) throw new Error(errors.trim());
  return JSON.parse(answer);
}

// One after the other, though starting takes time.
let last = Promise.resolve();
onmessage = ({ data: { id, url, words } }) => {
  last = last.then(async () => {
    try {
      instance ??= await start(url);
      postMessage({ id, answer: run(instance, words) });
    } catch (error) {
      // What trapped is of no more use.
      if (error instanceof WebAssembly.RuntimeError) instance = undefined;
      postMessage({ id, error: error.message });
    }
  });
};
