// Checks choices in exercises with the WebAssembly modules in a folder, each with new ones, as a page does. The choices are lines of the input,
// `02-batch 0 1 0`; for each a line of JSON comes back: the code, and what is to be said.
//
//     node tests/exercises.mjs FOLDER < choices
import { readFileSync } from "node:fs";

const folder = process.argv[2];
const compiled = new Map();

// A module of the folder, compiled once.
async function compile(name) {
    if (!compiled.has(name)) compiled.set(name, await WebAssembly.compile(readFileSync(`${folder}/${name}.wasm`)));
    return compiled.get(name);
}

for (const line of readFileSync(0, "utf8").trim().split("\n")) {
    const [id, ...chosen] = line.split(" ");
    const { exports: wasm } = await WebAssembly.instantiate(await compile("base"), {});
    await WebAssembly.instantiate(await compile(`chapter-${id.split("-")[0]}`), { base: wasm });
    const bytes = new TextEncoder().encode([id, chosen.join(" "), "wide"].join("\0"));
    // The memory may move when it grows, so it is looked up each time.
    const start = wasm.input(bytes.length);
    new Uint8Array(wasm.memory.buffer).set(bytes, start);
    const code = wasm.check();
    const told = new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length()));
    console.log(JSON.stringify([code, told]));
}
