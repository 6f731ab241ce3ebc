/** Helpers of type tests: a line compiles when the statement is true. */

/** Whether two types are the same, not only assignable. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** States that something is true. */
export function holds<_Statement extends true>(): void {}
