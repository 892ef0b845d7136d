// Strokes as data: bounds, distances, erasing, scribbles, and the InkML, JSON and SVG formats.
// A stroke is an array of [x, y]; a drawing is an array of strokes. Neither is ever changed in place.

/** The format of numbers in ink: hundredths of a pixel. */
export const rounded = (value) => Math.round(value * 100) / 100;

const boxes = new WeakMap();

/** The bounds of a stroke, computed once. */
export function strokeBounds(stroke) {
  let box = boxes.get(stroke);
  if (!box) {
    box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    for (const [x, y] of stroke) {
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x);
      box.top = Math.min(box.top, y);
      box.bottom = Math.max(box.bottom, y);
    }
    boxes.set(stroke, box);
  }
  return box;
}

/** The bounds of a drawing; null if it is empty. */
export function bounds(strokes) {
  if (!strokes.length) {
    return null;
  }
  return strokes.map(strokeBounds).reduce((one, other) => ({
    left: Math.min(one.left, other.left),
    top: Math.min(one.top, other.top),
    right: Math.max(one.right, other.right),
    bottom: Math.max(one.bottom, other.bottom),
  }));
}

function distanceToSegment([x, y], [fromX, fromY], [toX, toY]) {
  const [width, height] = [toX - fromX, toY - fromY];
  const length = width * width + height * height;
  const share = length ? Math.max(0, Math.min(1, ((x - fromX) * width + (y - fromY) * height) / length)) : 0;
  return Math.hypot(x - fromX - share * width, y - fromY - share * height);
}

/** The distance of a point from a stroke, or Infinity if it exceeds `limit`. */
export function distanceToStroke(stroke, point, limit) {
  const box = strokeBounds(stroke);
  const [x, y] = point;
  if (x < box.left - limit || x > box.right + limit || y < box.top - limit || y > box.bottom + limit) {
    return Infinity;
  }
  let least = Infinity;
  for (let index = 0; index < stroke.length; index++) {
    least = Math.min(least, distanceToSegment(point, stroke[Math.max(0, index - 1)], stroke[index]));
  }
  return least > limit ? Infinity : least;
}

/** The index of the stroke nearest to a point, or -1 if none is within `limit`. */
export function strokeAt(strokes, point, limit) {
  let [nearest, least] = [-1, Infinity];
  strokes.forEach((stroke, index) => {
    const distance = distanceToStroke(stroke, point, limit);
    if (distance < least) {
      [nearest, least] = [index, distance];
    }
  });
  return nearest;
}

/** Whether two strokes cross away from their ends, as those of a plus sign do. */
function cross(one, other) {
  const [a, b] = [strokeBounds(one), strokeBounds(other)];
  if (a.left > b.right || b.left > a.right || a.top > b.bottom || b.top > a.bottom) {
    return false;
  }
  const side = ([x, y], [fromX, fromY], [toX, toY]) => Math.sign((toX - fromX) * (y - fromY) - (toY - fromY) * (x - fromX));
  const inner = (stroke) => [Math.ceil(stroke.length * 0.1), Math.floor(stroke.length * 0.9)];
  const [[fromOne, toOne], [fromOther, toOther]] = [inner(one), inner(other)];
  for (let i = Math.max(1, fromOne); i <= Math.min(toOne, one.length - 1); i++) {
    for (let j = Math.max(1, fromOther); j <= Math.min(toOther, other.length - 1); j++) {
      const [p, q, r, s] = [one[i - 1], one[i], other[j - 1], other[j]];
      if (side(p, r, s) !== side(q, r, s) && side(r, p, q) !== side(s, p, q)) {
        return true;
      }
    }
  }
  return false;
}

/** For each stroke the number of its group; strokes that cross are in one group. */
export function crossingGroups(strokes) {
  const groups = strokes.map((_, index) => index);
  strokes.forEach((stroke, index) => {
    for (let before = 0; before < index; before++) {
      if (groups[before] !== groups[index] && cross(strokes[before], stroke)) {
        const [from, to] = [groups[index], groups[before]];
        groups.forEach((group, member) => {
          groups[member] = group === from ? to : group;
        });
      }
    }
  });
  return groups;
}

/** The strokes that an eraser of radius `reach`, moved along a line, leaves. */
export function erased(strokes, from, to, reach) {
  const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / reach) || 1;
  const points = Array.from({ length: steps + 1 }, (_, step) => from.map((start, axis) => start + ((to[axis] - start) * step) / steps));
  return strokes.filter((stroke) => points.every((point) => distanceToStroke(stroke, point, reach) === Infinity));
}

/** How often values reverse by a good part of their range. */
function reversals(values, range) {
  let [count, direction, extreme] = [0, 0, values[0]];
  for (const value of values) {
    const moved = value - extreme;
    if (Math.abs(moved) > range * 0.3 && Math.sign(moved) !== direction) {
      count += direction === 0 ? 0 : 1;
      direction = Math.sign(moved);
    }
    if (direction === 0 ? Math.abs(moved) > range * 0.3 : Math.sign(moved) === direction) {
      extreme = value;
    }
  }
  return count;
}

