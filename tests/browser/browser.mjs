// A headless Chromium, driven over its debugging pipe: no library, no port.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const BOUND_MS = 30_000;

export const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Waits until something is true, and gives it back. */
export async function until(what, look, bound = BOUND_MS) {
  const end = Date.now() + bound;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${bound} ms: ${what}`);
    await sleep(50);
  }
}

export class Browser {
  #child; #profile; #waiting = new Map(); #next = 1; #heard = [];

  static async start() {
    const names = [process.env.CHROMIUM, 'chromium-headless-shell', 'chromium', 'google-chrome'].filter(Boolean);
    const found = names.find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0);
    if (!found) throw new Error('no Chromium: apt-get install chromium-headless-shell');
    const browser = new Browser();
    browser.#profile = mkdtempSync(join(tmpdir(), 'runfleet-browser.'));
    // Containers have no user namespaces; the only page that is opened is our own.
    const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
      '--remote-debugging-pipe', `--user-data-dir=${browser.#profile}`, 'about:blank'];
    browser.#child = spawn(found, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });
    browser.#child.stdio[3].on('error', () => {});
    browser.#listen(browser.#child.stdio[4]);
    return browser;
  }

  #listen(pipe) {
    let rest = Buffer.alloc(0);
    pipe.on('data', (piece) => {
      rest = Buffer.concat([rest, piece]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        const message = JSON.parse(rest.subarray(0, end).toString());
        rest = rest.subarray(end + 1);
        const waiting = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        if (!waiting) this.#heard.forEach((hear) => hear(message));
        else if (message.error) waiting.fail(new Error(message.error.message));
        else waiting.done(message.result);
      }
    });
  }

  on(hear) { this.#heard.push(hear); }

  send(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((done, fail) => {
      const timer = setTimeout(() => fail(new Error(`no answer to ${method}`)), BOUND_MS);
      this.#waiting.set(id, {
        done: (result) => { clearTimeout(timer); done(result); },
        fail: (error) => { clearTimeout(timer); fail(error); },
      });
    });
  }

  async page(url) {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    await page.open(url);
    return page;
  }

  async stop() {
    try { await Promise.race([this.send('Browser.close'), sleep(2_000)]); } catch { /* it is gone */ }
    try { process.kill(-this.#child.pid, 'SIGKILL'); } catch { /* it is gone */ }
    await sleep(200);
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  /** What the page has complained about. */
  complaints = [];

  constructor(browser, session) {
    this.browser = browser;
    this.session = session;
    browser.on(({ method, params, sessionId }) => {
      if (sessionId !== session) return;
      if (method === 'Runtime.exceptionThrown') {
        this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      } else if (method === 'Log.entryAdded' && ['warning', 'error'].includes(params.entry.level)) {
        this.complaints.push(params.entry.text);
      }
    });
  }

  send(method, params) { return this.browser.send(method, params, this.session); }

  async open(url) {
    for (const part of ['Page', 'Runtime', 'Log']) await this.send(`${part}.enable`);
    await this.send('Page.navigate', { url });
  }

  async value(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression, returnByValue: true, awaitPromise: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Texts of the elements that can be seen. */
  texts(selector) {
    return this.value(`[...document.querySelectorAll(${JSON.stringify(selector)})]
      .filter((found) => found.checkVisibility()).map((found) => found.textContent)`);
  }

  /** Waits for the first element that can be seen and fits, and clicks in its middle as a person does. */
  async click(selector) {
    const place = await until(`${selector} can be seen`, () => this.value(`(() => {
      const found = document.querySelector(${JSON.stringify(selector)});
      if (!found?.checkVisibility()) return null;
      found.scrollIntoView({ block: 'center' });
      const { x, y, width, height } = found.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2 };
    })()`));
    for (const type of ['mousePressed', 'mouseReleased']) {
      await this.send('Input.dispatchMouseEvent', { type, ...place, button: 'left', clickCount: 1 });
    }
  }

  async type(selector, text) {
    await this.click(selector);
    await this.send('Input.insertText', { text });
  }

  /** Instead of what is there. */
  async retype(selector, text) {
    await this.click(selector);
    await this.value(`document.querySelector(${JSON.stringify(selector)}).select()`);
    await this.send('Input.insertText', { text });
  }
}
