// Code that a reader changes by choosing, and the worker that checks it: for exercise.js and assessment.js.

"use strict";

// A worker of this name beside the module. It is started before it is needed, and may fail before it has been asked anything: the
// next question gets a new one.
function asking(script, address, limit) {
  const url = new URL(address, document.baseURI).href;
  let worker = null, told = null;

  function end(answer) {
    worker?.terminate();
    worker = null;
    told?.(answer);
  }

  function start() {
    if (worker) return;
    worker = new Worker(new URL(script, url));
    worker.onmessage = ({ data }) => data.error ? end(data) : told?.(data);
    worker.onerror = event => { event.preventDefault(); end({ error: event.message || CANNOT_LOAD }); };
  }

  // The answer to a question, or an error.
  async function askOne(question) {
    const timer = setTimeout(() => end({ error: "It does not end." }), limit);
    const answer = await new Promise(resolve => {
      told = resolve;
      start();
      worker.postMessage({ url, ...question });
    });
    clearTimeout(timer);
    told = null;
    if (answer.error) throw new Error(answer.error);
    return answer;
  }

  // One after the other, since they share the worker.
  let last = Promise.resolve();
  return { start, ask: question => last = last.catch(() => {}).then(() => askOne(question)) };
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
