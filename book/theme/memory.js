// Memory over time: a slider shows the moments of a recording one after the other, and a block tells who took it and who gave
// it back. All moments are in the picture (drawing/src/memory_map/history.rs); here they are shown and hidden.

"use strict";

const memories = (() => {
  const HINT = "Point at a block, or reach it with Tab and the arrow keys, to see who took it and who gave it back.";

  // At first the moment of the peak is shown, or one so far along, from 0 to 1.
  function touch(picture, along) {
    const svg = picture.querySelector("svg:has(.now)");
    if (!svg || picture.querySelector(".moments")) return;
    const [first, ...moments] = svg.querySelector("metadata").dataset.moments.split("\n");
    const timed = [...svg.querySelectorAll("[data-from]")].map(element => ({
      element, from: Number(element.dataset.from), until: Number(element.dataset.until ?? Infinity),
      freed: Number(element.dataset.freed ?? Infinity), words: element.querySelector("title").textContent,
    }));
    const blocks = timed.filter(({ element }) => element.classList.contains("block"));
    const mark = svg.querySelector(".now");
    const width = svg.viewBox.baseVal.width - 2;
    let now = along === undefined ? Number(first) : Math.round(along * (moments.length - 1)), current = null;

    const tools = document.createElement("div");
    tools.className = "touch moments";
    tools.innerHTML = `<button type="button" title="One change back">‹</button>
      <input type="range" min="0" step="1"><button type="button" title="One change on">›</button>
      <p class="touch-words moment"></p><p class="touch-words who"></p>
      <p class="jumps"><button type="button">Who took it?</button> <button type="button">Who freed it?</button></p>`;
    const [back, on, taken, freed] = tools.querySelectorAll("button");
    const slider = tools.querySelector("input");
    const [moment, who] = tools.querySelectorAll(".touch-words");
    for (const button of [back, on]) button.ariaLabel = button.title;
    slider.ariaLabel = "Moment of the recording";
    slider.max = moments.length - 1;
    who.textContent = HINT;

    const isThere = ({ from, until }) => from <= now && now < until;
    const shown = () => blocks.filter(isThere);

    function show(next) {
      now = Math.min(Math.max(next, 0), moments.length - 1);
      for (const one of timed) {
        if (isThere(one)) one.element.removeAttribute("display");
        else one.element.setAttribute("display", "none");
        // Nobody holds it, and a stream still uses it.
        one.element.classList.toggle("is-waiting", one.freed <= now);
        one.element.classList.toggle("is-new", one.from === now && now > 0);
      }
      const x = 1 + (now + 0.5) * width / moments.length;
      mark.setAttribute("x1", x);
      mark.setAttribute("x2", x);
      const [counts, words] = moments[now].split("|").map(decodeURIComponent);
      slider.value = now;
      slider.setAttribute("aria-valuetext", `${now} of ${moments.length - 1}: ${words}; ${counts}`);
      moment.replaceChildren();
      const head = document.createElement("strong");
      head.textContent = `${now} of ${moments.length - 1}: `;
      moment.append(head, `${words}. ${counts}.`);
      if (!shown().some(({ element }) => element.getAttribute("tabindex") === "0")) reach(shown()[0]);
    }

    function reach(one) {
      for (const { element } of blocks) element.setAttribute("tabindex", element === one?.element ? 0 : -1);
    }

    function choose(one) {
      current?.element.setAttribute("aria-selected", false);
      current = one;
      one.element.setAttribute("aria-selected", true);
      who.textContent = one.words;
      taken.disabled = one.from === 0;
      freed.disabled = one.freed === Infinity;
    }

    svg.setAttribute("role", "listbox");
    svg.classList.add("is-touchable");
    for (const { element, words } of blocks) {
      element.setAttribute("role", "option");
      element.setAttribute("aria-selected", false);
      element.setAttribute("aria-label", words);
    }
    const of = target => blocks.find(({ element }) => element === target.closest?.(".block"));
    svg.addEventListener("focusin", ({ target }) => { const one = of(target); if (one) { reach(one); choose(one); } });
    svg.addEventListener("pointerover", ({ target }) => { const one = of(target); if (one) choose(one); });
    svg.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      const all = shown();
      all[all.indexOf(of(event.target)) + step]?.element.focus();
    });
    // A place on the curve is a moment.
    svg.addEventListener("click", event => {
      const one = of(event.target);
      if (one) { one.element.focus(); return; }
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      if ((event.clientY - box.top) * scale < Number(mark.getAttribute("y1"))) return;
      if ((event.clientY - box.top) * scale > Number(mark.getAttribute("y2"))) return;
      show(Math.floor((event.clientX - box.left) * scale / width * moments.length));
    });
    slider.addEventListener("input", () => show(Number(slider.value)));
    back.addEventListener("click", () => show(now - 1));
    on.addEventListener("click", () => show(now + 1));
    taken.addEventListener("click", () => { if (current) show(current.from); });
    freed.addEventListener("click", () => { if (current) show(current.freed); });
    taken.disabled = freed.disabled = true;

    svg.after(tools);
    show(now);
  }

  function touchAll(root) {
    for (const picture of root.querySelectorAll(".picture")) touch(picture);
  }
  touchAll(document);
  return { touch, touchAll };
})();
