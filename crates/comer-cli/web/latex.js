// LaTeX as text: tokens with their columns, and merging of two changes to one formula.

/** Tokens without ink of their own. */
export const INKLESS = new Set(['{', '}', '^', '_', '\\limits']);

const TOKEN = /\\(?:\p{L}+|[\s\S]?)|%[^\n]*|''''|'''|''|:=|[\s\S]/gu;

/** Splits LaTeX as the server does: [{text, start, end}]. */
export function tokenize(latex) {
  const tokens = [];
  for (const { 0: text, index } of latex.matchAll(TOKEN)) {
    if (!/^\s/.test(text) && text[0] !== '%') {
      tokens.push({ text, start: index, end: index + text.length });
    }
  }
  return tokens;
}

export const tokenTexts = (latex) => tokenize(latex).map(({ text }) => text);

/** Tokens as text, with the spaces that they had, and where two would run together. */
function join(tokens) {
  let text = '';
  for (const token of tokens) {
    const runsTogether = /\\\p{L}+$/u.test(text) && /^\p{L}/u.test(token.text);
    text += (token.spaced && text) || runsTogether ? ` ${token.text}` : token.text;
  }
  return text;
}

/** Index pairs of a longest common subsequence. */
export function commonTokens(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint32Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i][j] = one[i] === other[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) {
      pairs.push([i++, j++]);
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) {
      i++;
    } else {
      j++;
    }
  }
  return pairs;
}

const same = (one, other) => one.length === other.length && one.every((token, index) => token.text === other[index].text);

/** What became of `was` where one side replaced it by `own` and the other one only wrote before or after it; null otherwise. */
function mergeAdded(was, own, other) {
  const added = other.length - was.length;
  if (added > 0 && same(other.slice(0, was.length), was)) {
    return [...own, ...other.slice(was.length)];
  }
  return added > 0 && same(other.slice(added), was) ? [...other.slice(0, added), ...own] : null;
}

/** What became of a stretch without common tokens; null if both sides changed it differently. */
function mergePart(was, own, other) {
  if (same(own, was) || same(own, other)) {
    return other;
  }
  return same(other, was) ? own : mergeAdded(was, own, other) ?? mergeAdded(was, other, own);
}

/** Three-way merge: the formula with the changes of both sides to `base`; null where they changed the same place differently. */
export function merge(base, mine, theirs) {
  const sides = [base, mine, theirs].map((latex) =>
    tokenize(latex).map(({ text, start }) => ({ text, spaced: start > 0 && /\s/.test(latex[start - 1]) })));
  const [toMine, toTheirs] = sides.slice(1).map((side) => new Map(commonTokens(...[sides[0], side].map((tokens) => tokens.map(({ text }) => text)))));
  const anchors = sides[0].flatMap((_, index) => (toMine.has(index) && toTheirs.has(index) ? [[index, toMine.get(index), toTheirs.get(index)]] : []));
  const merged = [];
  let start = [0, 0, 0];
  for (const end of [...anchors, sides.map((tokens) => tokens.length)]) {
    const part = mergePart(...sides.map((tokens, side) => tokens.slice(start[side], end[side])));
    if (!part) {
      return null;
    }
    merged.push(...part, ...sides[1].slice(end[1], end[1] + 1));
    start = end.map((index) => index + 1);
  }
  return join(merged);
}