/** The strokes left after `scribble`, or null if it is an ordinary stroke. A scribble reverses often and covers strokes. */
export function withoutScribbled(strokes, scribble) {
  const box = strokeBounds(scribble);
  const [width, height] = [box.right - box.left, box.bottom - box.top];
  const horizontal = width > 16 ? reversals(scribble.map(([x]) => x), width) : 0;
  const vertical = height > 16 ? reversals(scribble.map(([, y]) => y), height) : 0;
  if (Math.max(horizontal, vertical) < 5) {
    return null;
  }
  const inside = ([x, y]) => x >= box.left - 4 && x <= box.right + 4 && y >= box.top - 4 && y <= box.bottom + 4;
  const kept = strokes.filter((stroke) => stroke.filter(inside).length < stroke.length * 0.6);
  return kept.length < strokes.length ? kept : null;
}

/** A stroke as SVG path data: quadratic curves through the midpoints of its segments. */
export function pathData(stroke) {
  if (stroke.length === 1) {
    return `M${stroke[0].join(' ')}l0.01 0`;
  }
  let data = `M${stroke[0].join(' ')}`;
  for (let index = 1; index + 1 < stroke.length; index++) {
    const [[x, y], [nextX, nextY]] = [stroke[index], stroke[index + 1]];
    data += `Q${x} ${y} ${rounded((x + nextX) / 2)} ${rounded((y + nextY) / 2)}`;
  }
  return `${data}L${stroke[stroke.length - 1].join(' ')}`;
}

/** A drawing as an SVG document. */
export function toSvg(strokes) {
  const box = bounds(strokes) ?? { left: 0, top: 0, right: 1, bottom: 1 };
  const [left, top] = [rounded(box.left - 8), rounded(box.top - 8)];
  const size = [rounded(box.right + 8 - left), rounded(box.bottom + 8 - top)];
  const paths = strokes.map((stroke) => `<path d="${pathData(stroke)}"/>`).join('\n');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${left} ${top} ${size[0]} ${size[1]}" fill="none" stroke="black" ` +
    `stroke-width="3.4" stroke-linecap="round" stroke-linejoin="round">\n${paths}\n</svg>\n`;
}

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** A drawing as InkML, with its LaTeX as the ground truth if there is one. */
export function toInkml(strokes, latex) {
  const traces = strokes.map((stroke, id) => `<trace id="${id}">${stroke.map((point) => point.join(' ')).join(', ')}</trace>`);
  const annotation = latex ? `<annotation type="truth">${escaped(latex)}</annotation>\n` : '';
  const format = '<traceFormat>\n  <channel name="X" type="decimal"/>\n  <channel name="Y" type="decimal"/>\n</traceFormat>';
  return `<ink xmlns="http://www.w3.org/2003/InkML">\n${format}\n${annotation}${traces.join('\n')}\n</ink>\n`;
}

/** Reads InkML or JSON; null if the text has no usable strokes. */
export function parseInk(text) {
  const numbers = (point) => (Array.isArray(point) ? [Number(point[0]), Number(point[1])] : [Number(point.x), Number(point.y)]);
  let strokes = [];
  try {
    if (text.trimStart().startsWith('<')) {
      const file = new DOMParser().parseFromString(text, 'application/xml');
      strokes = Array.from(file.getElementsByTagName('trace'), (trace) =>
        trace.textContent.split(',').map((point) => numbers(point.trim().split(/\s+/))));
    } else {
      const file = JSON.parse(text);
      strokes = (file.strokes ?? file).map((stroke) =>
        stroke.x ? stroke.x.map((x, index) => [Number(x), Number(stroke.y[index])]) : (stroke.points ?? stroke).map(numbers));
    }
  } catch {
    return null;
  }
  strokes = strokes.filter((stroke) => stroke.length);
  const valid = strokes.length && strokes.every((stroke) => stroke.every((point) => point.every(Number.isFinite)));
  return valid ? strokes : null;
}

/** Foreign ink scaled to the size of handwriting on a surface of `width` x `height`, and centred on it. */
export function placed(strokes, width, height) {
  const box = bounds(strokes);
  const extent = [Math.max(1e-9, box.right - box.left), Math.max(1e-9, box.bottom - box.top)];
  const factor = Math.min((0.8 * width) / extent[0], (0.6 * height) / extent[1], 220 / extent[1]);
  const scale = Number.isFinite(factor) ? factor : 1;
  return strokes.map((stroke) => stroke.map(([x, y]) => [
    rounded((x - (box.left + box.right) / 2) * scale + width / 2),
    rounded((y - (box.top + box.bottom) / 2) * scale + height / 2),
  ]));
}
