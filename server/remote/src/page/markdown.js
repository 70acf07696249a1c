// Markdown that arrives in pieces. Blocks that are complete are rendered once; only the last one is
// rendered again when it grows, and a long one is divided, so the cost is that of the new text.

// Characters of a block that may grow.
const LONGEST_BLOCK = 1 << 12;
const DEEPEST_BLOCK = 6;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}>/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?=[ \t]|$)[ \t]{0,4}/;
const DELIMITER = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

// Divides a text into blocks: { type, start, end, first: the line that opens it, … }, with offsets.
// In a plain text only blocks of code are marked up.
function blocksOf(text, isPlain) {
  const lines = [];
  for (let start = 0; start < text.length;) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found + 1;
    lines.push({ start, end, text: text.slice(start, found < 0 ? end : found).replace(/\r$/, ""), isWhole: found >= 0 });
    start = end;
  }
  const isTable = (at) => lines[at].text.includes("|") && at + 1 < lines.length
    && lines[at + 1].text.includes("|") && DELIMITER.test(lines[at + 1].text);
  const interrupts = (at) => {
    const it = lines[at].text;
    if (FENCE.test(it)) return true;
    return !isPlain && (HEADING.test(it) || RULE.test(it) || QUOTE.test(it) || /^ {0,3}([-*+]|1[.)])[ \t]/.test(it) || isTable(at));
  };
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    const first = at, it = lines[at].text;
    const add = (type, more) => blocks.push({
      type, start: lines[first].start, end: lines[at - 1].end, isWhole: lines[first].isWhole,
      lines: lines.slice(first, at).map((line) => line.text), ...more });
    let found;
    if ((found = it.match(FENCE))) {
      const closing = new RegExp("^ {0,3}" + (found[1][0] === "`" ? "`" : "~") + `{${found[1].length},}[ \\t]*$`);
      at++;
      while (at < lines.length && !closing.test(lines[at].text)) at++;
      const isClosed = at < lines.length;
      if (isClosed) at++;
      add("code", { info: found[2].trim(), isClosed });
    } else if (isPlain) {
      do at++; while (at < lines.length && !interrupts(at));
      add("plain");
    } else if (/^\s*$/.test(it)) {
      at++;
    } else if ((found = it.match(HEADING))) {
      at++;
      add("heading", { level: found[1].length, content: found[2] });
    } else if (RULE.test(it)) {
      at++;
      add("rule");
    } else if (QUOTE.test(it)) {
      do at++; while (at < lines.length && QUOTE.test(lines[at].text));
      add("quote");
    } else if ((found = it.match(ITEM))) {
      const isOrdered = /\d/.test(found[2]);
      at++;
      for (; at < lines.length; at++) {
        const next = lines[at].text, item = next.match(ITEM);
        const wasBlank = /^\s*$/.test(lines[at - 1].text);
        if (/^\s*$/.test(next) || /^ {2}/.test(next)) continue;
        if (item && !RULE.test(next) && /\d/.test(item[2]) === isOrdered) continue;
        if (wasBlank || interrupts(at)) break;
      }
      // Blank lines behind it are not of the list.
      const list = at;
      while (/^\s*$/.test(lines[at - 1].text)) at--;
      add("list", { isOrdered });
      at = list;
    } else if (isTable(at)) {
      at += 2;
      while (at < lines.length && /\|/.test(lines[at].text)) at++;
      add("table");
    } else {
      do at++; while (at < lines.length && !/^\s*$/.test(lines[at].text) && !interrupts(at));
      add("paragraph");
    }
  }
  return blocks;
}

// Blocks as elements.
function blocksElements(text, isPlain, depth = 0) {
  if (depth >= DEEPEST_BLOCK) return [make("p", { textContent: text })];
  return blocksOf(text, isPlain).map((block) => blockElement(block, depth));
}

function blockElement(block, depth) {
  const { lines } = block;
  switch (block.type) {
    case "code": return codeBlock(lines.slice(1, block.isClosed ? -1 : undefined).join("\n"), block.info);
    case "plain": return make("div", { className: "plain", textContent: lines.join("\n") });
    // The page and its cards have the first levels.
    case "heading": return make("h" + Math.min(6, block.level + 2), {}, ...inline(block.content));
    case "rule": return make("hr");
    case "quote": return make("blockquote", {}, ...blocksElements(lines.map((it) => it.replace(/^ {0,3}> ?/, "")).join("\n"), false, depth + 1));
    case "list": return listElement(block, depth);
    case "table": return tableElement(lines);
    default: return make("p", {}, ...inline(lines.join("\n")));
  }
}

