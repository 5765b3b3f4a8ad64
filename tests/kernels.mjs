// Runs programs in CUDA C++ with the WebAssembly module of lab 12 in Node, each in an instance of its own, as a page does. The programs come
// as JSON, `[["text", "memcheck,racecheck", "int main() …"], …]`; for each a line of JSON comes back: the exit code, the report, what is
// wrong with the program, and the seconds that it took.
//
//     node tests/kernels.mjs MODULE < programs
import { readFileSync } from "node:fs";

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
for (const [format, checks, program] of JSON.parse(readFileSync(0, "utf8"))) {
    const { exports: wasm } = new WebAssembly.Instance(module, {});
    const bytes = new TextEncoder().encode([format, checks, program].join("\0"));
    // The memory may move when it grows, so it is looked up each time.
    const start = wasm.input(bytes.length);
    new Uint8Array(wasm.memory.buffer).set(bytes, start);
    const began = performance.now();
    const code = wasm.run();
    const seconds = (performance.now() - began) / 1000;
    const text = (start, length) => new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, start, length));
    const said = text(wasm.output(), wasm.output_length());
    console.log(JSON.stringify([code, said, text(wasm.errors(), wasm.errors_length()), seconds]));
}
