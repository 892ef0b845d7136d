// What the parts of the page share: one state, and the surface.

export const byId = (id) => document.getElementById(id);
export const svg = byId('ink');
export const SVG = 'http://www.w3.org/2000/svg';

export const state = {
  strokes: [], // each a list of [x, y]
  past: [], // lists of strokes to go back to
  future: [],
  tool: 'pen',
  picture: null, // a file that is shown instead of strokes
  answer: null, // what the server said last
  chosen: null, // the formula of it that is shown: {latex, tokens, mathml}
  mathml: '', // what is shown now
  sheet: Date.now(), // which entry of the history this surface is
};

/** Tenths are as fine as any pen. */
export const rounded = (value) => Math.round(value * 10) / 10;

/** Whether an event belongs to a box for text, which has keys of its own. */
export const inText = (event) => Boolean(event.target.closest?.('textarea, input'));
