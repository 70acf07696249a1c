// What was said and done in a session. All texts are those of agents: they become text, never markup.

// Characters without a shape, and those that turn the order of a text: they could make one text look
// like another. Line ends, tabs and joined emoji stay.
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\r(?!\n|$)|(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d/gu;

// Returns a text in which hidden characters are visible. Every text of the page goes through it.
function visible(text) {
  return String(text).replace(hidden, (char) =>
    "\u27e8U+" + char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
}

function make(tag, options = {}, ...children) {
  const { dataset, textContent, ...properties } = options;
  const element = Object.assign(document.createElement(tag), properties);
  if (textContent !== undefined) element.textContent = visible(textContent ?? "");
  Object.assign(element.dataset, dataset);
  const shown = children.filter((child) => child !== null && child !== undefined);
  element.append(...shown.map((child) => child instanceof Node ? child : visible(child)));
  return element;
}

const words = (name) => String(name ?? "").replaceAll("_", " ");

// Text with its blocks of code.
function prose(element, text) {
  element.replaceChildren(...text.split(/^```[^\n]*\n?/m).map((part, at) =>
    at % 2 ? make("pre", {}, make("code", { textContent: part })) : document.createTextNode(visible(part))));
}

// The lines of a diff, by the longest common subsequence; a very long one is shown as replaced.
function diffLines(before, after) {
  const split = (text) => text === "" ? [] : text.replace(/\n$/, "").split("\n");
  const a = split(before), b = split(after);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end), lines = [];
  const keep = (line) => lines.push(["same", line]);
  a.slice(Math.max(0, start - 3), start).forEach(keep);
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
  a.slice(a.length - end, a.length - end + 3).forEach(keep);
  return lines;
}

function diff(content) {
  const sign = { same: "  ", added: "+ ", removed: "- " };
  const lines = diffLines(content.oldText ?? "", content.newText ?? "");
  return make("div", {}, make("div", { className: "notice", textContent: content.path }),
    make("pre", { className: "diff" }, ...lines.map(([kind, line]) =>
      make("span", { className: kind, textContent: sign[kind] + line }))));
}

function anchor(uri, name) {
  const known = /^https?:/.test(uri);
  if (!known) return make("span", { textContent: name || uri });
  return make("a", { href: uri, target: "_blank", rel: "noopener noreferrer", textContent: name || uri });
}

// What a tool call is about, as the agent says: kind, files, input.
function details(tool) {
  const places = (tool.locations || []).map((place) => place.path + (place.line ? ":" + place.line : ""));
  const parts = [tool.kind ? "kind: " + words(tool.kind) : "", ...places].filter(Boolean);
  const elements = parts.map((part) => make("div", { className: "notice", textContent: part }));
  const input = inputOf(tool);
  if (input !== "") {
    const rest = input.length - longestInput;
    elements.push(make("pre", { className: "input", textContent: input.slice(0, longestInput) + (rest > 0 ? `\n(${rest} more characters)` : "") }));
  }
  return elements;
}

// Characters of a tool call's input that are shown.
const longestInput = 1 << 16;

function inputOf(tool) {
  return tool.rawInput === undefined || tool.rawInput === null ? "" : JSON.stringify(tool.rawInput, null, 2);
}

// Whether all of a tool call's input is shown.
const isWhole = (tool) => inputOf(tool).length <= longestInput;

// The parts of a tool call's content.
function contents(tool) {
  return (tool.content || []).map((part) => {
    if (part.type === "diff") return diff(part);
    if (part.type === "terminal") return make("div", { className: "notice", textContent: "terminal " + part.terminalId });
    return block(part.content || part);
  });
}

// A block of content as an element.
function block(content) {
  switch (content.type) {
    case "text": { const element = make("div", { className: "text" }); prose(element, content.text); return element; }
    case "image":
      if (/^image\/(png|jpeg|gif|webp)$/.test(content.mimeType)) {
        return make("img", { src: `data:${content.mimeType};base64,${content.data}`, alt: "image of the agent" });
      }
      return make("div", { className: "notice", textContent: "image " + content.mimeType });
    case "resource_link": return make("div", {}, anchor(content.uri, content.title || content.name));
    case "resource": {
      const resource = content.resource || {};
      return make("div", {}, anchor(String(resource.uri), resource.uri),
        resource.text === undefined ? null : make("pre", { textContent: resource.text }));
    }
    default: return make("div", { className: "notice", textContent: words(content.type) });
  }
}

class Conversation {
  constructor(element) {
    this.element = element;
    this.clear();
  }

  clear() {
    this.element.replaceChildren();
    this.tools = new Map();
    this.plan = null;
    this.open = null;
    this.mine = [];
  }

  add(element) {
    const log = this.element;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    if (!element.isConnected) log.append(element);
    if (atEnd) log.scrollTop = log.scrollHeight;
    return element;
  }

  notice(text, kind = "notice") {
    this.open = null;
    this.add(make("p", { className: kind, textContent: text }));
  }

  // The user's own prompt, which the server does not send back.
  said(text) {
    this.open = null;
    const element = this.add(make("div", { className: "user text", textContent: text }));
    this.mine.push({ text, element });
  }

  update(update) {
    switch (update.sessionUpdate) {
      case "user_message_chunk": return this.chunk("user", update);
      case "agent_message_chunk": return this.chunk("agent", update);
      case "agent_thought_chunk": return this.chunk("thought", update);
      case "tool_call": case "tool_call_update": return this.tool(update);
      case "plan": return this.entries(update.entries || []);
      case "notice": return this.notice(update.message || update.text || "", update.severity === "error" ? "error" : "notice");
    }
  }

  chunk(kind, update) {
    const content = update.content || {};
    if (kind === "user" && this.mine.length && content.text === this.mine[0].text) {
      // It comes from the log after a reconnection.
      this.mine.shift().element.remove();
    }
    const key = kind + " " + (update.messageId ?? "");
    if (content.type === "text" && this.open && this.open.key === key) {
      this.open.text += content.text;
      prose(this.open.element, this.open.text);
      this.add(this.open.element);
      return;
    }
    const element = block(content);
    element.classList.add(kind);
    this.add(element);
    this.open = content.type === "text" ? { key, element, text: content.text } : null;
  }

  tool(update) {
    this.open = null;
    let tool = this.tools.get(update.toolCallId);
    if (!tool) {
      tool = { element: make("section", { className: "card tool", dataset: { id: update.toolCallId } }) };
      this.tools.set(update.toolCallId, tool);
    }
    for (const name of ["title", "kind", "status", "content", "locations", "rawInput"]) {
      if (update[name] !== undefined && update[name] !== null) tool[name] = update[name];
    }
    const status = tool.status || "pending";
    tool.element.replaceChildren(
      make("h2", {}, make("span", { textContent: tool.title || "tool call" }),
        make("span", { className: "status " + status, textContent: words(status) })),
      ...details(tool), ...contents(tool));
    this.add(tool.element);
  }

  entries(entries) {
    this.open = null;
    if (!this.plan) this.plan = make("section", { className: "card plan" });
    this.plan.replaceChildren(make("h2", { textContent: "Plan" }),
      make("ol", {}, ...entries.map((entry) => make("li", { className: entry.status, textContent: entry.content },
        entry.status === "in_progress" ? make("span", { className: "notice", textContent: " (in progress)" }) : ""))));
    this.add(this.plan);
  }
}
