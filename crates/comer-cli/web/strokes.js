// Strokes under the pen: drawn, erased, scribbled out, undone.

import { closePicture } from './files.js';
import { readSoon, stopReading } from './reading.js';
import { byId, rounded, state, svg, SVG } from './state.js';

/** How near the eraser must come to a stroke, in pixels. */
const REACH = 9;

export let drawing = null; // the stroke under the pen: {id, type, points, path, before}
let penSeen = false;

export function pathOf(points) {
  if (points.length === 1) {
    return `M${points[0].join(' ')}l0.01 0`;
  }
  // Through the middles of the pieces, so that the line is round where the pen was quick.
  let text = `M${points[0].join(' ')}`;
  for (let i = 1; i + 1 < points.length; i++) {
    const [x, y] = points[i];
    const [nextX, nextY] = points[i + 1];
    text += `Q${x} ${y} ${rounded((x + nextX) / 2)} ${rounded((y + nextY) / 2)}`;
  }
  return `${text}L${points[points.length - 1].join(' ')}`;
}

function newPath(points) {
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', pathOf(points));
  return path;
}

export function redraw() {
  svg.replaceChildren(...state.strokes.map(newPath));
  svg.classList.remove('lit');
  const count = state.strokes.length;
  svg.setAttribute('aria-label', count ? `Writing surface with ${count} strokes` : 'Empty writing surface');
  svg.toggleAttribute('hidden', Boolean(state.picture));
  byId('picture').hidden = !state.picture;
  byId('hint').hidden = count > 0 || Boolean(state.picture) || Boolean(drawing);
  byId('undo').disabled = !state.past.length;
  byId('redo').disabled = !state.future.length;
  byId('clear').disabled = !count && !state.picture;
  byId('save-inkml').disabled = byId('save-svg').disabled = !count;
}

/** Puts other strokes in place of the present ones, and remembers these. */
export function change(strokes) {
  state.past.push(state.strokes);
  state.future = [];
  state.strokes = strokes;
  redraw();
  readSoon();
}

function step(from, to) {
  if (!from.length) {
    return;
  }
  to.push(state.strokes);
  state.strokes = from.pop();
  closePicture();
  redraw();
  readSoon(0);
}

export const undo = () => step(state.past, state.future);
export const redo = () => step(state.future, state.past);

export function clear() {
  if (!state.strokes.length && !state.picture) {
    return;
  }
  closePicture();
  state.sheet = Date.now();
  change([]);
}

function place(event) {
  const box = svg.getBoundingClientRect();
  return [rounded(event.clientX - box.left), rounded(event.clientY - box.top)];
}

function erasing(event) {
  return state.tool === 'eraser' || (event.buttons & 32) !== 0;
}

function distance([x, y], [fromX, fromY], [toX, toY]) {
  const [width, height] = [toX - fromX, toY - fromY];
  const length = width * width + height * height;
  const share = length ? Math.max(0, Math.min(1, ((x - fromX) * width + (y - fromY) * height) / length)) : 0;
  return Math.hypot(x - fromX - share * width, y - fromY - share * height);
}

const touches = (stroke, point) =>
  stroke.some((to, index) => distance(point, stroke[Math.max(0, index - 1)], to) < REACH);

/** Erases what lies on the way from one point to the next. */
function erase(from, to) {
  const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / REACH);
  const way = Array.from({ length: steps + 1 }, (_, step) => from.map((start, axis) => start + (to[axis] - start) * step / (steps || 1)));
  const kept = state.strokes.filter((stroke) => !way.some((point) => touches(stroke, point)));
  if (kept.length < state.strokes.length) {
    state.strokes = kept;
    redraw();
  }
}

svg.addEventListener('pointerdown', (event) => {
  if (event.pointerType === 'pen') {
    penSeen = true;
  }
  // Whoever writes with a pen rests a hand on the surface.
  const palm = event.pointerType === 'touch' && penSeen;
  if (drawing || palm || !event.isPrimary || (event.button !== 0 && event.button !== 5)) {
    return;
  }
  event.preventDefault();
  svg.setPointerCapture(event.pointerId);
  stopReading();
  const point = place(event);
  drawing = { id: event.pointerId, erases: erasing(event), points: [point], before: state.strokes };
  byId('hint').hidden = true;
  if (drawing.erases) {
    erase(point, point);
  } else {
    drawing.path = newPath(drawing.points);
    svg.append(drawing.path);
  }
});

svg.addEventListener('pointermove', (event) => {
  if (!drawing || event.pointerId !== drawing.id) {
    return;
  }
  const events = event.getCoalescedEvents?.() ?? [];
  for (const part of events.length ? events : [event]) {
    const point = place(part);
    const last = drawing.points[drawing.points.length - 1];
    if (point[0] !== last[0] || point[1] !== last[1]) {
      drawing.points.push(point);
      if (drawing.erases) {
        erase(last, point);
      }
    }
  }
  drawing.path?.setAttribute('d', pathOf(drawing.points));
});

function lift(event) {
  if (!drawing || event.pointerId !== drawing.id) {
    return;
  }
  const { points, before, erases } = drawing;
  drawing = null;
  if (event.type === 'pointercancel') {
    state.strokes = before;
    redraw();
    return;
  }
  const after = erases ? state.strokes : scribbled(before, points) ?? [...before, points];
  if (after.length === before.length) {
    redraw();
    readSoon();
    return;
  }
  state.strokes = before;
  change(after);
}
svg.addEventListener('pointerup', lift);
svg.addEventListener('pointercancel', lift);

/** How often values go back by a good part of their range. */
function turns(values, range) {
  let [count, direction, extreme] = [0, 0, values[0]];
  for (const value of values) {
    const moved = value - extreme;
    if (range > 16 && Math.abs(moved) > range * 0.3 && Math.sign(moved) !== direction) {
      count += direction === 0 ? 0 : 1;
      direction = Math.sign(moved);
    }
    if (direction === 0 ? Math.abs(moved) > range * 0.3 : Math.sign(moved) === direction) {
      extreme = value;
    }
  }
  return count;
}

/** What is left after a scribble; null if the stroke is none: it turns back often, and covers what was there. */
function scribbled(strokes, points) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  if (Math.max(turns(xs, box[2] - box[0]), turns(ys, box[3] - box[1])) < 5) {
    return null;
  }
  const inside = ([x, y]) => x >= box[0] - 4 && x <= box[2] + 4 && y >= box[1] - 4 && y <= box[3] + 4;
  const covered = (stroke) => stroke.filter(inside).length >= stroke.length * 0.6;
  const left = strokes.filter((stroke) => !covered(stroke));
  return left.length < strokes.length ? left : null;
}
