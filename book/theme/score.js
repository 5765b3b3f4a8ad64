// How the reader did in all chapters: counted from what progress.js keeps, in the words of labs/questions/src/score.rs.

"use strict";

const score = {
  // So many are right, of so many that were tried, of so many that there are.
  count(ids, isRight) {
    const answers = ids.map(isRight).filter(answer => answer !== null);
    return { right: answers.filter(Boolean).length, tried: answers.length, all: ids.length };
  },
  shown(objective, kept) {
    const { questions = {}, exercises = {}, predictions = {} } = kept;
    const exercise = ({ passed, checks } = {}) => passed === true ? true : checks > 0 ? false : null;
    const bet = ({ verdict } = {}) => typeof verdict !== "string" || verdict === "skipped" ? null : verdict === "right";
    return {
      questions: this.count(objective.questions, id => questions[id]?.right ?? null),
      exercises: this.count(objective.exercises, id => exercise(exercises[id])),
      bets: this.count(objective.predictions, id => bet(predictions[id])),
    };
  },
  // Bets do not decide it: they are there to be lost.
  state({ questions, exercises, bets }) {
    if (questions.right === questions.all && exercises.right === exercises.all && questions.all + exercises.all > 0) return "shown";
    return questions.tried + exercises.tried + bets.tried > 0 ? "begun" : "not yet";
  },
  words(shown) {
    return Object.entries(shown).filter(([, { all }]) => all > 0).map(([kind, { right, all }]) => `${kind} ${right} of ${all}`).join(", ");
  },
  total(all) {
    const states = all.map(shown => this.state(shown));
    const shown = states.filter(state => state === "shown").length, begun = states.filter(state => state === "begun").length;
    if (shown + begun === 0) return "You have not answered anything yet.";
    const sum = what => all.reduce((sum, { bets }) => sum + bets[what], 0);
    const ofAll = shown === all.length ? `all ${all.length}` : `${shown} of ${all.length}`;
    const more = begun > 0 ? `, and begun ${begun} more` : "";
    const bets = sum("tried") === 0 ? "You have made no bets." : `You made ${sum("tried")} of ${sum("all")} bets, and won ${sum("right")}.`;
    return `You have shown ${ofAll} objectives${more}. ${bets}`;
  },
  // The result of the final assessment in a sentence.
  assessment({ points, passed, objectives, seed } = {}) {
    if (points === undefined) return "You have not checked the final assessment.";
    const all = Array.isArray(objectives) ? objectives : [], met = all.filter(one => one.met === true).length;
    return `The final assessment: ${passed === true ? "passed" : "not yet"}, ${points} of 100 points, ${met} of ${all.length} objectives met (the program of seed ${seed}).`;
  },
  unknown(count) {
    const answers = count === 1 ? "One answer belongs" : `${count} answers belong`;
    return count === 0 ? "" : `${answers} to a version of the course that is not this one: kept, but not counted here.`;
  },
};

