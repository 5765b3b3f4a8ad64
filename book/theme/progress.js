// What a reader has done, as the terminal writes it (see labs/src/frame/progress.rs). It is kept in this browser alone.

"use strict";

const KEPT = "to-device-progress";

const progress = {
  read() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT));
      if (kept?.[KEPT] === 1) return kept;
    } catch { /* Nothing can be kept here, or it is not ours. */ }
    return { [KEPT]: 1 };
  },
  write(kept) {
    let isKept = true;
    try {
      localStorage.setItem(KEPT, JSON.stringify(kept));
    } catch { isKept = false; /* The answer is compared all the same, and forgotten with the page. */ }
    this.tell();
    return isKept;
  },
  // Replaces all that was kept. The forms of the page follow.
  replace(kept) {
    this.write(kept);
    document.dispatchEvent(new Event("progress-replaced"));
  },
  erase() {
    try { localStorage.removeItem(KEPT); } catch { /* There was nothing. */ }
    this.tell();
    document.dispatchEvent(new Event("progress-replaced"));
  },
  // For whatever else on the page shows what is kept.
  tell() {
    document.dispatchEvent(new Event("progress"));
  },
  set(part, id, entry) {
    const kept = this.read();
    (kept[part] ??= {})[id] = entry;
    return this.write(kept);
  },
  remove(part, id) {
    const kept = this.read();
    delete kept[part]?.[id];
    this.write(kept);
  },
  // Why a text is none of ours, or nothing.
  fault(text) {
    let kept;
    try { kept = JSON.parse(text); } catch { return "This is not a progress file of this course."; }
    if (typeof kept !== "object" || kept === null || !(KEPT in kept)) return "This is not a progress file of this course.";
    if (kept[KEPT] !== 1) return `This file is of version ${kept[KEPT]}; this book reads version 1.`;
    for (const part of ["predictions", "questions", "exercises", "kernels"]) {
      const list = kept[part] ?? {};
      const isList = typeof list === "object" && !Array.isArray(list)
        && Object.values(list).every(entry => typeof entry === "object" && entry !== null);
      if (!isList) return `“${part}” in this file is not an object with ids as its keys.`;
    }
    if ("final" in kept && (typeof kept.final !== "object" || kept.final === null || Array.isArray(kept.final))) {
      return "“final” in this file is not the result of the final assessment.";
    }
    return "";
  },
};
