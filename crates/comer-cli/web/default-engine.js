// The engine of a page that `comer serve` serves. In the page without a server, WebAssembly takes its place.

export { ServerEngine as DefaultEngine } from './server-engine.js';
