// Runs the labs in the page. Below each output of a lab stands a bar: Run shows the same section as it comes from the lab, with the
// settings of the bar, in place of what is printed. The labs are modules of WebAssembly in a worker of their own, loaded when they are
// first used. A book that was built without it (`<meta name="labs-module">`) says so where the bar would be: see missing.js.

"use strict";

const runs = (() => {
  const address = document.querySelector("meta[name=labs-module]")?.content;
  const isHere = missing("labs") === null;
  const url = isHere && new URL(address, document.baseURI).href;
  let compiled = {};

  // Starts a worker. What it says goes to `told`; the function that is returned ends it.
  function start({ lab, call, words, files, told }) {
    const worker = new Worker(new URL("run-worker.js", url));
    worker.onmessage = ({ data }) => {
      if (data.compiled) { compiled = { ...compiled, ...data.compiled }; return; }
      told(data);
      if ("code" in data || "crash" in data) worker.terminate();
    };
    worker.onerror = event => {
      event.preventDefault();
      told({ crash: event.message || CANNOT_LOAD });
      worker.terminate();
    };
    worker.postMessage({ compiled, url, lab, call, words, files });
    return () => worker.terminate();
  }

  // What can be set of a lab, as its flags declare it. Asked once.
  const known = new Map();
  function knobs(lab) {
    if (!known.has(lab)) {
      known.set(lab, new Promise((resolve, reject) => start({
        lab, call: "knobs_of", words: [lab],
        told: ({ output, crash }) => output ? resolve(JSON.parse(output)) : reject(new Error(crash ?? `there is no ${lab}`)),
      })));
      known.get(lab).catch(() => known.delete(lab));
    }
    return known.get(lab);
  }

  return { isHere, start, knobs };
})();

for (const caption of runs.isHere ? [] : document.querySelectorAll("figure.lab-output[data-lab] > figcaption")) caption.after(missing("labs"));

