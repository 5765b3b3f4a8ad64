// Kernels in the page: each is edited, compiled while it is typed, run, and checked by the emulator, a module of WebAssembly in workers
// that are started on first use. A book that was built without it says so: see missing.js.

"use strict";

const kernels = (() => {
  const address = document.querySelector("meta[name=kernels-module]")?.content;
  const LIMIT = 10_000;
  const isHere = missing("kernels") === null;
  // Two workers, so that typing does not wait for a run.
  const [compiler, runner] = isHere ? [1, 2].map(() => asking(address, LIMIT)) : [];
  const ask = async (worker, words) => {
    const { code, answer, errors } = await worker.ask({ call: "run", words });
    if (!answer) throw new Error(errors.trim().replace(/^error: /, ""));
    return { ...JSON.parse(answer), code };
  };
  return {
    isHere,
    // The page for printing has all pages: there, the programs stay text.
    figures: selector => location.pathname.endsWith("/print.html") ? [] : document.querySelectorAll(selector),
    // Warms up: the module is loaded.
    begin: () => compiler.start(),
    compile: text => ask(compiler, ["compile", text]),
    compileJudged: (kind, name, text) => ask(compiler, [`${kind}-compile`, name, text]),
    run: (...words) => ask(runner, words),
    stop: () => runner.stop(),
  };
})();

// ---- A link that holds a text: after the id of its editor, `z` or `t` for compressed or not, and in base64 four bytes that tell a damaged
// text from a whole one, and the text.

const kernelLink = (() => {
  const MOST = 1 << 20;
  const sum = bytes => bytes.reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5) >>> 0;
  const base64 = bytes => btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  async function through(bytes, stream) {
    const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(), parts = [];
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
      parts.push(value);
      length += value.length;
      if (length > MOST) throw new Error("too long");
    }
  }

  async function pack(text) {
    const bytes = new TextEncoder().encode(text), hash = sum(bytes);
    const isPacked = typeof CompressionStream === "function";
    const packed = isPacked ? await through(bytes, new CompressionStream("deflate-raw")) : bytes;
    return (isPacked ? "z" : "t") + base64([hash >>> 24, hash >>> 16 & 255, hash >>> 8 & 255, hash & 255, ...packed]);
  }

  // The text; an error if it is damaged.
  async function unpack(packed) {
    const all = Uint8Array.from(atob(packed.slice(1).replaceAll("-", "+").replaceAll("_", "/")), letter => letter.charCodeAt(0));
    const hash = new DataView(all.buffer).getUint32(0), rest = all.slice(4);
    const bytes = packed.startsWith("z") ? await through(rest, new DecompressionStream("deflate-raw")) : rest;
    if (sum(bytes) !== hash) throw new Error("damaged");
    return new TextDecoder().decode(bytes);
  }

  return { pack, unpack };
})();

// ---- An editor in place of a printed program, and what is done with its text. Each action is `{ name, act }`: a button, and a function
// that takes the text, and returns what is shown below and what is said of it. Ctrl+Enter does the first.

