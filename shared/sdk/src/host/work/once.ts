/**
 * Work that must not be done twice at once, and whose answer is remembered for a while: a message that comes again is answered again.
 * What is remembered is bounded in number and in bytes; the oldest goes first.
 */

/** Most answers that are remembered. */
const COUNT_MAX = 2_000;

/** Most bytes of remembered answers. */
const BYTES_MAX = 32 * 1_048_576;

/** Answers by the id of what was asked. */
export class Once {
  readonly #running = new Map<string, Promise<Buffer | undefined>>();
  readonly #done = new Map<string, Buffer>();
  #bytes = 0;

  /** The answer to `id`: remembered, of the execution under way, or of one that begins now. None is not remembered: it was not done. */
  run(id: string, work: () => Promise<Buffer | undefined>): Promise<Buffer | undefined> {
    const done = this.#done.get(id);
    if (done !== undefined) return Promise.resolve(done);
    const running = this.#running.get(id);
    if (running !== undefined) return running;
    const begun = work().then(
      (answer) => {
        this.#running.delete(id);
        if (answer !== undefined) this.#remember(id, answer);
        return answer;
      },
      (error: unknown) => {
        this.#running.delete(id);
        throw error;
      },
    );
    this.#running.set(id, begun);
    return begun;
  }

  #remember(id: string, answer: Buffer): void {
    this.#done.set(id, answer);
    this.#bytes += answer.length;
    for (const [oldest, old] of this.#done) {
      if (this.#done.size <= COUNT_MAX && this.#bytes <= BYTES_MAX) return;
      this.#done.delete(oldest);
      this.#bytes -= old.length;
    }
  }
}
