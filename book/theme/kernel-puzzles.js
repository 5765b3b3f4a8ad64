// Puzzles and cases: a kernel to write or to repair, which is judged by its results and by its use of the hardware. The same judge as in a terminal gives each
// figure next to the one that is asked for.

"use strict";

for (const figure of kernels.figures("figure.kernel:is([data-puzzle], [data-case])")) {
  if (!kernels.isHere) { figure.querySelector("figcaption").before(missing("kernels")); continue; }
  const { puzzle, case: story } = figure.dataset;
  const [kind, name] = puzzle ? ["puzzle", puzzle] : ["case", story];

  function states() {
    const { passed, checks } = bench.kept();
    const state = figure.querySelector(".puzzle-state");
    state.textContent = passed ? "solved" : checks ? "begun" : "";
    state.classList.toggle("is-passed", passed === true);
  }

  const MARKS = new Map([[true, "✓ right"], [false, "✗ not yet"], [null, "not judged"]]);

  function gates(all) {
    const head = make("tr", {}, ...["gate", "yours", "asked for", "verdict"].map(textContent => make("th", { scope: "col", textContent })));
    const rows = all.map(({ name, passes, yours, bound, limit }) => make("tr", { className: `gate ${passes === false ? "is-wrong" : passes ? "is-passed" : ""}` },
      make("th", { scope: "row", textContent: name }), make("td", { className: "number", textContent: yours ?? "–" }),
      make("td", { className: "number", textContent: `${bound} ${limit}` }), make("td", { className: "gate-mark", textContent: MARKS.get(passes) })));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { className: "table-wrapper", role: "region", tabIndex: 0, ariaLabel: `The gates of the ${kind}` }, table);
  }

  async function judge(text) {
    const answer = await kernels.run(kind, name, text);
    if (answer.errors) return answer;
    const { passed, checks = 0 } = bench.kept();
    bench.keepEntry({ passed: passed === true || answer.right, checks: checks + 1 });
    const nodes = [make("p", { className: `kernel-verdict ${answer.right ? "is-passed" : "is-wrong"}` }, make("strong", { textContent: answer.summary }))];
    nodes.push(...answer.advice.map(advice => make("p", { innerHTML: choose.inline(advice) })));
    let lines = [];
    if (answer.with) nodes.push(make("p", { textContent: `With ${answer.with}${answer.element ? `: ${answer.element}` : ":"}` }));
    if (answer.report) {
      // All of its findings are faults here, even a race of equal numbers.
      const findings = answer.report.findings.map(finding => ({ ...finding, severity: "error" }));
      const report = kernelReport.shown({ ...answer.report, findings, code: 1 }, "", bench.place);
      // What the host half prints is for the judge.
      nodes.push(...report.nodes.filter(node => node.localName === "ul"));
      lines = report.lines;
    }
    if (answer.smallest) nodes.push(make("p", { textContent: `The smallest launch that fails: ${answer.smallest}.` }));
    nodes.push(gates(answer.gates));
    return { nodes, lines, said: answer.summary };
  }

  const bench = kernelBench(figure, [{ name: "Judge", act: judge }], text => kernels.compileJudged(kind, name, text));
  document.addEventListener("progress", states);
  states();
}
