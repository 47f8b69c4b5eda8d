// The part of the floor that a canvas shows: metres to pixels; panned and zoomed by mouse, fingers
// and keys.

const LEAST = 0.5; // pixels of a metre
const MOST = 600;
const MARGIN = 0.5; // metres around the floor
const STEP = 1.25;
const PAN_SHARE = 0.12;

export class View {
  constructor(canvas) {
    Object.assign(this, { canvas, x: 0, y: 0, scale: 40, wide: 1, high: 1, moved: 0 });
    this.whole = false; // whether it shows all of the floor, as `fit` has set it
  }

  // → whether the size of the canvas on the screen has changed
  resize() {
    const { clientWidth: wide, clientHeight: high } = this.canvas;
    const density = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(wide * density), Math.round(high * density)];
    if (this.canvas.width === width && this.canvas.height === height) return false;
    Object.assign(this.canvas, { width, height });
    Object.assign(this, { wide, high, density });
    this.moved += 1;
    return true;
  }

  // metres → pixels of the page; y is up
  at = (x, y) => [this.wide / 2 + (x - this.x) * this.scale, this.high / 2 - (y - this.y) * this.scale];

  // pixels → metres
  from = (px, py) => [this.x + (px - this.wide / 2) / this.scale, this.y - (py - this.high / 2) / this.scale];

  // `above`, `below`: pixels that buttons cover
  fit([left, low, right, high], above, below) {
    const [wide, tall] = [right - left + 2 * MARGIN, high - low + 2 * MARGIN];
    this.scale = limited(Math.min(this.wide / wide, (this.high - above - below) / tall));
    this.moved += 1;
    this.center((left + right) / 2, (low + high) / 2 + (above - below) / 2 / this.scale);
    this.whole = true;
  }

  center(x, y) {
    if (this.x === x && this.y === y) return;
    Object.assign(this, { x, y });
    this.whole = false;
    this.moved += 1;
  }

  pan(px, py) {
    this.center(this.x - px / this.scale, this.y + py / this.scale);
  }

  // The place under these pixels stays there.
  zoom(factor, px = this.wide / 2, py = this.high / 2) {
    const [x, y] = this.from(px, py);
    this.scale = limited(this.scale * factor);
    this.whole = false;
    const [nowX, nowY] = this.from(px, py);
    this.moved += 1;
    this.center(this.x + x - nowX, this.y + y - nowY);
  }

  step(inward) {
    this.zoom(inward ? STEP : 1 / STEP);
  }

  // → whether the key pans
  key(name) {
    const [right, down] = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[name] ?? [0, 0];
    if (right || down) this.pan(right * this.wide * PAN_SHARE, down * this.high * PAN_SHARE);
    return Boolean(right || down);
  }

  // → left, low, right, high of the floor in view
  get bounds() {
    const [left, high] = this.from(0, 0);
    const [right, low] = this.from(this.wide, this.high);
    return [left, low, right, high];
  }
}

const limited = (scale) => Math.min(MOST, Math.max(LEAST, scale));
