// Predictions: what a reader says, and what came of it. progress.js keeps both.

"use strict";

const settings = {
  get showsEverything() { try { return localStorage.getItem("to-device-show-everything") === "yes"; } catch { return false; } },
  set showsEverything(yes) { try { localStorage.setItem("to-device-show-everything", yes ? "yes" : "no"); } catch { /* for this page only */ } },
};

// A number with its unit or without, as people write them (1,024, 3.5 ms, 40 %) and labs/src/frame/prediction.rs reads them: one that
// could be the answer of this form.
function number(typed, { unit, least, most, whole }) {
  let text = typed.trim().toLowerCase();
  if (unit && text.endsWith(unit.toLowerCase())) text = text.slice(0, -unit.length);
  text = text.replace(/[,_ ]/g, "");
  if (!/^\+?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/.test(text)) return null;
  const said = Number(text);
  const isPossible = Number.isFinite(said) && said >= Number(least) && said <= Number(most ?? Infinity);
  return isPossible && (whole === undefined || Number.isInteger(said)) ? said : null;
}

// The answer beside a guess that was `ratio` times as large, as labs/src/frame/prediction.rs says it.
function times(ratio) {
  const factor = ratio < 1 ? 1 / ratio : ratio;
  const percent = Math.round((factor - 1) * 100);
  const rounded = factor < 10 ? Math.round(factor * 10) / 10 : Math.round(factor);
  if (ratio < 1) return factor < 1.95 ? `${percent} % more` : `${rounded} times your guess`;
  return factor < 1.95 ? `so your guess was ${percent} % too high` : `so your guess was ${rounded} times too high`;
}

const escaped = text => text.replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);

// What comes of an answer: a verdict, and words as HTML; nothing if it is no answer.
const compare = {
  option(form, typed) {
    const template = form.querySelector(`template[data-said="${CSS.escape(typed)}"]`);
    return template && { said: typed, verdict: typed === form.dataset.key ? "right" : "wrong", html: template.innerHTML };
  },
  number(form, typed) {
    const { key, unit, printed, tolerance } = form.dataset;
    const said = number(typed, form.dataset), was = Number(key);
    if (said === null) return null;
    // One batch, one call, as in labs/src/frame/prediction.rs.
    const one = said === 1 && /^[a-z]{4,}$/.test(unit) ? unit.replace(/(ch)es$|s$/, "$1") : unit;
    const words = escaped(unit ? `${said} ${one}` : `${said}`);
    const start = `You said ${words}; it was ${escaped(printed)}`;
    if (Math.abs(said - was) <= Number(tolerance) * Math.abs(was)) return { said: `${said}`, verdict: "right", html: `${start}. Right.${because(form)}` };
    const ratio = said / was;
    if ("bare" in form.dataset || !(ratio > 0) || !Number.isFinite(ratio)) return { said: `${said}`, verdict: "wrong", html: `${start}.${because(form)}` };
    return { said: `${said}`, verdict: "off", ratio, html: `${start}, ${times(ratio)}.${because(form)}` };
  },
  order(form, typed) {
    const things = [...form.querySelectorAll("[data-letter]")];
    const words = letters => letters.split(" ").map(letter => things.find(thing => thing.dataset.letter === letter)?.querySelector(".thing")?.innerHTML).join(", ");
    if (typed.split(" ").sort().join(" ") !== form.dataset.key.split(" ").sort().join(" ")) return null;
    const isRight = typed === form.dataset.key;
    return { said: typed, verdict: isRight ? "right" : "wrong", html: `You said ${words(typed)}. ${isRight ? "Right." : `No. The answer is ${words(form.dataset.key)}.`}${because(form)}` };
  },
};

// Why the answer is what it is.
const because = form => ` ${form.querySelector("template[data-because]").innerHTML}`;

const kindOf = form => ["number", "order"].includes(form.dataset.kind) ? form.dataset.kind : "option";

// What the form holds now.
function typed(form) {
  switch (kindOf(form)) {
    case "number": return form.querySelector("input").value;
    case "order": return [...form.querySelectorAll("[data-letter]")].map(thing => thing.dataset.letter).join(" ");
    default: return form.querySelector("input:checked")?.value ?? "";
  }
}

// Puts an answer back into the form.
function fill(form, said) {
  switch (kindOf(form)) {
    case "number": form.querySelector("input").value = said; break;
    case "order": {
      const list = form.querySelector(".order");
      for (const letter of said.split(" ")) list.append(list.querySelector(`[data-letter="${CSS.escape(letter)}"]`) ?? "");
      break;
    }
    default: {
      const option = form.querySelector(`input[value="${CSS.escape(said)}"]`);
      if (option) option.checked = true;
    }
  }
}

