// The chat page of `runfleet dev` in a real browser: a code opens it, conversations are listed, messages come live, calls are
// approved, edited and rejected. Run it by `make test-browser`.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Browser, until } from './browser.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const RUNFLEET = join(ROOT, 'target/debug/runfleet');
const UP_MS = 120_000;

class Fleet {
  printed = '';

  constructor() {
    // The fleet of a checkout keeps its data, and so the counts of what ada was sent by earlier tests.
    const env = { ...process.env, RUNFLEET_CHAT_PER_DAY: '10000', RUNFLEET_CHAT_BURST: '100' };
    this.child = spawn(RUNFLEET, ['dev'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
    this.child.stdout.on('data', (piece) => { this.printed += piece; });
    this.ended = new Promise((done) => { this.child.on('exit', done); });
    this.child.on('exit', (code) => { this.code = code ?? -1; });
  }

  /** What a pattern has found last in what was printed. */
  async says(pattern, bound = UP_MS) {
    const found = await until(`the fleet prints ${pattern}`, () => {
      if (this.code !== undefined) throw new Error(`the fleet has ended with ${this.code}\n${this.printed}`);
      return [...this.printed.matchAll(pattern)].at(-1);
    }, bound);
    return found[1];
  }

  run(...args) {
    const { status, stdout, stderr } = spawnSync(RUNFLEET, args, { cwd: ROOT, encoding: 'utf8', timeout: 60_000 });
    assert.equal(status, 0, `runfleet ${args.join(' ')}\n${stdout}${stderr}`);
    return stdout;
  }

  async stop() {
    this.child.kill('SIGINT');
    await this.ended;
  }
}

async function step(page, name, does) {
  const began = Date.now();
  try {
    await does();
  } catch (error) {
    console.error(`${name}: ${JSON.stringify(await page.texts('nav, #messages li, #doing, .call, .trouble'))}`);
    throw error;
  }
  console.log(`  ${String(Date.now() - began).padStart(6)} ms  ${name}`);
}

const write = (fleet) => fleet.run('start', 'agent', 'seller', 'Tell Ada about the deal', '--deliver-to', 'ada');
const FIRST = 'The offer to Nordwind has been out for a week. Shall I ask for a discount?';
const EXPLAINED = 'The customer compares two offers. Ours is dearer and comes sooner, so speak about the date.';
const APPROVED = 'The discount is approved. Send the customer a new offer today.';

async function test(fleet, browser) {
  const url = await fleet.says(/conversations of ada: (\S+)/g);
  const code = await fleet.says(/code for the chat page, once: (\S+)/g);
  fleet.run('apply', '-f', 'deploy/example', '-f', 'tests/browser/documents.yaml');
  const page = await browser.page(url);
  const unread = () => page.texts('#list li:first-child .unread');
  const first = () => page.value('document.querySelector("#list button")?.dataset.id ?? null');
  const messages = () => page.texts('#messages li');
  const said = (count, last) => until(`${count} messages, the last one ${last}`, async () => {
    const texts = await messages();
    return texts.length === count && texts.at(-1) === last && texts;
  });

  await step(page, 'a wrong code opens nothing', async () => {
    await page.type('#code', '0'.repeat(32));
    await page.click('#login button');
    await until('the page says so', async () => (await page.texts('#login .trouble'))[0]?.includes('not the code'));
    assert.deepEqual(await page.texts('#list'), []);
  });
  await step(page, 'the code that was printed opens the page, which is live', async () => {
    await page.retype('#code', code);
    await page.click('#login button');
    await until('the page is live', async () => (await page.texts('#live'))[0] === 'Live.');
    assert.ok((await page.value('location.href')) === url, 'nothing is put into the address');
    assert.equal(await page.value('document.cookie'), '', 'no script can read the cookie');
    assert.notEqual(await fleet.says(/code for the chat page, once: (\S+)/g), code);
  });
  await step(page, 'a conversation comes into the list by itself, unread', async () => {
    // The fleet of a checkout keeps its data: others may be there from before.
    const before = await first();
    write(fleet);
    await until('it is listed', async () => (await first()) !== before);
    assert.equal((await page.texts('#list .last'))[0], FIRST);
    assert.deepEqual(await unread(), ['1']);
    assert.match(await page.value('document.title'), /^\(\d+\) Conversations$/);
  });
  await step(page, 'it is read when it is opened', async () => {
    await page.click('#list button');
    await said(1, FIRST);
    await until('it is not unread', async () => (await unread()).length === 0);
  });
  await step(page, 'an answer of the agent comes live', async () => {
    await page.type('#text', '<b>Not</b> now 👩‍👩‍👧 שלום');
    await page.click('#reply button');
    const texts = await said(3, 'Call the customer this week and ask what is missing for a decision.');
    assert.equal(texts[1], '<b>Not</b> now 👩‍👩‍👧 שלום', 'a text is a text');
    assert.equal(await page.value('document.querySelectorAll("#messages b").length'), 0);
  });
  await step(page, 'a call waits and is carried out when it is approved', async () => {
    await page.type('#text', 'Yes, ask for a discount.');
    await page.click('#reply button');
    await until('the call is shown', async () => (await page.texts('.call strong'))[0] === 'May approve-discount be used?');
    assert.ok((await page.value('document.querySelector(".call textarea").value')).includes('"amount": 120'));
    assert.equal((await messages()).length, 4, 'nothing is said before');
    await page.click('.call .approve');
    await said(5, APPROVED);
    assert.equal((await page.texts('.call')).length, 0);
  });
  await step(page, 'a call is rejected', async () => {
    await page.type('#text', 'Ask for another discount.');
    await page.click('#reply button');
    await page.type('.call input', 'Not this time.');
    await page.click('.call .reject');
    await said(7, 'The discount is not approved. Offer a longer term instead.');
  });
  await step(page, 'arguments that are no JSON are not sent, and edited ones are', async () => {
    await page.type('#text', 'And one discount more.');
    await page.click('#reply button');
    await page.retype('.call textarea', '{"amount": ');
    await page.click('.call .edit');
    await until('the page says so', async () => (await page.texts('.call .trouble'))[0]?.includes('JSON'));
    await page.retype('.call textarea', '{"amount": 90, "customerTier": "gold"}');
    await page.click('.call .edit');
    await said(9, APPROVED);
  });
  await step(page, 'words of an answer appear before it has ended', async () => {
    await page.type('#text', 'Please explain that.');
    await page.click('#reply button');
    const part = await until('a part of it is shown', async () => {
      const [text] = await page.texts('#doing');
      return text && text !== EXPLAINED && EXPLAINED.startsWith(text) && text;
    });
    assert.ok(!(await messages()).includes(EXPLAINED), `the answer was there already when ${part} was shown`);
    await said(11, EXPLAINED);
    assert.deepEqual(await page.texts('#doing'), [''], 'what was said is in the message');
  });
  await step(page, 'another conversation comes beside the open one, which stays open', async () => {
    const before = await first();
    write(fleet);
    await until('it is the first', async () => (await first()) !== before);
    assert.deepEqual(await unread(), ['1']);
    assert.equal((await messages()).length, 11);
    await page.click('#list li:first-child button');
    await said(1, FIRST);
  });
  // The first look, before the code was given, and the wrong code.
  const others = page.complaints.filter((text) => !text.includes('401'));
  assert.deepEqual(others, [], 'the page has nothing to complain about');
}

const fleet = new Fleet();
let browser;
try {
  browser = await Browser.start();
  await test(fleet, browser);
  console.log('browser: all is well');
} catch (error) {
  console.error(error);
  console.error(fleet.printed);
  process.exitCode = 1;
} finally {
  await browser?.stop();
  await fleet.stop();
}
