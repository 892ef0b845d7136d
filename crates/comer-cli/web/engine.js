// The recogniser behind one interface, so that the page does not depend on where it runs.
//
// An engine has:
//   info()                             -> { constraints, explain, local }    what it supports; whether input stays in the browser
//   recognizeStrokes(strokes, options) -> Reading
//   recognizeImage(blob, options)      -> Reading
//   mathml(latex)                      -> string
// Options: { nbest, signal, constraints, formulas }. `constraints` is { prefix: [token, ...] }: the formula starts with these tokens.
// `formulas` is 'auto' (the default: several where there is clearly more than one) or 'one' (everything is one formula).
// A Reading is { formulas, milliseconds, strokes, regions, boxes, image, found, aligned, warnings }; the last six may be missing:
//   formulas: [{ latex, tokens: [{ text, confidence, symbolConfidence, alternatives }], confidence, mathml }], the best one first;
//             `symbolConfidence` is that of a symbol with its braces and scripts; it may be missing;
//   strokes:  for each token of the best formula its attention to each stroke, or null;
//   boxes:    for each token its place in the picture [left, top, right, bottom] in pixels, or null;
//   image:    what the network saw, as a data URL, or null;
//   found:    where several formulas are [{ latex, box, strokes }], or null; everything else is about the first of them. `box` is in
//             pixels of the picture or in the units of the ink; `strokes` are the numbers of its strokes, or null for a picture;
//   aligned:  the LaTeX of all of them as the lines of a derivation, or null;
//   warnings: what to check [{ code, message }];
//   regions:  connected ink in the network's image [{ left, top, width, height, unread }], or null.
// Failures are EngineErrors.

import { DefaultEngine } from './default-engine.js';
import { ServerEngine } from './server-engine.js';

/** The engine for a page: the server at `url`, or else the default one of where this module came from. */
export const openEngine = (url) => (url ? new ServerEngine(url) : new DefaultEngine(new URL('.', import.meta.url).href));
