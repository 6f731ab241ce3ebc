/**
 * Named places at which a test ends the process. Nothing happens at them unless a test has said so: there is no setting for it.
 */

let reached: (name: string) => void = () => undefined;

/** Passes a place. */
export function point(name: string): void {
  reached(name);
}

/** Says what happens at places from now on. For tests. */
export function onPoint(what: (name: string) => void): void {
  reached = what;
}
