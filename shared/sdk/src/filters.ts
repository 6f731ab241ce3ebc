/** Builds conditions for queries. Pure; which of them a source of records knows is decided where a query is sent. */
import { ValidationError } from "./errors.js";
import type { FieldReference, FieldReferences, FilterCondition, FilterExpression, FilterGroup, FilterOperator } from "./records.js";

/** All of the conditions. */
export function and(...expressions: readonly FilterExpression[]): FilterGroup {
  return group("and", expressions);
}

/** At least one of the conditions. */
export function or(...expressions: readonly FilterExpression[]): FilterGroup {
  return group("or", expressions);
}

function group(operator: "and" | "or", expressions: readonly FilterExpression[]): FilterGroup {
  if (expressions.length === 0) throw new ValidationError(`\`${operator}\` needs at least one condition.`);
  return Object.freeze({ kind: "group", operator, expressions: Object.freeze([...expressions]) });
}

/** Comparisons of one field. */
export function fieldReference(slug: string): FieldReference<never> {
  const compare = (operator: FilterOperator) => (value: unknown): FilterCondition =>
    Object.freeze({ kind: "condition", field: slug, operator, value });
  const alone = (operator: FilterOperator) => (): FilterCondition => Object.freeze({ kind: "condition", field: slug, operator });
  return Object.freeze({
    slug,
    eq: compare("="),
    neq: compare("!="),
    gt: compare(">"),
    gte: compare(">="),
    lt: compare("<"),
    lte: compare("<="),
    like: compare("like"),
    notLike: compare("not like"),
    startsWith: compare("startsWith"),
    endsWith: compare("endsWith"),
    in: compare("in"),
    notIn: compare("not in"),
    isNull: alone("is null"),
    notNull: alone("not null"),
    between: (from: unknown, to: unknown) => compare("between")([from, to]),
  });
}

/** Comparisons of any field that is asked for. */
export function fieldReferences<Fields>(): FieldReferences<Fields> {
  const known = new Map<string, FieldReference<never>>();
  return new Proxy(Object.freeze({}), {
    get(_, name) {
      if (typeof name !== "string") return undefined;
      const reference = known.get(name) ?? fieldReference(name);
      known.set(name, reference);
      return reference;
    },
  }) as FieldReferences<Fields>;
}
