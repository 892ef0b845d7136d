// The recogniser behind one interface, so that the page does not depend on where it runs.
//
// An engine has:
//   info()                             -> { constraints, explain }    what it supports
//   recognizeStrokes(strokes, options) -> Reading
//   recognizeImage(blob, options)      -> Reading
//   mathml(latex)                      -> string
// Options: { nbest, signal, constraints }. `constraints` is { prefix: [token, ...] }: the formula starts with these tokens.
// A Reading is { formulas, milliseconds, strokes, regions }:
//   formulas: [{ latex, tokens: [{ text, confidence, alternatives }], confidence, mathml }], the best one first;
//   strokes:  for each token of the best formula its attention to each stroke, or null;
//   regions:  connected ink in the network's image [{ left, top, width, height, unread }], or null.
// Failures are EngineErrors.

import { ServerEngine } from './server-engine.js';

/** The engine for a page: the server at `url`, by default the one that served this module. */
export const openEngine = (url) => new ServerEngine(url || new URL('.', import.meta.url).href);
