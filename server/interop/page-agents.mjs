// The page of a server with several agents: a picker, whose sessions are whose, and the search.

import assert from "node:assert/strict";
import { accessible, binary, end, idle, newSession, prompt, serve, shoot, signedIn, step } from "./page-browser.mjs";

const AGENTS = `
[[agents]]
name = "coder"
description = "Writes <b>code</b>"
command = ${JSON.stringify([binary, "--store", "memory"])}
[[agents]]
name = "reviewer"
command = ${JSON.stringify([binary, "--store", "memory"])}
mode = "code"
`;

export async function agents(browser, complaints) {
  let { server, url } = await serve(0, "agents.db", [], AGENTS);
  try {
    const page = await signedIn(browser, url, complaints);
    await page.locator("#agents").waitFor();
    assert.deepEqual(await page.locator("#agent option").allTextContents(), ["coder: Writes <b>code</b>", "reviewer"]);
    await newSession(page);
    await prompt(page, "hello of the coder");
    await idle(page);
    const items = page.locator("#sessions li");
    await items.filter({ hasText: "coder ·" }).waitFor();
    const first = decodeURIComponent(new URL(page.url()).hash.slice(1));

    await page.selectOption("#agent", "reviewer");
    await newSession(page);
    await prompt(page, "hello of the reviewer");
    await items.filter({ hasText: "reviewer ·" }).waitFor();
    await idle(page);
    assert.equal(await items.count(), 2);
    const second = decodeURIComponent(new URL(page.url()).hash.slice(1));
    assert.notEqual(first, second);
    // The mode with which the file has the reviewer begin.
    assert.equal(await page.locator('#settings select[data-id$="mode"]').inputValue(), "code");
    await page.locator("#log .turn").last().waitFor();
    await accessible(page, "several agents");
    await shoot(page, "agents");
    step("a new session at the agent that is chosen");

    await page.locator(`#sessions button[data-id="${first}"]`).click();
    await page.locator("#log .user").getByText("hello of the coder").waitFor();
    await idle(page);
    await prompt(page, "again");
    await page.locator("#log .user").getByText("again").waitFor();
    await idle(page);
    assert.ok(await page.locator("#log .turn").count() >= 2, "the turns are those of its agent");
    step("a session of another agent is opened");

    await page.fill("#search", "reviewer");
    await page.locator("#found").getByText("1 of 2 sessions").waitFor();
    assert.equal(await items.locator("button").getAttribute("data-id"), second);
    await page.fill("#search", "");
    step("the search finds the sessions of an agent");

    await page.goto("about:blank");
    await page.goto(url + "#" + encodeURIComponent(second));
    await page.locator("#log .user").getByText("hello of the reviewer").waitFor();
    await idle(page);
    assert.equal(await items.count(), 2);
    step("after a reload too");
    await page.context().close();
  } finally { await end(server, "SIGTERM"); }
}
