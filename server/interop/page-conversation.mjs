// How the page shows a conversation: Markdown, notices, history, a lost connection, and a flood.

import assert from "node:assert/strict";
import { accessible, end, idle, newSession, prompt, proxy, serve, shoot, signedIn, step } from "./page-browser.mjs";

export async function conversations(browser, complaints) {
  const { server, url } = await serve(0, "talkative.db", ["talkative.mjs"]);
  try {
    const page = await signedIn(browser, url, complaints);
    await newSession(page);
    await keyboard(page);
    await markdown(page);
    await updates(page);
    await history(browser, page, url, complaints);
    await lostConnection(browser, url, complaints);
    await sessionList(page);
    await closeAndDelete(page);
    await flood(page);
  } finally { await end(server, "SIGTERM"); }
}

async function keyboard(page) {
  await page.locator("#cwd").focus();
  const order = [];
  for (let at = 0; at < 7; at++) {
    order.push(await page.evaluate(() => {
      const { id, dataset, textContent } = document.activeElement;
      return id || (dataset.id ? "a session" : textContent);
    }));
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, "solid", `the focus on ${order.at(-1)} is visible`);
    await page.keyboard.press("Tab");
  }
  assert.deepEqual(order, ["cwd", "New session", "search", "a session", "log", "prompt", "send"]);
  step("the keyboard reaches everything in order, with a visible focus");
}

async function markdown(page) {
  const log = page.locator("#log");
  await prompt(page, "markdown");
  await log.getByText("The end.").waitFor();
  await idle(page);
  const found = await log.locator(".agent").evaluate((agent) => {
    const texts = (selector) => [...agent.querySelectorAll(selector)].map((it) => it.textContent);
    return {
      heading: texts("h3"), strong: texts("strong"), em: texts("em"), items: texts("ul > li").length, nested: texts("ol > li"),
      cells: texts("td"), quote: texts("blockquote"), code: texts("pre code"), rules: texts("hr").length,
      links: [...agent.querySelectorAll("a")].map((it) => [it.textContent, it.href, it.rel, it.target]),
      elements: texts("img, script, b").length, text: agent.textContent,
    };
  });
  assert.deepEqual(found.heading, ["Results"]);
  assert.deepEqual([found.strong, found.em], [["bold", "2"], ["slanted"]]);
  assert.deepEqual([found.items, found.nested], [2, ["nested", "nested too"]]);
  assert.deepEqual(found.cells, ["a", "1", "b | c", "2"]);
  assert.deepEqual(found.quote, ["quoted \u27e8U+202E\u27e9 text"]);
  assert.deepEqual(found.code, ['const x = "<b>no markup</b>";\n# no heading']);
  assert.equal(found.rules, 1);
  assert.deepEqual(found.links.map(([text, href]) => [text, href]), [
    ["link", "https://example.com/a?b=c"], ["https://good.example", "https://bad.example/"], ["https://example.org/plain", "https://example.org/plain"]]);
  assert.ok(found.links.every(([, , rel, target]) => rel.includes("noopener") && target === "_blank"));
  assert.equal(found.elements, 0, "markup of an agent must stay text");
  for (const part of ["(https://example.com/a?b=c)", "(https://bad.example/)", "[file](file:///etc/passwd)", "[script](javascript:alert(1))", "<img src=x", "2 * 3 * 4 and snake_case_name"]) {
    assert.ok(found.text.includes(part), `${part} in ${found.text}`);
  }
  await shoot(page, "markdown");
  step("Markdown in pieces: blocks, emphasis, links with their targets, no markup of its own");
}

