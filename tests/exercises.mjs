// Checks choices in exercises with the WebAssembly module, each with a new one, as a page does. The choices are lines of the input,
// `02-batch 0 1 0`; for each a line of JSON comes back: the code, and what is to be said.
//
//     node tests/exercises.mjs exercises.wasm < choices
import { readFileSync } from "node:fs";

const module = await WebAssembly.compile(readFileSync(process.argv[2]));

for (const line of readFileSync(0, "utf8").trim().split("\n")) {
    const [id, ...chosen] = line.split(" ");
    const { exports: wasm } = await WebAssembly.instantiate(module, {});
    const bytes = new TextEncoder().encode([id, chosen.join(" "), "wide"].join("\0"));
    // The memory may move when it grows, so it is looked up each time.
    const start = wasm.input(bytes.length);
    new Uint8Array(wasm.memory.buffer).set(bytes, start);
    const code = wasm.check();
    const told = new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length()));
    console.log(JSON.stringify([code, told]));
}
