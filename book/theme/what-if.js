// Experiments under sliders: the page runs them again when a knob moves, in the player's worker, and draws what comes. Without a
// player the picture of the first setting stands as it is.

const whatIf = (() => {
  const WAIT = 120; // milliseconds without another move

  // `run` gets the name of an experiment and its knobs (`batch_size=64`), and promises what `what_if` of the player gives.
  function set(block, run) {
    const knobs = block.querySelector(".knobs");
    const status = block.querySelector(".what-if-same");
    let wanted = 0, timer = 0;

    const chosen = () => [...knobs.querySelectorAll("input[type=range]")]
      .map(input => `${input.name}=${input.dataset.values.split(" ")[input.value]}`)
      .concat([...knobs.querySelectorAll("fieldset")]
        .map(field => `${field.dataset.knob}=${field.querySelector("input:checked").value}`));

    async function show() {
      const mine = ++wanted;
      block.ariaBusy = "true";
      try {
        const shown = await run(block.dataset.experiment, chosen());
        if (mine !== wanted) return; // another move has come since
        draw(shown);
      } catch (error) {
        if (mine === wanted) status.textContent = error.message;
      }
      if (mine === wanted) block.ariaBusy = "false";
    }

    function draw({ svg, narrow, words, same }) {
      const picture = document.createElement("div");
      picture.className = "picture";
      // It comes from the same Rust as the book's own pictures, which escapes every text in it.
      picture.innerHTML = svg + (narrow ?? "");
      const drawings = picture.querySelectorAll("svg");
      for (const drawing of drawings) drawing.setAttribute("aria-label", words);
      if (narrow) {
        drawings[0].classList.add("wide");
        drawings[1].classList.add("narrow");
      }
      const caption = document.createElement("p");
      caption.textContent = words;
      picture.append(caption);
      const old = block.querySelector(".picture");
      const moment = old.querySelector(".moments input");
      old.replaceWith(picture);
      timelines.touch(picture);
      memories.touch(picture, moment ? moment.value / moment.max : undefined);
      status.textContent = same.map(({ words }) => words).join(" ");
      status.classList.toggle("is-broken", same.some(({ holds }) => !holds));
    }

    knobs.addEventListener("input", ({ target }) => {
      const output = target.parentElement.querySelector("output");
      if (output) {
        output.textContent = target.dataset.values.split(" ")[target.value];
        target.setAttribute("aria-valuetext", output.textContent);
      }
      clearTimeout(timer);
      timer = setTimeout(show, WAIT);
    });
    for (const input of knobs.querySelectorAll("input[type=range]")) {
      input.setAttribute("aria-valuetext", input.dataset.values.split(" ")[input.value]);
    }
    knobs.hidden = false;
  }

  return { connect: run => { for (const block of document.querySelectorAll(".what-if")) set(block, run); } };
})();