// Takes back whatever was said in a form.
function clear(form) {
  form.reset();
  const things = [...form.querySelectorAll("[data-letter]")].sort((one, other) => one.dataset.letter < other.dataset.letter ? -1 : 1);
  form.querySelector(".order")?.append(...things);
}

const folds = form => document.getElementById(`after-${form.dataset.id}`);

// The form after an answer: fixed, with what came of it.
function show(form, result) {
  form.dataset.verdict = result.verdict;
  form.querySelector("fieldset").disabled = true;
  const verdict = form.querySelector(".verdict");
  verdict.innerHTML = `<p tabindex="-1">${result.verdict === "skipped" ? "Skipped." : result.html}</p>`;
  for (const input of form.querySelectorAll("input[type=radio]")) {
    input.closest("label").classList.toggle("is-answer", input.value === form.dataset.key);
  }
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = result.verdict === "skipped" ? "Answer it now" : "Answer again";
  again.addEventListener("click", () => {
    progress.remove("predictions", form.dataset.id);
    ask(form);
    form.querySelector("input, button").focus();
    summary();
  });
  verdict.append(again);
  folds(form).open = true;
}

// The form as it waits for an answer.
function ask(form) {
  delete form.dataset.verdict;
  for (const label of form.querySelectorAll(".is-answer")) label.classList.remove("is-answer");
  form.querySelector("fieldset").disabled = false;
  form.querySelector(".verdict").replaceChildren();
  folds(form).open = settings.showsEverything;
}

function answered(form) {
  const result = compare[kindOf(form)](form, typed(form));
  if (!result) {
    const what = escaped(typed(form).trim()), wanted = escaped(form.dataset.wanted ?? "");
    const words = what ? `<code>${what}</code> is not a possible answer: type ${wanted}.`
      : wanted ? `Type ${wanted}, or skip the question.` : "Choose one of them first, or skip the question.";
    form.querySelector(".verdict").innerHTML = `<p>${words}</p>`;
    return;
  }
  const { html, ...entry } = result;
  progress.set("predictions", form.dataset.id, entry);
  show(form, result);
  form.querySelector(".verdict p").focus();
  summary();
}

// The things of an order move with buttons, by mouse or keyboard.
function movable(list) {
  for (const item of list.children) {
    const thing = document.createElement("span");
    thing.className = "thing";
    thing.append(...item.childNodes);
    const button = (label, sign, move) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sign;
      button.ariaLabel = `${label}: ${thing.textContent}`;
      button.addEventListener("click", () => { move(); button.focus(); });
      return button;
    };
    item.append(
      button("Up", "↑", () => item.previousElementSibling?.before(item)),
      button("Down", "↓", () => item.nextElementSibling?.after(item)),
      thing,
    );
  }
}

const forms = [...document.querySelectorAll("form.predict")];

// What follows a question to think about is folded until the reader opens it, or wants to see everything.
function foldThoughts() {
  for (const thought of document.querySelectorAll("details.think")) thought.open = settings.showsEverything;
}

function restore() {
  const kept = progress.read().predictions ?? {};
  for (const form of forms) {
    const entry = kept[form.dataset.id];
    if (entry?.verdict === "skipped") { show(form, entry); continue; }
    if (typeof entry?.said === "string") fill(form, entry.said);
    const result = typeof entry?.said === "string" ? compare[kindOf(form)](form, entry.said) : null;
    if (result) show(form, result);
    else ask(form);
  }
  summary();
}