function listElement({ lines, isOrdered }, depth) {
  const items = [];
  let indent = 0;
  for (const it of lines) {
    const found = it.match(ITEM);
    // A marker that is indented less than the item's text begins the next item.
    if (found && (!items.length || found[1].length < Math.min(2, indent))) {
      indent = found[0].length;
      items.push([it.slice(indent)]);
    } else {
      items.at(-1).push(it.replace(new RegExp(`^ {0,${indent}}`), ""));
    }
  }
  const list = make(isOrdered ? "ol" : "ul", {}, ...items.map((item) => {
    const elements = blocksElements(item.join("\n").trimEnd(), false, depth + 1);
    // An item of one paragraph is a line of the list.
    if (elements[0]?.tagName === "P") elements[0] = make("span", {}, ...elements[0].childNodes);
    return make("li", {}, ...elements);
  }));
  if (isOrdered) list.start = parseInt(lines[0].trim(), 10);
  return list;
}

function tableElement(lines) {
  const cells = (line) => line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
  const aligns = cells(lines[1]).map((cell) => cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "");
  const head = cells(lines[0]);
  const row = (tag, texts) => make("tr", {}, ...head.map((_, at) =>
    make(tag, { className: aligns[at] ?? "" }, ...inline(texts[at] ?? ""))));
  return make("div", { className: "table", tabIndex: 0 }, make("table", {},
    make("thead", {}, row("th", head)),
    make("tbody", {}, ...lines.slice(2).map((line) => row("td", cells(line))))));
}

function codeBlock(text, info) {
  const block = make("div", { className: "code" }, make("div", { className: "bar" },
    make("span", { textContent: info || "code" }), copyButton(() => codeText(block))),
  pre("", make("code", { textContent: text })));
  return block;
}

// The text of a block of code with the blocks that continue it.
function codeText(block) {
  const next = block.nextElementSibling;
  const text = block.querySelector("code").textContent;
  return next?.classList.contains("continued") && next.classList.contains("code") ? text + "\n" + codeText(next) : text;
}

function copyButton(text) {
  // Browsers have a clipboard for secure pages only.
  if (!navigator.clipboard) return null;
  const button = make("button", { type: "button", className: "small", textContent: "Copy" });
  button.onclick = async () => {
    try { await navigator.clipboard.writeText(text()); button.textContent = "Copied"; } catch { button.textContent = "Not copied"; }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };
  return button;
}

class Markdown {
  constructor(element, isPlain = false) {
    this.element = element;
    this.isPlain = isPlain;
    this.pending = [];
    this.open = ""; // the source that may change its meaning
    this.shown = []; // its elements
    this.continues = null; // the type of the block that was divided
  }

  append(text) { this.pending.push(text); }

  // Renders what was appended; returns whether it is all rendered.
  render(isLate) {
    do {
      this.take();
      this.settle();
    } while (this.pending.length && !isLate());
    this.shown.forEach((element) => element.remove());
    this.shown = this.elements(blocksOf(this.open, this.isPlain));
    this.element.append(...this.shown);
    return !this.pending.length;
  }

  // Takes as much of what is pending as may be open, at least a character.
  take() {
    const pieces = [];
    let room = Math.max(1, LONGEST_BLOCK - this.open.length), at = 0;
    for (; at < this.pending.length && room > 0; at++) {
      const piece = this.pending[at];
      pieces.push(piece.slice(0, room));
      if (piece.length > room) { this.pending[at] = piece.slice(room); break; }
      room -= piece.length;
    }
    this.pending.splice(0, at);
    this.open += pieces.join("");
  }

  // Renders for good what cannot change any more, and a part of a block that is too long.
  settle() {
    const blocks = blocksOf(this.open, this.isPlain);
    // The last line may still become something else, and so may the block that it belongs to.
    let count = blocks.length - 1;
    if (count > 0 && !blocks[count].isWhole) count--;
    if (count > 0) {
      this.keep(blocks.slice(0, count));
      this.open = this.open.slice(blocks[count].start);
    } else if (this.open.length >= LONGEST_BLOCK) this.divide(blocks[0]);
  }

  divide(block) {
    if (!block) { this.open = ""; return; }
    const text = this.open;
    let head = "";
    // What follows is a block of the same kind.
    if (block.type === "code") head = block.lines[0] + "\n";
    if (block.type === "table") head = block.lines.slice(0, 2).join("\n") + "\n";
    if (head.length > 1000) head = "";
    const least = block.start + LONGEST_BLOCK / 2, most = Math.min(block.end, block.start + LONGEST_BLOCK);
    let cut = block.end < most ? block.end : text.lastIndexOf("\n", most - 1) + 1;
    if (cut < least && block.end > most - 1) cut = text.lastIndexOf(" ", most - 1) + 1;
    if (cut < least && block.end > most - 1) cut = most;
    if (/[\ud800-\udbff]/.test(text[cut - 1])) cut--;
    const rest = text.slice(cut);
    this.keep(blocksOf(text.slice(0, cut), this.isPlain));
    this.open = block.end > cut || block.type === "code" && !block.isClosed ? head + rest : rest;
    this.continues = block.type;
  }

  keep(blocks) {
    this.shown.forEach((element) => element.remove());
    this.shown = [];
    this.element.append(...this.elements(blocks));
    this.continues = null;
  }

  elements(blocks) {
    return blocks.map((block, at) => {
      const element = blockElement(block, 0);
      if (at === 0 && block.type === this.continues) element.classList.add("continued");
      return element;
    });
  }
}
