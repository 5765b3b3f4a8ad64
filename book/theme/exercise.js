// The exercises that one does in the page: what is chosen stands in the code, and the same check that a terminal has gives the
// verdict. The module with the check is loaded when somebody first chooses.

"use strict";

(() => {
  const exercises = [...document.querySelectorAll(".exercise")];
  if (exercises.length === 0) return;

  // ---- What is kept: as the terminal keeps it, see labs/src/frame/progress.rs.

  const kept = id => progress.read().exercises?.[id] ?? {};

  // Who has passed once has passed. The choice is kept as well, which a terminal does not have: a reload shows its code again.
  function checked(id, passed, choice) {
    const entry = kept(id);
    progress.set("exercises", id, { ...entry, passed: passed || entry.passed === true, checks: (entry.checks ?? 0) + 1, choice });
  }

  function states() {
    for (const exercise of exercises) {
      const { passed, checks } = kept(exercise.dataset.id);
      const state = exercise.querySelector(".exercise-state");
      state.textContent = passed ? "passed" : checks ? "begun" : "";
      state.classList.toggle("is-passed", passed === true);
    }
  }
  states();
  document.addEventListener("progress", states);

  for (const hint of document.querySelectorAll(".exercise [data-hint]")) {
    hint.addEventListener("toggle", () => {
      if (!hint.open) return;
      const { id } = hint.closest(".exercise").dataset;
      const entry = kept(id);
      progress.set("exercises", id, { ...entry, hints: Math.max(Number(hint.dataset.hint), entry.hints ?? 0) });
    });
  }

  // ---- The check, in a worker: the page never waits for it.

  const forms = [...document.querySelectorAll("form.choose")];
  const address = document.querySelector("meta[name=exercises-module]")?.content;
  if (missing("exercises")) {
    for (const form of forms) form.before(missing("exercises"));
    for (const element of document.querySelectorAll("form.choose, .in-page")) element.hidden = true;
    return;
  }
  // Runs end after so many operations. What takes longer than this is something else.
  const LIMIT = 30_000;
  const checker = asking(address, LIMIT);

  // ---- The code.

  const chosen = choose.chosen;

  function draw(form) {
    choose.draw(form.previousElementSibling.querySelector("code"), JSON.parse(form.dataset.code), chosen(form));
  }

  // ---- The verdict.

  const inline = choose.inline;

  function showVerdict(form, choice, passed, parts) {
    const verdict = form.querySelector(".exercise-verdict");
    verdict.className = `exercise-verdict ${passed ? "is-passed" : "is-not-yet"}`;
    if (passed) {
      const [runs, afterwards] = parts;
      verdict.innerHTML = `<p tabindex="-1"><strong>passed:</strong> ${escaped(runs)}</p><p>${inline(afterwards)}</p>`;
      return;
    }
    const [says, seen, expected, line, machine, idea, report, time, yours, solutions] = parts;
    const rows = [["seen", seen], ["expected", expected], ["where", line && `line ${line}`], ["machine", machine], ["idea", idea]];
    const row = ([name, text]) => text ? `<div><dt>${name}</dt><dd>${inline(text)}</dd></div>` : "";
    const picture = (name, svg) => `<figcaption>${name}</figcaption><div class="picture">${svg}</div>`;
    verdict.innerHTML = `<p tabindex="-1"><strong>not yet:</strong> ${inline(says)}</p><dl>${rows.map(row).join("")}</dl>`
      + (report ? `<pre><code>${escaped(report)}</code></pre>` : "")
      + (yours ? `<details${time ? " open" : ""}><summary>What the GPU did, with your code and with the solution</summary>`
        + `<figure>${picture("Your code", yours)}</figure><figure>${picture("The solution", solutions)}</figure></details>` : "");
    for (const [svg, name] of [...verdict.querySelectorAll("svg")].map((svg, at) => [svg, ["Your code", "The solution"][at]])) {
      svg.setAttribute("aria-label", `${name}: what the GPU did, and when`);
    }
    timelines.touchAll(verdict);
    if (choice.join(" ") !== chosen(form).join(" ")) return; // The code is another by now.
    form.previousElementSibling.querySelectorAll(".line")[Number(line) - 1]?.classList.add("is-told");
  }

  // A verdict stands below the code that it is of. If another choice is made, it says so.
  function tellAge(form) {
    const verdict = form.querySelector(".exercise-verdict"), { checked } = verdict.dataset;
    verdict.querySelector(".verdict-age")?.remove();
    if (checked === undefined || checked === chosen(form).join(" ")) return;
    const age = document.createElement("p");
    age.className = "verdict-age";
    age.textContent = "This is the verdict on your earlier choice. The code above has not been checked.";
    verdict.prepend(age);
  }

  async function submitted(form) {
    const verdict = form.querySelector(".exercise-verdict"), button = form.querySelector("button");
    const { id } = form.dataset, choice = chosen(form);
    draw(form);
    button.disabled = true;
    verdict.className = "exercise-verdict";
    verdict.innerHTML = "<p>Checking…</p>";
    delete verdict.dataset.checked;
    try {
      const words = [id, choice.join(" "), choose.isNarrow() ? "narrow" : "wide"];
      const { code, answer } = await checker.ask({ piece: `chapter-${id.split("-")[0]}`, call: "check", words });
      if (code === 2) throw new Error("It knows no such choice.");
      const passed = code === 0, parts = answer.split("\0");
      checked(id, passed, choice);
      verdict.dataset.checked = choice.join(" ");
      showVerdict(form, choice, passed, parts);
      tellAge(form);
    } catch (error) {
      verdict.innerHTML = `<p tabindex="-1">The check does not work here. In a terminal, <code>cargo course watch ${escaped(id)}</code> `
        + `has it.</p><p>${escaped(error.message)}</p>`;
    }
    button.disabled = false;
    verdict.querySelector("[tabindex]").focus();
  }

  // Shows the choice that was checked last; if none was, the code as it was at first.
  function restore(form) {
    form.reset();
    const verdict = form.querySelector(".exercise-verdict");
    verdict.replaceChildren();
    delete verdict.dataset.checked;
    const { choice } = kept(form.dataset.id);
    for (const [place, field] of form.querySelectorAll("fieldset").entries()) {
      const option = field.querySelector(`input[value="${Number(choice?.[place])}"]`);
      if (option) option.checked = true;
    }
    draw(form);
  }
  const restoreAll = () => forms.forEach(restore);

  document.addEventListener("progress-replaced", restoreAll);
  restoreAll();
  for (const form of forms) {
    form.addEventListener("change", () => { checker.start(); draw(form); tellAge(form); });
    form.addEventListener("submit", event => { event.preventDefault(); submitted(form); });
  }
})();
