// A picture on the surface, with handles to crop, turn and straighten it. Sends `change` {crop} when a handle is let go, and
// `choose` {crop} when one of several formulas is chosen.

import { isWhole, projection, turned, turnedCorners, WHOLE } from './picture-warp.js';

const CORNERS = ['Top left corner', 'Top right corner', 'Bottom right corner', 'Bottom left corner'];
/** The least share of the picture between two handles. */
const LEAST = 0.03;
/** The share of the picture around a formula that is kept when it is cropped to. */
const MARGIN = 0.02;

const between = (value, low, high) => Math.min(high, Math.max(low, value));

export class PictureStage extends EventTarget {
  #place;
  #canvas;
  #shade;
  #outline;
  #lit;
  #seen;
  #found = null;
  #buttons = [];
  #handles;
  #picture = null;
  #crop = WHOLE;
  #perspective = false;

  /** @param {HTMLElement} place holds `canvas`, two paths for shade and outline, and the bar of buttons with `data-picture` */
  constructor(place) {
    super();
    this.#place = place;
    this.#canvas = place.querySelector('canvas');
    [this.#shade, this.#outline, this.#lit] = place.querySelectorAll('.outline path');
    this.#seen = place.querySelector('.seen');
    this.#handles = CORNERS.map((name, index) => this.#handle(name, index));
    place.querySelector('.frame').append(...this.#handles);
    place.querySelectorAll('[data-picture]').forEach((button) => button.addEventListener('click', () => this.#act(button.dataset.picture)));
    new ResizeObserver(() => this.#layout()).observe(place);
  }

  /** Shows a picture {name, source, crop, sentSize}, or none, with what its reading found. Without `source` the browser cannot show it. */
  show(picture, reading) {
    this.#showSeen(reading?.image ?? null);
    this.#place.hidden = !picture;
    const source = picture?.source ?? null;
    const crop = picture?.crop ?? WHOLE;
    const same = source === this.#picture && crop.turns === this.#crop.turns;
    if (source !== this.#picture) {
      this.#setPerspective(false);
    }
    this.#picture = source;
    this.#crop = crop;
    const note = this.#place.querySelector('.no-preview');
    note.hidden = !picture || Boolean(source);
    note.textContent = picture ? `${picture.name} (the browser cannot show this format)` : '';
    this.#place.classList.toggle('without-preview', !note.hidden);
    if (source && !same) {
      const image = turned(source, crop.turns);
      [this.#canvas.width, this.#canvas.height] = [image.width, image.height];
      this.#canvas.getContext('2d').drawImage(image, 0, 0);
    }
    this.#showFound(reading?.found ?? null, picture?.sentSize);
    this.#layout();
  }

  #act(name) {
    const { turns, corners } = this.#crop;
    if (name === 'left' || name === 'right') {
      const direction = name === 'right' ? 1 : -1;
      this.#change({ turns: (turns + direction + 4) % 4, corners: turnedCorners(corners, direction) });
    } else if (name === 'reset') {
      this.#change(WHOLE);
    } else if (name === 'seen') {
      this.#seen.hidden = !this.#seen.hidden;
      this.#showSeen(this.#seen.getAttribute('src'));
    } else {
      this.#setPerspective(!this.#perspective);
    }
  }

  #showSeen(address) {
    const button = this.#place.querySelector('[data-picture="seen"]');
    this.#seen.hidden ||= !address;
    if (address && this.#seen.getAttribute('src') !== address) {
      this.#seen.src = address;
    }
    button.disabled = !address;
    button.setAttribute('aria-pressed', !this.#seen.hidden);
  }

  /** Frames a part of what was sent: left, top, right and bottom as shares of its size; null frames nothing. */
  light(box) {
    if (!box || !this.#picture) {
      this.#lit.removeAttribute('d');
      return;
    }
    const points = this.#cornersOf(box).map(([x, y]) => `${this.box.left + x * this.box.width} ${this.box.top + y * this.box.height}`);
    this.#lit.setAttribute('d', `M${points.join('L')}Z`);
  }

  /** The corners of a part of what was sent, as shares of the turned picture's size. */
  #cornersOf([left, top, right, bottom]) {
    const [a, b, c, d, e, f, g, h] = projection(this.#crop.corners);
    return [[left, top], [right, top], [right, bottom], [left, bottom]].map(([u, v]) => {
      const scale = 1 / (g * u + h * v + 1);
      return [(a * u + b * v + c) * scale, (d * u + e * v + f) * scale];
    });
  }

  /** Several formulas: a button on each crops the picture to it. */
  #showFound(found, size) {
    if (this.#found === found) {
      return;
    }
    this.#found = found;
    this.#buttons.forEach(({ button }) => button.remove());
    this.#buttons = !found || !size ? [] : found.map(({ latex, box }, index) => {
      const share = box.map((side, axis) => between(side / size[axis % 2] + (axis < 2 ? -MARGIN : MARGIN), 0, 1));
      const button = document.createElement('button');
      Object.assign(button, { type: 'button', className: 'found', title: 'Read this formula alone' });
      button.setAttribute('aria-label', `Formula ${index + 1}, ${latex}: read it alone`);
      button.addEventListener('click', () => this.#change({ ...this.#crop, corners: this.#cornersOf(share) }, 'choose'));
      return { button, share };
    });
    this.#canvas.after(...this.#buttons.map(({ button }) => button));
  }

  #placeFound() {
    for (const { button, share } of this.#buttons) {
      const corners = this.#cornersOf(share);
      const [left, top] = [0, 1].map((axis) => Math.min(...corners.map((corner) => corner[axis])));
      const [right, bottom] = [0, 1].map((axis) => Math.max(...corners.map((corner) => corner[axis])));
      const { box } = this;
      Object.assign(button.style, {
        left: `${box.left + left * box.width}px`, top: `${box.top + top * box.height}px`,
        width: `${(right - left) * box.width}px`, height: `${(bottom - top) * box.height}px`,
      });
    }
  }

  #setPerspective(on) {
    this.#perspective = on;
    this.#place.querySelector('[data-picture="perspective"]').setAttribute('aria-pressed', on);
  }

  #change(crop, type = 'change') {
    this.dispatchEvent(new CustomEvent(type, { detail: { crop } }));
  }

