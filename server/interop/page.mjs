// Uses the web page in a real browser, step by step, and says what it has seen.
// Usage: node page.mjs SERVER-BINARY CHROMIUM [SCREENSHOT-FOLDER]

import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { agents } from "./page-agents.mjs";
import { accessible, browserPath, end, newSession, openList, prompt as send, serve, shoot as shootPage, signedIn, step, watch } from "./page-browser.mjs";
import { conversations } from "./page-conversation.mjs";
import { markdown } from "./page-markdown.mjs";

let { server, url } = await serve(0);
const browser = await chromium.launch({
  executablePath: browserPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"],
});

try {
  const context = await browser.newContext({ colorScheme: "light", viewport: { width: 1100, height: 800 } });
  const page = await context.newPage();
  const complaints = [];
  watch(page, complaints);
  const shoot = (name) => shootPage(page, name);
  const log = page.locator("#log");
  const state = page.locator("#state");
  const prompt = (text) => send(page, text);

  await page.goto(url);
  await page.locator("#sign-in").waitFor();
  await accessible(page, "the dialog");
  await page.locator("#token").fill("not-the-token-of-it");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("does not know this token").waitFor();
  await page.locator("#token").fill("a-token-for-the-page");
  await page.getByRole("button", { name: "Sign in" }).click();
  await state.getByText("connected").waitFor();
  step("signs in, and says when the token is wrong");

  await newSession(page);
  await prompt("<img src=x onerror=alert(1)> hello");
  await log.locator(".agent").first().waitFor();
  assert.equal(await log.locator("img").count(), 0, "markup of an agent must stay text");
  assert.match(await log.locator(".agent").first().innerText(), /<img src=x/);
  step("a prompt and its answer, as text");

  await prompt("tool");
  await log.locator(".card.tool .completed").first().waitFor();
  assert.ok(await log.locator("pre.diff .added").count() > 0);
  step("a tool call with its diff");
  await prompt("plan");
  await log.locator(".card.plan li").nth(2).waitFor();
  step("a plan");
  await prompt("usage");
  await page.locator("#usage").getByText("tokens").waitFor();
  step("usage");

  await prompt("permission");
  const allow = log.locator(".question button.allow").first();
  await allow.waitFor();
  await shoot("light");
  await allow.click();
  await log.getByText("you chose").waitFor();
  await state.getByText("idle").waitFor();
  step("a permission by a button");
  await prompt("elicit form");
  await log.locator(".question form").waitFor();
  await shoot("form");
  await log.locator(".question form button[type=button]").click();
  await log.getByText("you answered: decline").waitFor();
  await state.getByText("idle").waitFor();
  step("a form");

  await prompt("slow");
  await state.getByText("running").waitFor();
  await page.locator("#cancel").click();
  await log.getByText("Ended: cancelled.").waitFor();
  step("cancel");

  const second = await context.newPage();
  watch(second, complaints);
  await second.goto(page.url());
  // The token is kept for the tab.
  await second.locator("#token").fill("a-token-for-the-page");
  await second.getByRole("button", { name: "Sign in" }).click();
  await second.locator(".card.tool").first().waitFor();
  await prompt("permission");
  await log.locator(".question button.allow:enabled").first().waitFor();
  await second.locator("#state").getByText("waiting for a permission").waitFor();
  await log.locator(".question button.allow:enabled").first().click();
  await second.locator("#state").getByText("idle").waitFor();
  await state.getByText("idle").waitFor();
  step("a second page sees the conversation and the turn");

  const before = await log.locator(".agent, .user, .card.tool").count();
  const port = new URL(url).port;
  await end(server, "SIGKILL");
  await state.getByText("connection lost").waitFor();
  ({ server, url } = await serve(port));
  await state.getByText("idle").waitFor({ timeout: 60_000 });
  assert.equal(await log.locator(".agent, .user, .card.tool").count(), before, "nothing doubled or lost");
  await prompt("again after the restart");
  await log.locator(".agent", { hasText: "again after the restart" }).waitFor();
  step("goes on after the server was killed, without gap or double");

  const result = await page.evaluate(async (token) => {
    const headers = { Authorization: "Bearer " + token, "Content-Type": "application/json" };
    const post = async (path, body) => (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
    const { session_id: session } = await post("session", {});
    // An EventSource cannot send a token.
    const { ticket } = await post("ticket", {});
    const source = new EventSource(`session/${session}/events?ticket=${ticket}`);
    const ended = new Promise((resolve) => source.addEventListener("result", (event) => resolve([event.lastEventId, event.data])));
    await post(`session/${session}/message`, { text: "hello from a browser" });
    const seen = await ended;
    source.close();
    return seen;
  }, "a-token-for-the-page");
  assert.ok(Number(result[0]) > 0 && result[1].includes("hello from a browser"), JSON.stringify(result));
  step("fetch and EventSource on the REST interface");

  const hostile = await serve(0, "hostile.db", ["hostile.mjs"]);
  try {
    const victim = await signedIn(browser, hostile.url, complaints);
    await newSession(victim);
    await victim.fill("#prompt", "go");
    // Nothing has the focus when the question comes, and the user presses Enter.
    await victim.evaluate(() => {
      document.querySelector("#composer").requestSubmit();
      document.activeElement.blur();
    });
    const card = victim.locator(".question").first();
    await card.waitFor();
    await shootPage(victim, "hostile");
    assert.equal(await victim.evaluate(() => document.activeElement.closest("button, input, select")), null, "no control takes the focus");
    await victim.keyboard.press("Enter");
    await victim.keyboard.press("Space");
    assert.equal(await card.locator(".options button:enabled").count(), 3, "the question is still open");
    const text = await card.innerText();
    assert.doesNotMatch(await victim.locator("body").innerText(), /[\u0007\u200b\u202e]/, "nothing turns or hides text");
    for (const part of ["Read \u27e8U+202E\u27e9txt.exe", "execute", "/work/\u27e8U+202E\u27e9slaf", "rm -rf /\u27e8U+202E\u27e9", "if (a\u27e8U+202E\u27e9b) {\u27e8U+0007\u27e9"]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    const buttons = await card.locator(".options button").allInnerTexts();
    assert.deepEqual(buttons.map((name) => name.replace(/\s+/g, " ")), [
      "Reject allow once", "Deny\u27e8U+200B\u27e9 \u27e8U+202E\u27e9 allow always", "Allow reject once"]);
    assert.deepEqual(await card.locator("button.allow").count(), 2, "colours are those of the kind");
    await card.locator(".options button").nth(2).click();
    await card.getByText("you chose: Allow (reject once)").waitFor();
    const long = victim.locator(".question", { hasText: "Permission: Write" });
    await long.getByText("it can only be rejected here").waitFor();
    assert.equal(await long.locator("button.allow:enabled").count(), 0, "what is not shown cannot be allowed");
    await long.locator(".options button:enabled").click();
    await long.getByText("you chose: Allow (reject once)").waitFor();
  } finally { await end(hostile.server, "SIGTERM"); }
  step("a hostile agent's question: no focus, no hidden characters, input and kinds shown, nothing allowed unread");

  const narrow = await signedIn(browser, url, complaints, { colorScheme: "dark", viewport: { width: 390, height: 800 }, reducedMotion: "reduce" });
  assert.ok(!narrow.url().includes("token"), "the token does not stay in the address");
  const covers = () => narrow.locator("#log").evaluate((log) => {
    const { left, right, top } = log.getBoundingClientRect();
    return [left, right - left, log.contains(document.elementFromPoint((left + right) / 2, top + 5))];
  });
  assert.deepEqual(await covers(), [0, 390, true], "the conversation has the whole width");
  await openList(narrow);
  await narrow.locator("#search:focus").waitFor();
  await accessible(narrow, "the list, dark and narrow");
  await shootPage(narrow, "list-dark-narrow");
  await narrow.keyboard.press("Escape");
  await narrow.locator("#menu:focus").waitFor();
  await narrow.locator("#side").waitFor({ state: "hidden" });
  await openList(narrow);
  const shown = decodeURIComponent(new URL(page.url()).hash.slice(1));
  await narrow.locator(`#sessions button[data-id="${shown}"]`).click();
  await narrow.locator(".card.plan").waitFor();
  await narrow.locator("#side").waitFor({ state: "hidden" });
  assert.deepEqual(await covers(), [0, 390, true]);
  const back = await narrow.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(back, "rgb(20, 23, 27)");
  await accessible(narrow, "dark and narrow");
  await shootPage(narrow, "dark-narrow");
  assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "fits a narrow window");
  step("dark, and in a narrow window with the list as a drawer");

  await conversations(browser, complaints);
  await agents(browser, complaints);
  await markdown(browser);

  assert.deepEqual(complaints, []);
  step("no error and no violation of the policy");
} catch (error) {
  console.error(readableTail(error));
  process.exitCode = 1;
} finally {
  await browser.close();
  await end(server, "SIGTERM");
}

function readableTail(error) { return error instanceof Error ? error.stack : String(error); }
