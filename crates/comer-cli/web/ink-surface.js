// The writing surface: pointers become strokes, drawn on two canvases. The lower one holds finished strokes; on the upper
// one the stroke under the pen grows segment by segment, so that a move costs the same however much ink there is.
//
// Events: `stroke` {points}, `erase` {strokes}, `start`, `cancel`, `hover` {stroke}, `view`.

import { bounds, erased, pathData, rounded, strokeAt, strokeBounds } from './ink.js';
import { Viewport } from './viewport.js';

const PEN_WIDTH = 3.4;
/** Radius of the eraser and of pointing at a stroke, in pixels of the screen. */
const REACH = 9;
/** A second finger within this time (ms) makes a stroke the start of a gesture. */
const GESTURE_TIME = 300;
/** A touch wider than this (pixels) is a palm. */
const PALM = 60;

export class InkSurface extends EventTarget {
  tool = 'pen';
  view = new Viewport();
  #strokes = [];
  #paths = new WeakMap();
  #drawing = null; // {id, erases, points, before, time, kind}
  #gesture = null; // {center, distance}: the last state of two fingers
  #panning = null; // {id, x, y}: a drag with the middle button or the space bar
  #touches = new Map();
  #penSeen = false;
  #space = false;
  #lit = null; // a set of strokes, or null
  #unread = new Set();
  #found = null; // several formulas [{box}], or null
  #chosen = 0;
  #frame = 0;

