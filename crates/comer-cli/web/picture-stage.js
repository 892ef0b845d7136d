// A picture on the surface, with handles to crop, turn and straighten it. Sends `change` {crop} when a handle is let go.

import { isWhole, turned, turnedCorners, WHOLE } from './picture-warp.js';

const CORNERS = ['Top left corner', 'Top right corner', 'Bottom right corner', 'Bottom left corner'];
/** The least share of the picture between two handles. */
const LEAST = 0.03;

const between = (value, low, high) => Math.min(high, Math.max(low, value));

export class PictureStage extends EventTarget {
  #place;
  #canvas;
  #shade;
  #outline;
  #handles;
  #picture = null;
  #crop = WHOLE;
  #perspective = false;

  /** @param {HTMLElement} place holds `canvas`, two paths for shade and outline, and the bar of buttons with `data-picture` */
  constructor(place) {
    super();
    this.#place = place;
    this.#canvas = place.querySelector('canvas');
    [this.#shade, this.#outline] = place.querySelectorAll('.outline path');
    this.#handles = CORNERS.map((name, index) => this.#handle(name, index));
    place.querySelector('.frame').append(...this.#handles);
    place.querySelectorAll('[data-picture]').forEach((button) => button.addEventListener('click', () => this.#act(button.dataset.picture)));
    new ResizeObserver(() => this.#layout()).observe(place);
  }

  /** Shows a picture {name, source, crop}, or none. Without `source` the browser cannot show it. */
  show(picture) {
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
    this.#layout();
  }

  #act(name) {
    const { turns, corners } = this.#crop;
    if (name === 'left' || name === 'right') {
      const direction = name === 'right' ? 1 : -1;
      this.#change({ turns: (turns + direction + 4) % 4, corners: turnedCorners(corners, direction) });
    } else if (name === 'reset') {
      this.#change(WHOLE);
    } else {
      this.#setPerspective(!this.#perspective);
    }
  }

  #setPerspective(on) {
    this.#perspective = on;
    this.#place.querySelector('[data-picture="perspective"]').setAttribute('aria-pressed', on);
  }

  #change(crop) {
    this.dispatchEvent(new CustomEvent('change', { detail: { crop } }));
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
