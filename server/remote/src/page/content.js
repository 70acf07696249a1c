// Blocks of content and tool calls as elements.

// Characters of a text in a tool call, its lines of a diff, and parts of its content that are shown.
const LONGEST_TEXT = 1 << 16, MOST_LINES = 4000, MOST_PARTS = 100;
// A longer text is folded.
const SHORT_TEXT = 1500;

// How something is shown: a question in full and as it is written, all else folded. It remembers whether
// something was too long to be shown.
class View {
  constructor(isQuestion) {
    this.isQuestion = isQuestion;
    this.isWhole = true;
  }

  text(text) {
    const rest = text.length - LONGEST_TEXT;
    if (rest <= 0) return text;
    this.isWhole = false;
    return text.slice(0, LONGEST_TEXT) + `\n(${rest} more characters)`;
  }

  lines(lines) {
    const characters = lines.reduce((sum, [, text]) => sum + text.length, 0);
    if (lines.length <= MOST_LINES && characters <= 4 * LONGEST_TEXT) return lines;
    this.isWhole = false;
    const shown = lines.slice(0, MOST_LINES).map(([kind, text]) => [kind, text.slice(0, 200)]);
    return [...shown, ["skipped", `(cut; ${lines.length} lines with ${characters} characters)`]];
  }

  parts(parts) {
    if (parts.length > MOST_PARTS) this.isWhole = false;
    return parts.slice(0, MOST_PARTS);
  }
}

// What a tool call is about, as the agent says: kind, files, input.
function details(tool, view) {
  const places = view.parts(tool.locations || []).map((place) => place.path + (place.line ? ":" + place.line : ""));
  const parts = [tool.kind ? "kind: " + words(tool.kind) : "", ...places].filter(Boolean);
  const elements = parts.map((part) => make("div", { className: "notice", textContent: part }));
  if (tool.rawInput === undefined || tool.rawInput === null) return elements;
  const input = pre("input", view.text(JSON.stringify(tool.rawInput, null, 2)));
  return [...elements, view.isQuestion ? input : fold("input", "Input", false, input)];
}

// What a tool call has produced.
function contents(tool, view) {
  const parts = (tool.content || []).map((part, at) => {
    if (part.type === "diff") return diff(part, view, "diff " + at);
    if (part.type === "terminal") return make("div", { className: "notice", textContent: "terminal " + part.terminalId });
    const content = part.content || part;
    if (content.type !== "text") return block(content, view);
    const output = plainText(view.text(content.text));
    Object.assign(output, { className: "text output", tabIndex: 0 });
    return folded("output " + at, "Output", content.text, view, output);
  });
  const shown = view.parts(parts);
  if (parts.length > shown.length) shown.push(make("div", { className: "notice", textContent: `(${parts.length - shown.length} more parts)` }));
  if (!parts.length && tool.rawOutput !== undefined && tool.rawOutput !== null && !view.isQuestion) {
    const output = typeof tool.rawOutput === "string" ? tool.rawOutput : JSON.stringify(tool.rawOutput, null, 2);
    shown.push(folded("raw output", "Output", output, view, pre("", view.text(output))));
  }
  return shown;
}

// A long text is closed at first, unless a question is about it.
function folded(key, name, text, view, element) {
  if (view.isQuestion || text.length <= SHORT_TEXT) return element;
  return fold(key, `${name} (${number(text.length)} characters)`, false, element);
}

// Text as it is written, with its blocks of code.
function plainText(text) {
  return make("div", { className: "text" }, ...blocksElements(text, true));
}

// A block of content as an element.
function block(content, view) {
  switch (content.type) {
    case "text": return plainText(view.text(content.text));
    case "image":
      if (/^image\/(png|jpeg|gif|webp)$/.test(content.mimeType)) {
        return make("img", { src: `data:${content.mimeType};base64,${content.data}`, alt: "image of the agent" });
      }
      return make("div", { className: "notice", textContent: "image " + content.mimeType });
    case "resource_link": return make("div", {}, anchor(content.uri, content.title || content.name));
    case "resource": {
      const resource = content.resource || {};
      return make("div", {}, anchor(String(resource.uri)),
        resource.text === undefined ? null : pre("", view.text(resource.text)));
    }
    default: return make("div", { className: "notice", textContent: words(content.type) });
  }
}

// A tool call, which is rendered when it has changed.
class Tool {
  constructor(id) {
    this.call = {};
    this.element = make("section", { className: "card tool", dataset: { id } });
  }

  update(update) {
    for (const name of ["title", "kind", "status", "content", "locations", "rawInput", "rawOutput"]) {
      if (update[name] !== undefined && update[name] !== null) this.call[name] = update[name];
    }
  }

  render() {
    const call = this.call, view = new View(false), status = call.status || "pending";
    const chosen = new Map([...this.element.querySelectorAll("details")].map((it) => [it.dataset.key, it.open]));
    this.element.replaceChildren(
      make("h2", {}, make("span", { textContent: call.title || "tool call" }),
        make("span", { className: "status " + status, textContent: words(status) })),
      ...details(call, view), ...contents(call, view));
    for (const it of this.element.querySelectorAll("details")) it.open = chosen.get(it.dataset.key) ?? it.open;
    return true;
  }
}
