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

// A diff as an element. `view` bounds what is shown, see `View`.
function diff(content, view, key) {
  const lines = hunks(diffLines(content.oldText ?? "", content.newText ?? ""));
  const count = (kind) => lines.filter(([its]) => its === kind).length;
  const shown = view.lines(lines);
  const body = pre("diff", ...shown.map(([kind, text]) => make("span", { className: kind, textContent: SIGNS[kind] + text })));
  const summary = `${content.path} (+${count("added")} −${count("removed")})`;
  return view.isQuestion ? make("div", {}, make("div", { className: "notice", textContent: summary }), body)
    : fold(key, summary, lines.length <= 200, body);
}
