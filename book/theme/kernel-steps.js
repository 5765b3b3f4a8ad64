// A warp of a kernel, statement by statement: which lanes execute it, the value of each variable in each lane, and the shared memory of
// the block. The emulator records the steps; here they are shown forwards and backwards.

"use strict";

const kernelSteps = (() => {
  const has = (lanes, lane) => (lanes >>> lane & 1) === 1;
  const lanesOf = lanes => Array.from({ length: 32 }, (_, lane) => lane).filter(lane => has(lanes, lane));
  // `0–7, 16`
  function ranges(lanes) {
    const runs = [];
    for (const lane of lanesOf(lanes)) {
      if (runs.at(-1)?.[1] === lane - 1) runs.at(-1)[1] = lane;
      else runs.push([lane, lane]);
    }
    return runs.map(([from, to]) => from === to ? `${from}` : `${from}–${to}`).join(", ");
  }

  // The value of the place with this number, of values as they are recorded: see `labs/lab_12/src/step.rs`.
  function valueOf(values, place) {
    if (Array.isArray(values)) return values[place];
    if (values === null || typeof values !== "object") return values;
    const value = values.from + values.by * place;
    if (values.of === undefined) return value;
    return value === 0 ? values.of : `${values.of} + ${value}`;
  }

  // The states after each step, made when they are asked for. Those of every sixteenth are kept, to go backwards.
  function states({ steps, variables, shared }) {
    const EVERY = 16;
    const kept = new Map([[-1, { lanes: variables.map(() => Array(32).fill(null)), cells: shared.map(({ cells }) => Array(cells).fill(null)) }]]);
    const copy = ({ lanes, cells }) => ({ lanes: lanes.map(of => [...of]), cells: cells.map(of => [...of]) });

    function apply(state, step) {
      const changed = { lanes: new Set(), cells: new Set() };
      for (const [array, first, count, values] of [...step.others ?? [], ...step.shared ?? []]) {
        for (let at = 0; at < count; at += 1) {
          state.cells[array][first + at] = valueOf(values, at);
          changed.cells.add(`${array} ${first + at}`);
        }
      }
      for (const [variable, lanes, values] of step.variables ?? []) {
        for (const [at, lane] of lanesOf(lanes).entries()) {
          state.lanes[variable][lane] = valueOf(values, at);
          changed.lanes.add(`${variable} ${lane}`);
        }
      }
      return changed;
    }

    return number => {
      let from = number - 1;
      while (!kept.has(from)) from -= 1;
      const state = copy(kept.get(from));
      let changed;
      for (let at = from + 1; at <= number; at += 1) {
        changed = apply(state, steps[at]);
        if (at % EVERY === 0 && !kept.has(at)) kept.set(at, copy(state));
      }
      return { ...state, changed };
    };
  }

  const text = value => value === null || value === undefined ? "" : typeof value === "number" ? `${Number(value.toPrecision(7))}` : value;

  // A row of cells, one for each lane.
  function row(name, title, cells) {
    return make("tr", {}, make("th", { scope: "row", title }, make("code", { textContent: name })), ...cells);
  }

  // The word for what the lanes do at a step.
  const EVENTS = {
    barrier: "They wait at the barrier.",
    opened: "All warps of the block have arrived: the barrier is open.",
    lanes: "They wait for other lanes of the warp.",
  };

  // A panel for a recording. `show` marks a line of the text, `record` records another warp, `close` is called when the panel is closed.
  function panel(recorded, { show, record, close }) {
    const { steps, statements, variables, shared, functions, lanes } = recorded;
    const stateAfter = states(recorded);
    let at = 0;

    const button = (textContent, ariaLabel, act) => {
      const element = make("button", { type: "button", textContent, ariaLabel });
      element.addEventListener("click", act);
      return element;
    };
    const slider = make("input", { type: "range", min: 0, max: steps.length - 1, step: 1, value: 0, ariaLabel: "Step" });
    const back = button("◀", "Step back", () => go(at - 1)), forth = button("▶", "Step forward", () => go(at + 1));
    const says = make("p", { className: "step-says", role: "status" });
    const table = make("div", { className: "table-wrapper", role: "region", tabIndex: 0, ariaLabel: "Lanes and their variables" });
    const memory = make("div", { className: "step-shared" });
    const field = (name, value, most) => make("label", {}, `${name} `, make("input", most === undefined
      ? { name, value, size: 6, autocomplete: "off", spellcheck: false } : { name, value, type: "number", min: name === "launch" ? 1 : 0, max: most, step: 1 }));
    const which = make("form", { className: "step-which" }, field("launch", recorded.launch, recorded.launches), field("block", recorded.in_block.join(",")),
      field("warp", recorded.warp, recorded.warps - 1), make("button", { type: "submit", textContent: "Show this warp" }));
    which.addEventListener("submit", event => {
      event.preventDefault();
      record([...new FormData(which)].map(([name, value]) => `${name}=${value.replaceAll(" ", "")}`).join(";"));
    });
    const element = make("section", { className: "step-panel", tabIndex: -1, ariaLabel: `Steps of ${recorded.kernel}` },
      make("p", { className: "step-title" }, make("code", { textContent: recorded.kernel })), which,
      make("div", { className: "run-bar", role: "group", ariaLabel: "Steps" }, back, forth, slider, button("Close", "Close the steps", close)), says, table, memory);

    slider.addEventListener("input", () => go(Number(slider.value)));
    element.addEventListener("keydown", event => {
      if (!event.key.startsWith("Arrow")) return;
      // mdBook turns the page on arrows.
      event.stopPropagation();
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move === undefined || event.target === slider || event.target.closest(".table-wrapper")) return;
      event.preventDefault();
      go(at + move);
    });

    function words(step) {
      const [, line, , , , of] = statements[step.statement];
      const parts = [`Step ${at + 1} of ${steps.length}, line ${line}`];
      if (of !== 0) parts[0] += ` in ${functions[of].name}`;
      parts.push(step.active >>> 0 === (2 ** lanes - 1) ? (lanes === 32 ? "all lanes" : `all ${lanes} lanes`) : `lanes ${ranges(step.active)}`);
      const sentences = [`${parts.join(": ")}.`];
      if (step.event) sentences.push(EVENTS[step.event]);
      for (const [waiting, statement] of step.elsewhere ?? []) {
        sentences.push(statement === null ? `Lanes ${ranges(waiting)} have finished.` : `Lanes ${ranges(waiting)} are at line ${statements[statement][1]}.`);
      }
      if (step.exited) sentences.push(`Lanes ${ranges(step.exited)} have ended.`);
      if (at === steps.length - 1 && recorded.message) sentences.push(recorded.message);
      return sentences.join(" ");
    }

    function lanesTable(step, state) {
      const active = lane => has(step.active, lane);
      const all = Array.from({ length: lanes }, (_, lane) => lane);
      const head = make("tr", {}, make("th", { scope: "col", textContent: "lane" }), ...all.map(lane =>
        make("th", { scope: "col", className: active(lane) ? "lane is-active" : "lane", textContent: lane, title: active(lane) ? "active" : "not active" })));
      const rows = variables.map(({ name, type }, variable) => ({ name, type, variable })).filter(({ variable }) => state.lanes[variable].some(value => value !== null));
      const cell = (value, isActive, isChanged) => make("td", { className: `${isActive ? "is-active" : ""}${isChanged ? " is-changed" : ""}`, textContent: text(value) });
      const accesses = (step.accesses ?? []).flatMap(({ do: what, of, lanes: which, at: places, is }) => {
        const by = new Map(lanesOf(which).map((lane, place) => [lane, place]));
        const of_lane = values => all.map(lane => by.has(lane) ? valueOf(values, by.get(lane)) : null);
        return [{ name: `${what} ${of ?? ""}[ ]`, type: "index of the element", values: of_lane(places) }, { name: `${what === "load" ? "value loaded" : "value written"}`, type: "", values: of_lane(is) }];
      });
      return make("table", { className: "step-lanes" }, make("thead", {}, head), make("tbody", {},
        ...rows.map(({ name, type, variable }) => row(name, type, all.map(lane => cell(state.lanes[variable][lane], active(lane), state.changed.lanes.has(`${variable} ${lane}`))))),
        ...accesses.map(({ name, type, values }) => row(name, type, all.map(lane => cell(values[lane], active(lane), false))))));
    }

    // An array in shared memory: its last dimension is a row; that of a long one, and of an array of one dimension, is as long as a warp.
    function array({ name, type, shape, fields, cells }, number, state) {
      const last = shape.length > 1 && shape.at(-1) <= 64 ? shape.at(-1) : 32, width = last * fields.length;
      const rows = [];
      for (let first = 0; first < cells && rows.length < 64; first += width) {
        rows.push(make("tr", {}, ...Array.from({ length: Math.min(width, cells - first) }, (_, at) => make("td", {
          className: state.changed.cells.has(`${number} ${first + at}`) ? "is-changed" : "",
          title: `${name}[${first + at}]`,
          textContent: text(state.cells[number][first + at]) || "·",
        }))));
      }
      return make("div", { className: "table-wrapper", role: "region", tabIndex: 0, ariaLabel: `Shared memory: ${name}` },
        make("p", {}, make("code", { textContent: `__shared__ ${type.replace(/^([^[]*)/, `$1 ${name}`)}` })), make("table", {}, make("tbody", {}, ...rows)));
    }

    function go(number) {
      at = Math.max(0, Math.min(steps.length - 1, number));
      const step = steps[at], state = stateAfter(at);
      slider.value = at;
      slider.setAttribute("aria-valuetext", `${at + 1} of ${steps.length}`);
      says.textContent = words(step);
      const along = table.scrollLeft;
      table.replaceChildren(lanesTable(step, state));
      table.scrollLeft = along;
      memory.replaceChildren(...shared.map((one, number) => array(one, number, state)));
      const [file, line] = statements[step.statement];
      show(recorded.files[file] === "my.cu" ? line : null);
    }

    go(0);
    return element;
  }

  return { panel };
})();
