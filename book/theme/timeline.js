// Timelines that can be touched: zoom, pan, and for each bar its words and the arrows of what comes before and after it. The
// picture has been drawn (drawing/src/timeline/), and has in its <metadata> what is known of each piece (touch.rs). Without
// this it stands as it is.

"use strict";

const timelines = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const HINT = "Point at a bar, or reach it with Tab and the arrow keys. The keys + and − zoom, and 0 shows all.";
  // Of a piece after another: what it says of the other, and what the other says of it.
  const WHY = {
    q: ["queued by", "queued"],
    s: ["on the same stream after", "on the same stream before"],
    e: ["waited for", "awaited by"],
    w: ["the host waited for", "the host waited here:"],
  };
  // A bar is drawn at least so wide.
  const NARROWEST = 1;

  const make = (name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const round = number => Math.round(number * 10) / 10;
  const microseconds = time => `${(time / 1000).toFixed(3)} µs`;

  // The pieces by their numbers, and the labels of the lanes.
  function read(data) {
    const lanes = [], pieces = [];
    for (const line of data.split("\n")) {
      if (line.startsWith("=")) {
        const bar = line.indexOf("|");
        lanes.push({ kind: line.slice(1, bar), label: decodeURIComponent(line.slice(bar + 1)) });
        continue;
      }
      const [numbers, ...texts] = line.split("|");
      const [name, more] = texts.map(decodeURIComponent);
      const [start, duration, sort, before] = numbers.split(" ");
      const links = before ? before.split(",").map(link => ({ why: link[0], number: Number(link.slice(1)) })) : [];
      pieces.push({
        number: pieces.length, lane: lanes.length - 1, start: Number(start), end: Number(start) + Number(duration),
        sort, name, more, before: links, after: [],
      });
    }
    for (const piece of pieces) {
      for (const { why, number } of piece.before) pieces[number].after.push({ why, number: piece.number });
    }
    return { lanes, pieces };
  }

  // All there is to say of a bar: its title, where it stands, what else is known, and what comes before and after it.
  function words({ lanes, pieces }, numbers, title) {
    const piece = pieces[numbers[0]];
    const known = [title, lanes[piece.lane].label];
    if (numbers.length === 1) {
      if (piece.more) known.push(piece.more);
      const tell = (links, side) => links.map(({ why, number }) => `${WHY[why][side]} ${pieces[number].name}`);
      known.push(...tell(piece.before, 0), ...tell(piece.after, 1));
    }
    return known.join("; ");
  }

  function view(svg, data, say) {
    const axis = svg.querySelector(".axis");
    const [left, right, bottom, end] = ["left", "right", "y", "end"].map(key => Number(axis.dataset[key]));
    const letter = 0.55 * Number(svg.getAttribute("font-size"));
    const names = [...svg.querySelectorAll(".names")];
    let from = 0, to = end, current = null;

    const across = time => left + (time - from) / (to - from) * (right - left);
    const within = x => Math.min(Math.max(x, left), right);

    const bars = new Map();
    // A bar: its element, the pieces that it stands for, and when they were.
    const bar = (element, numbers) => {
      const all = numbers.map(number => data.pieces[number]);
      const [start, stop] = [all[0].start, Math.max(...all.map(piece => piece.end))];
      element.setAttribute("role", "option");
      element.setAttribute("tabindex", -1);
      element.setAttribute("aria-selected", false);
      element.setAttribute("aria-label", words(data, numbers, element.querySelector("title").textContent));
      const one = { element, numbers, start, end: stop, parts: null, label: element.querySelector("text") };
      bars.set(element, one);
      return one;
    };
    const lanes = [...svg.querySelectorAll(".lane")].map(lane => {
      const own = [...lane.children].map(element => bar(element, element.dataset.b.split(" ").map(Number)));
      lane.setAttribute("role", "group");
      lane.setAttribute("aria-label", data.lanes[data.pieces[own[0].numbers[0]].lane].label);
      const box = lane.firstElementChild.querySelector("rect, path").getAttribute("d")?.match(/[\d.]+/g);
      const rect = lane.querySelector("rect");
      const [top, height] = box
        ? [Number(box[2]), Number(box[1]) - Number(box[2])]
        : [Number(rect.getAttribute("y")), Number(rect.getAttribute("height"))];
      return { element: lane, bars: own, top, height };
    });
    // What has no pieces of its own, and lies along the axis all the same.
    const whole = time => (time - left) / (right - left) * end;
    const others = [...svg.querySelectorAll(".idle, .beside rect")].map(element => {
      const [x, width] = ["x", "width"].map(key => Number(element.getAttribute(key)));
      return { element, start: whole(x), end: whole(x + width) };
    }).filter(({ element }) => Number(element.getAttribute("y")) < bottom);

    svg.setAttribute("role", "listbox");
    svg.classList.add("is-touchable");
    const arrows = svg.appendChild(make("g", { class: "arrows", "aria-hidden": true }));

    // Bars that stand for several pieces have one for each of them, which are seen where there is room.
    function partsOf(lane, several) {
      several.parts ??= several.numbers.map(number => {
        const piece = data.pieces[number];
        const like = lane.bars.find(({ numbers }) => data.pieces[numbers[0]].sort === piece.sort) ?? several;
        const element = like.element.cloneNode(true);
        element.querySelector("text")?.remove();
        element.querySelector("title").textContent =
          `${piece.name}: ${microseconds(piece.end - piece.start)}, from ${microseconds(piece.start)} (${data.lanes[piece.lane].kind})`;
        element.setAttribute("data-b", number);
        several.element.before(element);
        return bar(element, [number]);
      });
      return several.parts;
    }

    function place(one, lane) {
      const { element, start, end: stop } = one;
      const isSeen = stop >= from && start <= to;
      element.toggleAttribute("hidden", !isSeen);
      element.style.display = isSeen ? "" : "none";
      if (!isSeen) return;
      const x = within(across(start)), width = Math.max(within(across(stop)) - x, NARROWEST);
      for (const shape of element.querySelectorAll("rect")) {
        shape.setAttribute("x", round(x));
        shape.setAttribute("width", round(width));
      }
      const path = element.querySelector("path");
      if (path) {
        const low = lane.top + lane.height;
        path.setAttribute("d", `M${round(x)} ${low}V${lane.top}H${round(x + Math.max(width - 2, NARROWEST))}V${low}`);
      }
      name(one, lane, x, width);
    }

    // The name of a bar, in it or, of a named stretch, above it, where there is room.
    function name(one, lane, x, width) {
      const piece = data.pieces[one.numbers[0]];
      if (piece.sort === "r" && from === 0 && to === end) { if (one.label) one.label.style.display = "none"; return; }
      const fits = one.numbers.length === 1 && width > (piece.name.length + 1) * letter;
      if (fits && !one.label) {
        const fill = "kg".includes(piece.sort) ? "#fff" : "currentColor";
        const down = piece.sort === "r" ? -5 : lane.height / 2 + (piece.sort === "g" ? 2.5 : 4);
        one.label = make("text", { y: lane.top + down, "text-anchor": "middle", fill }, piece.name);
        one.element.append(one.label);
      }
      if (!one.label) return;
      one.label.style.display = fits ? "" : "none";
      one.label.setAttribute("x", round(x + width / 2));
    }

    function ticks() {
      const most = Math.floor((right - left) / 75);
      let step = 1;
      for (let decade = 1; (to - from) / step > most; decade *= 10) {
        step = [1, 2, 5].map(times => times * decade).find(wide => (to - from) / wide <= most) ?? decade * 10;
      }
      const line = (x1, y1, x2, y2) => make("line", { x1, y1, x2, y2, stroke: "currentColor", "stroke-opacity": 0.5 });
      const parts = [line(left, bottom, right, bottom)];
      for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
        const x = round(across(tick)), number = `${tick / 1000}`;
        const anchor = x + number.length * letter / 2 > right ? "end" : "middle";
        parts.push(line(x, bottom, x, bottom + 5), make("text", { x, y: bottom + 18, "text-anchor": anchor }, number));
      }
      axis.replaceChildren(...parts);
    }

    // What stands in a lane now: a bar for several pieces, or each of them.
    const shown = lane => lane.bars.flatMap(one => one.parts && one.element.style.display === "none" ? one.parts : [one])
      .filter(({ element }) => element.style.display !== "none");

    function draw() {
      for (const lane of lanes) {
        for (const one of lane.bars) {
          const width = across(one.end) - across(one.start);
          const hasRoom = one.numbers.length > 1 && width > 2 * NARROWEST * one.numbers.length;
          place(one, lane);
          if (hasRoom) partsOf(lane, one);
          for (const part of one.parts ?? []) {
            if (hasRoom) place(part, lane);
            else part.element.style.display = "none";
          }
          if (hasRoom) one.element.style.display = "none";
        }
      }
      for (const { element, start, end: stop } of others) {
        const x = within(across(start));
        element.setAttribute("x", round(x));
        element.setAttribute("width", round(within(across(stop)) - x));
      }
      for (const group of names) group.style.display = from === 0 && to === end ? "" : "none";
      svg.classList.toggle("is-zoomed", to - from < end);
      ticks();
      link(current);
    }

    // From here to there in time, within the recording and no closer than ten nanoseconds.
    function show(start, stop) {
      const length = Math.min(Math.max(stop - start, Math.min(10, end)), end);
      from = Math.min(Math.max(start, 0), end - length);
      to = from + length;
      draw();
    }
    const zoom = (factor, around) => show(around - (around - from) * factor, around + (to - around) * factor);
    const middle = () => current && current.end >= from && current.start <= to
      ? (Math.max(current.start, from) + Math.min(current.end, to)) / 2 : (from + to) / 2;

    // Arrows from what comes before a bar, and to what comes after it.
    function link(one) {
      arrows.replaceChildren();
      if (!one || one.numbers.length > 1) return;
      const piece = data.pieces[one.numbers[0]];
      const draw = (earlier, later, why) => {
        const [first, last] = [lanes[earlier.lane], lanes[later.lane]];
        const x1 = across(why === "q" ? earlier.start : earlier.end), x2 = across(why === "w" ? later.end : later.start);
        if (Math.min(x1, x2) > right + 0.5 || Math.max(x1, x2) < left - 0.5) return;
        const down = last.top >= first.top;
        const [y1, y2] = first === last
          ? [first.top, last.top]
          : [first.top + (down ? first.height : 0), last.top + (down ? 0 : last.height)];
        const [a, b] = [x1, x2].map(x => round(within(x)));
        // Between bars of one lane it goes over them.
        const bend = first === last ? y1 - 14 : (y1 + y2) / 2;
        arrows.append(make("path", { d: `M${a} ${y1}C${a} ${bend} ${b} ${bend} ${b} ${y2}`, fill: "none" }));
        const back = first === last || down ? -6 : 6;
        arrows.append(make("path", { d: `M${b - 3.5} ${y2 + back}L${b} ${y2}L${b + 3.5} ${y2 + back}`, class: "head" }));
      };
      for (const { why, number } of piece.before) draw(data.pieces[number], piece, why);
      for (const { why, number } of piece.after) draw(piece, data.pieces[number], why);
    }

    function choose(one) {
      current?.element.setAttribute("aria-selected", false);
      current = one;
      one.element.setAttribute("aria-selected", true);
      say(one.element.getAttribute("aria-label"));
      link(one);
    }
    // The one that the Tab key reaches.
    function reach(one) {
      for (const other of svg.querySelectorAll(".lane [tabindex='0']")) other.setAttribute("tabindex", -1);
      one.element.setAttribute("tabindex", 0);
    }
    const of = target => bars.get(target.closest?.(".lane > g"));

    function move(one) {
      if (one.end < from || one.start > to || (one.start < from && one.end > to && one.end - one.start < to - from)) {
        const length = to - from;
        show(one.start - length / 4, one.start + 3 * length / 4);
      }
      reach(one);
      one.element.focus();
    }
    // The bar of a lane that is nearest to a time.
    const nearest = (lane, time) => {
      const away = ({ start, end: stop }) => Math.max(start - time, time - stop, 0);
      return lane.bars.flatMap(one => shown({ bars: [one] })).reduce((best, one) => away(one) < away(best) ? one : best, lane.bars[0]);
    };

    svg.addEventListener("focusin", ({ target }) => { const one = of(target); if (one) { reach(one); choose(one); } });
    svg.addEventListener("pointerover", ({ target }) => { const one = of(target); if (one) choose(one); });
    svg.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const one = of(event.target);
      const row = lanes.findIndex(lane => lane.element === one?.element.parentElement);
      // Those outside of what is shown are reached too: the picture moves to them.
      const isCut = each => each.parts?.some(part => part.element.style.display !== "none");
      const inRow = lanes[row]?.bars.flatMap(each => isCut(each) ? each.parts : [each]) ?? [];
      const at = inRow.indexOf(one);
      const time = one ? Math.max(one.start, from) : from;
      const go = {
        ArrowRight: () => inRow[at + 1], ArrowLeft: () => inRow[at - 1], Home: () => inRow[0], End: () => inRow.at(-1),
        ArrowDown: () => lanes[row + 1] && nearest(lanes[row + 1], time),
        ArrowUp: () => lanes[row - 1] && nearest(lanes[row - 1], time),
      }[event.key];
      const change = {
        "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()),
        "0": () => show(0, end), Escape: () => show(0, end),
      }[event.key];
      if (!go && !change) return;
      event.preventDefault();
      event.stopPropagation();
      if (go) { const next = go(); if (next) move(next); } else change();
    });

    // The pointer's place as a time.
    const time = event => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      return from + (within(x) - left) / (right - left) * (to - from);
    };
    svg.addEventListener("wheel", event => {
      const isZoomed = to - from < end;
      if (event.ctrlKey) {
        event.preventDefault();
        zoom(2 ** (event.deltaY / 200), time(event));
      } else if (isZoomed && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const by = event.deltaX / svg.clientWidth * (to - from);
        show(from + by, to + by);
      }
    }, { passive: false });
    svg.addEventListener("dblclick", event => { event.preventDefault(); zoom(0.5, time(event)); });

    // One finger or the mouse moves the picture, two fingers make it larger.
    const held = new Map();
    svg.addEventListener("pointerdown", event => held.set(event.pointerId, event.clientX));
    svg.addEventListener("pointermove", event => {
      if (!held.has(event.pointerId)) return;
      const before = [...held.values()];
      const was = held.get(event.pointerId);
      held.set(event.pointerId, event.clientX);
      const width = svg.getBoundingClientRect().width;
      if (held.size === 2) {
        const [apart, now] = [before, [...held.values()]].map(([a, b]) => Math.max(Math.abs(a - b), 20));
        zoom(apart / now, time({ clientX: (before[0] + before[1]) / 2 }));
      } else if (to - from < end) {
        svg.setPointerCapture(event.pointerId);
        const by = (was - event.clientX) / width * (to - from);
        show(from + by, to + by);
      }
    });
    for (const over of ["pointerup", "pointercancel", "pointerleave"]) {
      svg.addEventListener(over, event => held.delete(event.pointerId));
    }

    if (lanes.length) reach(lanes[0].bars[0]);
    return { in: () => zoom(0.5, middle()), out: () => zoom(2, middle()), all: () => show(0, end) };
  }

  function touch(picture) {
    const source = picture.querySelector("svg:has(.axis) metadata");
    if (!source || picture.querySelector(".touch")) return;
    const data = read(source.dataset.pieces);
    const tools = document.createElement("div");
    tools.className = "touch";
    const said = document.createElement("p");
    said.className = "touch-words";
    said.textContent = HINT;
    const say = text => { said.textContent = text; };
    const drawings = [...picture.querySelectorAll("svg")].filter(svg => svg.querySelector(".axis"));
    const views = drawings.map(svg => ({ svg, ...view(svg, data, say) }));
    const button = (text, label, what) => {
      const element = document.createElement("button");
      element.type = "button";
      element.textContent = text;
      element.ariaLabel = element.title = label;
      // Of the two, for a page and for a phone, one is seen.
      element.addEventListener("click", () => {
        for (const one of views) if (one.svg.checkVisibility()) one[what]();
      });
      return element;
    };
    tools.append(button("+", "Zoom in", "in"), button("−", "Zoom out", "out"), button("all", "Show all of it", "all"), said);
    drawings.at(-1).after(tools);
  }

  // All timelines of a part of the page.
  function touchAll(root) {
    for (const picture of root.querySelectorAll(".picture")) touch(picture);
  }
  touchAll(document);
  return { touch, touchAll };
})();
