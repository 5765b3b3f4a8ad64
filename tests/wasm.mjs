// Runs a lab of the WebAssembly modules in a folder in Node, as its binary runs in a terminal:
//
//     node tests/wasm.mjs FOLDER lab-03 --gpu none
import { existsSync, readFileSync, writeFileSync, writeSync } from "node:fs";

const [folder, ...words] = process.argv.slice(2);
// What it needs of the world is its input; it tells a page what it says while it runs, and there is no page here.
const { instance } = await WebAssembly.instantiate(readFileSync(`${folder}/base.wasm`), { page: { tell() {} } });
const piece = `${folder}/${words[0]}.wasm`;
if (existsSync(piece)) await WebAssembly.instantiate(readFileSync(piece), { base: instance.exports });
const { memory, input, run, output, output_length, errors, errors_length, trace, trace_length } = instance.exports;

const bytes = new TextEncoder().encode(words.join("\0"));
// A pointer is an index into the memory. The memory may move when it grows, so it is looked up each time.
const start = input(bytes.length);
new Uint8Array(memory.buffer).set(bytes, start);
process.exitCode = run();

write(1, output(), output_length());
write(2, errors(), errors_length());
const file = words[words.indexOf("--trace") + 1];
if (trace_length() > 0) {
    writeFileSync(file, new Uint8Array(memory.buffer, trace(), trace_length()));
}

function write(file, start, length) {
    let rest = new Uint8Array(memory.buffer, start, length);
    while (rest.length > 0) {
        rest = rest.subarray(writeSync(file, rest));
    }
}
