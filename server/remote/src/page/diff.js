// Differences between two texts.

// The lines of a diff, by the longest common subsequence; a very long one is shown as replaced.
function diffLines(before, after) {
  const split = (text) => text === "" ? [] : text.replace(/\n$/, "").split("\n");
  const a = split(before), b = split(after);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end), lines = [];
  const keep = (line) => lines.push(["same", line]);
  a.slice(0, start).forEach(keep);
  if (x.length * y.length > 1e6) {
    x.forEach((line) => lines.push(["removed", line]));
    y.forEach((line) => lines.push(["added", line]));
  } else {
    const common = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
    for (let i = x.length - 1; i >= 0; i--) {
      for (let j = y.length - 1; j >= 0; j--) {
        common[i][j] = x[i] === y[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
      }
    }
    let i = 0, j = 0;
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) { keep(x[i++]); j++; }
      else if (j >= y.length || (i < x.length && common[i + 1][j] >= common[i][j + 1])) lines.push(["removed", x[i++]]);
      else lines.push(["added", y[j++]]);
    }
  }
  a.slice(a.length - end).forEach(keep);
  return lines;
}

// Unchanged lines that are shown around a change.
const CONTEXT = 3;
const SIGNS = { same: "  ", added: "+ ", removed: "- ", skipped: "" };

// Leaves out unchanged lines that are far from a change.
function hunks(lines) {
  const near = new Uint8Array(lines.length);
  lines.forEach(([kind], at) => { if (kind !== "same") near.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1); });
  const shown = [];
  let skipped = 0;
  const flush = () => { if (skipped) shown.push(["skipped", `⋯ ${skipped} unchanged lines`]); skipped = 0; };
  lines.forEach((entry, at) => { if (near[at]) { flush(); shown.push(entry); } else skipped++; });
  flush();
  return shown;
}

// Lines in groups of what is alike and of what has replaced what, each with a side before and one after. In
// one column, the second copy of what is alike is not shown, see page.css.
function groups(lines) {
  const found = [];
  for (const [kind, text] of lines) {
    const type = kind === "same" || kind === "skipped" ? kind : "changed";
    let group = found.at(-1);
    // Behind an added line, a removed one begins another group.
    if (group?.type !== type || (kind === "removed" && group.after.length)) found.push(group = { type, before: [], after: [] });
    const element = () => make("span", { className: kind, textContent: SIGNS[kind] + text });
    if (kind !== "added") group.before.push(element());
    if (kind !== "removed") group.after.push(element());
  }
  const side = (className, lines) => make("div", { className }, ...lines);
  return found.map(({ type, before, after }) => type === "skipped" ? side(type, before)
    : make("div", { className: type }, side("before", before), side("after", after)));
}

// Whether diffs are shown side by side is the user's choice for all of them, and outlives the page.
const SIDES = "diffs side by side";
document.documentElement.classList.toggle("sides", localStorage.getItem(SIDES) === "true");

function sidesButton() {
  const areSides = () => document.documentElement.classList.contains("sides");
  const show = (button) => { button.ariaPressed = String(areSides()); };
  const button = make("button", { type: "button", className: "small sides", textContent: "Side by side" });
  button.onclick = () => {
    localStorage.setItem(SIDES, String(document.documentElement.classList.toggle("sides")));
    document.querySelectorAll("button.sides").forEach(show);
  };
  show(button);
  return button;
}

// A diff as an element. `view` bounds what is shown, see `View`.
function diff(content, view, key) {
  const lines = hunks(diffLines(content.oldText ?? "", content.newText ?? ""));
  const count = (kind) => lines.filter(([its]) => its === kind).length;
  const body = [sidesButton(), pre("diff", ...groups(view.lines(lines)))];
  const summary = `${content.path} (+${count("added")} −${count("removed")})`;
  return view.isQuestion ? make("div", {}, make("div", { className: "notice", textContent: summary }), ...body)
    : fold(key, summary, lines.length <= 200, ...body);
}
