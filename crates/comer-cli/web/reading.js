// What a reading says about symbols and strokes: which are doubtful, which belong together, which were not read.

import { bounds, crossingGroups } from './ink.js';
import { commonTokens, INKLESS } from './latex.js';

/** A formula of at least this confidence is shown without doubtful symbols. */
const SURE = 0.85;

/** A confidence in words. */
export function sureness(confidence) {
  const levels = [[SURE, 'Sure'], [0.6, 'Fairly sure'], [0.3, 'Not sure'], [0, 'A guess']];
  return levels.find(([least]) => confidence >= least)[1];
}

export function percent(share) {
  const whole = Math.round(share * 100);
  return whole < 1 ? 'under 1 %' : whole > 99 ? 'over 99 %' : `${whole} %`;
}

/** The confidence of a symbol with its braces and scripts; null for tokens without ink. */
const symbolConfidence = ({ text, confidence, symbolConfidence: symbol }) => (INKLESS.has(text) ? null : symbol ?? confidence);

/**
 * The doubtful tokens of a formula: [{ index, confidence }], the most doubtful first. They are the fewest whose certainty would
 * make the whole formula sure, so that marks and the figure of the whole never contradict each other.
 */
export function doubtfulTokens({ tokens, confidence }) {
  const allowed = -Math.log(SURE);
  const total = -Math.log(Math.max(confidence, 1e-12));
  const doubts = tokens.flatMap((token, index) => {
    const own = symbolConfidence(token);
    return own === null ? [] : [[index, -Math.log(Math.max(own, 1e-12))]];
  });
  const sum = doubts.reduce((all, [, doubt]) => all + doubt, 0);
  const sorted = doubts.sort(([, one], [, other]) => other - one);
  const marked = [];
  // The factor: the confidence of the whole need not be the product of its tokens'.
  for (let left = total, [factor, next] = [sum ? total / sum : 0, 0]; left > allowed + 1e-9 && next < sorted.length; next++) {
    const [index, doubt] = sorted[next];
    left -= doubt * factor;
    marked.push({ index, confidence: Math.exp(-doubt) });
  }
  return marked;
}

/** The numbers of the strokes that a reading is about: those of the chosen one of several formulas, else all. */
const numbersOf = ({ found, chosen = 0 }, drawing) => found?.[chosen]?.strokes ?? [...drawing.keys()];

/** The strokes that a reading is about. */
export const inkOf = (reading, drawing) => numbersOf(reading, drawing).map((number) => drawing[number]);

const owners = new WeakMap();

/** For each stroke the token that it belongs to (-1 for none); null if the reading does not say. Strokes that cross belong together. */
export function strokeOwners(reading, drawing) {
  const { formulas: [{ tokens }], strokes: shares } = reading;
  const numbers = numbersOf(reading, drawing);
  if (!shares?.length || shares[0].length !== numbers.length) {
    return null;
  }
  if (!owners.has(reading)) {
    const groups = crossingGroups(inkOf(reading, drawing));
    const inked = tokens.flatMap(({ text }, index) => (INKLESS.has(text) ? [] : [index]));
    const shareOf = (token, group) => shares[token].reduce((sum, share, stroke) => sum + (groups[stroke] === group ? share : 0), 0);
    const best = new Map();
    for (const group of new Set(groups)) {
      best.set(group, inked.reduce((one, other) => (shareOf(other, group) > shareOf(one, group) ? other : one), inked[0] ?? -1));
    }
    const all = drawing.map(() => -1);
    groups.forEach((group, index) => {
      all[numbers[index]] = best.get(group);
    });
    owners.set(reading, all);
  }
  return owners.get(reading);
}

/** The strokes of a token: those that it owns, or else the one that it looked at most. */
export function strokesOf(reading, drawing, token) {
  const own = strokeOwners(reading, drawing)?.flatMap((owner, stroke) => (owner === token ? [stroke] : []));
  if (!own) {
    return null;
  }
  const shares = reading.strokes[token];
  return own.length ? own : [numbersOf(reading, drawing)[shares.indexOf(Math.max(...shares))]];
}

/** The strokes in regions that no token looked at. Regions are in pixels of the network's image, which shows the ink's bounds. */
export function unreadStrokes(reading, drawing) {
  const { regions } = reading;
  const unread = (regions ?? []).filter((region) => region.unread);
  const [numbers, strokes] = [numbersOf(reading, drawing), inkOf(reading, drawing)];
  const ink = bounds(strokes);
  if (!unread.length || !ink) {
    return [];
  }
  const left = Math.min(...regions.map((region) => region.left));
  const top = Math.min(...regions.map((region) => region.top));
  const width = Math.max(...regions.map((region) => region.left + region.width)) - left;
  const height = Math.max(...regions.map((region) => region.top + region.height)) - top;
  const scale = Math.max((ink.right - ink.left) / width, (ink.bottom - ink.top) / height);
  const slack = 3 * scale;
  return strokes.flatMap((stroke, index) => {
    const inside = (region) => stroke.filter(([x, y]) => {
      const [pixelX, pixelY] = [(x - ink.left) / scale + left, (y - ink.top) / scale + top];
      return pixelX >= region.left - slack && pixelX <= region.left + region.width + slack &&
        pixelY >= region.top - slack && pixelY <= region.top + region.height + slack;
    }).length;
    return unread.some((region) => inside(region) >= stroke.length * 0.6) ? [numbers[index]] : [];
  });
}

/**
 * What else a token might be: [{ token, formula }], from the decoder's runners-up and from other formulas that differ there.
 * `formula` is the index of the best formula that has it, or -1.
 */
export function tokenAlternatives(reading, shown, index) {
  const texts = (formula) => formula.tokens.map(({ text }) => text);
  const own = texts(reading.formulas[shown]);
  const found = new Map();
  reading.formulas.forEach((formula, number) => {
    if (number === shown) {
      return;
    }
    const other = texts(formula);
    const pairs = [[-1, -1], ...commonTokens(own, other), [own.length, other.length]];
    for (let next = 1; next < pairs.length; next++) {
      const [[fromOwn, fromOther], [toOwn, toOther]] = [pairs[next - 1], pairs[next]];
      const place = fromOther + index - fromOwn;
      const replaced = index > fromOwn && index < toOwn && toOwn - fromOwn === toOther - fromOther;
      if (replaced && !INKLESS.has(other[place]) && !found.has(other[place])) {
        found.set(other[place], number);
      }
    }
  });
  for (const { text, token = text } of reading.formulas[shown].tokens[index].alternatives ?? []) {
    if (token !== own[index] && !INKLESS.has(token) && !found.has(token)) {
      found.set(token, -1);
    }
  }
  return [...found].map(([token, formula]) => ({ token, formula }));
}
