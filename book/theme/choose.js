// Code that a reader changes by choosing, for exercise.js and assessment.js; and the worker that they and kernels.js ask.

"use strict";

// What has been loaded, by its address: workers of one module share it.
const loadedModules = {};

// A worker that asks the module at this address. It is started before it is needed, and may fail before it has been asked anything: the
// next question gets a new one. An answer may take so many milliseconds once the module is loaded.
function asking(address, limit) {
  const LOADING = 60_000;
  const url = new URL(address, document.baseURI).href;
  let worker = null, told = null, timer;

  const endAfter = (time, error) => {
    clearTimeout(timer);
    timer = setTimeout(() => end({ error }), time);
  };

  function end(answer) {
    worker?.terminate();
    worker = null;
    told?.(answer);
  }

  function start() {
    if (worker) return;
    worker = new Worker(new URL("asked-worker.js", url));
    worker.onmessage = ({ data }) => {
      if (data.error) { end(data); return; }
      if (!data.loaded) { told?.(data); return; }
      Object.assign(loadedModules, data.loaded);
      endAfter(limit, `It was stopped after ${limit / 1000} seconds: it does not end, or takes too long for this page.`);
    };
    worker.onerror = event => { event.preventDefault(); end({ error: event.message || CANNOT_LOAD }); };
  }

  // The answer to a question, or an error.
  async function askOne(question) {
    endAfter(LOADING, CANNOT_LOAD);
    const answer = await new Promise(resolve => {
      told = resolve;
      start();
      worker.postMessage({ url, compiled: loadedModules, ...question });
    });
    clearTimeout(timer);
    told = null;
    if (answer.error) throw new Error(answer.error);
    return answer;
  }

  // One after the other, since they share the worker.
  let last = Promise.resolve();
  return { start, stop: () => end({ error: "It was stopped." }), ask: question => last = last.catch(() => {}).then(() => askOne(question)) };
}

const choose = {
  // The option that is chosen in each place of a form.
  chosen: form => [...form.querySelectorAll("fieldset")].map(place => Number(place.querySelector("input:checked").value)),

  // The lines of the code, each with whether it depends on a choice.
  lines(pieces, choice) {
    const all = [];
    for (const piece of pieces) {
      const isUnused = piece.without?.every(([place, without]) => without[choice[place]]);
      const text = typeof piece === "string" ? piece
        : piece.texts ? piece.texts[choice[piece.place]]
        : isUnused ? piece.unused : piece.used;
      const ofLine = text.split("\n");
      ofLine.pop();
      for (const line of ofLine) all.push({ line, isChosen: piece.texts !== undefined });
    }
    while (all.at(-1).line === "") all.pop();
    return all;
  },

  draw(code, pieces, choice) {
    const coloured = line => {
      try { return hljs.highlight("rust", line, true).value; } catch { return escaped(line); }
    };
    code.innerHTML = this.lines(pieces, choice).map(({ line, isChosen }) =>
      `<span class="${isChosen ? "line is-chosen" : "line"}">${coloured(line)}\n</span>`).join("");
  },

  // Text with its code, as HTML.
  inline: text => escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>"),

  isNarrow: () => matchMedia("(max-width: 600px)").matches,
};
