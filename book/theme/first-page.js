// The first page: the race, which was run when the book was built and is played here, and what has been done of each chapter.

"use strict";

// Plays the step of the CPU and that of a GPU to one scale, slowed down as the page says.
(() => {
  const race = document.querySelector(".race");
  if (!race) return;
  const slowed = Number(race.dataset.slowed);
  const verdict = race.querySelector(".race-verdict");
  const lanes = [...race.querySelectorAll(".lane")];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let said = "", frame = 0;

  const axis = [...race.querySelectorAll(".race-axis span")];
  let end = Number(race.dataset.end);

  const chosen = name => race.querySelector(`input[name="race-${name}"]:checked`).value;
  const run = name => race.querySelector(`template[data-run="${CSS.escape(name)}"]`);

  // With the module of the labs the race is run anew, with any batch on a slider in place of the two that the book has.
  const batches = race.dataset.batches.split(" ");
  let slider;
  if (experiments.areHere) {
    const field = race.querySelector("input[name=race-batch]").closest("fieldset");
    field.querySelectorAll("label").forEach(label => label.remove());
    const label = document.createElement("label"), output = document.createElement("output");
    slider = document.createElement("input");
    Object.assign(slider, { type: "range", min: 0, max: batches.length - 1, step: 1, value: 0, ariaLabel: "Batch" });
    const tell = () => { output.textContent = batches[slider.value]; slider.setAttribute("aria-valuetext", output.textContent); };
    slider.addEventListener("input", tell);
    tell();
    label.append(slider, " ", output);
    field.append(label);
  }

  const batch = () => slider ? batches[slider.value] : chosen("batch");

  function scale(longest) {
    end = longest;
    axis.forEach((tick, quarter) => { tick.textContent = end / 4000 * quarter; });
  }

  // Runs what the switches stand for, which the book has not, and shows its pictures.
  async function live(mine) {
    const raced = await experiments.ask("race", chosen("card"), batch(), chosen("copy"));
    if (mine !== plays) return null; // The switches stand for another race by now.
    scale(raced.end);
    for (const lane of lanes) {
      const { done, strips } = raced[lane.dataset.lane];
      lane.querySelector(".strips").innerHTML = strips;
      lane.dataset.done = done;
    }
    return raced;
  }

  const key = () => `${chosen("card")} ${batch()} ${chosen("copy")}`;

  // What the switches stand for, which the book has: each lane gets its pictures, and how long they take.
  function set() {
    const gpu = run(key());
    scale(Number(race.dataset.end));
    const runs = { cpu: run(`cpu ${batch()}`), gpu };
    for (const lane of lanes) {
      const { content, dataset } = runs[lane.dataset.lane];
      lane.querySelector(".strips").replaceChildren(content.cloneNode(true));
      lane.dataset.done = dataset.done;
    }
    return gpu.dataset;
  }

  // Shows all lanes as they are at a time, in nanoseconds of the step.
  function show(time) {
    for (const lane of lanes) {
      const done = Number(lane.dataset.done), at = Math.min(time, done);
      lane.style.setProperty("--at", `${100 * at / end}%`);
      lane.querySelector(".lane-time").textContent = `${Math.round(at / 1000)} µs`;
      lane.classList.toggle("is-done", time >= done);
    }
  }

  let plays = 0;
  async function play() {
    const mine = ++plays;
    cancelAnimationFrame(frame);
    let raced;
    verdict.textContent = "Running …";
    try { raced = run(key()) ? set() : await live(mine); }
    catch (error) { if (mine === plays) verdict.textContent = `${error.message} Above is still the race before.`; }
    if (!raced || mine !== plays) return;
    const { winner, verdict: words } = raced;
    const last = Math.max(...lanes.map(lane => Number(lane.dataset.done)));
    const bet = said && `You said ${said.toUpperCase()}`;
    const told = bet && (said === winner ? `${bet}, and so it is. ` : `${bet}. `);
    const finish = () => { show(last); verdict.textContent = told + words; race.classList.remove("is-running"); };
    race.classList.remove("is-asking");
    if (still.matches) { finish(); return; }
    race.classList.add("is-running");
    verdict.textContent = `One step of each, ${slowed.toLocaleString("en")} times slower than it is.`;
    let start;
    const next = now => {
      start ??= now;
      const time = (now - start) * 1e6 / slowed;
      if (time >= last) { finish(); return; }
      show(time);
      frame = requestAnimationFrame(next);
    };
    frame = requestAnimationFrame(next);
  }

  for (const button of race.querySelectorAll(".race-ask button")) {
    button.addEventListener("click", () => {
      said = button.value;
      for (const other of race.querySelectorAll(".race-ask button")) other.ariaPressed = `${other === button}`;
      play();
    });
  }
  race.querySelector(".race-again").addEventListener("click", play);
  for (const input of race.querySelectorAll("input")) input.addEventListener("change", play);

  // Until somebody has said something, nobody has started.
  race.classList.add("is-asking");
  verdict.textContent = "";
  set();
  show(0);
})();

// How far the reader is in each chapter, by what progress.js keeps.
(() => {
  const list = document.querySelector(".chapters");
  if (!list) return;
  const kept = progress.read();
  for (const chapter of list.children) {
    const { chapter: number, predictions, questions, exercises } = chapter.dataset;
    // An open question, which has points, is answered in the terminal alone.
    const isOfChapter = ([id, entry]) => id.startsWith(`${number}-`) && entry.points === undefined;
    const count = part => Object.entries(kept[part] ?? {}).filter(isOfChapter).length;
    const passed = Object.entries(kept.exercises ?? {}).filter(([id, entry]) => id.startsWith(`${number}-`) && entry.passed === true).length;
    const all = Number(predictions) + Number(questions) + Number(exercises);
    const done = Math.min(count("predictions"), Number(predictions)) + Math.min(count("questions"), Number(questions))
      + Math.min(passed, Number(exercises));
    if (done === 0 || all === 0) continue;
    const words = chapter.querySelector(".kept");
    words.textContent = done >= all ? "done" : `${done} of ${all}`;
    chapter.style.setProperty("--done", `${100 * done / all}%`);
    chapter.classList.toggle("is-done", done >= all);
  }
})();
