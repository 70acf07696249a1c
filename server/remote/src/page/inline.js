// Markup within a line of Markdown: code, links and emphasis, as nodes.

// How far the end of a link or of emphasis is looked for, and among how many marks: the cost of a hostile
// text must not grow faster than its length.
const REACH = 2000, MOST_ENDS = 20;
// At this depth only code is marked up.
const DEEPEST_EMPHASIS = 4;
const MARK = /(`+)|\\([!-\/:-@[-`{-~])|(!?\[)|<((?:https?:\/\/|mailto:)[^\s<>]+)>|\bhttps?:\/\/[^\s<>]+|(\*\*|__|~~|\*|_)/g;

function inline(text, depth = 0) {
  const nodes = [];
  let from = 0;
  const put = (until, node, next) => {
    if (until > from) nodes.push(document.createTextNode(visible(text.slice(from, until))));
    if (node) nodes.push(node);
    from = next;
  };
  // Marks without an end: none that follows has one either.
  const unclosed = new Set();
  const mark = new RegExp(MARK);
  for (let found; (found = mark.exec(text));) {
    const at = found.index, [whole, ticks, escaped, bracket, bare, emphasis] = found;
    const next = ticks ? codeSpan(text, at, ticks, unclosed, put)
      : escaped ? (put(at, null, at + 1), at + 2)
      : bracket ? linkSpan(text, at, depth, put)
      : emphasis ? emphasized(text, at, emphasis, depth, put)
      : address(text, at, whole, bare, depth, put);
    mark.lastIndex = next ?? at + whole.length;
  }
  put(text.length, null, text.length);
  return nodes;
}

function codeSpan(text, at, ticks, unclosed, put) {
  if (unclosed.has(ticks.length)) return null;
  const closing = new RegExp("(?<!`)`{" + ticks.length + "}(?!`)", "g");
  closing.lastIndex = at + ticks.length;
  const end = closing.exec(text);
  if (!end) { unclosed.add(ticks.length); return null; }
  const code = text.slice(at + ticks.length, end.index);
  put(at, make("code", { textContent: /^ .*[^ ].* $/s.test(code) ? code.slice(1, -1) : code }), closing.lastIndex);
  return closing.lastIndex;
}

function linkSpan(text, at, depth, put) {
  if (depth >= DEEPEST_EMPHASIS) return null;
  const reach = text.slice(at, at + REACH);
  const found = reach.match(/^(!?)\[((?:[^\[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/);
  if (!found) return null;
  const [whole, image, label, target] = found;
  const node = linkTo(target, ...(image ? ["image: " + label] : label ? inline(label, DEEPEST_EMPHASIS) : [target]));
  // Other targets, such as files, stay as they are written.
  put(at, node ?? make("span", { textContent: whole }), at + whole.length);
  return at + whole.length;
}

function address(text, at, whole, bare, depth, put) {
  // A link has no links in its text.
  if (depth >= DEEPEST_EMPHASIS) return null;
  // What ends a sentence is not of the address.
  const target = bare ?? whole.replace(/[.,;:!?'"*_~)\]]+$/, (tail) => tail.startsWith(")") && whole.includes("(") ? ")" : "");
  const node = linkTo(target);
  const end = at + (bare ? whole.length : target.length);
  if (node) put(at, node, end);
  return end;
}

function emphasized(text, at, mark, depth, put) {
  const isWord = (char) => /[\p{L}\p{N}_]/u.test(char ?? " ");
  const inner = at + mark.length;
  if (depth >= DEEPEST_EMPHASIS || !/\S/.test(text[inner] ?? " ")) return null;
  if (mark[0] === "_" && isWord(text[at - 1])) return null;
  const reach = text.slice(0, inner + REACH);
  let end = inner;
  for (let tried = 0; tried < MOST_ENDS; tried++) {
    end = reach.indexOf(mark, end + 1);
    if (end < 0) return null;
    const after = end + mark.length;
    if (/[\s\\]/.test(text[end - 1])) continue;
    if (mark[0] === "_" && isWord(text[after])) continue;
    // A mark of two is none of one.
    if (mark.length === 1 && (text[after] === mark || text[end - 1] === mark)) continue;
    const tag = mark === "~~" ? "del" : mark.length === 2 ? "strong" : "em";
    put(at, make(tag, {}, ...inline(text.slice(inner, end), depth + 1)), after);
    return after;
  }
  return null;
}
