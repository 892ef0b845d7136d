// The part of the plane that the surface shows: screen = ink * scale + offset.

const LEAST_SCALE = 0.1;
const LARGEST_SCALE = 8;
/** Pixels between ink and the edge after a fit. */
const MARGIN = 24;
/** Pixels of ink that stay visible however far one pans. */
const VISIBLE = 64;

export class Viewport {
  scale = 1;
  x = 0;
  y = 0;
  width = 0;
  height = 0;
  /** Whether the user moved the view; it then stays where it was put. */
  moved = false;

  toInk(x, y) {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  toScreen(x, y) {
    return [x * this.scale + this.x, y * this.scale + this.y];
  }

  get isDefault() {
    return this.scale === 1 && this.x === 0 && this.y === 0;
  }

  resize(width, height, ink) {
    const [centerX, centerY] = this.toInk(this.width / 2, this.height / 2);
    [this.width, this.height] = [width, height];
    if (this.moved) {
      this.x = width / 2 - centerX * this.scale;
      this.y = height / 2 - centerY * this.scale;
      this.keepInReach(ink);
    } else {
      this.fit(ink);
    }
  }

  /** Shows all ink: unchanged if it fits at its own size, else shifted and shrunk as little as needed. */
  fit(ink) {
    this.moved = false;
    [this.scale, this.x, this.y] = [1, 0, 0];
    if (!ink || !this.width) {
      return;
    }
    const available = (length) => Math.max(1, length - 2 * MARGIN);
    const inside = ink.left >= 0 && ink.top >= 0 && ink.right <= this.width && ink.bottom <= this.height;
    if (inside) {
      return;
    }
    this.scale = Math.min(1, available(this.width) / Math.max(1, ink.right - ink.left), available(this.height) / Math.max(1, ink.bottom - ink.top));
    const shift = (low, high, length) => {
      const [start, end] = [low * this.scale, high * this.scale];
      return start < MARGIN ? MARGIN - start : Math.min(0, length - MARGIN - end);
    };
    this.x = shift(ink.left, ink.right, this.width);
    this.y = shift(ink.top, ink.bottom, this.height);
  }

  pan(dx, dy, ink) {
    const before = [this.x, this.y];
    this.x += dx;
    this.y += dy;
    this.keepInReach(ink);
    const changed = this.x !== before[0] || this.y !== before[1];
    this.moved ||= changed;
    return changed;
  }

  /** Zooms about a point of the screen. */
  zoom(factor, x, y, ink) {
    const scale = Math.max(LEAST_SCALE, Math.min(LARGEST_SCALE, this.scale * factor));
    const [inkX, inkY] = this.toInk(x, y);
    this.scale = scale;
    this.x = x - inkX * scale;
    this.y = y - inkY * scale;
    this.moved = true;
    this.keepInReach(ink);
  }

  /** Some ink always stays on the screen; without ink the view may move by one screen. */
  keepInReach(ink) {
    const limited = (offset, low, high, length) => {
      const visible = Math.min(VISIBLE, (high - low) * this.scale);
      return Math.min(length - visible - low * this.scale, Math.max(visible - high * this.scale, offset));
    };
    const box = ink ?? { left: 0, top: 0, right: this.width, bottom: this.height };
    this.x = limited(this.x, box.left, box.right, this.width);
    this.y = limited(this.y, box.top, box.bottom, this.height);
  }
}
