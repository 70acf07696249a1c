// Text and elements. All texts are those of agents and users: they become text, never markup.

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

// Preformatted text. It may scroll, so the keyboard must reach it.
function pre(className, ...children) {
  return make("pre", { className, tabIndex: 0 }, ...children);
}

// A part that can be opened and closed; its key names it when the part around it is made again.
function fold(key, summary, isOpen, ...children) {
  return make("details", { open: isOpen, dataset: { key } }, make("summary", { textContent: summary }), ...children);
}

// A link whose target is shown, or null if it leads to something else than a page or a mailbox.
// The target is in the form that the browser uses: names that look alike differ in it.
function linkTo(address, ...label) {
  let url;
  try { url = new URL(address); } catch { return null; }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  const anchor = make("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, ...label);
  if (!label.length) anchor.textContent = visible(url.href);
  const isSame = [url.href, url.href.replace(/\/$/, "")].includes(anchor.textContent);
  return make("span", {}, anchor, isSame ? null : make("span", { className: "target", textContent: ` (${url.href})` }));
}

// An address with a name; what is no link is shown as text.
function anchor(address, name) {
  return (name ? linkTo(address, String(name)) : linkTo(address))
    ?? make("span", { textContent: name && name !== address ? `${name} (${address})` : address });
}

// The beginning of a text as a line.
function line(text, length = 100) {
  const flat = String(text ?? "").slice(0, 4 * length).replace(/\s+/g, " ").trim();
  return flat.length > length ? flat.slice(0, length).trimEnd() + "…" : flat;
}

const number = (value) => Number(value).toLocaleString("en");
const money = (costs) => Object.entries(costs ?? {}).map(([unit, amount]) => `${Number(amount.toFixed(4))} ${unit}`).join(", ");

// A time of day, with the date unless it is today.
function time(text) {
  const at = new Date(text);
  if (isNaN(at)) return "";
  const isToday = at.toDateString() === new Date().toDateString();
  const day = isToday ? "" : at.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" }) + " ";
  return day + at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