  /** @param {HTMLElement} paper holds the canvases `.finished` and `.current`; the latter takes the pointers */
  constructor(paper) {
    super();
    this.paper = paper;
    this.finished = paper.querySelector('.finished');
    this.current = paper.querySelector('.current');
    this.#listen();
    new ResizeObserver(() => this.#resize()).observe(paper);
    this.#resize();
  }

  get strokes() {
    return this.#strokes;
  }

  set strokes(strokes) {
    const grew = strokes.length === this.#strokes.length + 1 && this.#strokes.every((stroke, index) => stroke === strokes[index]);
    this.#strokes = strokes;
    this.#lit = null;
    const marked = this.#unread.size > 0 || this.#found;
    this.#unread = new Set();
    this.#found = null;
    if (grew && !marked && !this.#frame) {
      this.#paint(strokes.at(-1), this.#prepare());
    } else {
      this.redraw();
    }
    const count = strokes.length;
    const label = count ? `Writing surface with ${count} ${count === 1 ? 'stroke' : 'strokes'}` : 'Empty writing surface';
    this.current.setAttribute('aria-label', label);
    if (!count) {
      this.fit();
    }
  }

  /** Whether a stroke is being drawn. */
  get isDrawing() {
    return this.#drawing !== null;
  }

  /** Highlights strokes by their indices; null highlights none. */
  light(indices) {
    if (indices || this.#lit) {
      this.#lit = indices && new Set(indices);
      this.redraw();
    }
  }

  /** Marks strokes that were not read. */
  set unread(indices) {
    if (indices.length || this.#unread.size) {
      this.#unread = new Set(indices);
      this.redraw();
    }
  }

  get unread() {
    return [...this.#unread];
  }

  /** Frames and numbers several formulas [{box}]; the chosen one has a solid frame. Null frames none. */
  frame(found, chosen) {
    if (found !== this.#found || (found && chosen !== this.#chosen)) {
      [this.#found, this.#chosen] = [found, chosen];
      this.redraw();
    }
  }

  /** Shows all ink. */
  fit() {
    this.view.fit(bounds(this.#strokes));
    this.#moved();
  }

  zoom(factor, x = this.view.width / 2, y = this.view.height / 2) {
    this.view.zoom(factor, x, y, bounds(this.#strokes));
    this.#moved();
  }

  pan(dx, dy) {
    const moved = this.view.pan(dx, dy, bounds(this.#strokes));
    if (moved) {
      this.#moved();
    }
    return moved;
  }

  /** Shows all ink unless the user chose the view. */
  reveal() {
    if (!this.view.moved) {
      this.fit();
    }
  }

  #moved() {
    const { scale, x, y } = this.view;
    this.paper.style.setProperty('--grid', `${26 * scale}px`);
    this.paper.style.setProperty('--grid-x', `${x}px`);
    this.paper.style.setProperty('--grid-y', `${y}px`);
    this.redraw();
    this.#send('view');
  }

  #send(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #resize() {
    const [width, height] = [this.paper.clientWidth, this.paper.clientHeight];
    if (!width || !height) {
      return;
    }
    this.ratio = Math.min(3, devicePixelRatio || 1);
    for (const canvas of [this.finished, this.current]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    this.view.resize(width, height, bounds(this.#strokes));
    this.#moved();
    this.#draw();
    if (this.#drawing && !this.#drawing.erases) {
      this.#paint(this.#drawing.points, this.#prepare(this.current));
    }
  }

  /** Draws everything again at the next frame. */
  redraw() {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const context = this.finished.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.finished.width, this.finished.height);
    const pen = this.#prepare();
    const style = getComputedStyle(this.paper);
    const [accent, doubt] = [style.getPropertyValue('outline-color'), style.getPropertyValue('text-decoration-color')];
    this.#strokes.forEach((stroke, index) => {
      const lit = this.#lit?.has(index);
      pen.globalAlpha = this.#lit && !lit ? 0.28 : 1;
      pen.strokeStyle = lit ? accent : this.#unread.has(index) ? doubt : style.color;
      pen.lineWidth = lit ? PEN_WIDTH + 1 : PEN_WIDTH;
      this.#paint(stroke, pen);
    });
    pen.globalAlpha = 1;
    pen.strokeStyle = doubt;
    pen.lineWidth = 1.5;
    pen.setLineDash([4, 5]);
    for (const index of this.#unread) {
      const box = strokeBounds(this.#strokes[index]);
      pen.beginPath();
      pen.roundRect(box.left - 9, box.top - 9, box.right - box.left + 18, box.bottom - box.top + 18, 9);
      pen.stroke();
    }
    pen.fillStyle = pen.strokeStyle = accent;
    pen.lineWidth = 2;
    pen.font = '600 15px system-ui, sans-serif';
    this.#found?.forEach(({ box: [left, top, right, bottom] }, index) => {
      pen.setLineDash(index === this.#chosen ? [] : [4, 5]);
      pen.beginPath();
      pen.roundRect(left - 15, top - 15, right - left + 30, bottom - top + 30, 9);
      pen.stroke();
      pen.fillText(index + 1, left - 12, top - 20);
    });
    pen.setLineDash([]);
  }

  /** A context in coordinates of the ink. */
  #prepare(canvas = this.finished) {
    const context = canvas.getContext('2d');
    const scale = this.ratio * this.view.scale;
    context.setTransform(scale, 0, 0, scale, this.ratio * this.view.x, this.ratio * this.view.y);
    context.lineCap = context.lineJoin = 'round';
    context.lineWidth = PEN_WIDTH;
    context.strokeStyle = getComputedStyle(this.paper).color;
    return context;
  }

  #paint(stroke, context) {
    let path = this.#paths.get(stroke);
    if (!path) {
      path = new Path2D(pathData(stroke));
      this.#paths.set(stroke, path);
    }
    context.stroke(path);
  }

  #place(event) {
    const box = this.current.getBoundingClientRect();
    return this.view.toInk(event.clientX - box.left, event.clientY - box.top).map(rounded);
  }

  #listen() {
    const target = this.current;
    target.addEventListener('pointerdown', (event) => this.#down(event));
    target.addEventListener('pointermove', (event) => this.#move(event));
    if ('onpointerrawupdate' in target) {
      target.addEventListener('pointerrawupdate', (event) => this.#drawing && this.#extend(event));
    }
    target.addEventListener('pointerup', (event) => this.#up(event));
    target.addEventListener('pointercancel', (event) => this.#up(event));
    target.addEventListener('pointerleave', () => this.#send('hover', { stroke: -1 }));
    target.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    target.addEventListener('keydown', (event) => this.#key(event));
    target.addEventListener('keyup', (event) => {
      this.#space = event.key === ' ' ? false : this.#space;
    });
    target.addEventListener('blur', () => {
      this.#space = false;
      delete target.dataset.focus;
    });
    // Without this, a long press on a phone opens a menu.
    target.addEventListener('contextmenu', (event) => event.pointerType !== 'mouse' && event.preventDefault());
  }

  #down(event) {
    const { pointerType, pointerId, button } = event;
    if (pointerType === 'pen') {
      this.#penSeen = true;
    }
    if (pointerType === 'touch') {
      if (Math.max(event.width, event.height) > PALM || (this.#drawing && this.#drawing.kind !== 'touch')) {
        return;
      }
      this.#touches.set(pointerId, { x: event.clientX, y: event.clientY });
      if (this.#touches.size === 2) {
        this.#startGesture();
      }
    }
    if (pointerType === 'mouse' && (button === 1 || (button === 0 && this.#space))) {
      event.preventDefault();
      this.current.setPointerCapture(pointerId);
      this.#panning = { id: pointerId, x: event.clientX, y: event.clientY };
      return;
    }
    // Once a pen was used, a single touch is a resting hand.
    const palm = pointerType === 'touch' && (this.#penSeen || this.#gesture);
    if (this.#drawing || palm || (button !== 0 && button !== 5)) {
      return;
    }
    event.preventDefault();
    this.current.dataset.focus = 'pointer';
    this.current.focus({ preventScroll: true });
    this.current.setPointerCapture(pointerId);
    const point = this.#place(event);
    const erases = this.tool === 'eraser' || (event.buttons & 32) !== 0;
    this.#drawing = { id: pointerId, kind: pointerType, erases, points: [point], before: this.#strokes, time: event.timeStamp, last: event.timeStamp };
    this.#lit = null;
    this.#send('start');
    if (erases) {
      this.#erase(point, point);
    } else {
      const context = this.#prepare(this.current);
      context.beginPath();
      context.moveTo(...point);
      context.lineTo(point[0] + 0.01, point[1]);
      context.stroke();
      this.#drawing.context = context;
    }
  }

  #move(event) {
    if (this.#panning?.id === event.pointerId) {
      this.pan(event.clientX - this.#panning.x, event.clientY - this.#panning.y);
      Object.assign(this.#panning, { x: event.clientX, y: event.clientY });
    } else if (this.#touches.has(event.pointerId) && this.#gesture) {
      this.#touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      this.#continueGesture();
    } else if (this.#drawing?.id === event.pointerId) {
      this.#extend(event);
    } else if (event.pointerType === 'mouse' && !event.buttons) {
      this.#send('hover', { stroke: strokeAt(this.#strokes, this.#place(event), REACH / this.view.scale) });
    }
  }

  /** Adds the points of an event, once each: raw updates and moves report the same ones. */
  #extend(event) {
    if (this.#drawing.id !== event.pointerId) {
      return;
    }
    const events = event.getCoalescedEvents?.() ?? [];
    for (const part of events.length ? events : [event]) {
      if (part.timeStamp < this.#drawing.last) {
        continue;
      }
      this.#drawing.last = part.timeStamp;
      const { points } = this.#drawing;
      const point = this.#place(part);
      const last = points.at(-1);
      if (point[0] === last[0] && point[1] === last[1]) {
        continue;
      }
      points.push(point);
      if (this.#drawing.erases) {
        this.#erase(last, point);
      } else {
        this.#drawSegment(points);
      }
    }
  }

  /** The last piece of the curve through the midpoints, and a line to the newest point. */
  #drawSegment(points) {
    const { context } = this.#drawing;
    const [before, last, point] = [points.at(-3), points.at(-2), points.at(-1)];
    const middle = (one, other) => [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2];
    context.beginPath();
    context.moveTo(...(before ? middle(before, last) : last));
    context.quadraticCurveTo(...last, ...middle(last, point));
    context.lineTo(...point);
    context.stroke();
  }

  #erase(from, to) {
    const kept = erased(this.#strokes, from, to, REACH / this.view.scale);
    if (kept.length < this.#strokes.length) {
      this.#strokes = kept;
      this.#unread = new Set();
      this.redraw();
    }
  }

  #up(event) {
    this.#touches.delete(event.pointerId);
    if (this.#gesture && this.#touches.size < 2) {
      this.#gesture = null;
    }
    if (this.#panning?.id === event.pointerId) {
      this.#panning = null;
    }
    if (this.#drawing?.id === event.pointerId) {
      this.#finish(event.type === 'pointercancel');
    }
  }

  #finish(cancelled) {
    const { points, before, erases } = this.#drawing;
    const after = this.#strokes;
    this.#drawing = null;
    const context = this.current.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.current.width, this.current.height);
    this.#strokes = before;
    if (cancelled || (erases && after.length === before.length)) {
      this.redraw();
      this.#send('cancel');
    } else if (erases) {
      this.#send('erase', { strokes: after });
    } else {
      this.#send('stroke', { points });
    }
  }

  #startGesture() {
    if (this.#drawing?.kind === 'touch') {
      this.#finish(performance.now() - this.#drawing.time < GESTURE_TIME);
    }
    this.#gesture = this.#fingers();
  }

  #fingers() {
    const box = this.current.getBoundingClientRect();
    const [one, other] = [...this.#touches.values()];
    return {
      x: (one.x + other.x) / 2 - box.left,
      y: (one.y + other.y) / 2 - box.top,
      distance: Math.max(1, Math.hypot(one.x - other.x, one.y - other.y)),
    };
  }

  #continueGesture() {
    const [before, now] = [this.#gesture, this.#fingers()];
    this.#gesture = now;
    this.zoom(now.distance / before.distance, before.x, before.y);
    this.pan(now.x - before.x, now.y - before.y);
  }

  /** The wheel pans; with Ctrl, as trackpads send a pinch, it zooms. A wheel that moves nothing scrolls the page. */
  #wheel(event) {
    const unit = event.deltaMode === 1 ? 18 : 1;
    const box = this.current.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * unit * 0.004), event.clientX - box.left, event.clientY - box.top);
    } else if (this.#strokes.length) {
      const [dx, dy] = event.shiftKey ? [event.deltaY, event.deltaX] : [event.deltaX, event.deltaY];
      if (this.pan(-dx * unit, -dy * unit)) {
        event.preventDefault();
      }
    }
  }

  #key(event) {
    delete this.current.dataset.focus;
    const step = event.shiftKey ? 240 : 60;
    const move = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (event.key === ' ') {
      this.#space = true;
      event.preventDefault();
    } else if (move && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      this.pan(...move);
    }
  }
}
