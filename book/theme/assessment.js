// The final assessment in its page: the program of a seed, function by function, with the versions of each to choose from. The module
// that has them all is loaded when the reader begins.

"use strict";

(() => {
  const place = document.querySelector(".final");
  if (!place) return;
  if (missing("assessment")) {
    place.append(missing("assessment"));
    return;
  }
  // A check runs all functions on all their machines.
  const LIMIT = 120_000;
  const checker = asking(document.querySelector("meta[name=assessment-module]").content, LIMIT);
  const ask = async (...words) => {
    const { code, answer } = await checker.ask({ call: "answer", words: words.map(String) });
    if (code !== 0) throw new Error("There is no such program.");
    return JSON.parse(answer);
  };
  const kinds = JSON.parse(place.dataset.kinds), columns = JSON.parse(place.dataset.columns);
  const last = Number(place.dataset.seeds) - 1;

  const make = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html.trim();
    return template.content.firstElementChild;
  };

  // ---- What is kept: the result as a terminal keeps it (course/src/standing.rs), and the program that is begun with its choices.

  const kept = () => progress.read().final ?? {};
  const keep = entry => progress.write({ ...progress.read(), final: { ...kept(), ...entry } });

  // The objectives that the faults test: each is met if all its faults are mended.
  function objectives(mended, open) {
    const all = new Map();
    for (const [id, isMet] of [...mended.map(id => [id, true]), ...open.map(id => [id, false])]) {
      const [chapter, objective, page, heading] = kinds[id];
      const one = all.get(`${chapter} ${objective}`) ?? { chapter, objective, met: true, "read again": [] };
      all.set(`${chapter} ${objective}`, one);
      const section = `${page}, ${heading}`;
      one.met &&= isMet;
      if (!isMet && !one["read again"].includes(section)) one["read again"].push(section);
    }
    const order = ({ chapter, objective }) => `${chapter} ${objective}`;
    return [...all.values()].sort((a, b) => order(a) < order(b) ? -1 : 1);
  }

  // ---- The program.

  let program = null, sections = [];
  const choice = () => sections.flatMap(({ form }) => choose.chosen(form));

  // One function, with the places that can be changed.
  function section({ name, comment, line, pieces, places, present }, chosen) {
    const fieldset = ({ what, options }, at) => `<fieldset><legend>${escaped(what)}</legend>${options.map((parts, option) =>
      `<div class="choice"><label><input type="radio" name="${name} ${at}" value="${option}"${chosen[at] === option ? " checked" : ""}> ${
        parts.map(part => `<code class="lines">${escaped(part)}</code>`).join('<span class="between">and further down</span>') || "nothing"
      }</label></div>`).join("")}</fieldset>`;
    const element = make(`<section class="final-function" id="final-${name}" aria-labelledby="final-${name}-name">
      <h3 id="final-${name}-name"><code>${name}</code></h3><p>${choose.inline(comment)}</p>
      <div class="exercise-code"><pre><code class="language-rust hljs" translate="no"></code></pre></div>
      <form class="choose"><details><summary>Change <code>${name}</code></summary>${places.map(fieldset).join("")}</details>
      <p><button type="submit">Run ${name}</button></p><div class="exercise-verdict" role="status"></div></form></section>`);
    const form = element.querySelector("form"), code = element.querySelector("code.hljs");
    code.style.setProperty("--lines-before", line - 1);
    const draw = () => choose.draw(code, pieces, choose.chosen(form));
    draw();
    form.addEventListener("change", () => {
      draw();
      form.querySelector(".exercise-verdict").replaceChildren();
      keep({ begun: { seed: program.seed, choice: choice() } });
      tellAge();
    });
    form.addEventListener("submit", event => { event.preventDefault(); look(name, form); });
    return { element, form, name, present };
  }

  async function working(form, work) {
    const verdict = form.querySelector(".exercise-verdict"), button = form.querySelector("button");
    button.disabled = true;
    verdict.className = "exercise-verdict";
    verdict.innerHTML = "<p>Running…</p>";
    try {
      await work(verdict);
    } catch (error) {
      verdict.innerHTML = `<p tabindex="-1">It does not work here. In a terminal, <code>cargo course final</code> has it.</p><p>${
        escaped(error.message)}</p>`;
    }
    button.disabled = false;
    verdict.querySelector("[tabindex]")?.focus();
  }

  const form = () => choose.isNarrow() ? "narrow" : "wide";
  // The first columns of a table are words, and the others numbers.
  const table = (label, words, heads, rows) => `<div class="table-wrapper" role="region" tabindex="0" aria-label="${label}"><table><thead><tr>${
    heads.map(head => `<th>${escaped(head)}</th>`).join("")}</tr></thead><tbody>${
    rows.map(row => `<tr>${row.map((cell, at) => `<td${at < words ? "" : ' class="number"'}>${escaped(cell)}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`;

  // One function as its machines saw it. Nothing is judged.
  const look = (name, of) => working(of, async verdict => {
    const runs = await ask("look", program.seed, choice().join(" "), name, form());
    verdict.innerHTML = "<p tabindex=\"-1\">Nothing is judged here. Times are modelled.</p>" + runs.map(({ machine, text, timeline }) =>
      `<h4>On ${escaped(machine)}</h4><pre translate="no"><code>${escaped(text)}</code></pre>` + (timeline
        ? `<details><summary>What the GPU did, and when</summary><figure><div class="picture">${timeline}</div></figure></details>` : "")).join("");
    for (const svg of verdict.querySelectorAll("svg")) svg.setAttribute("aria-label", `${name}: what the GPU did, and when`);
    timelines.touchAll(verdict);
  });

  // ---- All functions at once.

  const lookAtAll = of => working(of, async verdict => {
    const rows = [];
    for (const { name } of sections) {
      verdict.innerHTML = `<p>Running <code>${name}</code>…</p>`;
      for (const { machine, figures } of await ask("look", program.seed, choice().join(" "), name, form())) {
        rows.push([name, machine.replace(" (simulated)", ""), ...figures ?? []]);
      }
    }
    verdict.innerHTML = `<p tabindex="-1">Nothing is judged here. ${choose.inline(place.dataset.meaning)}</p>`
      + table("The work of each GPU", 2, ["function", "machine", ...columns], rows);
  });

  const check = of => working(of, async verdict => {
    const chosen = choice();
    const told = await ask("check", program.seed, chosen.join(" "));
    const all = objectives(told.mended, told.open);
    keep({
      seed: told.seed, points: told.points, passed: told.passed, objectives: all,
      begun: { seed: told.seed, choice: chosen },
    });
    verdict.dataset.checked = chosen.join(" ");
    verdict.className = `exercise-verdict ${told.passed ? "is-passed" : "is-not-yet"}`;
    verdict.innerHTML = verdictOf(told, all);
  });

  function verdictOf({ points, passed, categories, broken, parts, nothing, pace, seed }, all) {
    const rows = categories.map(([name, mended, of]) => [name, `${mended} of ${of} fixed`]);
    rows.push(["broken since", broken.length === 0 ? "none" : `${broken.length}: ${broken.join(", ")}`]);
    const [faults, time, memory, lastAct] = parts;
    const list = (heading, of) => of.length === 0 ? "" : `<h4>${heading}</h4><ul>${of.map(one =>
      `<li>Chapter ${one.chapter}: ${escaped(one.objective)}${one["read again"].map(section => {
        const [page, heading] = [section.slice(0, section.indexOf(",")), section.slice(section.indexOf(",") + 2)];
        return ` Read again: <a href="${page}.html#${slug(heading)}">${escaped(heading)}</a>.`;
      }).join("")}</li>`).join("")}</ul>`;
    const paced = pace.why ? `<p>Time, memory and the last act earn nothing: ${choose.inline(pace.why)}.</p>`
      : table("Where the time went", 1, ["modelled time of fit", "all faults fixed", "yours"], pace.table)
        + `<p>${pace.factor.toFixed(1)} times as fast as with all faults fixed and <code>fit</code> as it was; the last act asks for 20 times. ${
          (100 * pace.right).toFixed(1)} % of new rows are right.</p>`;
    return `<p tabindex="-1"><strong>${passed ? "passed" : "not yet"}:</strong> ${points} of 100 points (the program of seed ${seed})</p>
      <dl>${rows.map(([name, text]) => `<div><dt>${name}</dt><dd>${escaped(text)}</dd></div>`).join("")}</dl>
      <p>${faults} points for faults, ${time} for time, ${memory} for memory, ${lastAct} for the last act.</p>
      ${nothing ? `<p>${choose.inline(nothing)}.</p>` : ""}${paced}`
      + list("Objectives met", all.filter(one => one.met)) + list("Objectives still open", all.filter(one => !one.met));
  }

  // The anchor of a heading, as mdBook makes it.
  const slug = heading => heading.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").trim().replaceAll(" ", "-");

  // A verdict on earlier choices says that it is one.
  function tellAge() {
    const verdict = place.querySelector(".final-check .exercise-verdict"), { checked } = verdict.dataset;
    verdict.querySelector(".verdict-age")?.remove();
    if (checked === undefined || checked === choice().join(" ")) return;
    verdict.prepend(make('<p class="verdict-age">This is the verdict on your earlier choices. The program above has not been checked.</p>'));
  }

  // ---- The beginning.

  function show(told, chosen) {
    program = told;
    let from = 0;
    sections = told.functions.map(one => {
      const places = one.places.length, ofOne = chosen?.slice(from, from + places);
      from += places;
      const fits = ofOne?.length === places && ofOne.every((option, at) => option < one.places[at].options.length);
      return section(one, fits ? ofOne : one.present);
    });
    const all = make(`<div class="final-program"><h2 id="final-program" tabindex="-1">The program of seed ${told.seed}</h2></div>`);
    all.append(...sections.map(({ element }) => element));
    for (const [label, words, act] of [
      ["The work of all functions", "Run all functions", lookAtAll], ["Your points", "Check the program", check],
    ]) {
      const form = make(`<form class="choose"><h3>${label}</h3><p><button type="submit">${words}</button></p><div class="exercise-verdict" role="status"></div></form>`);
      form.addEventListener("submit", event => { event.preventDefault(); act(form); });
      if (act === check) form.classList.add("final-check");
      all.append(form);
    }
    place.querySelector(".final-program")?.remove();
    place.append(all);
    all.querySelector("h2").focus();
  }

  const begin = make(`<form class="choose final-begin"><p><label>Seed, from 0 to ${last}: <input type="number" name="seed" min="0" max="${last}" required></label>
    <button type="submit">Begin</button></p><div class="exercise-verdict" role="status"></div></form>`);
  // Anybody's, unless a teacher names one.
  begin.elements.seed.value = kept().begun?.seed ?? Math.floor(Math.random() * (last + 1));
  begin.addEventListener("submit", event => {
    event.preventDefault();
    const seed = Number(begin.elements.seed.value);
    working(begin, async verdict => {
      const told = await ask("program", seed);
      const { begun } = kept();
      const chosen = begun?.seed === seed ? begun.choice : undefined;
      if (chosen === undefined) keep({ begun: { seed } });
      verdict.replaceChildren();
      show(told, chosen);
    });
  });
  place.append(begin);
  document.addEventListener("progress-replaced", () => place.querySelector(".final-program")?.remove());
})();