function kernelBench(figure, actions, compiled = kernels.compile) {
  const { id } = figure, { name } = figure.dataset;
  const keepEntry = entry => progress.set("kernels", id, { ...kept(), ...entry });
  const original = figure.querySelector("code.language-cpp").textContent.replace(/\n$/, "");
  const button = (textContent, act, properties) => {
    const element = make("button", { type: "button", textContent, ...properties });
    element.addEventListener("click", act);
    return element;
  };
  const countOf = count => count === 1 ? "1 error" : `${count} errors`;

  // ---- What is kept: a text that differs from the printed one.

  const kept = () => progress.read().kernels?.[id] ?? {};
  let waiting = null;

  function keep() {
    clearTimeout(waiting);
    waiting = null;
    const { text, ...entry } = kept();
    if (editor.text !== original) entry.text = editor.text;
    if (entry.text === text) return;
    const isKept = progress.set("kernels", id, Object.keys(entry).length > 0 ? entry : undefined);
    if (!isKept) say("This browser keeps nothing more: copy the text, or a link to it, before you leave the page.");
  }

  addEventListener("pagehide", () => { if (waiting !== null) keep(); });
  document.addEventListener("progress-replaced", () => {
    editor.set(kept().text ?? original);
    aged();
  });

  // ---- Errors while the text is typed.

  let typing = null, told = [], problems = [], current = null, warned = {};

  // The places of a list of errors, each with a button that leads there.
  function place(line, column = 1) {
    return button(`line ${line}`, () => editor.goTo(line, column));
  }

  function drawMarks() {
    const wrong = problems.map(({ line, column, length }) => ({ line, column, length, kind: "wrong" }));
    const step = current === null ? [] : [{ line: current, kind: "current" }];
    editor.mark([...told.map(line => ({ line, kind: "told" })), ...wrong, ...step]);
  }

  // The line that a step is at.
  function showCurrent(line) {
    current = line;
    drawMarks();
  }

  function showProblems(errors, warnings = []) {
    const before = problems.length;
    problems = [...errors, ...warnings].filter(({ file }) => file === "my.cu");
    drawMarks();
    // A program of several files: the kernel is the reader's, the rest launches it.
    const isOfHost = errors.length > 0 && problems.length === 0;
    const advice = isOfHost ? [make("li", { textContent: "The host code launches this kernel: keep its name and its parameters, and write no main." })] : [];
    list.replaceChildren(...advice, ...[...errors, ...warnings].map((problem, number) => {
      const { message, file, line, column, label, help, notes } = problem;
      const words = [number < errors.length ? "" : "warning", message, label].filter(Boolean).join(": ");
      const item = make("li", {}, file === "my.cu" ? place(line, column) : `${file}, line ${line}`, " ", make("span", { innerHTML: choose.inline(words) }));
      for (const note of notes) item.append(make("p", { innerHTML: `${choose.inline(note.text)} (line ${note.line})` }));
      if (help) item.append(make("p", { innerHTML: choose.inline(help) }));
      return item;
    }));
    if (errors.length > 0) say(`${countOf(errors.length)}: line ${errors[0].line}, ${errors[0].message.replaceAll("`", "")}`);
    else if (warnings.length > 0) say(`Warning: line ${warnings[0].line}, ${warnings[0].message.replaceAll("`", "")}`);
    else if (before > 0) say("No errors.");
  }

  async function compile() {
    const text = editor.text;
    try {
      const { errors, warnings } = await compiled(text);
      if (text === editor.text) { warned = { text, warnings }; showProblems(errors, warnings); }
    } catch (error) {
      say(`Errors are not shown while you type: ${error.message}`);
    }
  }

  function changed() {
    clearTimeout(typing);
    clearTimeout(waiting);
    typing = setTimeout(compile, 400);
    waiting = setTimeout(keep, 800);
    // From here on it is the reader's own text, and a reload shows it.
    if (location.hash.startsWith(`#${id}=`)) history.replaceState(null, "", `#${id}`);
    if (editor.text !== offered) undo.hidden = true;
    aged();
  }

  // ---- Actions.

  let stopped = null, shownText = null;

  // What is shown below was made of a text, and says so when the text is another.
  function aged() {
    const isOld = shownText !== null && shownText !== editor.text;
    age.hidden = !isOld;
    if (isOld && (told.length > 0 || current !== null)) { told = []; showCurrent(null); }
  }

  async function does({ name, act }, pressed) {
    if (stopped) { stopped(); return; }
    const text = editor.text, began = performance.now();
    if (waiting !== null) keep();
    for (const other of buttons) other.disabled = other !== pressed;
    pressed.textContent = "Stop";
    result.ariaBusy = "true";
    say("Running …");
    stopped = () => kernels.stop();
    try {
      const { errors, nodes = [], said, lines = [] } = await act(text);
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      if (errors) { showProblems(errors); result.replaceChildren(); shownText = null; }
      else {
        told = lines;
        current = null;
        // The warnings about this text stay.
        showProblems([], warned.text === text ? warned.warnings : []);
        result.replaceChildren(...nodes.flatMap(node => typeof node === "function" ? node() : node));
        shownText = text;
        say(`${said} (${seconds} s, in this page)`);
      }
    } catch (error) {
      // What is shown of this text stays: the steps of a warp, when there is no other warp.
      if (shownText !== text) clear();
      say(error.message);
    }
    stopped = null;
    for (const other of buttons) other.disabled = false;
    pressed.textContent = name;
    result.ariaBusy = "false";
    aged();
  }

  // ---- The link, the copy, and the text as it was.

  const copied = async (text, words) => {
    try { await navigator.clipboard.writeText(text); say(`${words} copied.`); }
    catch { say(text); }
  };

  async function copyLink() {
    const link = new URL(location.href);
    link.hash = `${id}=${await kernelLink.pack(editor.text)}`;
    copied(link.href, "The link is");
  }

  // Shows a text in place of the reader's, with the way back.
  let mine = null, offered = null;

  function offer(text, words, show) {
    mine = editor.text;
    offered = text;
    undo.hidden = mine === text;
    undo.textContent = mine === original ? "Back to the original" : "Back to my text";
    show(text);
    aged();
    say(words);
  }

  // `#kernel-vector_add=z…`. The reader's own text stays kept until the other is changed.
  async function openLink() {
    const [of, packed] = location.hash.slice(1).split("=", 2);
    if (of !== id || packed === undefined) return;
    figure.scrollIntoView();
    let text;
    try { text = await kernelLink.unpack(packed); }
    catch { say("This link is damaged: its text cannot be read."); return; }
    offer(text, "This is the text of the link.", editor.set);
  }

  // ---- The parts.

  const say = words => { state.textContent = words; };
  const state = make("span", { className: "run-state", role: "status" });
  const buttons = actions.map(action => {
    const element = button(action.name, () => does(action, element));
    return element;
  });
  buttons[0].className = "run-button";
  const editor = kernelEditor(kept().text ?? original, `${name}, in CUDA C++`, { changed, run: () => { if (!stopped) buttons[0].click(); } });
  const undo = button("Back to my text", () => {
    undo.hidden = true;
    editor.type(mine);
    say(mine === original ? "This is the text as it was." : "Your text is back.");
  }, { hidden: true });
  const bar = make("div", { className: "run-bar", role: "group", ariaLabel: name }, ...buttons,
    button("Reset", () => offer(original, "This is the text as it was.", editor.type)), undo,
    button("Copy", () => copied(editor.text, "The text is")),
    button("Copy a link", copyLink), state);
  const keys = make("p", { className: "kernel-keys", id: `${id}-keys`, textContent: `Ctrl+Enter: ${actions[0].name}. Tab indents; Escape, then Tab leaves the text.` });
  editor.area.setAttribute("aria-describedby", keys.id);
  editor.area.addEventListener("focus", compile, { once: true });
  const list = make("ul", { className: "kernel-places" });
  const age = make("p", { className: "verdict-age", textContent: "This result is for an earlier text.", hidden: true });
  const result = make("div", { className: "kernel-result" });
  figure.querySelector("pre").before(editor.element, list, bar, keys, age, result);
  figure.classList.add("is-live");
  openLink();
  addEventListener("hashchange", openLink);
  // Empties what is shown below.
  function clear() {
    result.replaceChildren();
    shownText = null;
    showCurrent(null);
    aged();
  }

  return { editor, place, say, kept, keepEntry, showCurrent, clear, actions, does: name => buttons[actions.findIndex(action => action.name === name)].click() };
}

// ---- What a run has found.

const kernelReport = {
  // A run, as the emulator reports it, for an action.
  shown(answer, checks, place) {
    if (answer.errors) return answer;
    const { output, error, exit_code: code, left_out: leftOut, times } = answer;
    const findings = answer.findings.filter(({ severity }) => severity !== "info");
    const isRight = answer.code === 0;
    const nodes = [];
    if (output) nodes.push(make("pre", {}, make("code", { textContent: output })));
    const words = [];
    if (error) words.push(error);
    if (code !== null && code !== 0) words.push(`The program returned ${code}.`);
    if (leftOut > 0) words.push(`${leftOut} more findings are left out.`);
    if (times) words.push(`Times of cudaEventElapsedTime are ${times}, not measured.`);
    const verdict = isRight ? `${checks.replaceAll(",", ", ")}: no errors` : this.count(findings);
    nodes.push(make("p", { className: `kernel-verdict ${isRight ? "is-passed" : "is-wrong"}` }, make("strong", { textContent: verdict })));
    nodes.push(make("ul", { className: "kernel-places" }, ...findings.map(finding => this.finding(finding, place))));
    nodes.push(...words.map(textContent => make("p", { textContent })));
    const lines = findings.flatMap(({ sites }) => sites.filter(({ file }) => file === "my.cu").map(({ line }) => line));
    return { nodes, said: isRight ? "Done: no errors." : `Done: ${verdict}.`, lines: [...new Set(lines)] };
  },

  count: findings => findings.length === 0 ? "It failed" : findings.length === 1 ? "1 error" : `${findings.length} errors`,

  finding({ title, check, function: of, count, sites, notes }, place) {
    const item = make("li", {}, make("strong", { textContent: title }), ` (${check}${count > 1 ? `, ${count.toLocaleString("en")} times` : ""})`);
    for (const { text, file, line, column, thread, block } of sites) {
      const where = line === undefined ? "another launch" : file === "my.cu" ? place(line, column) : `${file}, line ${line}`;
      const by = thread ? `, by thread (${thread}) in block (${block})` : "";
      item.append(make("p", {}, where, " ", `${text} ${of}${by}`));
    }
    for (const note of notes) item.append(make("p", { textContent: note }));
    return item;
  },

  // The counters of each kernel as a table.
  counters({ counters }) {
    return counters.map(({ kernel, launches, counters: rows }) => {
      const cell = value => typeof value === "number" ? value.toLocaleString("en") : value;
      const table = make("table", {}, make("caption", { textContent: `${kernel}, ${launches === 1 ? "1 launch" : `${launches} launches`}` }),
        make("thead", {}, make("tr", {}, ...["counter", "value", "in Nsight Compute"].map(textContent => make("th", { scope: "col", textContent })))),
        make("tbody", {}, ...rows.map(({ name, value, metric }) => make("tr", {}, make("td", { textContent: name }),
          make("td", { className: "number", textContent: cell(value) }), make("td", {}, ...metric ? [make("code", { textContent: metric })] : [])))));
      return make("div", { className: "table-wrapper", role: "region", tabIndex: 0, ariaLabel: `Counters of ${kernel}` }, table);
    });
  },
};

// The action that shows a warp step by step.
function stepAction(bench) {
  let options = "", isAnother = false;
  const record = next => { options = next; isAnother = true; bench().does("Step"); };
  const close = () => { bench().clear(); bench().editor.area.focus(); };
  return {
    name: "Step",
    async act(text) {
      const asked = options;
      options = "";
      const recorded = await kernels.run("step", asked, text);
      if (recorded.errors) return recorded;
      // The panel is made when what was shown before is gone: it marks a line. The button for another warp goes with its panel, and the
      // new one takes the focus.
      const panel = () => {
        const made = kernelSteps.panel(recorded, { show: bench().showCurrent, record, close });
        if (isAnother) queueMicrotask(() => made.focus());
        isAnother = false;
        return made;
      };
      return { nodes: [panel], said: `${recorded.steps.length} steps of a warp.` };
    },
  };
}

for (const figure of kernels.figures("figure.kernel[data-checks]")) {
  if (!kernels.isHere) { figure.querySelector("figcaption").before(missing("kernels")); continue; }
  const { checks } = figure.dataset;
  const bench = kernelBench(figure, [
    { name: "Run", act: async text => kernelReport.shown(await kernels.run("json", checks, text), checks, bench.place) },
    {
      name: "Counters",
      act: async text => {
        const answer = await kernels.run("json", "counters", text);
        const shown = kernelReport.shown(answer, "memcheck", bench.place);
        if (shown.errors) return shown;
        if (answer.code !== 0) return { ...shown, said: "Nothing is counted: the kernel failed." };
        return { nodes: kernelReport.counters(answer), said: "Counted." };
      },
    },
    stepAction(() => bench),
  ]);
}