for (const [place, figure] of runs.isHere ? [...document.querySelectorAll("figure.lab-output[data-lab]")].entries() : []) {
  const { lab, flags, section, shows } = figure.dataset;
  const caption = figure.querySelector("figcaption");
  const printed = [...figure.children].filter(child => child !== caption);
  const id = figure.id ||= `run-${lab.replace("lab-", "")}-${section ?? "all"}-${place + 1}`;

  const button = (text, act) => {
    const element = make("button", { type: "button", textContent: text });
    element.addEventListener("click", act);
    return element;
  };

  // ---- Settings

  // By flag, where they differ from those of the printed run: a text, `true` for a flag without a value, a file.
  const set = new Map();
  const ofPrinted = new Map();
  for (const words = flags.split(" ").filter(Boolean); words.length > 0;) {
    const flag = words.shift();
    ofPrinted.set(flag, words.length > 0 && !words[0].startsWith("--") ? words.shift() : true);
  }
  const given = () => [...new Map([...ofPrinted, ...set])].filter(([, value]) => value !== undefined && value !== false);
  const words = () => given().flatMap(([flag, value]) => value === true ? [flag] : [flag, value instanceof File ? value.name : value])
    .concat(section ? ["--section", section] : []);
  const quoted = word => /^[\w:,.=/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  const command = () => `cargo run --bin ${lab} -- ${words().map(quoted).join(" ")}`;

  const link = () => {
    const address = new URL(location.href);
    const texts = [...set].filter(([, value]) => typeof value === "string" || value === true);
    address.search = texts.length > 0 ? new URLSearchParams([["run", id], ...texts.map(([flag, value]) => [flag.slice(2), value === true ? "" : value])]) : "";
    address.hash = id;
    return address.href;
  };

  const settings = make("div", { className: "run-knobs", hidden: true, id: `${id}-knobs` });

  function control({ flag, help, first, range, choices, file, switch: isSwitch }) {
    const now = set.get(flag) ?? ofPrinted.get(flag) ?? first;
    const name = make("span", { className: "run-flag" }, make("code", { textContent: flag }), ` ${help}`);
    let input;
    if (choices) {
      input = make("select", {}, ...choices.map(([value, words]) =>
        make("option", { value, textContent: words ? `${value}: ${words}` : value, selected: value === now })));
      // A machine that is none of these was named by the run.
      if (now && !choices.some(([value]) => value === now)) input.prepend(make("option", { value: now, textContent: now, selected: true }));
    } else if (file) {
      input = make("input", { type: "file" });
    } else if (isSwitch) {
      input = make("input", { type: "checkbox", checked: now === true });
    } else {
      input = make("input", { type: "number", min: range[0], max: range[1], step: 1, value: now, placeholder: first });
    }
    input.addEventListener("change", () => {
      const value = file ? input.files[0] : isSwitch ? input.checked : input.value;
      if (value === "" || value === undefined || value === (ofPrinted.get(flag) ?? (isSwitch ? false : first))) set.delete(flag);
      else set.set(flag, value);
      tell();
    });
    return make("label", {}, name, input);
  }

  async function open() {
    settings.hidden = !settings.hidden;
    knob.ariaExpanded = String(!settings.hidden);
    if (settings.hidden || settings.childElementCount > 0) return;
    settings.textContent = "Loading …";
    try {
      const all = await runs.knobs(lab);
      settings.replaceChildren(...all.map(control));
    } catch (error) {
      settings.textContent = error.message;
    }
  }

  // ---- The run

  const live = make("div", { className: "run-live", hidden: true });
  live.role = "log";
  live.ariaLive = "off"; // The state below is told; all of it would be too much.
  const state = make("span", { className: "run-state" });
  state.role = "status";
  const files = make("p", { className: "run-files", hidden: true });
  const shown = caption.querySelector("code");
  let stop = null, block = null, urls = [];

  // The caption says what made the output above it: the command, the machine and the seed. Settings that have not been run stand
  // below, with their command.
  const behind = shown?.nextSibling;
  const printedRun = { command: shown?.textContent, of: behind?.textContent, settings: new Map() };
  let ran = null; // the run that stands in place of what is printed, if one does
  const next = make("p", { className: "run-next", hidden: true }, "With these settings, Run gives: ", make("code", {}));

  function tell() {
    const { command: made, of, machine, end, settings } = ran ?? printedRun;
    if (shown) {
      shown.textContent = made;
      const known = [machine, end].filter(Boolean).join("; ");
      if (behind) behind.textContent = of ?? (known && ` (${known})`);
    }
    const isSame = settings.size === set.size && [...set].every(([flag, value]) => settings.get(flag) === value);
    next.hidden = isSame;
    next.lastElementChild.textContent = command();
  }

  // What is known of a run that has begun: its machine, how it ended.
  const note = known => keepPlace(bar, () => { Object.assign(ran, known); tell(); });

  // Shows a run, or what is printed.
  function show(run) {
    ran = run;
    tell();
    live.hidden = !run;
    for (const element of printed) element.hidden = Boolean(run);
    back.hidden = !run;
    files.hidden = !run || files.childNodes.length === 0;
  }

  // A run begins as high as what stood in its place, so that the bar stays under the pointer. When it ends it keeps only the height
  // that it needs.
  function empty() {
    const { top } = bar.getBoundingClientRect();
    live.style.minHeight = "";
    live.replaceChildren();
    show({ command: command(), machine: "", end: "", settings: new Map(set) });
    live.style.minHeight = `${live.offsetHeight + top - bar.getBoundingClientRect().top}px`;
  }

  function append({ kind, html }) {
    if (kind === "begin" || (kind === "text" && !block)) {
      block = make("code", { className: "language-text nohighlight hljs" });
      live.append(make("pre", {}, block));
    }
    if (kind === "begin" || kind === "text") {
      block.insertAdjacentHTML("beforeend", html);
      return;
    }
    block = null;
    const element = make("div", {});
    element.innerHTML = html;
    live.append(...element.childNodes);
    if (typeof timelines === "object") timelines.touch(live.lastElementChild);
    if (typeof memories === "object") memories.touch(live.lastElementChild);
  }

  function ended(words, how = "") {
    note({ end: how });
    stop = null;
    block = null;
    run.textContent = "Run again";
    live.ariaBusy = "false";
    state.textContent = words;
    keepPlace(bar, () => { live.style.minHeight = ""; });
  }

  function trouble(words) {
    live.append(make("p", { className: "run-trouble", textContent: words }));
  }

  async function begin() {
    if (stop) { stop(); ended("Stopped.", "stopped before its end"); return; }
    for (const url of urls.splice(0)) URL.revokeObjectURL(url);
    files.replaceChildren();
    files.hidden = true;
    block = null;
    empty();
    const mine = ran, asked = [shows, lab, ...words()];
    live.ariaBusy = "true";
    run.textContent = "Stop";
    state.textContent = "Running …";
    const started = performance.now();
    const brought = [...set.values()].filter(value => value instanceof File);
    stop = () => {}; // until the files have been read
    const bytes = await Promise.all(brought.map(async file => ({ name: file.name, bytes: await file.arrayBuffer() })));
    if (!stop || ran !== mine) return;
    stop = runs.start({
      lab,
      call: "stream",
      words: asked,
      files: bytes,
      told(data) {
        if (data.kind === "machine") note({ machine: data.html });
        else if (data.kind === "trouble") trouble(data.html.trim());
        else if (data.kind) append(data);
        else if (data.file) offer(data.file);
        else if (data.crash) { trouble(data.crash); ended("It failed.", "it failed"); }
        else if (data.code !== 0) ended("It failed.", "it failed");
        else ended(`Done in ${((performance.now() - started) / 1000).toFixed(1)} s, in this page.`);
      },
    });
  }

  // A file that the run has left in memory.
  function offer({ name, bytes }) {
    const href = URL.createObjectURL(new Blob([bytes]));
    urls.push(href);
    // One that is written again takes the place of the first.
    const known = [...files.querySelectorAll("a")].find(link => link.download === name);
    if (known) {
      known.href = href;
      known.nextSibling.data = ` (${bytes.length.toLocaleString("en")} bytes)`;
      return;
    }
    if (files.hidden) files.append("Files of this run: ");
    else files.append(", ");
    files.append(make("a", { href, download: name, textContent: name }), ` (${bytes.length.toLocaleString("en")} bytes)`);
    files.hidden = false;
  }

  const run = button("Run", begin);
  run.className = "run-button";
  const knob = button("Settings", open);
  knob.ariaExpanded = "false";
  knob.setAttribute("aria-controls", settings.id);
  const copied = async (text, words) => {
    try { await navigator.clipboard.writeText(text); state.textContent = `${words} copied.`; }
    catch { state.textContent = text; }
  };
  const back = button("Show what is printed", () => { if (stop) { stop(); ended("Stopped."); } keepPlace(bar, () => show(null)); state.textContent = ""; });
  back.hidden = true;
  const bar = make("div", { className: "run-bar" }, run, knob,
    button("Copy the command", () => copied(command(), "The command is")),
    button("Copy a link", () => copied(link(), "The link is")), back, state);
  bar.role = "group";
  bar.ariaLabel = `Run ${lab}${section ? `, section ${section}` : ""}`;
  caption.before(live, files);
  caption.after(bar, settings, next);

  // A link to a setting: `?run=run-03-4-2&batch-size=128#run-03-4-2`.
  const asked = new URLSearchParams(location.search);
  if (asked.get("run") === id) {
    for (const [name, value] of asked) if (name !== "run") set.set(`--${name}`, value || true);
    tell();
    for (let fold = figure.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    state.textContent = "These are the settings of the link: press Run.";
    // After the browser has gone to the top of the figure, which may be taller than the window.
    addEventListener("load", () => bar.scrollIntoView({ block: "nearest" }));
  }
}

// Pages that were read can be read without a network; a page offers to keep all of the book.
(() => {
  const address = document.querySelector("meta[name=offline]")?.content;
  if (!address || !("serviceWorker" in navigator)) return;
  const keeper = new URL(address, document.baseURI);
  const isOurs = name => new URL(name).origin === location.origin && !new URL(name).pathname.includes("/__");
  addEventListener("load", async () => {
    try {
      await navigator.serviceWorker.register(keeper);
      const { active } = await navigator.serviceWorker.ready;
      active.postMessage({ keep: [location.href.split(/[?#]/)[0]] });
      // All that the page has loaded and will load, since it may be long before the worker sees its requests: a page that was
      // reloaded with Shift never has a worker.
      new PerformanceObserver(loaded => {
        const keep = loaded.getEntries().map(entry => entry.name).filter(isOurs);
        if (keep.length > 0) active.postMessage({ keep });
      }).observe({ type: "resource", buffered: true });
    } catch { return; /* Not here: the page is whole without it. */ }
    for (const place of document.querySelectorAll(".save-offline")) {
      const save = document.createElement("button");
      save.type = "button";
      save.textContent = "Save the book for offline reading";
      const status = document.createElement("span");
      status.role = "status";
      save.addEventListener("click", async () => {
        status.textContent = " Saving …";
        try {
          const files = await (await fetch(new URL("offline.json", keeper))).json();
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = ({ data }) => {
            status.textContent = data.kept ? ` Saved: ${data.kept} files. You can read and run all of it without a network.` : " It could not be saved.";
          };
          (await navigator.serviceWorker.ready).active.postMessage({ keep: files.map(file => new URL(file, keeper).href) }, [port2]);
        } catch { status.textContent = " It could not be saved."; }
      });
      place.replaceChildren(save, status);
    }
  });
})();
