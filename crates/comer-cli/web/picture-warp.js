// Pictures in the browser: decoding, shrinking, turning, cropping, and straightening a quadrilateral.
// Corners are in the order top left, top right, bottom right, bottom left, as shares of the turned picture's size.

/** The longest side of a picture that is kept, and of one that is sent. */
const LARGEST_KEPT = 2400;
const LARGEST_SENT = 1800;

export const WHOLE = { turns: 0, corners: [[0, 0], [1, 0], [1, 1], [0, 1]] };

export const isWhole = ({ turns, corners }) => turns === 0 && corners.every((corner, index) => corner.every((value, axis) => value === WHOLE.corners[index][axis]));

function canvasOf(width, height) {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [Math.max(1, Math.round(width)), Math.max(1, Math.round(height))];
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.imageSmoothingQuality = 'high';
  return [canvas, context];
}

/** Decodes a file and shrinks it; rejects what the browser cannot decode. */
export async function decode(file) {
  const bitmap = await createImageBitmap(file);
  const factor = Math.min(1, LARGEST_KEPT / Math.max(bitmap.width, bitmap.height));
  const [canvas, context] = canvasOf(bitmap.width * factor, bitmap.height * factor);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return { canvas, shrunk: factor < 1 };
}

/** Whether a picture {file, shrunk} can be kept and sent as it came. */
export const isSmall = ({ file, shrunk }) => !shrunk && file.size <= 4 << 20;

/** The picture after quarter turns clockwise. */
export function turned(source, turns) {
  if (turns % 4 === 0) {
    return source;
  }
  const [canvas, context] = turns % 2 ? canvasOf(source.height, source.width) : canvasOf(source.width, source.height);
  context.translate(canvas.width / 2, canvas.height / 2);
  context.rotate((turns * Math.PI) / 2);
  context.drawImage(source, -source.width / 2, -source.height / 2);
  return canvas;
}

/** Corners after one more quarter turn clockwise (1) or counterclockwise (-1). */
export function turnedCorners(corners, direction) {
  const moved = corners.map(([x, y]) => (direction > 0 ? [1 - y, x] : [y, 1 - x]));
  return direction > 0 ? [moved[3], moved[0], moved[1], moved[2]] : [moved[1], moved[2], moved[3], moved[0]];
}

const isRectangle = ([[left, top], [right, top2], [right2, bottom], [left2, bottom2]]) =>
  left === left2 && right === right2 && top === top2 && bottom === bottom2;

/** The part of a picture inside the corners, straightened, as a canvas. */
export function extract(source, { turns, corners }) {
  const picture = turned(source, turns);
  const points = corners.map(([x, y]) => [x * picture.width, y * picture.height]);
  const side = (one, other) => Math.hypot(points[one][0] - points[other][0], points[one][1] - points[other][1]);
  const [width, height] = [(side(0, 1) + side(3, 2)) / 2, (side(0, 3) + side(1, 2)) / 2];
  const factor = Math.min(1, LARGEST_SENT / Math.max(width, height));
  const [canvas, context] = canvasOf(width * factor, height * factor);
  if (isRectangle(corners)) {
    context.drawImage(picture, points[0][0], points[0][1], width, height, 0, 0, canvas.width, canvas.height);
  } else {
    warp(picture, points, canvas, context);
  }
  return canvas;
}

/** The projective map from the unit square to four points (Heckbert 1989): [a, b, c, d, e, f, g, h]. */
export function projection([[x0, y0], [x1, y1], [x2, y2], [x3, y3]]) {
  const [dx1, dx2, sumX] = [x1 - x2, x3 - x2, x0 - x1 + x2 - x3];
  const [dy1, dy2, sumY] = [y1 - y2, y3 - y2, y0 - y1 + y2 - y3];
  const determinant = dx1 * dy2 - dx2 * dy1;
  const g = (sumX * dy2 - dx2 * sumY) / determinant;
  const h = (dx1 * sumY - sumX * dy1) / determinant;
  return [x1 - x0 + g * x1, x3 - x0 + h * x3, x0, y1 - y0 + g * y1, y3 - y0 + h * y3, y0, g, h];
}

/** Fills a canvas with the quadrilateral of a picture, with bilinear interpolation. */
function warp(picture, points, canvas, context) {
  const source = picture.getContext('2d').getImageData(0, 0, picture.width, picture.height);
  const target = context.createImageData(canvas.width, canvas.height);
  const [a, b, c, d, e, f, g, h] = projection(points);
  const { width, height, data } = source;
  for (let row = 0, out = 0; row < canvas.height; row++) {
    const v = (row + 0.5) / canvas.height;
    for (let column = 0; column < canvas.width; column++, out += 4) {
      const u = (column + 0.5) / canvas.width;
      const scale = 1 / (g * u + h * v + 1);
      const x = Math.min(width - 1, Math.max(0, (a * u + b * v + c) * scale - 0.5));
      const y = Math.min(height - 1, Math.max(0, (d * u + e * v + f) * scale - 0.5));
      const [left, top] = [x | 0, y | 0];
      const [shareX, shareY] = [x - left, y - top];
      const corner = 4 * (top * width + left);
      const right = left + 1 < width ? 4 : 0;
      const below = top + 1 < height ? 4 * width : 0;
      for (let channel = 0; channel < 4; channel++) {
        const at = corner + channel;
        const upper = data[at] + (data[at + right] - data[at]) * shareX;
        const lower = data[at + below] + (data[at + below + right] - data[at + below]) * shareX;
        target.data[out + channel] = upper + (lower - upper) * shareY;
      }
    }
  }
  context.putImageData(target, 0, 0);
}

/** A canvas as a file: PNG if it is small, else JPEG, which a phone sends in a tenth of the time. */
export function toBlob(canvas) {
  const small = canvas.width * canvas.height <= 1_000_000;
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture could not be encoded'))), small ? 'image/png' : 'image/jpeg', 0.92);
  });
}

/** A small picture as a data URL. */
export function thumbnail(source, size = 128) {
  const factor = Math.min(1, size / Math.max(source.width, source.height));
  const [canvas, context] = canvasOf(source.width * factor, source.height * factor);
  context.fillStyle = 'white';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(source, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL('image/jpeg', 0.8);
}
