// The page's Markdown by itself: pieces make no difference, and hostile texts cost no more than others.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { step } from "./page-browser.mjs";

export async function markdown(browser) {
  const page = await browser.newPage();
  const sources = ["text", "inline", "markdown"].map((name) => readFileSync(join(import.meta.dirname, "page", name + ".js"), "utf8"));
  await page.addScriptTag({ content: sources.join("") + "globalThis.Markdown = Markdown;" });
  const different = await page.evaluate(compare);
  assert.deepEqual(different, []);
  step("Markdown is the same, in whatever pieces it arrives");
  for (const [text, milliseconds] of await page.evaluate(hostile)) {
    assert.ok(milliseconds < 10_000, `${text}…: ${milliseconds} ms`);
  }
  step("hostile Markdown of 1 MiB, 16 kinds, in bounded time");
  await page.close();
}

// Renders random texts at once and in pieces; returns those that differ or show what they must not.
function compare() {
  let seed = 7;
  const random = (below) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % below; };
  const parts = ["word ", "other", "\n", "\n\n", "# ", "- ", "  - ", "1. ", "2) ", "> ", "```", "```\n", "~~~\n", "| a | b |\n", "|---|:-:|\n", "|", "**", "*", "_",
    "__", "~~", "`", "``", "[a](https://b.example/c)", "[", "](", ")", "\\", "---\n", "https://x.example/y", "<b>", "\u202e", "\r\n", "    ", "\u{1f600}", "\ud83d"];
  const found = [];
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: 1 + random(40) }, () => parts[random(parts.length)]).join("");
    const whole = document.createElement("div");
    const once = new Markdown(whole);
    once.append(text);
    once.render(() => false);
    const pieces = document.createElement("div");
    const piecemeal = new Markdown(pieces);
    for (let at = 0; at < text.length;) {
      const size = 1 + random(6);
      piecemeal.append(text.slice(at, at + size));
      if (random(2)) piecemeal.render(() => false);
      at += size;
    }
    piecemeal.render(() => false);
    const links = [...whole.querySelectorAll("a")].every((it) => /^(https?|mailto):/.test(it.href) && it.rel.includes("noopener"));
    const isClean = !/[\u202e]/.test(whole.textContent) && !whole.querySelector("b, img, script");
    if (whole.innerHTML !== pieces.innerHTML || !links || !isClean) found.push([text, whole.innerHTML, pieces.innerHTML]);
  }
  return found.slice(0, 3);
}

// Returns how long each text takes, in milliseconds, in pieces as of a stream.
function hostile() {
  const texts = ["[", "*a", "**a ", "_a ", "`a``b", "> ", "- ", "  - a\n", "| a ", "|-|\n", "\n", "[a](", "a\\", "<https://a", "1. ", "```\n"];
  return texts.map((part) => {
    const element = document.createElement("div");
    const markdown = new Markdown(element);
    const text = part.repeat(Math.ceil((1 << 20) / part.length));
    const start = performance.now();
    for (let at = 0; at < text.length; at += 4096) {
      markdown.append(text.slice(at, at + 4096));
      markdown.render(() => false);
    }
    return [part, Math.round(performance.now() - start)];
  });
}