(() => {
  const page = document.querySelector(".score");
  if (!page) return;
  const ids = text => text.split(" ").filter(Boolean);
  const chapters = [...page.querySelectorAll(".score-objectives")].map(list => ({
    title: list.dataset.title + ("optional" in list.dataset ? ", optional" : ""),
    page: list.dataset.page,
    objectives: [...list.children].map(item => ({
      item,
      link: item.querySelector("a"),
      questions: ids(item.dataset.questions),
      open: ids(item.dataset.open),
      exercises: ids(item.dataset.exercises),
      predictions: ids(item.dataset.predictions),
    })),
  }));
  const forms = [...page.querySelectorAll("template[data-bet]")].map(template => {
    const form = template.content.querySelector("form").cloneNode(true);
    for (const list of form.querySelectorAll(".order")) movable(list);
    return { form, page: template.dataset.page };
  });

  const linked = ({ href, innerHTML }) => make("a", { href, innerHTML });

  function bets(predictions) {
    const list = page.querySelector(".score-bets");
    list.replaceChildren();
    for (const { form, page: ofPage } of forms) {
      const { id } = form.dataset, { verdict, said } = predictions[id] ?? {};
      if (!["off", "wrong"].includes(verdict) || typeof said !== "string") continue;
      const result = compare[kindOf(form)](form, said);
      // What was wrong once may be no answer in this version, or right.
      if (!result || result.verdict === "right") continue;
      const question = form.querySelector("legend").cloneNode(true);
      question.querySelector(".predict-label").remove();
      const asked = make("p", { className: "score-asked" }, make("a", { href: `${ofPage}#predict-${id}` }, ...question.childNodes));
      list.append(make("li", {}, asked, make("p", { className: "score-answer", innerHTML: result.html })));
    }
    const lost = list.childElementCount, made = Object.values(predictions).some(({ verdict }) => verdict === "right");
    const none = page.querySelector(".score-no-bets");
    none.hidden = lost > 0;
    none.textContent = made ? "None so far. Either you know all this, or you bet carefully." : "A bet that you lost appears here with the real value, and with what you know now.";
  }

  // The picture of the twelve moments, and the list below it, say what became of each bet.
  function moments(predictions) {
    const words = { right: "bet won", wrong: "bet lost", off: "bet lost" };
    for (const moment of document.querySelectorAll(".ending [data-bet]")) {
      moment.querySelector(".moment-bet").textContent = words[predictions[moment.dataset.bet]?.verdict] ?? "";
    }
  }

  function next(all) {
    const list = page.querySelector(".score-next");
    const isBegun = ({ objectives }) => objectives.some(objective => all.get(objective).state !== "not yet");
    const unread = chapters.filter(chapter => !isBegun(chapter));
    const again = chapters.filter(isBegun).flatMap(({ objectives }) => objectives.filter(objective => all.get(objective).state !== "shown"));
    list.replaceChildren();
    const line = (words, links) => {
      const item = make("li", {}, `${words} `);
      for (const [place, link] of links.entries()) item.append(place > 0 ? "; " : "", link);
      item.append(".");
      list.append(item);
    };
    const named = ({ page: href, title }) => make("a", { href, textContent: title });
    if (unread.length === chapters.length) line("Begin with", [named(chapters[0])]);
    else if (unread.length > 0) line("You have not begun", unread.map(named));
    for (const { link } of again) list.append(make("li", {}, "Look again: ", linked(link)));
    if (unread.length + again.length === 0) list.append(make("li", {}, "You have shown everything in this book."));
  }

  function tell() {
    const kept = progress.read();
    const all = new Map();
    for (const objective of chapters.flatMap(({ objectives }) => objectives)) {
      const shown = score.shown(objective, kept), state = score.state(shown);
      all.set(objective, { shown, state });
      objective.item.dataset.state = state;
      objective.item.querySelector(".score-state").textContent = state;
      objective.item.querySelector(".score-words").textContent = score.words(shown);
    }
    const total = score.total([...all.values()].map(({ shown }) => shown));
    const isEmpty = [...all.values()].every(({ state }) => state === "not yet");
    page.querySelector(".score-total").textContent = isEmpty
      ? `${total} That is a fine time to begin: make a bet in the first chapter, and come back. If you have worked in a terminal or in another browser, import your progress below.`
      : total;
    page.querySelector(".score-final").textContent = score.assessment(kept.final);
    const known = new Set([...all.keys()].flatMap(({ questions, open, exercises, predictions }) =>
      [...[...questions, ...open].map(id => `questions ${id}`), ...exercises.map(id => `exercises ${id}`), ...predictions.map(id => `predictions ${id}`)]));
    const done = ["questions", "predictions", "exercises"].flatMap(part => Object.keys(kept[part] ?? {}).map(id => `${part} ${id}`));
    const unknown = page.querySelector(".score-unknown");
    unknown.textContent = score.unknown(done.filter(id => !known.has(id)).length);
    unknown.hidden = unknown.textContent === "";
    bets(kept.predictions ?? {});
    moments(kept.predictions ?? {});
    next(all);
  }

  const print = make("button", { type: "button", className: "score-print", textContent: "Print this page" });
  print.addEventListener("click", () => window.print());
  // On the page for printing, which has all pages, only the first such box is filled.
  (page.querySelector(".guesses p:has(button)") ?? page.querySelector(".guesses")).append(" ", print);
  document.addEventListener("progress", tell);
  document.addEventListener("progress-replaced", tell);
  tell();
})();
