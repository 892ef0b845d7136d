// The engine of a page without a server.

export { WasmEngine as DefaultEngine } from './wasm-engine.js';
