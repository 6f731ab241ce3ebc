/**
 * What a tool writes while it works, as progress reports: in order, one at a time, cut to the size of a report, bounded in number.
 */

/** Largest report, in bytes: live readers get no more of one. */
const CHUNK_BYTES_MAX = 8_192;

/** Reports that wait; when more come, the oldest is dropped. Progress is for watching and not kept. */
const WAITING_MAX = 256;

/** Longest wait for reports to be sent once the tool has ended, in milliseconds. */
const END_MS = 1_000;

/** Reports of one call. */
export class Progress {
  readonly #send: (text: string, number: number) => Promise<unknown>;
  readonly #waiting: string[] = [];
  #number = 0;
  #sending: Promise<void> | undefined;

  constructor(send: (text: string, number: number) => Promise<unknown>) {
    this.#send = send;
  }

  /** Takes a text of any size. */
  add(text: string): void {
    for (const part of parts(text)) {
      if (this.#waiting.length >= WAITING_MAX) this.#waiting.shift();
      this.#waiting.push(part);
    }
    this.#sending ??= this.#run().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Waits until what was written is sent, for a second at most. */
  async end(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, END_MS);
    });
    await Promise.race([this.#sending, late]);
    clearTimeout(timer);
    this.#waiting.length = 0;
  }

  async #run(): Promise<void> {
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      this.#number += 1;
      await this.#send(text, this.#number);
    }
  }
}

/** A text in parts of at most 8 KiB, cut between characters. */
export function parts(text: string): string[] {
  if (Buffer.byteLength(text) <= CHUNK_BYTES_MAX) return text === "" ? [] : [text];
  const found: string[] = [];
  let [part, bytes] = ["", 0];
  for (const character of text) {
    const size = Buffer.byteLength(character);
    if (bytes + size > CHUNK_BYTES_MAX) {
      found.push(part);
      [part, bytes] = ["", 0];
    }
    part += character;
    bytes += size;
  }
  if (part !== "") found.push(part);
  return found.slice(-WAITING_MAX);
}
