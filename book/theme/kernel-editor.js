// A small editor for CUDA C++: a text field, and the same text behind it in colours, with numbers and marks beside its lines. Both wrap
// alike, so each letter stands on its coloured copy. The field never scrolls: it is as high as the text.

"use strict";

const kernelCode = (() => {
  const KEYWORDS = new Set((
    "alignas alignof auto bool break case char class const const_cast constexpr continue decltype default delete do double dynamic_cast else enum "
    + "explicit extern false float for friend goto if inline int int8_t int16_t int32_t int64_t long mutable namespace new noexcept nullptr operator "
    + "private protected public register reinterpret_cast return short signed size_t sizeof static static_assert static_cast struct switch template "
    + "this throw true try typedef typename uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile while").split(" "));
  const OF_CUDA = /^(__\w+|threadIdx|blockIdx|blockDim|gridDim|warpSize|dim3|cuda[A-Z]\w*|atomic[A-Z]\w*|(float|int|uint|double)[234])$/;
  const TOKENS = new RegExp([
    String.raw`(?<comment>//[^\n]*|/\*[^]*?(?:\*/|(?![^])))`,
    String.raw`(?<meta>^[ \t]*#(?:[^\n/]|/(?![/*]))*)`,
    String.raw`(?<string>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)`,
    String.raw`(?<number>\b0[xX][\da-fA-F']+\w*|(?:\b\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)`,
    String.raw`(?<word>[A-Za-z_]\w*)`,
  ].join("|"), "gm");

  function kindOf(word, after) {
    if (KEYWORDS.has(word)) return "keyword";
    if (OF_CUDA.test(word)) return "built_in";
    return /^\s*(\(|<<<)/.test(after) ? "title" : "";
  }

  // The lines of a text as HTML.
  function lines(text) {
    const html = [""];
    const add = (piece, kind) => {
      for (const [at, part] of piece.split("\n").entries()) {
        if (at > 0) html.push("");
        if (part) html[html.length - 1] += kind ? `<span class="hljs-${kind}">${escaped(part)}</span>` : escaped(part);
      }
    };
    let end = 0;
    for (const { 0: token, index, groups } of text.matchAll(TOKENS)) {
      add(text.slice(end, index));
      end = index + token.length;
      add(token, groups.word ? kindOf(token, text.slice(end, end + 20)) : Object.keys(groups).find(kind => groups[kind]));
    }
    add(text.slice(end));
    return html;
  }

  // Underlines characters of a line. Columns count characters from 1, and strings of JavaScript count some characters twice.
  function underline(line, column, length) {
    const characters = [...line.textContent];
    const units = count => characters.slice(0, count).join("").length;
    let from = units(column - 1), to = units(column - 1 + length);
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const size = text.data.length, [begin, end] = [Math.max(from, 0), Math.min(to, size)];
      if (begin < end) {
        const part = text.splitText(begin);
        part.splitText(end - begin);
        const underlined = make("span", { className: "editor-underlined" });
        part.replaceWith(underlined);
        underlined.append(part);
      }
      from -= size;
      to -= size;
    }
  }

  return { lines, underline };
})();

// Makes an editor with a text and a name. `changed` is called after each change of the text, `run` on Ctrl+Enter.
function kernelEditor(text, name, { changed, run }) {
  const layer = make("div", { className: "editor-layer", ariaHidden: "true" });
  const area = make("textarea", { className: "editor-area", value: text, spellcheck: false, autocomplete: "off", ariaLabel: name });
  for (const off of ["autocapitalize", "autocorrect"]) area.setAttribute(off, "off");
  for (const one of [layer, area]) one.setAttribute("translate", "no");
  const element = make("div", { className: "editor" }, layer, area);
  let marks = [];

  const line = number => layer.children[Math.min(number, layer.children.length) - 1];

  function draw() {
    layer.innerHTML = kernelCode.lines(area.value).map(html => `<span class="line">${html}</span>`).join("");
    for (const { line: number, column, length, kind } of marks) {
      line(number).classList.add(`is-${kind}`);
      if (length) kernelCode.underline(line(number), column, length);
    }
  }

  // Marks lines: each as `{ line, kind }`, with `column` and `length` if characters of it are underlined.
  function mark(next) {
    marks = next;
    draw();
  }

  // ---- Changes. They are made as if typed, so that the browser can undo them.

  function insert(typed) {
    if (document.execCommand(typed === "" ? "delete" : "insertText", false, typed)) return;
    area.setRangeText(typed, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
  }

  function replace(from, to, typed) {
    area.focus({ preventScroll: true });
    area.setSelectionRange(from, to);
    if (from < to || typed !== "") insert(typed);
  }

  const begins = at => area.value.lastIndexOf("\n", at - 1) + 1;

  function indent(isBack) {
    const { value, selectionStart: from, selectionEnd: to } = area;
    if (!isBack && from === to) { insert(" ".repeat(4 - (from - begins(from)) % 4)); return; }
    // A selection that ends at the beginning of a line does not include this line.
    const last = from < to && begins(to) === to ? to - 1 : to;
    const start = begins(from), end = value.indexOf("\n", last) < 0 ? value.length : value.indexOf("\n", last);
    const before = value.slice(start, end).split("\n");
    const after = before.map(line => isBack ? line.replace(/^( {1,4}|\t)/, "") : line && `    ${line}`);
    const longer = (after, before) => after.join("\n").length - before.join("\n").length;
    replace(start, end, after.join("\n"));
    const first = Math.max(start, from + longer(after.slice(0, 1), before.slice(0, 1)));
    area.setSelectionRange(first, Math.max(first, to + longer(after, before)));
  }

  // A new line is indented like the one before it, and deeper after a brace that opens. A brace that closes takes that back.
  function breakLine() {
    const before = area.value.slice(begins(area.selectionStart), area.selectionStart);
    insert(`\n${/^[ \t]*/.exec(before)[0]}${/\{\s*$/.test(before) ? "    " : ""}`);
  }

  function closeBrace() {
    const { selectionStart: at, selectionEnd: end, value } = area;
    const isFirst = at === end && /^ {4,}$/.test(value.slice(begins(at), at));
    if (isFirst) replace(at - 4, at, "}");
    return isFirst;
  }

  // ---- Keys. Tab indents; after Escape, it leaves.

  let leaves = false;
  area.addEventListener("keydown", event => {
    // mdBook's own keys turn the page, and open the search.
    event.stopPropagation();
    if (event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    const hasModifier = event.ctrlKey || event.metaKey || event.altKey, isLeaving = leaves && event.key === "Tab";
    leaves = event.key === "Escape";
    if (isLeaving) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
    else if (hasModifier) return;
    else if (event.key === "Tab") { event.preventDefault(); indent(event.shiftKey); }
    else if (event.key === "Enter") { event.preventDefault(); breakLine(); }
    else if (event.key === "}" && closeBrace()) event.preventDefault();
  });
  area.addEventListener("blur", () => { leaves = false; });
  area.addEventListener("input", () => { draw(); changed(); });

  // Puts the cursor on a character of a line.
  function goTo(number, column = 1) {
    const all = area.value.split("\n"), before = all.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
    const at = before + [...all[number - 1] ?? ""].slice(0, column - 1).join("").length;
    area.focus({ preventScroll: true });
    area.setSelectionRange(at, at);
    line(number).scrollIntoView({ block: "nearest" });
  }

  draw();
  return {
    element, area, mark, goTo,
    get text() { return area.value; },
    // Replaces the text so that it can be undone, or from the beginning.
    type: typed => replace(0, area.value.length, typed),
    set: typed => { area.value = typed; draw(); },
  };
}