  /** The canvas keeps its proportions in the space above the bar. */
  #layout() {
    const frame = this.#place.querySelector('.frame');
    const [width, height] = [frame.clientWidth, frame.clientHeight];
    if (!this.#picture || !width || !height) {
      return;
    }
    const factor = Math.min(width / this.#canvas.width, height / this.#canvas.height, 3);
    const size = [this.#canvas.width * factor, this.#canvas.height * factor];
    this.box = { left: (width - size[0]) / 2, top: (height - size[1]) / 2, width: size[0], height: size[1] };
    const { style } = this.#canvas;
    [style.left, style.top, style.width, style.height] = [this.box.left, this.box.top, ...size].map((value) => `${value}px`);
    this.#place.querySelector('[data-picture="reset"]').disabled = isWhole(this.#crop);
    this.#drawHandles();
    this.#placeFound();
  }

  #drawHandles() {
    const points = this.#crop.corners.map(([x, y]) => [this.box.left + x * this.box.width, this.box.top + y * this.box.height]);
    const { left, top, width, height } = this.box;
    const inside = `M${points.map((point) => point.join(' ')).join('L')}Z`;
    this.#shade.setAttribute('d', `M${left} ${top}h${width}v${height}h${-width}Z${inside}`);
    this.#outline.setAttribute('d', inside);
    this.#handles.forEach((handle, index) => {
      [handle.style.left, handle.style.top] = points[index].map((value) => `${value}px`);
      const [x, y] = this.#crop.corners[index].map((share) => Math.round(share * 100));
      handle.setAttribute('aria-label', `${CORNERS[index]}, at ${x} % across and ${y} % down`);
    });
  }

  /** The corners with one moved; in a rectangle its neighbours follow. */
  #moved(index, x, y) {
    const corners = this.#crop.corners.map((corner) => [...corner]);
    const opposite = corners[(index + 2) % 4];
    const [isRight, isLow] = [index === 1 || index === 2, index >= 2];
    const px = isRight ? between(x, Math.min(1, opposite[0] + LEAST), 1) : between(x, 0, Math.max(0, opposite[0] - LEAST));
    const py = isLow ? between(y, Math.min(1, opposite[1] + LEAST), 1) : between(y, 0, Math.max(0, opposite[1] - LEAST));
    const before = corners[index];
    corners[index] = [px, py];
    if (!this.#perspective) {
      // Neighbours share a side: 0-1 and 3-2 their y, 0-3 and 1-2 their x.
      const [sameY, sameX] = [[1, 3], [0, 2], [3, 1], [2, 0]][index];
      if (corners[sameY][1] === before[1]) {
        corners[sameY][1] = py;
      }
      if (corners[sameX][0] === before[0]) {
        corners[sameX][0] = px;
      }
    }
    return { ...this.#crop, corners };
  }

  #handle(name, index) {
    const handle = document.createElement('button');
    handle.type = 'button';
    handle.className = 'handle';
    handle.setAttribute('aria-label', name);
    let dragging = false;
    handle.addEventListener('pointerdown', (event) => {
      dragging = true;
      handle.setPointerCapture(event.pointerId);
    });
    handle.addEventListener('pointermove', (event) => {
      if (dragging) {
        const frame = this.#place.querySelector('.frame').getBoundingClientRect();
        const x = (event.clientX - frame.left - this.box.left) / this.box.width;
        const y = (event.clientY - frame.top - this.box.top) / this.box.height;
        this.#crop = this.#moved(index, x, y);
        this.#drawHandles();
      }
    });
    const stop = () => {
      if (dragging) {
        dragging = false;
        this.#change(this.#crop);
      }
    };
    handle.addEventListener('pointerup', stop);
    handle.addEventListener('pointercancel', stop);
    handle.addEventListener('keydown', (event) => {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (move) {
        event.preventDefault();
        const [x, y] = this.#crop.corners[index];
        const step = event.shiftKey ? 0.05 : 0.01;
        this.#change(this.#moved(index, x + move[0] * step, y + move[1] * step));
      }
    });
    return handle;
  }
}
