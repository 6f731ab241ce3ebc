import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { CogoverApiError, crypto, fetch, ValidationError } from "../../src/index.js";

function network(t: TestContext, answer: (url: URL, init: RequestInit) => Response | Promise<Response>): [string, RequestInit][] {
  const asked: [string, RequestInit][] = [];
  t.mock.method(globalThis, "fetch", async (url: URL, init: RequestInit) => {
    asked.push([url.href, init]);
    return answer(url, init);
  });
  return asked;
}

const code = (expected: string) => (error: unknown): boolean => error instanceof CogoverApiError && error.code === expected;

test("only https addresses of public names are called", async (t) => {
  const asked = network(t, () => new Response("x"));
  const blocked = [
    "http://example.com/", "https://example.com:8443/", "https://u:p@example.com/", "https://127.0.0.1/", "https://[::1]/", "https://localhost/",
    "https://0x7f.1/", "https://2130706433/", "https://example.com/#a", "/relative", "file:///etc/passwd", "",
  ];
  for (const address of blocked) await assert.rejects(fetch(address), code("FETCH_BLOCKED"), address);
  assert.equal(asked.length, 0);
  assert.equal((await fetch("https://example.com/a?b=c")).status, 200);
  assert.equal(asked[0]?.[1].redirect, "manual");
});

test("an answer is read once, and a redirect is an answer", async (t) => {
  network(t, ({ pathname }) => pathname === "/away"
    ? new Response(null, { status: 302, headers: { Location: "https://other.example.com/" } })
    : new Response('{"a":1}', { headers: { "X-A": "v" } }));
  const answer = await fetch("https://example.com/", { method: "POST", headers: { a: "b" }, body: "{}", timeoutMs: 5 });
  assert.deepEqual([answer.ok, answer.bodyUsed, answer.headers.get("x-a"), await answer.json()], [true, false, "v", { a: 1 }]);
  await assert.rejects(answer.text(), code("FETCH_FAILED"));
  const away = await fetch("https://example.com/away");
  assert.deepEqual([away.status, away.redirected, away.headers.get("location")], [302, false, "https://other.example.com/"]);
});

test("size, time and failures are told by their codes, without what was sent", async (t) => {
  network(t, ({ pathname }, { signal }) => {
    if (pathname === "/large") return new Response("x".repeat(5_242_881));
    if (pathname === "/text") return new Response("no json");
    if (pathname === "/slow") return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    throw new TypeError("s3cret");
  });
  await assert.rejects(fetch("https://example.com/large"), code("FETCH_RESPONSE_TOO_LARGE"));
  await assert.rejects(fetch("https://example.com/slow", { timeoutMs: 5 }), code("FETCH_TIMEOUT"));
  await assert.rejects(fetch("https://example.com/down"), (error: Error) => code("FETCH_FAILED")(error) && !error.message.includes("s3cret"));
  await assert.rejects((await fetch("https://example.com/text")).json(), code("FETCH_FAILED"));
  await assert.rejects(fetch("https://example.com/", { method: "PUT", body: "x".repeat(1_048_577) }), code("FETCH_REQUEST_TOO_LARGE"));
  for (const init of [{ method: "TRACE" }, { headers: { a: 1 } }, { body: {} }, { timeoutMs: 0 }, { credential: "erp" }]) {
    await assert.rejects(fetch("https://example.com/", init as never), ValidationError);
  }
});

test("digests are those that everybody knows", async () => {
  assert.equal(await crypto.sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.equal(await crypto.sha256(new Uint8Array()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert.equal(await crypto.hmacSha256("key", "The quick brown fox jumps over the lazy dog", "base64"), "97yD9DBThCSxMpjmqm+xQ+9NWaFJRhdZl0edvC0aPNg=");
  assert.equal((await crypto.randomBytes(32)).byteLength, 32);
  assert.match(await crypto.randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual([crypto.timingSafeEqual("a", "a"), crypto.timingSafeEqual("a", "b"), crypto.timingSafeEqual("a", "aa")], [true, false, false]);
  await assert.rejects(crypto.hmacSha256("", "x"), ValidationError);
  await assert.rejects(crypto.randomBytes(1_025), ValidationError);
  await assert.rejects(crypto.sha256("x".repeat(262_145)), ValidationError);
});
