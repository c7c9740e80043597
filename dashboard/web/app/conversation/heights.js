// Heights of rows, most of which were never drawn. Finds where a row begins and which row is at a place in logarithmic
// time. Pure.

export class Heights {
  constructor() {
    this.n = 0;
    this.total = 0;
    this.of = new Float64Array(0);
    /** A Fenwick tree over `of`. */
    this.tree = new Float64Array(1);
  }

  /** @param {number} n @param {(at: number) => number} height of a row, known or likely */
  reset(n, height) {
    this.n = n;
    this.of = new Float64Array(n);
    this.tree = new Float64Array(n + 1);
    this.total = 0;
    for (let at = 0; at < n; at += 1) {
      const px = height(at);
      this.of[at] = px;
      this.total += px;
      this.tree[at + 1] += px;
      const up = at + 1 + ((at + 1) & -(at + 1));
      if (up <= n) this.tree[up] += this.tree[at + 1];
    }
  }

  /** Sets a row's measured height. Returns the change. @param {number} at @param {number} px */
  set(at, px) {
    const by = px - this.of[at];
    if (by === 0) return 0;
    this.of[at] = px;
    this.total += by;
    for (let i = at + 1; i <= this.n; i += i & -i) this.tree[i] += by;
    return by;
  }

  /** Where a row begins. @param {number} at */
  top(at) {
    let sum = 0;
    for (let i = Math.min(at, this.n); i > 0; i -= i & -i) sum += this.tree[i];
    return sum;
  }

  /** The row at a place: the last one that begins there or before. @param {number} px */
  find(px) {
    let at = 0;
    let left = px;
    for (let step = 1 << Math.max(0, 31 - Math.clz32(this.n)); step > 0; step >>= 1) {
      const next = at + step;
      if (next <= this.n && this.tree[next] <= left) {
        at = next;
        left -= this.tree[next];
      }
    }
    return Math.max(0, Math.min(this.n - 1, at));
  }
}
