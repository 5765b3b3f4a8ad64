// Asks a function of a module beside the page: `{ url, piece, compiled, call, words }` comes in. It starts a new module each time, so that
// whatever code takes goes with it. `{ loaded }` goes back, then `{ code, answer, errors }`; or `{ error }`.

"use strict";

importScripts("start-module.js");

onmessage = async ({ data: { url, piece, compiled, call, words } }) => {
  try {
    const modules = await load(url, piece, compiled);
    postMessage({ loaded: modules });
    postMessage(called(await startModules(modules), call, words));
  } catch (error) {
    postMessage({ error: error.message });
  }
};