async function updates(page) {
  const log = page.locator("#log");
  await prompt(page, "notice");
  await log.getByText("The disk is almost full").waitFor();
  await log.getByText("Delete something.").waitFor();
  await prompt(page, "compact");
  await log.locator(".card", { hasText: "Compaction of the conversation" }).getByText("completed").waitFor();
  await idle(page);
  step("a notice and a compaction, by the members of the schema");

  await prompt(page, "edit");
  const edit = log.locator(".card.tool", { hasText: "Edit main.rs" });
  await edit.getByText("(+2 −1)").waitFor();
  await edit.getByText("⋯ 27 unchanged lines").first().waitFor();
  assert.equal(await edit.locator(".plain").first().isVisible(), false, "a long output is folded");
  await edit.getByText(/^Output \(/).click();
  await edit.locator(".plain").waitFor();
  await idle(page);
  await shoot(page, "edit");
  step("a diff without what is unchanged, and a long output that is folded");

  const place = async (kind, text) => {
    const lines = edit.locator(`pre.diff span.${kind}`, { hasText: text }).locator("visible=true");
    return Promise.all((await lines.all()).map((line) => line.boundingBox()));
  };
  const below = async () => {
    const [[before], [after]] = [await place("removed", "line 30"), await place("added", "changed 30")];
    assert.equal((await place("same", "line 29")).length, 1, "what is unchanged is there once");
    assert.ok(after.y > before.y && after.x === before.x, "a line is below the one that it replaces");
  };
  await below();
  const sides = edit.getByRole("button", { name: "Side by side" });
  await sides.click();
  const [[before], [after]] = [await place("removed", "line 30"), await place("added", "changed 30")];
  assert.ok(after.y === before.y && after.x >= before.x + before.width, "a line is beside the one that it replaces");
  const [left, right] = await place("same", "line 31");
  assert.ok(left.y === right.y && left.y > after.y + after.height, "what follows is level on both sides");
  await shoot(page, "sides");
  await page.reload();
  await idle(page);
  await page.getByRole("button", { name: "Side by side", pressed: true }).first().waitFor();
  await sides.click();
  await below();
  step("a diff side by side, until the user wants it otherwise");
}

async function history(browser, page, url, complaints) {
  const log = page.locator("#log");
  await prompt(page, "cost");
  await log.getByText("4,321 tokens · 0.25 USD").waitFor();
  await page.locator("#usage").getByText("1,500 of 200,000 tokens, 0.25 USD").waitFor();
  await prompt(page, "work");
  await log.getByText("Working.").waitFor();
  await page.click("#cancel");
  await log.getByText("Ended: cancelled.").waitFor();
  await idle(page);

  const second = await signedIn(browser, url, complaints);
  await second.locator("#sessions button").first().click();
  await second.locator("#state").getByText("idle").waitFor();
  await prompt(page, "ask");
  await log.locator(".question button.allow").waitFor();
  await page.locator("#state").getByText("waiting for a permission").waitFor();
  await second.locator("#state").getByText("waiting for a permission").waitFor();
  const card = second.locator(".question", { hasText: "Run the tests" });
  await card.getByText("waits for an answer, where the prompt was sent").waitFor();
  assert.equal(await card.locator("button").count(), 0);
  await accessible(page, "a question");
  await shoot(page, "permission");
  await shoot(second, "permission-elsewhere");
  await log.locator(".question button.allow").click();
  await log.getByText("you chose: Allow it (allow once)").waitFor();
  await card.getByText("chosen: Allow it (allow once)").waitFor();
  await idle(page);
  step("a permission that is awaited, in the window that is asked and in another one");

  await prompt(page, "form");
  await log.getByLabel("Name").fill("Ada");
  await log.getByRole("button", { name: "Submit" }).click();
  await log.getByText("you answered: accept").waitFor();
  await idle(page);
  // Notices are not sent again.
  const order = (it) => it.locator("#log > *").evaluateAll((all) => all.filter((element) => !element.matches(".turn"))
    .filter((element) => !element.matches(".message")).map((element) => element.classList[0] + (element.classList[1] ?? "")));
  await second.locator(".question", { hasText: "What is your name?" }).getByText("answered: accept").waitFor();
  const live = await order(page);
  await page.reload();
  await idle(page);
  const again = page.locator("#log");
  await again.getByText("Ended: cancelled.").waitFor();
  await again.getByText("4,321 tokens · 0.25 USD").waitFor();
  await again.locator(".question", { hasText: "Run the tests" }).getByText("chosen: Allow it (allow once)").waitFor();
  await again.locator(".question", { hasText: "What is your name?" }).getByText("answered: accept").waitFor();
  const plain = (list) => list.map((it) => it.replace("questionpast", "question"));
  assert.deepEqual(plain(await order(page)), plain(live), "the same conversation as before the reload");
  assert.equal(await again.locator(".turn", { hasText: "Ended" }).count(), 1);
  await accessible(page, "a conversation");
  await shoot(page, "history");
  await page.setViewportSize({ width: 390, height: 844 });
  await shoot(page, "history-narrow");
  await again.evaluate((log) => { log.scrollTop = 0; });
  await shoot(page, "markdown-narrow");
  await again.evaluate((log) => { log.scrollTop = log.scrollHeight; });
  await page.setViewportSize({ width: 1280, height: 800 });
  await second.context().close();
  step("after a reload: cancelled turns, decisions, answered forms, tokens and cost, in their order");
}

async function lostConnection(browser, url, complaints) {
  const line = await proxy(url);
  try {
    const page = await signedIn(browser, line.url, complaints);
    const log = page.locator("#log");
    await newSession(page);
    await prompt(page, "work");
    await log.getByText("Working.").waitFor();
    line.cut();
    await page.locator("#offline").getByText(/Next attempt in \d+ s/).waitFor();
    assert.doesNotMatch(await page.locator("body").innerText(), /send it again/i, "the turn goes on");
    await prompt(page, "typed offline");
    const unsent = log.locator(".user", { hasText: "typed offline" });
    await unsent.getByText("Not sent: there is no connection.").waitFor();
    await accessible(page, "without a connection");
    await shoot(page, "offline");
    line.mend();
    // Or the page has tried by itself.
    await page.getByText("Try now").dispatchEvent("click");
    await page.locator("#state").getByText("running").waitFor();
    await page.locator("#offline").waitFor({ state: "hidden" });
    assert.equal(await log.locator(".user", { hasText: "work" }).count(), 1, "a prompt that was sent is not doubled");
    assert.equal(await log.getByRole("button", { name: "Send now" }).count(), 1, "nor offered again");
    await page.click("#cancel");
    await log.getByText("Ended: cancelled.").waitFor();
    await idle(page);
    await unsent.getByRole("button", { name: "Send now" }).click();
    await log.getByText("You said: typed offline").waitFor();
    await idle(page);
    assert.equal(await log.getByRole("button", { name: "Send now" }).count(), 0);
    line.lose();
    await prompt(page, "lost on its way");
    const lost = log.locator(".user", { hasText: "lost on its way" });
    line.cut();
    await lost.getByText("Whether the server has this prompt is checked").waitFor();
    line.mend();
    await lost.getByText("Not sent: the connection was lost before.").waitFor();
    await lost.getByRole("button", { name: "Discard" }).click();
    assert.deepEqual(await log.locator(".user").allTextContents(), ["work", "typed offline"]);

    await page.reload();
    await idle(page);
    await prompt(page, "ask");
    await log.locator(".question button.allow").waitFor();
    // The first has no update that says where it belongs.
    await prompt(page, "title Queued");
    await prompt(page, "queued too");
    await log.locator(".question button.allow").click();
    await log.getByText("You said: queued too").waitFor();
    await log.locator(".turn:not(.start)").nth(4).waitFor();
    await idle(page);
    // What is not in view has no `innerText`.
    const entries = await log.locator("> :not(.start)").evaluateAll((all) =>
      all.slice(-9).map((it) => ["turn", "tool", "question"].find((kind) => it.classList.contains(kind)) ?? it.textContent.trim()));
    assert.deepEqual(entries, ["ask", "tool", "question", "turn", "title Queued", "turn", "queued too", "You said: queued too", "turn"]);
    await page.context().close();
  } finally { line.close(); }
  step("a lost connection: when the next attempt is, the running turn, prompts that wait for a click; queued prompts");
}

async function sessionList(page) {
  const list = page.locator("#sessions");
  const current = list.locator('[aria-current="true"]');
  await current.getByText("markdown").waitFor();
  await prompt(page, "title The history of everything");
  await current.getByText("The history of everything").waitFor();
  await page.locator("#title").getByText("The history of everything").waitFor();
  await idle(page);
  await page.fill("#search", "history everything");
  await page.getByText("1 of 2 sessions").waitFor();
  assert.equal(await list.locator("button").count(), 1);
  await page.fill("#search", "");
  await list.locator("button").nth(1).waitFor();
  step("sessions by title or first prompt, and a search");
}

async function closeAndDelete(page) {
  const list = page.locator("#sessions button");
  const count = await list.count();
  await newSession(page);
  await prompt(page, "to be closed");
  await idle(page);
  await page.click("#about");
  await accessible(page, "the dialog of a session");
  await shoot(page, "session");
  await page.keyboard.press("Escape");
  await page.locator("#session").waitFor({ state: "hidden" });
  await page.locator("#about:focus").waitFor();
  const leave = async (name) => {
    await page.click("#about");
    await page.locator("#session").getByRole("button", { name }).click();
    await page.locator("#composer").waitFor({ state: "hidden" });
    assert.equal(new URL(page.url()).hash, "");
  };
  await leave("Close");
  await list.getByText("to be closed").click();
  await page.locator("#log .user").getByText("to be closed").waitFor();
  await idle(page);
  await leave("Delete");
  await list.getByText("to be closed").waitFor({ state: "detached" });
  assert.equal(await list.count(), count);
  await list.first().click();
  await idle(page);
  step("a session is closed, opened again, and deleted");
}

async function flood(page) {
  const log = page.locator("#log");
  for (const [what, name] of [["long 120000", "120 KB in one message"], ["long 2000000", "2 MB in one message"], ["updates 10000", "10,000 updates"]]) {
    await page.evaluate(() => { window.tasks.length = 0; });
    const start = Date.now();
    await prompt(page, what);
    await page.waitForFunction((what) => {
      const texts = [...document.querySelectorAll("#log > .user, #log > .agent")].map((it) => it.textContent);
      return texts.lastIndexOf(what) < texts.findLastIndex((text) => text.endsWith("The last line."));
    }, what, { timeout: 120_000, polling: 500 });
    await idle(page);
    const all = Date.now() - start;
    const tasks = await page.evaluate(() => window.tasks);
    const longest = Math.round(Math.max(0, ...tasks));
    assert.ok(longest < 2000, `${name}: a task of ${longest} ms`);
    step(`${name}: the longest task took ${longest} ms, those above 50 ms ${Math.round(tasks.reduce((sum, it) => sum + it, 0))} ms, all ${all} ms`);
  }
  const start = Date.now();
  await page.evaluate(() => { window.tasks.length = 0; });
  await page.reload();
  await log.getByText("Show earlier entries").waitFor({ state: "attached", timeout: 120_000 });
  await log.getByText("The last line.").waitFor({ timeout: 120_000 });
  const longest = Math.round(Math.max(0, ...await page.evaluate(() => window.tasks)));
  assert.ok(longest < 2000, `reload: a task of ${longest} ms`);
  const count = () => log.locator("> *").count();
  const before = await count();
  assert.ok(before <= 1501, `${before} entries in the document`);
  await log.getByText("Show earlier entries").dispatchEvent("click");
  assert.ok(await count() >= before + 1000, `${await count()} entries after ${before}`);
  const isAtEnd = (expected) => page.waitForFunction((expected) => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#log");
    return (scrollHeight - scrollTop - clientHeight < 80) === expected;
  }, expected);
  await isAtEnd(false);
  await prompt(page, "hello");
  await log.getByText("You said: hello").waitFor();
  await isAtEnd(true);
  await log.hover();
  await page.mouse.wheel(0, -2000);
  await isAtEnd(false);
  // Somebody else's turn must not move what the user reads.
  await page.evaluate(() => fetch(`session/${location.hash.slice(1)}/message`, { method: "POST", body: JSON.stringify({ text: "elsewhere" }),
    headers: { Authorization: "Bearer " + sessionStorage.getItem("token"), "Content-Type": "application/json" } }));
  await log.getByText("You said: elsewhere").waitFor({ state: "attached" });
  await page.evaluate(() => new Promise((drawn) => { let left = 5; const next = () => left-- ? requestAnimationFrame(next) : drawn(); next(); }));
  await isAtEnd(false);
  step(`all of it after a reload: the longest task took ${longest} ms, all ${Date.now() - start} ms`);
}
