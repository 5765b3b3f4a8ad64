// The projector: one prediction at a time, and bars of what a class guessed. Nothing leaves the page.

"use strict";

(() => {
  const room = document.querySelector(".room");
  // On the page for printing, which has all pages, there is nothing to project.
  if (!room || location.pathname.endsWith("/print.html")) return;
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const button = (text, act) => {
    const element = make("button", { type: "button", textContent: text });
    element.addEventListener("click", act);
    return element;
  };
  const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;

  const chapters = [...room.querySelectorAll(".room-chapter")].map(template => ({
    title: template.dataset.title,
    asked: [...template.content.querySelectorAll(".room-asked")].map(section => {
      const form = section.querySelector("form");
      for (const list of form.querySelectorAll(".order")) movable(list);
      const { id, key } = form.dataset, legend = form.querySelector("legend").cloneNode(true);
      legend.querySelector(".predict-label").remove();
      const letters = [...form.querySelectorAll("[data-letter]")];
      const options = [...form.querySelectorAll("input[type=radio]")].map(input => {
        const label = input.closest("label").cloneNode(true);
        label.querySelector("input").remove();
        return { said: input.value, words: label.innerHTML.trim() };
      });
      return { id, key, form, options, letters, question: legend.innerHTML.trim(), unit: section.dataset.unit, page: section.dataset.page, answer: section.querySelector(".room-answer").innerHTML };
    }),
    questions: [...template.content.querySelectorAll(".room-question")].map(section => ({
      id: section.dataset.id,
      ask: section.querySelector("p").innerHTML,
      choices: [...section.querySelectorAll("[data-place]")].map(choice => ({ place: choice.dataset.place, words: choice.querySelector("span").innerHTML, because: choice.querySelector("small").innerHTML })),
    })),
  })).filter(({ asked }) => asked.length > 0);

  // The hands of each prediction, by what they are for; the files of students; and a class that was graded.
  const hands = new Map(), files = new Map();
  let graded = [];
  let chapter = 0, place = 0;

  // What somebody said, in one form for all who said the same; nothing if it is no answer.
  const said = (asked, typed) => compare[kindOf(asked.form)](asked.form, typed)?.said ?? null;
  function guesses(asked) {
    const all = new Map(asked.options.map(({ said }) => [said, 0]));
    const add = (what, number) => { if (number > 0) all.set(what, (all.get(what) ?? 0) + number); };
    for (const [what, number] of hands.get(asked.id) ?? []) add(what, number);
    for (const { predictions = {} } of files.values()) {
      const { said: typed } = predictions[asked.id] ?? {};
      const what = typeof typed === "string" ? said(asked, typed) : null;
      if (what !== null) add(what, 1);
    }
    const sorted = kindOf(asked.form) === "number" ? [...all].sort(([one], [other]) => Number(one) - Number(other)) : [...all];
    return sorted;
  }
  const wordsOf = (asked, what) => {
    const option = asked.options.find(({ said }) => said === what);
    if (option) return option.words;
    if (asked.letters.length > 0) return what.split(" ").map(letter => asked.letters.find(thing => thing.dataset.letter === letter)?.querySelector(".thing")?.innerHTML).join(", ");
    return escaped(asked.unit ? `${what} ${asked.unit}` : what);
  };
  const isRight = (asked, what) => compare[kindOf(asked.form)](asked.form, what)?.verdict === "right";

  function bar(words, more) {
    const line = make("div", { className: "room-bar" }, make("div", { className: "room-words", innerHTML: words }));
    line.append(make("div", { className: "room-track" }, make("span", { className: "room-fill" })), make("div", { className: "room-number" }));
    if (more) line.append(make("small", { innerHTML: more }));
    return line;
  }
  function filled(line, number, most, all, isAnswer) {
    line.querySelector(".room-fill").style.width = `${most > 0 ? 100 * number / most : 0}%`;
    line.querySelector(".room-number").textContent = all > 0 ? `${number} (${Math.round(100 * number / all)} %)` : `${number}`;
    line.classList.toggle("is-right", isAnswer);
    return line;
  }

  // What the class got wrong in this chapter: predictions, questions, and diagnoses of a graded class, the most common first.
  function misconceptions({ asked, questions, title }) {
    const all = [];
    for (const one of asked) {
      for (const [what, number] of guesses(one)) {
        if (number > 0 && !isRight(one, what)) all.push({ number, words: `${one.question} <strong>${wordsOf(one, what)}</strong>`, because: "" });
      }
    }
    for (const question of questions) {
      for (const { place, words, because } of question.choices) {
        const number = [...files.values()].filter(({ questions = {} }) => questions[question.id]?.said === place).length;
        if (number > 0) all.push({ number, words: `${question.ask} <strong>${words}</strong>`, because });
      }
    }
    for (const { id, diagnosis, says, students } of graded) {
      if (title.startsWith(id === "final" ? diagnosis : id.split("-")[0])) all.push({ number: students.length, words: `${id === "final" ? "Assessment" : "Exercise"} <code>${escaped(id)}</code>: <strong>${escaped(diagnosis)}</strong>`, because: escaped(says) });
    }
    return all.sort((one, other) => other.number - one.number).slice(0, 10);
  }

  room.querySelector(".room-without").remove();
  const choose = make("select", { ariaLabel: "Chapter" });
  chapters.forEach(({ title }, index) => choose.append(make("option", { value: index, textContent: title })));
  choose.addEventListener("change", () => { chapter = Number(choose.value); place = 0; show(); });
  const where = make("span", { className: "room-where", role: "status" });
  const step = by => {
    place += by;
    if (place < 0 && chapter > 0) { chapter -= 1; place = chapters[chapter].asked.length - 1; }
    if (place >= chapters[chapter].asked.length && chapter + 1 < chapters.length) { chapter += 1; place = 0; }
    place = Math.min(Math.max(place, 0), chapters[chapter].asked.length - 1);
    show();
  };
  const large = button("Fill the screen", () => {
    const fills = document.documentElement.classList.toggle("room-fills");
    large.textContent = fills ? "Show the book again" : "Fill the screen";
    if (fills) document.documentElement.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen();
  });
  const stage = make("div", { className: "room-stage" });
  const wrong = make("details", { className: "room-wrong" }, make("summary", { textContent: "What this class got wrong in this chapter" }));
  const told = make("p", { role: "status" });
  const input = make("input", { type: "file", multiple: true, accept: ".json,application/json", hidden: true });
  input.addEventListener("change", () => { bring([...input.files]); input.value = ""; });
  const forget = button("Forget all hands and files", () => { hands.clear(); files.clear(); graded = []; told.textContent = "Forgotten."; show(); });
  const drop = make("div", { className: "room-drop" }, "Drop here the progress files that your students exported, or the class.json of a graded class. They stay in this page. ", button("Choose files", () => input.click()), " ", forget, input, told);
  for (const name of ["dragover", "drop"]) drop.addEventListener(name, event => event.preventDefault());
  drop.addEventListener("drop", event => bring([...event.dataTransfer.files]));
  room.append(make("div", { className: "room-controls" }, button("Back", () => step(-1)), button("Next", () => step(1)), choose, where, large), stage, wrong, drop);

  async function bring(list) {
    let read = 0;
    const faults = [];
    for (const file of list) {
      const text = await file.text();
      let json = null;
      try { json = JSON.parse(text); } catch { /* told below */ }
      if (json?.["to-device-class"] === 1 && Array.isArray(json.mistakes)) {
        graded = json.mistakes.filter(({ id, students }) => typeof id === "string" && Array.isArray(students));
        read += 1;
        continue;
      }
      const fault = progress.fault(text);
      if (fault) { faults.push(`${file.name}: ${fault}`); continue; }
      // The same file twice is one student.
      files.set(text, json);
      read += 1;
    }
    told.textContent = `${count(read, "file", "files")} read; ${count(files.size, "student", "students")} in all. ${faults.join(" ")}`;
    show();
  }

  function counted(asked, what, number) {
    const of = hands.get(asked.id) ?? new Map();
    of.set(what, number);
    hands.set(asked.id, of);
  }

  let opened = null;
  function show() {
    const { asked: all } = chapters[chapter], asked = all[place];
    choose.value = chapter;
    where.textContent = `${place + 1} of ${all.length}`;
    const bars = make("div", { className: "room-bars" }), rows = new Map();
    const isOpen = opened === asked.id;
    const draw = () => {
      const found = guesses(asked), numbers = found.map(([, number]) => number);
      const most = Math.max(0, ...numbers), sum = numbers.reduce((sum, number) => sum + number, 0);
      // Rows in which somebody types stay.
      if (rows.size === 0) bars.replaceChildren(...found.map(([what]) => bar(wordsOf(asked, what))));
      found.forEach(([what, number], index) => filled(rows.get(what) ?? bars.children[index], number, most, sum, answer.open && isRight(asked, what)));
      const list = misconceptions(chapters[chapter]);
      wrong.replaceChildren(wrong.querySelector("summary"), ...list.map(({ number, words, because }) => filled(bar(words, because), number, list[0].number, 0, false)));
      if (list.length === 0) wrong.append(make("p", { textContent: "Nothing so far: count hands, or drop files." }));
    };
    const answer = make("details", { className: "room-answered" }, make("summary", { textContent: "The answer" }), make("p", { innerHTML: asked.answer }));
    answer.open = isOpen;
    answer.addEventListener("toggle", () => { opened = answer.open ? asked.id : null; draw(); });
    const counts = make("div", { className: "room-hands" });
    const numberOf = (label, value) => make("input", { type: "number", min: 0, max: 999, inputMode: "numeric", ariaLabel: label, value });
    if (asked.options.length > 0) {
      for (const { said: what, words } of asked.options) {
        const plain = make("span", { innerHTML: words }).textContent;
        const field = numberOf(`Hands for ${plain}`, hands.get(asked.id)?.get(what) || "");
        field.addEventListener("input", () => { counted(asked, what, Math.max(0, Math.floor(Number(field.value)) || 0)); draw(); });
        const row = bar(words);
        row.prepend(field);
        rows.set(what, row);
        bars.append(row);
      }
    } else {
      const isOrder = asked.letters.length > 0;
      const what = make("input", { type: "text", size: 12, ariaLabel: isOrder ? "An order, such as b a c" : "A guess", placeholder: isOrder ? asked.letters.map(({ dataset }) => dataset.letter).sort().join(" ") : asked.unit });
      const field = numberOf("Hands for it", 1), state = make("span", { role: "status" });
      const add = button("Count", () => {
        const said_ = said(asked, what.value.trim());
        state.textContent = said_ === null ? " This is not a possible answer." : "";
        if (said_ === null) return;
        counted(asked, said_, (hands.get(asked.id)?.get(said_) ?? 0) + Math.max(1, Math.floor(Number(field.value)) || 1));
        what.value = "";
        draw();
      });
      if (isOrder) counts.append(make("p", { innerHTML: asked.letters.map(thing => `${thing.dataset.letter}: ${thing.querySelector(".thing")?.innerHTML ?? ""}`).join(" · ") }));
      counts.append(what, " ", field, " ", add, state);
    }
    stage.replaceChildren(make("p", { className: "room-question-text", innerHTML: asked.question }), counts, bars, answer, make("p", { className: "room-page" }, make("a", { href: `../${asked.page}#predict-${asked.id}`, textContent: "In its chapter" })));
    draw();
  }
  show();
})();
