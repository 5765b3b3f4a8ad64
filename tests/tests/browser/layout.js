// What is wrong with where things are on the page.

// What may be wider than the window, because it scrolls inside itself.
const scrolls = "pre, .table-wrapper, .picture";

function name(element) {
  const classes = [...element.classList].map(name => "." + name).join("");
  const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
  return `${element.localName}${element.id && "#" + element.id}${classes} "${text}"`;
}

function seen() {
  const elements = [...document.body.querySelectorAll("*")];
  return elements.filter(element => element.checkVisibility({ visibilityProperty: true }));
}

// What is wider than the window.
function wide() {
  const { scrollWidth, clientWidth } = document.documentElement;
  const found = scrollWidth > clientWidth ? [`wide: the page is ${scrollWidth} wide in a window of ${clientWidth}`] : [];
  for (const element of seen()) {
    const right = Math.round(element.getBoundingClientRect().right);
    if (right > clientWidth && !element.parentElement.closest(scrolls)) {
      found.push(`wide: ${name(element)} ends at ${right} in a window of ${clientWidth}`);
    }
  }
  return found;
}

// What would have to be scrolled, which paper cannot be.
function cut() {
  const found = [];
  for (const element of seen()) {
    const { display, overflowX, overflowY } = getComputedStyle(element);
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = element;
    // Within a line nothing scrolls.
    if (display === "inline") continue;
    if (overflowX !== "visible" && scrollWidth > clientWidth + 1) found.push(`cut: ${name(element)} in its width`);
    if (overflowY !== "visible" && scrollHeight > clientHeight + 1) found.push(`cut: ${name(element)} in its height`);
  }
  return found;
}

// Words of a picture that run into each other, or out of it.
function jumbled() {
  const found = [];
  for (const svg of document.querySelectorAll(".picture svg")) {
    if (!svg.checkVisibility()) continue;
    const edge = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(text => text.getBoundingClientRect().width > 0).map(text => [name(text), text.getBoundingClientRect()]);
    texts.forEach(([one, a], index) => {
      if (a.left < edge.left - 1 || a.right > edge.right + 1) found.push(`jumbled: ${one} leaves its picture`);
      for (const [other, b] of texts.slice(index + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 0.5 * Math.min(a.height, b.height)) found.push(`jumbled: ${one} and ${other}`);
      }
    });
  }
  return found;
}
