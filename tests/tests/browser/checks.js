// All that is wrong with the page. layout.js comes before, and the page has axe-core.
// arguments: options of axe; where the answer goes.
const [options, answer] = arguments;

function line(rule, node) {
  const reasons = [...node.any, ...node.all, ...node.none].map(check => check.message);
  return `${rule.id}: ${node.target.join(" ")}: ${[...new Set(reasons)].join("; ")}`;
}

// Letters have their widths when the fonts are there.
document.fonts.ready.then(() => axe.run(document, { resultTypes: ["violations"], ...options })).then(
  ({ violations }) => {
    const inaccessible = violations.flatMap(rule => rule.nodes.map(node => line(rule, node)));
    answer([...wide(), ...jumbled(), ...inaccessible]);
  },
  error => answer([`axe: ${error}`]),
);
