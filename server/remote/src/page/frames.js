// Rendering once a frame, for a limited time: whatever an agent sends, the page stays responsive.

// Milliseconds of a frame that rendering may take.
const FRAME_BUDGET = 8;

class Frames {
  // `around(run)` runs one frame's rendering.
  constructor(around) {
    this.around = around;
    this.items = new Set();
    this.isAsked = false;
  }

  // Has the item rendered: `render(isLate)` does a part of the work and returns whether all is done.
  touch(item) {
    this.items.add(item);
    this.ask();
  }

  clear() { this.items.clear(); }

  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    // Frames are not drawn while the page is hidden, so nothing piles up either.
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.around(() => this.run());
      if (this.items.size) this.ask();
    });
  }

  run() {
    const deadline = performance.now() + FRAME_BUDGET;
    const isLate = () => performance.now() > deadline;
    for (const item of this.items) {
      if (item.render(isLate)) this.items.delete(item);
      if (isLate()) return;
    }
  }
}
