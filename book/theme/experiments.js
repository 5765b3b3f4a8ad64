// The experiments of the page, and timelines from files: both are run by the labs' module, in a worker of their own, which starts
// when it is first asked for something. A book that was built without the module (`<meta name="labs-module">`) says so: see missing.js.

"use strict";

const experiments = (() => {
  const address = document.querySelector("meta[name=labs-module]")?.content;
  const url = address && new URL(address, document.baseURI).href;
  let worker, asked = 0;
  const waiting = new Map();

  function start() {
    const made = new Worker(new URL("experiments-worker.js", url));
    made.onmessage = ({ data: { id, answer, error } }) => {
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error === undefined) resolve(answer);
      else reject(new Error(error));
    };
    made.onerror = () => {
      for (const { reject } of waiting.values()) reject(new Error(CANNOT_LOAD));
      waiting.clear();
      worker = undefined;
    };
    return made;
  }

  // What the module answers to these words.
  function ask(...words) {
    worker ??= start();
    return new Promise((resolve, reject) => {
      waiting.set(++asked, { resolve, reject });
      worker.postMessage({ id: asked, url, words });
    });
  }

  // A drawing that the module has made, as the book has its own: it comes from the same Rust, which escapes every text in it.
  function picture({ svg, narrow, words }, along) {
    const element = document.createElement("div");
    element.className = "picture";
    element.innerHTML = svg + (narrow ?? "");
    const drawings = element.querySelectorAll(":scope > svg");
    for (const drawing of drawings) drawing.setAttribute("aria-label", words);
    if (narrow) {
      drawings[0].classList.add("wide");
      drawings[1].classList.add("narrow");
    }
    const caption = document.createElement("p");
    caption.textContent = words;
    element.append(caption);
    timelines.touch(element);
    memories.touch(element, along);
    return element;
  }

  return { areHere: missing("labs") === null, ask, picture };
})();

for (const place of experiments.areHere ? [] : document.querySelectorAll(".what-if .knobs, .dropped")) place.before(missing("labs"));

// What if? An experiment runs again when a knob moves.
for (const block of experiments.areHere ? document.querySelectorAll(".what-if") : []) {
  const WAIT = 120; // milliseconds without another move
  const knobs = block.querySelector(".knobs");
  const status = block.querySelector(".what-if-same");
  let wanted = 0, timer = 0, shownOf = "";

  const value = slider => slider.dataset.values.split(" ")[slider.value];
  const chosen = () => [...knobs.querySelectorAll("input[type=range]")].map(slider => `${slider.name}=${value(slider)}`)
    .concat([...knobs.querySelectorAll("fieldset")]
      .map(field => `${field.dataset.knob}=${field.querySelector("input:checked").value}`));

  async function show() {
    const mine = ++wanted, settings = chosen();
    block.ariaBusy = "true";
    status.textContent = `Running … Until then the picture is of ${shownOf}.`;
    let shown, trouble;
    try { shown = await experiments.ask("what_if", block.dataset.experiment, ...settings); }
    catch (error) { trouble = error.message; }
    if (mine !== wanted) return; // another move has come since
    block.ariaBusy = "false";
    if (trouble !== undefined) { status.textContent = `${trouble} The picture is still of ${shownOf}.`; return; }
    shownOf = settings.join(", ");
    const old = block.querySelector(".picture");
    const moment = old.querySelector(".moments input");
    old.replaceWith(experiments.picture(shown, moment ? moment.value / moment.max : undefined));
    status.textContent = shown.same.map(({ words }) => words).join(" ");
    status.classList.toggle("is-broken", shown.same.some(({ holds }) => !holds));
  }

  const tell = slider => {
    slider.parentElement.querySelector("output").textContent = value(slider);
    slider.setAttribute("aria-valuetext", value(slider));
  };
  shownOf = chosen().join(", ");
  knobs.addEventListener("input", ({ target }) => {
    if (target.type === "range") tell(target);
    clearTimeout(timer);
    timer = setTimeout(show, WAIT);
  });
  for (const slider of knobs.querySelectorAll("input[type=range]")) tell(slider);
  knobs.hidden = false;
}

// Timelines from files, below each other and below that of a lab.
for (const block of experiments.areHere ? document.querySelectorAll(".dropped") : []) {
  const MOST_BYTES = 32 << 20, MOST_FILES = 3;
  const [field, beside] = block.querySelectorAll("input");
  const status = block.querySelector("[role=status]");
  const place = block.querySelector(".dropped-picture");
  let files = [];

  async function show() {
    if (files.length === 0) return;
    status.textContent = "Reading …";
    try {
      const large = files.find(file => file.size > MOST_BYTES);
      if (large) throw new Error(`${large.name}: the file is larger than 32 MiB`);
      const texts = await Promise.all(files.map(file => file.text()));
      const words = files.flatMap((file, index) => [file.name, texts[index] || " "].map(text => text.replaceAll("\0", "\ufffd")));
      if (beside.checked) words.push("a step of lab 03", "");
      place.replaceChildren(experiments.picture(await experiments.ask("timelines", ...words)));
      status.textContent = "";
    } catch (error) {
      place.replaceChildren(); // A picture of other files would stand under their names.
      status.textContent = error.message.replace(/^error: /, "");
    }
  }

  const take = list => { files = [...list].slice(0, MOST_FILES); show(); };
  field.addEventListener("change", () => take(field.files));
  beside.addEventListener("change", show);
  block.addEventListener("dragover", event => { event.preventDefault(); block.classList.add("is-over"); });
  block.addEventListener("dragleave", () => block.classList.remove("is-over"));
  block.addEventListener("drop", event => {
    event.preventDefault();
    block.classList.remove("is-over");
    take(event.dataTransfer.files);
  });
  block.hidden = false;
}