// How good the guesses of this chapter were.
function summary() {
  const box = document.querySelector(".guesses");
  if (!box) return;
  const kept = progress.read().predictions ?? {};
  const made = forms.map(form => kept[form.dataset.id]).filter(entry => entry && entry.verdict !== "skipped");
  const right = made.filter(entry => entry.verdict === "right").length;
  const ratios = made.map(entry => entry.ratio).filter(ratio => ratio > 0).sort((a, b) => a - b);
  const words = box.querySelector(".guesses-words");
  if (forms.length === 0) return; // The page of the score has no predictions of its own.
  if (made.length === 0) {
    words.textContent = `This page asks for ${forms.length} predictions. You have made none yet.`;
    return;
  }
  let text = `You made ${made.length} of ${forms.length} predictions; ${right} ${right === 1 ? "was" : "were"} right.`;
  // A percentage that is off has no ratio worth telling, and neither has a count of two or three.
  const isMissed = form => form.dataset.kind === "number" && ["off", "wrong"].includes(kept[form.dataset.id]?.verdict);
  const missed = forms.filter(isMissed).length;
  if (ratios.length > 0) {
    const low = ratios.filter(ratio => ratio < 1).length;
    const factor = Math.exp(ratios.map(ratio => Math.abs(Math.log(ratio))).sort((a, b) => a - b)[Math.floor(ratios.length / 2)]);
    const by = `by a factor of ${factor < 10 ? factor.toFixed(1) : Math.round(factor)}`;
    const side = low === ratios.length ? "all too low" : low === 0 ? "all too high" : `${low} too low, ${ratios.length - low} too high`;
    const numbers = missed === 1 ? " One number" : ratios.length === 1 ? ` ${missed} numbers missed. One of them` : ` ${missed} numbers missed,`;
    const those = ratios.length < missed ? ` ${ratios.length} of them` : "";
    text += ratios.length === 1 ? `${numbers} was too ${low ? "low" : "high"}, ${by}.` : `${numbers}${those} typically ${by}: ${side}.`;
  } else if (missed > 0) {
    text += missed === 1 ? " One number missed." : ` ${missed} numbers missed.`;
  }
  words.textContent = text;
}

function control(tag, text, act) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (tag === "button") { element.type = "button"; element.addEventListener("click", act); }
  return element;
}

(() => {
  for (const list of document.querySelectorAll("form.predict .order")) movable(list);
  for (const form of forms) {
    form.addEventListener("submit", event => { event.preventDefault(); answered(form); });
    form.querySelector(".skip").addEventListener("click", () => {
      progress.set("predictions", form.dataset.id, { verdict: "skipped" });
      show(form, { verdict: "skipped" });
      folds(form).querySelector("summary").focus();
      summary();
    });
  }
  const box = document.querySelector(".guesses");
  if (box) {
    const words = control("p", "");
    words.className = "guesses-words";
    words.role = "status";
    const told = control("p", "");
    told.role = "status";
    const file = document.createElement("input");
    file.type = "file";
    file.accept = ".json,application/json";
    file.hidden = true;
    file.addEventListener("change", async () => {
      const text = await file.files[0]?.text();
      file.value = "";
      if (text === undefined) return;
      told.textContent = progress.fault(text);
      if (told.textContent) return;
      const [kept, brought] = [progress.read(), JSON.parse(text)];
      for (const part of ["predictions", "questions", "exercises", "kernels"]) {
        if (brought[part]) kept[part] = { ...kept[part], ...brought[part] };
      }
      progress.replace(kept);
      told.textContent = "Imported.";
    });
    const everything = document.createElement("input");
    everything.type = "checkbox";
    everything.checked = settings.showsEverything;
    everything.addEventListener("change", () => {
      settings.showsEverything = everything.checked;
      restore();
      foldThoughts();
    });
    const label = control("label", "");
    label.className = "show-everything";
    label.append(everything, " Show everything, without being asked");
    // At the top of the chapter, where one decides how to read it.
    document.querySelector("main .minutes")?.after(label);
    const buttons = control("p", "");
    buttons.append(
      control("button", "Export your progress", () => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([JSON.stringify(progress.read(), null, 2) + "\n"], { type: "application/json" }));
        link.download = "to-device-progress.json";
        link.click();
        URL.revokeObjectURL(link.href);
      }), " ",
      control("button", "Import", () => file.click()), " ",
      control("button", "Erase all chapters", () => {
        if (!confirm("Erase all your answers, in every chapter?")) return;
        progress.erase();
        told.textContent = "Erased.";
      }),
    );
    if (!label.isConnected && forms.length > 0) box.append(label);
    box.append(words, buttons, file, told);
  }

  // The questions at the end of a chapter are kept too.
  const options = [...document.querySelectorAll(".questions input[type=radio]")];
  const restoreAll = () => {
    restore();
    const kept = progress.read().questions ?? {};
    for (const input of options) input.checked = kept[input.name]?.said === input.dataset.place;
  };
  document.addEventListener("progress-replaced", () => { forms.forEach(clear); restoreAll(); });
  restoreAll();
  if (settings.showsEverything) foldThoughts();
  for (const input of options) {
    const { name, value, dataset: { place } } = input;
    input.addEventListener("change", () => progress.set("questions", name, { said: place, right: value === "right" }));
  }

  // On paper everything is open.
  const closed = [];
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:is(.after, .think):not([open])")) { closed.push(fold); fold.open = true; }
  });
  addEventListener("afterprint", () => {
    for (const fold of closed.splice(0)) fold.open = false;
  });
})();
